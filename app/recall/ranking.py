"""How well texts answer a question, and in which order the facts come. Pure: numbers in, order out.

A *sighting* is one text that an arm found: a current fact, or a retired one that stands for the head of its chain.
Everything measured is an array with one entry for each sighting.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.recall.question import K1, B, Question
from app.recall.relevance import relevance

# Reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009.
K = 60
# The exact arm holds the facts that carry a name of the question letter for letter, and the arm of relevance keeps
# what is good in both of the first two before what is best in one. Recency breaks near ties.
VECTOR, WORDS, EXACT, RELEVANCE, RECENCY = 1.0, 1.0, 1.5, 1.0, 0.04
# A retired fact that meets the question counts for its head, behind any current fact that meets it as well.
ECHO = 0.999
_DAY_S = 86_400

Floats = NDArray[np.float64]


class Sighting(NamedTuple):
    """A text that an arm found. Where `echo_id` is set it is that retired fact's, and `id` is its head's.

    `yields_to` are facts that answer the same subject better: newer ones, or ones from a more trusted source.
    """

    id: UUID
    scope: str
    subject: str | None
    observed_at: datetime
    recorded_at: datetime
    echo_id: UUID | None = None
    retired_at: datetime | None = None
    yields_to: Sequence[UUID] | None = None


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


@dataclass(frozen=True, slots=True)
class Ranks:
    """The place of each text in each arm, 1 the best, 0 where the arm did not find it; equals share a place.

    A retired text takes no place from a current one: it stands half a place behind the last that is no worse.
    The place by recency is 1 + the whole days since the fact was observed.
    """

    vector: Floats
    words: Floats
    exact: Floats
    relevance: Floats
    recency: Floats

    @property
    def fused(self) -> Floats:
        """The sum of weight / (K + place) over the arms."""
        total = RECENCY / (K + self.recency)
        arms = (
            (VECTOR, self.vector),
            (WORDS, self.words),
            (EXACT, self.exact),
            (RELEVANCE, self.relevance),
        )
        for weight, place in arms:
            total = total + np.where(place > 0, weight / (K + place), 0.0)
        return total


class Ranked(NamedTuple):
    """A fact in its place, by the sighting `best`; `echoes` are the sightings of retired facts that it stands for."""

    id: UUID
    scope: str
    subject: str | None
    recorded_at: datetime
    score: float
    relevance: float
    best: int
    echoes: tuple[int, ...]


def measure(cosine: Floats, lengths: Floats, frequencies: Floats, asked: Question) -> Measures:
    """Measure texts of these lengths in words; `frequencies` is of shape (texts, terms of the question)."""
    weights = np.array(asked.weights)
    norm = K1 * (1 - B + B * lengths / asked.average_length)
    saturated = frequencies * (K1 + 1) / (frequencies + norm[:, np.newaxis])
    present = frequencies > 0
    names = list(asked.names)
    share = _share(present, weights, asked)
    return Measures(
        cosine=cosine,
        words=saturated @ weights,
        exact=present[:, names] @ weights[names],
        share=share,
        relevance=relevance(cosine, share),
    )


def _share(present: NDArray[np.bool_], weights: Floats, asked: Question) -> Floats:
    """A word is covered by any of its wholes, or else by those of its parts that are there."""
    covered = np.zeros(len(present))
    total = 0.0
    for word in asked.words:
        parts, wholes = list(word.parts), list(word.wholes)
        total += float(weights[parts].sum())
        there: NDArray[np.bool_] = present[:, parts]
        if wholes:
            there = np.logical_or(there, present[:, wholes].any(axis=1, keepdims=True))
        covered += there @ weights[parts]
    return covered / total if total else covered


def places(seen: Sequence[Sighting], measured: Measures, now: datetime) -> Ranks:
    """1 + how many current facts score higher; for a retired one ½ + how many score as high or higher."""
    echo = np.array([one.echo_id is not None for one in seen], bool)
    days = np.array([max(0, int((now - one.observed_at).total_seconds() // _DAY_S)) for one in seen], float)
    return Ranks(
        vector=_places(measured.cosine, echo),
        words=_places(np.where(measured.words > 0, measured.words, np.nan), echo),
        exact=_places(np.where(measured.exact > 0, measured.exact, np.nan), echo),
        relevance=_places(measured.relevance, echo),
        recency=1 + days,
    )


def _places(scores: Floats, echo: NDArray[np.bool_]) -> Floats:
    # Two plans for the same statement may differ beyond this digit, and ties must stay ties.
    rounded = np.round(scores, 6)
    found = ~np.isnan(rounded)
    live = np.sort(rounded[found & ~echo])
    beaten_by = len(live) - np.searchsorted(live, rounded, side="right")
    met_by = len(live) - np.searchsorted(live, rounded, side="left")
    return np.where(found, np.where(echo, 0.5 + met_by, 1.0 + beaten_by), 0.0)


def rank(seen: Sequence[Sighting], measured: Measures, ranks: Ranks, precedence: Sequence[str] = ()) -> list[Ranked]:
    """Every fact once, best first: by score, then the one recorded later, then the higher id.

    A current fact is seen at most once. One that contradicts a newer or more trusted fact at its subject comes below
    it, whatever its score. `precedence` are scopes in the order asked: where several answer the same
    subject, the first one leads.
    """
    discount = np.array([1.0 if one.echo_id is None else ECHO for one in seen])
    scores, likely = (ranks.fused * discount).tolist(), (measured.relevance * discount).tolist()
    # The number of an id is found faster in a dictionary than the id itself.
    of_fact: dict[int, list[int]] = {}
    for at, one in enumerate(seen):
        of_fact.setdefault(one.id.int, []).append(at)
    ranked = [
        _ranked(seen, sightings, scores, likely)
        if len(sightings) > 1
        else _alone(seen[sightings[0]], sightings[0], scores, likely)
        for sightings in of_fact.values()
    ]
    ranked.sort(key=lambda one: (one.score, one.recorded_at, one.id), reverse=True)
    return _in_precedence(_yielding(ranked, seen), precedence)


def _alone(fact: Sighting, at: int, scores: list[float], likely: list[float]) -> Ranked:
    echoes = () if fact.echo_id is None else (at,)
    return Ranked(fact.id, fact.scope, fact.subject, fact.recorded_at, scores[at], likely[at], at, echoes)


def _ranked(seen: Sequence[Sighting], sightings: Sequence[int], scores: list[float], likely: list[float]) -> Ranked:
    best = max(sightings, key=lambda at: (scores[at], seen[at].echo_id is None))
    return _alone(seen[best], best, scores, likely)._replace(
        relevance=max(likely[at] for at in sightings),
        echoes=tuple(at for at in sightings if seen[at].echo_id is not None),
    )


def _yielding(ranked: list[Ranked], seen: Sequence[Sighting]) -> list[Ranked]:
    """Put a fact right below the last of those that it yields to; the scores stay with the places."""
    yields_to = {one.id: set(one.yields_to) for one in seen if one.yields_to}
    if not yields_to:
        return ranked
    arranged = list(ranked)
    for weaker in (one for one in ranked if one.id in yields_to):
        at = arranged.index(weaker)
        below = [place for place in range(at + 1, len(arranged)) if arranged[place].id in yields_to[weaker.id]]
        if below:
            arranged.insert(below[-1], arranged.pop(at))
    return [one._replace(score=place.score) for one, place in zip(arranged, ranked, strict=True)]


def _in_precedence(ranked: list[Ranked], precedence: Sequence[str]) -> list[Ranked]:
    """Within each subject, give the places that its facts hold to them in the order of their scopes."""
    order = {scope: at for at, scope in enumerate(precedence)}
    if len(order) < 2:  # One scope has nothing to precede.
        return ranked
    held: dict[str, list[int]] = {}
    for at, one in enumerate(ranked):
        if one.subject is not None:
            held.setdefault(one.subject, []).append(at)
    arranged = list(ranked)
    for taken in held.values():
        by_scope = sorted((ranked[at] for at in taken), key=lambda one: order.get(one.scope, len(order)))
        for at, one in zip(taken, by_scope, strict=True):
            arranged[at] = one._replace(score=ranked[at].score)
    return arranged
