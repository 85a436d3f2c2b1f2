"""Asking for runs of jobs, reading them, calling them off; and what the schedule needs to know."""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Integer,
    Text,
    Uuid,
    bindparam,
    case,
    func,
    literal_column,
    null,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert as pg_insert

from app.db import Connection, Row, Statement
from app.facts.visibility import Sight, within
from app.upkeep.model import ACTIVE, job_findings, job_runs, word

_TIME = TIMESTAMP(timezone=True)
_NS = bindparam("namespace", type_=Text)
_RUN = bindparam("run_id", type_=Uuid)
_now = func.clock_timestamp()
_mine = (job_runs.c.namespace == _NS, job_runs.c.id == _RUN)


# --- Asking and reading ----------------------------------------------------------------------------------------

_add = Statement(
    pg_insert(job_runs)
    .values(
        {
            name: bindparam(name, type_=job_runs.c[name].type)
            for name in (
                "namespace", "id", "kind", "scope", "dry_run", "automatic", "parameters", "requested_by", "request_id",
            )
        }
    )
    .on_conflict_do_nothing()
    .returning(job_runs)
)  # fmt: skip
_run = Statement(select(job_runs).where(*_mine))
_locked_run = Statement(select(job_runs).where(*_mine).with_for_update())


async def add_run(conn: Connection, values: Mapping[str, Any]) -> Row | None:
    """Queue a run; None where the schedule asked and a run that it asked for before has not ended yet."""
    return await _add.row(conn, **{**values, "parameters": Jsonb(values["parameters"])})


async def run(conn: Connection, namespace: str, run_id: UUID, *, lock: bool = False) -> Row | None:
    return await (_locked_run if lock else _run).row(conn, namespace=namespace, run_id=run_id)


@lru_cache(maxsize=64)
def _runs(filters: frozenset[str], sight: Sight, *, after: bool) -> Statement:
    position = tuple_(bindparam("after_at", type_=_TIME), bindparam("after_id", type_=Uuid))
    visible = [or_(job_runs.c.scope.is_(None), *within(job_runs.c.scope, sight))] if sight != "everything" else []
    return Statement(
        select(job_runs)
        .where(
            job_runs.c.namespace == _NS,
            *visible,
            *(job_runs.c[name] == bindparam(name, type_=Text) for name in sorted(filters)),
            *([tuple_(job_runs.c.created_at, job_runs.c.id) < position] if after else []),
        )
        .order_by(job_runs.c.created_at.desc(), job_runs.c.id.desc())
        .limit(bindparam("limit", type_=Integer))
    )


async def runs(
    conn: Connection,
    namespace: str,
    *,
    filters: Mapping[str, str],
    sight: Sight,
    seen: Mapping[str, Any],
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> list[Row]:
    """Runs, newest first, of the scopes in sight and of the whole namespace."""
    position = {"after_at": after[0], "after_id": after[1]} if after else {}
    statement = _runs(frozenset(filters), sight, after=after is not None)
    return await statement.rows(conn, namespace=namespace, limit=limit, **filters, **seen, **position)


@lru_cache(maxsize=8)
def _findings(sight: Sight) -> Statement:
    visible = [or_(job_findings.c.scope.is_(None), *within(job_findings.c.scope, sight))]
    return Statement(
        select(job_findings)
        .where(
            job_findings.c.namespace == _NS,
            job_findings.c.run_id == _RUN,
            job_findings.c.position > bindparam("after", type_=BigInteger),
            *(visible if sight != "everything" else []),
        )
        .order_by(job_findings.c.position)
        .limit(bindparam("limit", type_=Integer))
    )


async def findings(
    conn: Connection, namespace: str, run_id: UUID, *, sight: Sight, seen: Mapping[str, Any], after: int, limit: int
) -> list[Row]:
    """What a run found, in its order, of the scopes in sight."""
    return await _findings(sight).rows(conn, namespace=namespace, run_id=run_id, after=after, limit=limit, **seen)


# --- Calling off and asking again ------------------------------------------------------------------------------

_cancel = Statement(
    update(job_runs)
    .where(*_mine, ACTIVE)
    .values(
        cancel_requested=literal_column("true"),
        status=case((job_runs.c.status == word("queued"), word("cancelled")), else_=job_runs.c.status),
        finished_at=case((job_runs.c.status == word("queued"), _now), else_=job_runs.c.finished_at),
    )
    .returning(job_runs)
)
_again = Statement(
    update(job_runs)
    .where(*_mine, job_runs.c.status.in_([word("failed"), word("cancelled")]))
    .values(
        status=word("queued"),
        automatic=literal_column("false"),
        attempts_allowed=job_runs.c.attempts + literal_column("5"),
        error=null(),
        cancel_requested=literal_column("false"),
        finished_at=null(),
    )
    .returning(job_runs)
)


async def cancel(conn: Connection, namespace: str, run_id: UUID) -> Row | None:
    """Cancel a queued run, or ask a running one to stop; None where it has ended."""
    return await _cancel.row(conn, namespace=namespace, run_id=run_id)


async def queue_again(conn: Connection, namespace: str, run_id: UUID) -> Row | None:
    """Put a run that failed or was cancelled back into the queue; None where it is neither."""
    return await _again.row(conn, namespace=namespace, run_id=run_id)
