"""Whether a new statement stands beside a held one, replaces it, narrows it or contradicts it.

Lexical and deterministic: two texts are read as clauses (subject, verb, value, phrases), and rules compare the frames.
Every rule has a name and a version. English is read in full. Text in other languages is compared token by token, with
nothing dropped or folded: another number, or another value behind a copula or a topic mark, in an otherwise equal text
is a conflict to show and never a retirement.
"""

from app.facts.detection.comparison import compare, dropped_values, key_terms
from app.facts.detection.finding import Finding
from app.facts.detection.tokens import normalise

__all__ = ["Finding", "compare", "dropped_values", "key_terms", "normalise"]
