"""How well texts answer a question, and in which order the facts come. Pure: numbers in, order out.

Everything measured is an array with one entry for each sighting.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Self
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.recall.question import K1, B, Question
from app.recall.relevance import relevance
from app.recall.sightings import Bools, Floats, Sightings, microseconds, uuid_of

# Reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009.
K = 60
# The exact arm holds the facts that carry a name of the question letter for letter, and the arm of relevance keeps
# what is good in both of the first two before what is best in one. Recency breaks near ties.
ARMS = {"vector": 1.0, "words": 1.0, "exact": 1.5, "relevance": 1.0}
RECENCY = 0.04
# A retired fact that meets the question counts for its head, behind any current fact that meets it as well.
ECHO = 0.999
_WEIGHTS = np.array(list(ARMS.values()))[:, np.newaxis]
_DAY_US = 86_400_000_000

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Measures:
    """How each text meets the question.

    `cosine` is not a number without a vector; `words` is BM25; `exact` the weight of the exact names that it
    carries; `share` the part of the question's weight that its terms cover; `relevance` how likely it answers.
    """

    cosine: Floats
    words: Floats
    exact: Floats
    share: Floats
    relevance: Floats

    def at(self, places: Sequence[int]) -> Self:
        """Those in these places."""
        return type(self)(*(getattr(self, name)[list(places)] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Ranks:
    """The place of each text in each arm, 1 the best, 0 where the arm did not find it; equals share a place.

    `arms` is of shape (arms, texts), in the order of `ARMS`. A retired text takes no place from a current one: it
    stands half a place behind the last that is no worse. The place by recency is 1 + the whole days since the fact
    was observed.
    """

    arms: Floats
    recency: Floats

    @property
    def fused(self) -> Floats:
        """The sum of weight / (K + place) over the arms."""
        shares = _WEIGHTS / (K + self.arms)
        total: Floats = RECENCY / (K + self.recency) + (shares * (self.arms > 0)).sum(axis=0)
        return total


class Ranked(NamedTuple):
    """A fact in its place, by the sighting `best`; `echoes` are the sightings of retired facts that it stands for."""

    id: UUID
    score: float
    relevance: float
    best: int
    echoes: Sequence[int]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The facts that were seen, each once and best first. `relevance` is how likely each answers, in their order."""

    seen: Sightings
    best: Places
    scores: Floats
    relevance: Floats
    echoes: Mapping[int, Sequence[int]]

    def __len__(self) -> int:
        return len(self.best)

    def __iter__(self) -> Iterator[Ranked]:
        ids = self.seen.ids
        columns = (column.tolist() for column in (self.best, self.scores, self.relevance))
        for best, score, likely in zip(*columns, strict=True):
            yield Ranked(uuid_of(ids[best]), score, likely, best, self.echoes.get(best, ()))


def measure(cosine: Floats, lengths: Floats, frequencies: Floats, asked: Question) -> Measures:
    """Measure texts of these lengths in words; `frequencies` is of shape (texts, terms of the question)."""
    weights = np.array(asked.weights)
    norm = K1 * (1 - B) + (K1 * B / asked.average_length) * lengths
    saturated = frequencies * (K1 + 1) / (frequencies + norm[:, np.newaxis])
    present = frequencies > 0
    names = list(asked.names)
    share = _share(present, weights, asked)
    return Measures(
        cosine=cosine,
        words=saturated @ weights,
        exact=present[:, names] @ weights[names] if names else np.zeros(len(lengths)),
        share=share,
        relevance=relevance(cosine, share),
    )


def _share(present: Bools, weights: Floats, asked: Question) -> Floats:
    """A word is covered by any of its wholes, or else by those of its parts that are there."""
    simple = [part for word in asked.words if not word.wholes for part in word.parts]
    covered: Floats = present[:, simple] @ weights[simple]
    total = float(weights[simple].sum())
    for word in asked.words:
        if word.wholes:
            parts = list(word.parts)
            there = present[:, parts] | present[:, list(word.wholes)].any(axis=1, keepdims=True)
            covered += there @ weights[parts]
            total += float(weights[parts].sum())
    return covered / total if total else covered


