"""How well a fact answers, and in which order the facts come. Pure: numbers in, order out."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from app.recall.question import K1, B, Question
from app.recall.relevance import relevance

# Reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009.
K = 60
# The exact arm holds the facts that carry a name of the question letter for letter. Recency breaks near ties.
VECTOR, WORDS, EXACT, RECENCY = 1.0, 1.0, 1.5, 0.04
# A retired fact that meets the question counts for its head, but less than a live fact that meets it as well.
ECHO = 0.97
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Match:
    """How a text meets a question.

    `cosine` is None without a vector; `words` is BM25; `exact` the weight of the exact names that it carries;
    `share` the part of the question's weight that its terms cover, 0 to 1.
    """

    cosine: float | None = None
    words: float = 0.0
    exact: float = 0.0
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Echo:
    """A retired fact that meets the question."""

    id: UUID
    retired_at: datetime
    match: Match

    @property
    def likelihood(self) -> float:
        """How likely the retired text would answer."""
        return relevance(self.match.cosine, self.match.share)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fact that an arm found, or that stands at the end of the chain of a retired fact that one found."""

    id: UUID
    scope: str
    subject: str | None
    observed_at: datetime
    recorded_at: datetime
    match: Match | None
    echoes: tuple[Echo, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranks:
    """The place of a text in each arm, 1 the best, None where the arm did not find it.

    Equal scores share a place. The place by recency is 1 + the whole days since the fact was observed.
    """

    vector: int | None
    words: int | None
    exact: int | None
    recency: int

    @property
    def fused(self) -> float:
        """The sum of weight / (K + place) over the arms."""
        placed = (
            (VECTOR, self.vector),
            (WORDS, self.words),
            (EXACT, self.exact),
            (RECENCY, self.recency),
        )
        return sum(weight / (K + place) for weight, place in placed if place is not None)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate in its place, by the ranks of its own text or, where `echo` is set, of that retired one."""

    candidate: Candidate
    ranks: Ranks
    score: float
    relevance: float
    echo: Echo | None = None

    @property
    def match(self) -> Match:
        return self.echo.match if self.echo else self.candidate.match or Match()


def match(cosine: float | None, frequencies: Sequence[float], length: int, asked: Question) -> Match:
    """How a text of `length` words meets the question, which has each of its terms so often in it."""
    norm = K1 * (1 - B + B * length / asked.average_length)
    weights = asked.weights
    return Match(
        cosine=cosine,
        words=sum(
            weight * frequency * (K1 + 1) / (frequency + norm)
            for weight, frequency in zip(weights, frequencies, strict=True)
            if frequency
        ),
        exact=sum(weights[name] for name in asked.names if frequencies[name]),
        share=_share(frequencies, asked),
    )


def _share(frequencies: Sequence[float], asked: Question) -> float:
    """A word is covered by any of its wholes, or else by those of its parts that are there."""
    total = covered = 0.0
    for word in asked.words:
        whole = any(frequencies[at] for at in word.wholes)
        for at in word.parts:
            total += asked.weights[at]
            covered += asked.weights[at] if whole or frequencies[at] else 0.0
    return covered / total if total else 0.0


def rank(candidates: Sequence[Candidate], now: datetime, precedence: Sequence[str] = ()) -> list[Ranked]:
    """Every candidate, best first: by score, then the one recorded later, then the higher id.

    `precedence` are scopes in the order asked: where several answer the same subject, the first one leads.
    """
    live = [candidate.match for candidate in candidates if candidate.match]
    arms = _Arms(
        _ascending(found.cosine for found in live),
        _ascending(found.words or None for found in live),
        _ascending(found.exact or None for found in live),
    )
    ranked = [_best(candidate, arms, now) for candidate in candidates]
    ranked.sort(
        key=lambda one: (one.score, one.candidate.recorded_at, one.candidate.id),
        reverse=True,
    )
    return _in_precedence(ranked, precedence)


@dataclass(frozen=True, slots=True)
class _Arms:
    """The scores of the live candidates in each arm, ascending."""

    vector: list[float]
    words: list[float]
    exact: list[float]

    def ranks(self, found: Match, days: int) -> Ranks:
        """1 + how many live candidates score higher."""
        return Ranks(
            vector=_place(self.vector, found.cosine, bisect_right),
            words=_place(self.words, found.words or None, bisect_right),
            exact=_place(self.exact, found.exact or None, bisect_right),
            recency=1 + days,
        )

    def ranks_behind(self, found: Match, days: int) -> Ranks:
        """1 + how many live candidates score as high or higher: an echo never comes before its equal."""
        return Ranks(
            vector=_place(self.vector, found.cosine, bisect_left),
            words=_place(self.words, found.words or None, bisect_left),
            exact=_place(self.exact, found.exact or None, bisect_left),
            recency=1 + days,
        )


def _best(candidate: Candidate, arms: _Arms, now: datetime) -> Ranked:
    days = max(0, int((now - candidate.observed_at).total_seconds() // _DAY_S))
    standings = []
    if candidate.match:
        ranks = arms.ranks(candidate.match, days)
        standings.append(
            Ranked(
                candidate,
                ranks,
                ranks.fused,
                relevance(candidate.match.cosine, candidate.match.share),
            )
        )
    for echo in candidate.echoes:
        ranks = arms.ranks_behind(echo.match, days)
        standings.append(Ranked(candidate, ranks, ECHO * ranks.fused, ECHO * echo.likelihood, echo))
    best = max(standings, key=lambda one: (one.score, one.echo is None))
    return replace(best, relevance=max(one.relevance for one in standings))


def _in_precedence(ranked: list[Ranked], precedence: Sequence[str]) -> list[Ranked]:
    """Within each subject, give the places that its facts hold to them in the order of their scopes."""
    order = {scope: at for at, scope in enumerate(precedence)}
    if len(order) < 2:
        return ranked
    places: dict[str, list[int]] = {}
    for at, one in enumerate(ranked):
        if one.candidate.subject is not None:
            places.setdefault(one.candidate.subject, []).append(at)
    arranged = list(ranked)
    for held in places.values():
        by_scope = sorted(
            (ranked[at] for at in held),
            key=lambda one: order.get(one.candidate.scope, len(order)),
        )
        for at, one in zip(held, by_scope, strict=True):
            arranged[at] = replace(one, score=ranked[at].score)
    return arranged


def _ascending(scores: Iterable[float | None]) -> list[float]:
    return sorted(_rounded(score) for score in scores if score is not None)


def _place(
    ascending: list[float],
    score: float | None,
    bisect: Callable[[list[float], float], int],
) -> int | None:
    return None if score is None else 1 + len(ascending) - bisect(ascending, _rounded(score))


def _rounded(score: float) -> float:
    # Two plans for the same statement may differ beyond this digit, and ties must stay ties.
    return round(score, 6)
