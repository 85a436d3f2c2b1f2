"""How likely a text answers a question, on a scale that does not depend on what else the store holds."""

# From here on a text more likely answers than not.
LIKELY = 0.5


def relevance(cosine: float | None, share: float) -> float:
    """0 to 1, from the cosine (None without a vector) and the covered share of the question's weight."""
    return 0.5 * max(cosine or 0, 0) + 0.5 * share
