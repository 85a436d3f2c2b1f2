"""How likely a text answers a question, on a scale that does not depend on what else the store holds."""

import numpy as np
from numpy.typing import NDArray

# From here on a text more likely answers than not.
LIKELY = 0.5


def relevance(cosine: NDArray[np.float64], share: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 to 1, from the cosine (not a number without a vector) and the covered share of the question's weight."""
    return 0.5 * np.nan_to_num(np.maximum(cosine, 0)) + 0.5 * share
