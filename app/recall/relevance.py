"""How likely a text answers a question, on a scale that does not depend on what else the store holds.

A logistic model of two measures, fitted with `bench/relevance.py` on questions with and without an answer. It is
meant for a floor that tells *no match*, and to rank texts that one measure alone would misjudge.
"""

import numpy as np
from numpy.typing import NDArray

# From here on a text more likely answers than not.
LIKELY = 0.5

_BIAS, _COSINE, _SHARE = -4.0, 7.0, 4.2
# What the cosine is like, on average, of a text that covers a share of the question; it stands in where none is known.
_USUAL_COSINE, _COSINE_PER_SHARE = 0.15, 0.35


def relevance(cosine: NDArray[np.float64], share: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 to 1, from the cosine (not a number without a vector) and the covered share of the question's weight."""
    known = np.where(np.isnan(cosine), _USUAL_COSINE + _COSINE_PER_SHARE * share, np.maximum(cosine, 0.0))
    return 1 / (1 + np.exp(-(_BIAS + _COSINE * known + _SHARE * share)))
