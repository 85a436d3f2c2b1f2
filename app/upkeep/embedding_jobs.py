"""Vectors for facts that have none yet, and for all facts after the embedding model was changed.

Both walk over the facts in the order of ids and write where the row is still as it was read, so they may be stopped
and begun again at any point, and a fact that was removed meanwhile does not come back. Until a fact has a vector of
the present profile it is found by its words: vectors of another profile are never compared with.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import monotonic
from uuid import UUID

import psycopg
import structlog
from sqlalchemy import Column, Integer, MetaData, Table, Text, Uuid, bindparam, func, select, update
from sqlalchemy.sql.elements import ColumnElement

from app.db import Connection, Row, Statement
from app.embedding import EmbedderUnavailable, Profile
from app.embedding.contract import Vectors
from app.facts.model import Vector, facts_history
from app.facts.storing import register_profile
from app.settings import Settings
from app.upkeep.jobs import Counts, JobFailed, JobRun, Kind, Place, TryLater
from app.upkeep.model import Finding, word

# pgvector's largest index, in half precision.
MOST_DIMENSIONS = 4_000

# How long re-embedding rests after each batch, in times of what the batch took.
_REST = 1.0
_LONGEST_REST_S = 2.0
# A batch is written in one transaction, so it must not be long.
_MOST_AT_ONCE = 64

_NS = bindparam("namespace", type_=Text)
_f = facts_history.c
_PROFILE = bindparam("profile", type_=Text)
_wanted = (_f.namespace == _NS, _f.kind != word("retraction"))
_waiting = _f.embedding_profile.is_(None)
_of_another = _f.embedding_profile.is_distinct_from(_PROFILE)


@lru_cache(maxsize=4)
def _batch(*, everything: bool, scoped: bool) -> Statement:
    where = [*_wanted, _of_another if everything else _waiting, _f.id > bindparam("after", type_=Uuid)]
    return Statement(
        select(_f.id, _f.scope, _f.content, _f.embedding_profile)
        .where(*where, *_in_scope(scoped=scoped))
        .order_by(_f.id)
        .limit(bindparam("most", type_=Integer))
    )


@lru_cache(maxsize=4)
def _by_profile(*, scoped: bool) -> Statement:
    return Statement(
        select(_f.embedding_profile, func.count().label("facts"))
        .where(*_wanted, *_in_scope(scoped=scoped))
        .group_by(_f.embedding_profile)
    )


def _in_scope(*, scoped: bool) -> list[ColumnElement[bool]]:
    return [_f.scope == bindparam("scope", type_=Text)] if scoped else []


_store = Statement(
    update(facts_history)
    .where(
        _f.namespace == _NS,
        _f.id == bindparam("fact_id", type_=Uuid),
        _f.embedding_profile.is_not_distinct_from(bindparam("read_profile", type_=Text)),
    )
    .values(
        embedding=bindparam("vector", type_=Vector()),
        embedding_profile=bindparam("new_profile", type_=Text),
    )
)
_namespaces_waiting = Statement(
    select(_f.namespace).where(_waiting, _f.kind != word("retraction")).group_by(_f.namespace)
)
_mismatched = Statement(
    select(_f.embedding_profile, func.count().label("facts"))
    .where(_f.kind != word("retraction"), _of_another)
    .group_by(_f.embedding_profile)
)
_profiles_known = Table("embedding_profiles", MetaData(), Column("name", Text))
_others = Statement(
    select(_profiles_known.c.name).where(_profiles_known.c.name != _PROFILE).order_by(_profiles_known.c.name)
)
_forget = Statement(select(func.forget_embedding_profile(_PROFILE).label("forgotten")))


async def waiting(conn: Connection, _settings: Settings) -> Sequence[Place]:
    """The namespaces in which facts wait for their first vector."""
    return [(row["namespace"], None) for row in await _namespaces_waiting.rows(conn)]


async def mismatched(conn: Connection, profile: str) -> dict[str, int]:
    """How many facts of all namespaces have a vector of another profile, by that profile, or wait for theirs."""
    rows = await _mismatched.rows(conn, profile=profile)
    return {row["embedding_profile"] or "pending": row["facts"] for row in rows}


async def embed_pending(run: JobRun) -> Counts:
    """Give the facts without a vector theirs. Counts: `embedded`, `without_vector`, `rejected`, `gone`."""
    return await _embed_all(run, everything=False)


async def reembed(run: JobRun) -> Counts:
    """Give every fact a vector of the present profile. A dry run counts the facts of each profile.

    When no fact of any namespace is left to a replaced profile, its indexes go: the count `profiles_forgotten`.
    """
    await _embed_all(run, everything=True)
    if not run.dry_run:
        await _forget_replaced(run)
    return run.counts


async def _embed_all(run: JobRun, *, everything: bool) -> Counts:
    profile = await _profile(run)
    by_profile = await _profiles(run)
    others = {name: n for name, n in by_profile.items() if name != profile.name and (everything or name is None)}
    run.expect(sum(others.values()))
    if run.dry_run:
        run.advance(0, **{f"of {name or 'none'}": n for name, n in by_profile.items()}, to_embed=sum(others.values()))
        return run.counts
    if others:
        await _register(run, profile)
    statement = _batch(everything=everything, scoped=run.scope is not None)
    after = UUID(int=0)
    while rows := await _read(run, statement, profile, after):
        started = monotonic()
        await _embed(run, profile, rows)
        after = rows[-1]["id"]
        if everything:
            # Nobody waits for this, and those who recall meanwhile get as much of the machine.
            await asyncio.sleep(min(_LONGEST_REST_S, _REST * (monotonic() - started)))
    return run.counts


async def _profile(run: JobRun) -> Profile:
    """The profile of the embedder, which one that is asked over the network may know only after a first answer."""
    if run.embedder.profile is None:
        try:
            await run.embedder.embed_documents(["dimensions"])
        except EmbedderUnavailable as failure:
            raise _unavailable(failure) from None
    profile = run.embedder.profile
    if profile is None:
        raise TryLater("The embedder does not say which vectors it makes.")
    if profile.dimensions > MOST_DIMENSIONS:
        raise JobFailed(
            f"The embedding model makes vectors of {profile.dimensions} dimensions, and pgvector indexes "
            f"{MOST_DIMENSIONS} at most. Nothing was changed: set EMBEDDING_DIMENSIONS or choose another model."
        )
    return profile


async def _profiles(run: JobRun) -> dict[str | None, int]:
    async with run.database.reading() as conn:
        rows = await _by_profile(scoped=run.scope is not None).rows(conn, namespace=run.namespace, **_scope(run))
    return {row["embedding_profile"]: row["facts"] for row in rows}


def _scope(run: JobRun) -> dict[str, str]:
    return {} if run.scope is None else {"scope": run.scope}


async def _register(run: JobRun, profile: Profile) -> None:
    try:
        async with run.database.transaction() as conn:
            # The indexes of a new profile are empty, but making them must wait for every writer, and holds up those
            # that come after it.
            await conn.execute("SET LOCAL lock_timeout = '5s'")
            await register_profile(conn, profile.name, profile.dimensions)
    except psycopg.errors.CheckViolation:
        raise JobFailed(
            f"The embedding profile {profile.name} is known with other dimensions than {profile.dimensions}. "
            "Nothing was changed."
        ) from None


async def _read(run: JobRun, statement: Statement, profile: Profile, after: UUID) -> list[Row]:
    most = min(run.settings.embedding_batch, _MOST_AT_ONCE)
    given = {"namespace": run.namespace, "after": after, "most": most, "profile": profile.name, **_scope(run)}
    async with run.database.reading() as conn:
        return await statement.rows(conn, **given)


@dataclass(frozen=True, slots=True)
class _Embedded:
    """The rows that have an answer, in step with their vectors, and those whose text the embedder refuses."""

    rows: list[Row]
    vectors: list[Vectors]
    rejected: list[Row]


async def _embed(run: JobRun, profile: Profile, rows: Sequence[Row]) -> None:
    # No connection is held while the embedder is asked.
    answer = await _ask(run, rows)
    if run.embedder.profile != profile:
        raise TryLater("The embedder's profile changed meanwhile.", after_s=0)
    if answer.rejected:
        logger = structlog.get_logger("worker")
        logger.warning("texts_rejected_by_embedder", facts=[str(row["id"]) for row in answer.rejected])
    stored = await run.database.run(lambda conn: _write(conn, run, profile, answer))
    run.advance(
        len(rows),
        embedded=stored,
        without_vector=sum(not vector.any() for vector in answer.vectors),
        rejected=len(answer.rejected),
        gone=len(rows) - stored,
    )


async def _ask(run: JobRun, rows: Sequence[Row]) -> _Embedded:
    """Vectors for the rows; where the embedder refuses the texts, halves of them, down to the one at fault."""
    try:
        vectors = await run.embedder.embed_documents([row["content"] for row in rows])
    except EmbedderUnavailable as failure:
        if failure.cause != "rejected":
            raise _unavailable(failure) from None
        if len(rows) == 1:
            return _Embedded([], [], list(rows))
    else:
        return _Embedded(list(rows), list(vectors), [])
    middle = len(rows) // 2
    first, second = await _ask(run, rows[:middle]), await _ask(run, rows[middle:])
    return _Embedded(first.rows + second.rows, first.vectors + second.vectors, first.rejected + second.rejected)


async def _write(conn: Connection, run: JobRun, profile: Profile, answer: _Embedded) -> int:
    """Store the vectors of the rows that are still as they were read; how many those are."""
    # A text that has no vector, or is refused, has had its answer: it is not asked for again under this profile.
    found = [vector if vector.any() else None for vector in answer.vectors] + [None] * len(answer.rejected)
    stored = 0
    for row, vector in zip(answer.rows + answer.rejected, found, strict=True):
        stored += await _store.run(
            conn,
            namespace=run.namespace,
            fact_id=row["id"],
            read_profile=row["embedding_profile"],
            vector=vector,
            new_profile=profile.name,
        )
    await run.report(
        conn, [Finding("rejected", row["id"], scope=row["scope"], rule=profile.name) for row in answer.rejected]
    )
    return stored


async def _forget_replaced(run: JobRun) -> None:
    """Drop the indexes of profiles that no fact has any more; what cannot be locked now is left to a later run."""
    profile = await _profile(run)
    async with run.database.reading() as conn:
        others = [row["name"] for row in await _others.rows(conn, profile=profile.name)]
    for other in others:
        try:
            async with run.database.transaction() as conn:
                # It must wait for every reader and writer, and holds up those that come after it.
                await conn.execute("SET LOCAL lock_timeout = '2s'")
                row = await _forget.row(conn, profile=other)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled):
            structlog.get_logger("worker").warning("replaced_profile_kept", profile=other)
        else:
            run.advance(0, profiles_forgotten=int(bool(row and row["forgotten"])))


def _unavailable(failure: EmbedderUnavailable) -> JobFailed | TryLater:
    if failure.permanent:
        return JobFailed(f"The embedder refuses to work: {failure.cause}. What is left keeps its old vectors.")
    return TryLater(f"The embedder is not available: {failure.cause}.", after_s=failure.retry_after)


EMBED_PENDING = Kind("embed_pending", embed_pending, waiting)
REEMBED = Kind("reembed", reembed)
