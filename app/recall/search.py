"""One search of the memory: what the arms find for a question, weighed and put in order."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from app.analyzer import Word, quoted
from app.auth import Tier, tiers_from
from app.db import Connection
from app.embedding import Profile, Vectors
from app.facts.visibility import Sight
from app.recall import arms, queries
from app.recall.asked import bound
from app.recall.question import DEPTH, Corpus, Question, any_of, terms_to_look_up
from app.recall.ranking import Measures, Ranking, Ranks, measure, places, rank
from app.recall.relevance import LIKELY
from app.recall.shape import Shape, places_for
from app.recall.sightings import Held, Sightings

# Up to so many facts are compared one by one with the question's vector: about 2 µs each.
FEW_FACTS = 1_000
# One step of an index scan costs about as much as comparing six facts, and it must pass 100 / share facts to
# find 100 in the scopes: comparing all n of N is cheaper while n² < 600 N.
_INDEX_STEP = 6
# A moment of the past has no counts of its own, so there the whole store decides.
_FEW_IN_THE_PAST = 20_000
# By the numbers of `Held`: what is shown, and what is shown where retired facts are asked for; the rest is counted.
_SHOWN = np.array([held in {Held.WORDED, Held.NEAR, Held.ECHO} for held in range(len(Held) + 1)])
_SHOWN_WITH_RETIRED = np.array([shown or held == Held.FORGOTTEN for held, shown in enumerate(_SHOWN)])


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a search is for: whose facts, which, at what moment (`as_of` and `known_at` come together).

    `subjects` are the names of one subject, any of which will do.
    """

    namespace: str
    sight: tuple[Sight, Mapping[str, Any]]
    precedence: tuple[str, ...] = ()
    subjects: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    min_tier: Tier | None = None
    as_of: datetime | None = None
    known_at: datetime | None = None
    retired: bool = False

    @property
    def filters(self) -> dict[str, Any]:
        """The filters that are set, by the names that the statement knows."""
        given = {
            "subjects": list(self.subjects) if self.subjects else None,
            "kinds": list(self.kinds) if self.kinds else None,
            "tags": list(self.tags) if self.tags else None,
            "tiers": tiers_from(self.min_tier) if self.min_tier else None,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Direction:
    """The question's vector and the space that it lies in."""

    profile: Profile
    vector: Vectors


@dataclass(frozen=True, slots=True)
class Sought:
    """What one search takes: what it is for, its words, what the scopes hold of them, its direction, and now."""

    wanted: Wanted
    asked: Question
    corpus: Corpus
    direction: Direction | None
    now: datetime


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: texts, how they meet the question, the facts in order; `held_back` counts by reason."""

    asked: Question
    seen: Sightings
    measured: Measures
    ranks: Ranks
    ranked: Ranking
    held_back: Mapping[str, int]


async def corpus_of(
    conn: Connection, namespace: str, sight: tuple[Sight, Mapping[str, Any]], questions: Iterable[Sequence[Word]]
) -> Corpus:
    """What the scopes in sight hold, as far as the words of these questions are concerned."""
    terms = dict.fromkeys(term for words in questions for term in terms_to_look_up(words))
    counts, indexed = await queries.frequencies(conn, namespace, sight, list(terms))
    facts, length = counts.pop("", (0, 0))
    return Corpus(facts, length, {term: count for term, (count, _) in counts.items()}, max(facts, indexed))


async def search(conn: Connection, sought: Sequence[Sought]) -> list[Found]:
    """Find and rank the facts that meet each question: one statement for those that are alike, rarely two."""
    exact = [is_cheaper_exactly(one.wanted, one.corpus) for one in sought]
    found = await _candidates(conn, sought, exact)
    # For some the index gave up before it had met enough facts that the predicates leave.
    short = [at for at, one in enumerate(sought) if not exact[at] and _is_short(found[at], one)]
    again = await _candidates(conn, [sought[at] for at in short], [True] * len(short))
    for at, seen in zip(short, again, strict=True):
        found[at] = seen
    return [_found(seen, one.asked, one.wanted, one.now) for seen, one in zip(found, sought, strict=True)]


async def _candidates(conn: Connection, sought: Sequence[Sought], exact: Sequence[bool]) -> list[Sightings]:
    alike: dict[str, list[int]] = {}
    for at, one in enumerate(sought):
        alike.setdefault(repr((exact[at], one.direction and one.direction.profile, one.wanted)), []).append(at)
    found: dict[int, Sightings] = {}
    for group in alike.values():
        statement = statement_of([sought[at] for at in group], exact=exact[group[0]])
        found.update(zip(group, await arms.candidates(conn, *statement, len(group)), strict=True))
    return [found[at] for at in range(len(sought))]


def is_cheaper_exactly(wanted: Wanted, corpus: Corpus) -> bool:
    """Whether comparing every vector in the scopes takes less than going through their index."""
    if wanted.as_of is not None:
        return corpus.everywhere <= _FEW_IN_THE_PAST
    few = corpus.facts <= FEW_FACTS or corpus.facts < math.sqrt(DEPTH * _INDEX_STEP * corpus.everywhere)
    return few or wanted.subjects is not None


def _is_short(seen: Sightings, sought: Sought) -> bool:
    near = int(np.count_nonzero(seen.held == Held.NEAR))
    few = near < DEPTH and (near < sought.corpus.facts or sought.wanted.as_of is not None)
    return few and sought.direction is not None


def statement_of(sought: Sequence[Sought], *, exact: bool) -> tuple[Shape, dict[str, Any]]:
    """The shape of the statement for questions that are alike, and what it binds."""
    wanted, direction = sought[0].wanted, sought[0].direction
    filters = wanted.filters
    shape = Shape(
        terms=max(places_for(len(one.asked.terms)) for one in sought),
        profile=direction.profile if direction else None,
        exact=exact,
        sight=wanted.sight[0],
        filters=frozenset(filters),
        past=wanted.as_of is not None,
        in_order=len(wanted.precedence) > 1,
    )
    return shape, {
        "namespace": wanted.namespace,
        **wanted.sight[1],
        **filters,
        "as_of": wanted.as_of,
        "known_at": wanted.known_at,
        **bound(
            [_given(one.asked, one.direction, shape.terms) for one in sought],
            [one.direction.vector if one.direction else None for one in sought],
        ),
    }


def _given(asked: Question, direction: Direction | None, size: int) -> dict[str, Any]:
    padding = size - len(asked.terms)
    terms = [*map(quoted, asked.terms), *[""] * padding]
    weights = [*asked.weights, *[0.0] * padding]
    return {
        **{f"term_{place}": term for place, term in enumerate(terms)},
        **{f"weight_{place}": weight for place, weight in enumerate(weights)},
        "fetching": any_of(asked.fetching if direction else asked.fetching_alone),
        "echoing": any_of(asked.echoing),
        "average_length": asked.average_length,
    }


def _found(seen: Sightings, asked: Question, wanted: Wanted, now: datetime) -> Found:
    seen = seen.each_once()
    measured = measure(seen.cosine, seen.lengths, seen.occurrences(len(asked.terms)), asked)
    counts = np.bincount(seen.held[measured.relevance >= LIKELY], minlength=len(Held) + 1).tolist()
    shown = (_SHOWN_WITH_RETIRED if wanted.retired else _SHOWN)[seen.held]
    if not shown.all():
        kept = np.flatnonzero(shown).tolist()
        seen, measured = seen.at(kept), measured.at(kept)
    ranks = places(seen, measured, now)
    return Found(
        asked=asked,
        seen=seen,
        measured=measured,
        ranks=ranks,
        ranked=rank(seen, measured, ranks, wanted.precedence),
        held_back={
            "retired": counts[Held.ECHO] + counts[Held.FORGOTTEN],
            "scheduled": counts[Held.SCHEDULED],
            "expired": counts[Held.EXPIRED],
        },
    )
