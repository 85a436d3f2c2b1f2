"""Recall: the rules between a question and its answer."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from app.analyzer import Word, query_words
from app.auth import Caller
from app.db import Connection
from app.embedding import EmbedderUnavailable
from app.facts.visibility import sight_of
from app.recall import context, presenting
from app.recall.answer import lines_of, results_of
from app.recall.question import says_nothing
from app.recall.schemas import RecallIn, RecallOut, SuppressedOut
from app.recall.search import Direction, Found, Wanted, search
from app.state import Service

# The part of the deadline that the embedder may take, and what the words alone get once it has passed.
_FOR_THE_EMBEDDER = 0.5
_FOR_THE_WORDS = 0.25


@dataclass(slots=True)
class _Asking:
    """One recall on its way: when it must be done, and what it had to do without."""

    ask: RecallIn
    words: Sequence[Word]
    deadline: float
    degraded: list[str] = field(default_factory=list)

    @property
    def left(self) -> float:
        return max(0.0, self.deadline - time.monotonic())


async def recall(service: Service, caller: Caller, ask: RecallIn) -> RecallOut:
    """What the memory holds to be true about a question.

    Raises ScopeForbidden for a scope that the key may not read.
    """
    scopes = caller.asked(ask.scopes)
    allowance = service.settings.recall_deadline_ms / 1_000
    asking = _Asking(ask, query_words(ask.query), time.monotonic() + allowance)
    direction = await _direction(service, asking, allowance)
    now = datetime.now(UTC)
    wanted = _wanted(caller, ask, scopes, now)
    async with service.database.reading() as conn:
        found = await _search(conn, asking, wanted, direction, allowance)
        lines, below = lines_of(found, ask) if found else ([], 0)
        results = await results_of(conn, caller, ask, found, lines[: ask.k]) if found else []
    framed = ask.format == "context"
    shown = context.fitting(results, ask.max_tokens, framed=framed) if ask.max_tokens else results
    return RecallOut.model_construct(
        results=shown,
        context=context.block(shown) if framed else None,
        suppressed=_suppressed(found, below, len(results) - len(shown)),
        degraded=asking.degraded,
        applied=presenting.applied_out(ask, scopes, found.asked if found else None),
    )


async def recall_all(service: Service, caller: Caller, asks: Sequence[RecallIn]) -> list[RecallOut]:
    """The answers to several questions, in order."""
    return [await recall(service, caller, ask) for ask in asks]


async def _direction(service: Service, asking: _Asking, allowance: float) -> Direction | None:
    """The question's vector, or None where it would mean nothing or cannot be had in time."""
    if says_nothing(asking.words):
        return None
    try:
        async with asyncio.timeout(allowance * _FOR_THE_EMBEDDER):
            vectors = await service.embedder.embed_queries([asking.ask.query])
    except (EmbedderUnavailable, TimeoutError) as problem:
        service.unavailable["vector"] = problem.cause if isinstance(problem, EmbedderUnavailable) else "timeout"
        asking.degraded.append("vector")
        return None
    service.unavailable.pop("vector", None)
    profile = service.embedder.profile
    return Direction(profile, vectors[0]) if profile and vectors[0].any() else None


def _wanted(caller: Caller, ask: RecallIn, scopes: Sequence[str] | None, now: datetime) -> Wanted:
    past = ask.as_of is not None or ask.known_at is not None
    return Wanted(
        namespace=caller.namespace,
        sight=sight_of(caller.reads, scopes),
        precedence=tuple(scopes or ()),
        subject=ask.subject,
        kinds=tuple(ask.kinds) if ask.kinds else None,
        tags=tuple(ask.tags) if ask.tags else None,
        min_tier=ask.min_tier,
        as_of=(ask.as_of or ask.known_at) if past else None,
        known_at=(ask.known_at or now) if past else None,
        retired="retired" in ask.include,
    )


async def _search(
    conn: Connection, asking: _Asking, wanted: Wanted, direction: Direction | None, allowance: float
) -> Found | None:
    """Everything that the deadline leaves time for; the words alone, shortly, where it has passed."""
    if not asking.words:
        return None
    now = wanted.as_of or datetime.now(UTC)
    try:
        async with asyncio.timeout(asking.left):
            return await search(conn, wanted, asking.words, direction, now)
    except TimeoutError:
        asking.degraded.append("deadline")
    if direction is None:
        return None
    asking.degraded.append("vector")
    try:
        async with asyncio.timeout(allowance * _FOR_THE_WORDS):
            return await search(conn, wanted, asking.words, None, now)
    except TimeoutError:
        asking.degraded.append("words")
        return None


def _suppressed(found: Found | None, below: int, cut: int) -> SuppressedOut:
    held_back = found.held_back if found else {}
    return SuppressedOut.model_construct(
        retired=held_back.get("retired", 0),
        scheduled=held_back.get("scheduled", 0),
        expired=held_back.get("expired", 0),
        below_min_relevance=below,
        beyond_max_tokens=cut,
    )