def places(seen: Sightings, measured: Measures, now: datetime) -> Ranks:
    """1 + how many current facts score higher; for a retired one ½ + how many score as high or higher."""
    days = (microseconds(now) - seen.moments("observed_at")) // _DAY_US
    # In the order of the arms.
    scores = np.array([measured.cosine, measured.words, measured.exact, measured.relevance])
    found = scores > 0
    found[0] = ~np.isnan(scores[0])  # A cosine may be negative; without a vector it is not a number.
    # Two plans for the same statement may differ beyond this digit, and ties must stay ties.
    rounded = np.where(found, scores.round(6), -np.inf)
    live = np.sort(np.where(seen.is_echo, -np.inf, rounded) if seen.has_echoes else rounded, axis=1)
    place = 1.0 + _better(live, rounded, "right")
    if seen.has_echoes:
        place = np.where(seen.is_echo, 0.5 + _better(live, rounded, "left"), place)
    return Ranks(arms=np.where(found, place, 0.0), recency=1.0 + np.maximum(days, 0))


def _better(live: Floats, scores: Floats, side: Literal["left", "right"]) -> Floats:
    """In each arm, how many of the ordered scores are higher than each score; with `left`, or as high."""
    lower = [one.searchsorted(row, side) for one, row in zip(live, scores, strict=True)]
    better: Floats = live.shape[1] - np.array(lower, np.float64)
    return better


def rank(seen: Sightings, measured: Measures, ranks: Ranks, precedence: Sequence[str] = ()) -> Ranking:
    """Every fact once, best first: by score, then the one recorded later, then the higher id.

    A current fact is seen at most once. One that contradicts a newer or more trusted fact at its subject comes below
    it, whatever its score. `precedence` are scopes in the order asked: where several answer the same
    subject, the first one leads.
    """
    scores, likely = ranks.fused, measured.relevance
    keys: tuple[NDArray[Any], ...] = (seen.rows["id"], seen.moments("recorded_at"))
    echoes: dict[int, list[int]] = {}
    if seen.has_echoes:
        discount = np.where(seen.is_echo, ECHO, 1.0)
        scores, likely = scores * discount, likely * discount
        # Of the texts that stand for one fact, its own comes before a retired one that meets the question as well,
        # and of retired ones the more relevant.
        keys = (seen.rows["echo_id"], likely, ~seen.is_echo, *keys)
    # The last digits depend on the order in which numbers were added, and ties must stay ties.
    best: Places = np.lexsort((*keys, scores.round(12)))[::-1]
    if seen.has_echoes:
        best, echoes = _of_facts(best, seen, likely)
    arranged = _in_precedence(_yielding(best, seen), seen, precedence)
    return Ranking(seen, arranged, scores[best], likely[arranged], echoes)


def _of_facts(order: Places, seen: Sightings, likely: Floats) -> tuple[Places, dict[int, list[int]]]:
    """The best sighting of each fact, with the echoes among all of them. It takes over the best of their relevances."""
    ids, echo = seen.ids, seen.is_echo.tolist()
    best: dict[bytes, int] = {}
    echoes: dict[int, list[int]] = {}
    for at in order.tolist():
        first = best.setdefault(ids[at], at)
        likely[first] = max(likely[first], likely[at])
        if echo[at]:
            echoes.setdefault(first, []).append(at)
    return np.array(list(best.values()), np.intp), echoes


def _yielding(best: Places, seen: Sightings) -> Places:
    """Put a fact right below the last of those that it yields to."""
    if not seen.yields_to:
        return best
    ids, yields_to, arranged = seen.ids, seen.yields_to, best.tolist()
    for weaker in (one for one in best.tolist() if ids[one] in yields_to):
        at = arranged.index(weaker)
        below = [place for place in range(at + 1, len(arranged)) if ids[arranged[place]] in yields_to[ids[weaker]]]
        if below:
            arranged.insert(below[-1], arranged.pop(at))
    return np.array(arranged, np.intp)


def _in_precedence(best: Places, seen: Sightings, precedence: Sequence[str]) -> Places:
    """Within each subject, give the places that its facts hold to them in the order of their scopes."""
    order = {scope: at for at, scope in enumerate(precedence)}
    if len(order) < 2:  # One scope has nothing to precede.
        return best
    held: dict[str, list[int]] = {}
    for place, at in enumerate(best.tolist()):
        if (subject := seen.subjects[at]) is not None:
            held.setdefault(subject, []).append(place)
    arranged = best.copy()
    for taken in held.values():
        arranged[taken] = sorted(best[taken], key=lambda at: order.get(seen.scopes[at], len(order)))
    return arranged
