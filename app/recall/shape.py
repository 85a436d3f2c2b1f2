"""What the statement of the candidates is made for, and what it brings."""

from dataclasses import dataclass
from typing import NamedTuple

from app.embedding import Profile
from app.facts.visibility import Sight
from app.recall.ranking import Sighting

_PLACES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides the text of the candidates' statement; everything else is bound.

    `terms` is the number of places for terms, `exact` whether the vectors are compared one by one instead of
    by their index, `past` whether a moment other than now is asked about.
    """

    terms: int
    profile: Profile | None
    exact: bool
    sight: Sight
    filters: frozenset[str]
    past: bool


def places_for(terms: int) -> int:
    """How many places the statement for this many terms has: few statements serve all questions."""
    return next(size for size in _PLACES if size >= terms) if terms else 0


class Candidate(NamedTuple):
    """A row of the candidates' statement; `held` says how it was found.

    `worded` and `near` are current facts, `echo` stands for a retired fact and names its head, `forgotten` is
    a retired fact that nothing stands for; `scheduled` and `expired` hold no longer or not yet. `label_ranks`
    stand for the frequencies of the terms, four bytes each; see `occurrences`.
    """

    held: str
    term_length: int
    cosine: float | None
    label_ranks: bytes
    sighting: Sighting
