"""One search of the memory: what the arms find for a question, weighed and put in order."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from app.analyzer import Word, quoted
from app.auth import Tier, tiers_from
from app.db import Connection, Row
from app.embedding import Profile, Vectors
from app.facts.visibility import Sight
from app.recall import arms, queries
from app.recall.arms import DEPTH, Shape
from app.recall.question import Corpus, Question, any_of, question, terms_to_look_up
from app.recall.ranking import Candidate, Echo, Match, Ranked, match, rank
from app.recall.relevance import LIKELY, relevance

# Up to so many facts are compared one by one with the question's vector: about 2 µs each.
FEW_FACTS = 1_000
# One step of an index scan costs about as much as comparing six facts, and it must pass 100 / share facts to
# find 100 in the scopes: comparing all n of N is cheaper while n² < 600 N.
_INDEX_STEP = 6
# A moment of the past has no counts of its own, so there the whole store decides.
_FEW_IN_THE_PAST = 20_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a search is for: whose facts, which, at what moment (`as_of` and `known_at` come together)."""

    namespace: str
    sight: tuple[Sight, Mapping[str, Any]]
    precedence: tuple[str, ...] = ()
    subject: str | None = None
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
            "subject": self.subject,
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
class Found:
    """What a search found. `forgotten` holds, by id, the ranked facts that nothing stands for."""

    asked: Question
    ranked: list[Ranked]
    forgotten: frozenset[UUID] = frozenset()
    held_back: Mapping[str, int] = field(default_factory=dict)


async def search(
    conn: Connection, wanted: Wanted, words: Sequence[Word], direction: Direction | None, now: datetime
) -> Found:
    """Find and rank the facts that meet the words and the direction, in two statements, rarely three."""
    counts, indexed = await queries.frequencies(conn, wanted.namespace, wanted.sight, terms_to_look_up(words))
    facts, length = counts.pop("", (0, 0))
    corpus = Corpus(facts, length, {term: count for term, (count, _) in counts.items()})
    asked = question(words, corpus)
    exact = _is_cheaper_exactly(wanted, corpus.facts, indexed)
    rows = await arms.candidates(conn, *_statement(wanted, asked, direction, exact=exact))
    if direction and not exact and _is_short(rows, corpus.facts, wanted):
        # The index gave up before it had met enough facts that the predicates leave.
        rows = await arms.candidates(conn, *_statement(wanted, asked, direction, exact=True))
    return _found(rows, asked, wanted, now)


def _is_cheaper_exactly(wanted: Wanted, facts: int, indexed: int) -> bool:
    if wanted.as_of is not None:
        return max(facts, indexed) <= _FEW_IN_THE_PAST
    everything = max(facts, indexed)
    return (
        wanted.subject is not None
        or facts <= FEW_FACTS
        or facts < math.sqrt(DEPTH * _INDEX_STEP * everything)
    )


def _is_short(rows: Sequence[Row], facts: int, wanted: Wanted) -> bool:
    near = sum(row["held"] == "near" for row in rows)
    return near < DEPTH and (near < facts or wanted.as_of is not None)


def _statement(
    wanted: Wanted, asked: Question, direction: Direction | None, *, exact: bool
) -> tuple[Shape, dict[str, Any]]:
    size = arms.places(len(asked.terms))
    filters = wanted.filters
    shape = Shape(
        terms=size,
        profile=direction.profile if direction else None,
        exact=exact,
        sight=wanted.sight[0],
        filters=frozenset(filters),
        past=wanted.as_of is not None,
        retired=wanted.retired,
    )
    padding = size - len(asked.terms)
    terms = [*map(quoted, asked.terms), *[""] * padding]
    weights = [*asked.weights, *[0.0] * padding]
    return shape, {
        "namespace": wanted.namespace,
        **wanted.sight[1],
        **filters,
        **{f"term_{place}": term for place, term in enumerate(terms)},
        **{f"weight_{place}": weight for place, weight in enumerate(weights)},
        "fetching": any_of(asked.fetching),
        "echoing": any_of(asked.echoing),
        "average_length": asked.average_length,
        "vector": direction.vector if direction else None,
        "as_of": wanted.as_of,
        "known_at": wanted.known_at,
    }


def _found(rows: Iterable[Row], asked: Question, wanted: Wanted, now: datetime) -> Found:
    matches: dict[UUID, Match] = {}
    places: dict[UUID, Row] = {}
    echoes: dict[UUID, dict[UUID, Echo]] = {}
    forgotten: set[UUID] = set()
    held_back: dict[str, set[UUID]] = {"retired": set(), "scheduled": set(), "expired": set()}
    for row in rows:
        held, id_ = row["held"], row["id"]
        if held in ("worded", "near") and id_ in matches:
            continue
        met = match(row["cosine"], _frequencies(row, asked), row["term_length"], asked)
        likely = relevance(met.cosine, met.share) >= LIKELY
        if held in ("scheduled", "expired"):
            held_back[held].update([id_] if likely else [])
            continue
        places[id_] = row
        if held in ("worded", "near"):
            matches[id_] = met
            continue
        echoes.setdefault(id_, {})[row["echo_id"]] = Echo(row["echo_id"], row["retired_at"], met)
        held_back["retired"].update([row["echo_id"]] if likely else [])
        forgotten.update([id_] if held == "forgotten" else [])
    candidates = [_candidate(row, matches.get(id_), echoes.get(id_, {})) for id_, row in places.items()]
    return Found(
        asked=asked,
        ranked=rank(candidates, now, wanted.precedence),
        forgotten=frozenset(forgotten),
        held_back={reason: len(ids) for reason, ids in held_back.items()},
    )


def _frequencies(row: Row, asked: Question) -> list[float]:
    ranks = row["label_ranks"][: len(asked.terms)]
    return [arms.occurrences(rank) if rank else 0.0 for rank in ranks]


def _candidate(row: Row, met: Match | None, echoes: Mapping[UUID, Echo]) -> Candidate:
    return Candidate(
        id=row["id"],
        scope=row["scope"],
        subject=row["subject"],
        observed_at=row["observed_at"],
        recorded_at=row["recorded_at"],
        match=met,
        echoes=tuple(echoes.values()),
    )
