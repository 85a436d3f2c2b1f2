"""What the statement of the candidates is made for."""

from dataclasses import dataclass

from app.embedding import Profile
from app.facts.visibility import Sight

_PLACES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides the text of the candidates' statement; everything else is bound.

    `terms` is the number of places for terms, `exact` whether the vectors are compared one by one instead of
    by their index, `past` whether a moment other than now is asked about, and `in_order` whether scopes were asked
    in an order that matters.
    """

    terms: int
    profile: Profile | None
    exact: bool
    sight: Sight
    filters: frozenset[str]
    past: bool
    in_order: bool


def places_for(terms: int) -> int:
    """How many places the statement for this many terms has: few statements serve all questions."""
    return next(size for size in _PLACES if size >= terms) if terms else 0
