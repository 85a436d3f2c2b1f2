"""One attempt at a run: begun, kept alive, ended, or given up for a later one.

An attempt holds its run by a lease. Every statement that writes for it names it, so that an attempt that was
taken for dead changes nothing any more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Integer,
    Interval,
    Text,
    Uuid,
    bindparam,
    case,
    cast,
    delete,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.db import Connection, Row, Statement
from app.upkeep.model import Finding, job_findings, job_runs, word


@dataclass(frozen=True, slots=True)
class Mark:
    """Which attempt at which run."""

    namespace: str
    run_id: UUID
    attempt: int

    @property
    def parameters(self) -> dict[str, Any]:
        return {"namespace": self.namespace, "run_id": self.run_id, "attempt": self.attempt}


@dataclass(frozen=True, slots=True)
class Standing:
    """How far an attempt is."""

    counts: Mapping[str, int]
    progress: Mapping[str, int | None]

    @property
    def parameters(self) -> dict[str, Any]:
        return {"new_counts": Jsonb(self.counts), "new_progress": Jsonb(self.progress)}


_TIME = TIMESTAMP(timezone=True)
_NS = bindparam("namespace", type_=Text)
_RUN = bindparam("run_id", type_=Uuid)
_now = func.clock_timestamp()
_mine = (job_runs.c.namespace == _NS, job_runs.c.id == _RUN)
_LEASE = bindparam("lease", type_=Interval)
_still_mine = (*_mine, job_runs.c.status == word("running"), job_runs.c.attempts == bindparam("attempt", type_=Integer))

_claim = Statement(
    update(job_runs)
    .where(
        *_mine,
        or_(
            job_runs.c.status == word("queued"),
            # A lease that has run out is a worker that died or lost its connection.
            (job_runs.c.status == word("running")) & (job_runs.c.lease_until < _now),
        ),
    )
    .values(
        status=word("running"),
        attempts=job_runs.c.attempts + literal_column("1"),
        started_at=func.coalesce(job_runs.c.started_at, _now),
        lease_until=_now + _LEASE,
        counts=literal_column("'{}'::jsonb"),
        progress=literal_column("'{}'::jsonb"),
        error=null(),
    )
    .returning(job_runs)
)
_beat = Statement(
    update(job_runs)
    .where(*_still_mine)
    .values(
        lease_until=_now + _LEASE,
        counts=bindparam("new_counts", type_=JSONB),
        progress=bindparam("new_progress", type_=JSONB),
    )
    .returning(job_runs.c.cancel_requested)
)
_finish = Statement(
    update(job_runs)
    .where(*_still_mine)
    .values(
        status=bindparam("new_status", type_=Text),
        counts=bindparam("new_counts", type_=JSONB),
        progress=bindparam("new_progress", type_=JSONB),
        error=bindparam("new_error", type_=Text),
        lease_until=null(),
        finished_at=_now,
    )
)
_release = Statement(
    update(job_runs)
    .where(*_still_mine)
    .values(
        # A run that was called off while it gave way is not queued once more.
        status=case((job_runs.c.cancel_requested, word("cancelled")), else_=word("queued")),
        finished_at=case((job_runs.c.cancel_requested, _now)),
        counts=bindparam("new_counts", type_=JSONB),
        progress=bindparam("new_progress", type_=JSONB),
        error=bindparam("new_error", type_=Text),
        attempts_allowed=job_runs.c.attempts_allowed + cast(bindparam("unburnt", type_=Integer), Integer),
        postponed=job_runs.c.postponed + literal_column("1"),
        lease_until=null(),
    )
    .returning(job_runs.c.status)
)
_spend = Statement(
    update(job_runs)
    .where(*_mine)
    .values(
        calls=job_runs.c.calls + cast(bindparam("more_calls", type_=BigInteger), BigInteger),
        tokens=job_runs.c.tokens + cast(bindparam("more_tokens", type_=BigInteger), BigInteger),
    )
)
_spent = Statement(
    select(
        cast(func.coalesce(func.sum(job_runs.c.calls), literal_column("0")), BigInteger).label("calls"),
        cast(func.coalesce(func.sum(job_runs.c.tokens), literal_column("0")), BigInteger).label("tokens"),
    ).where(job_runs.c.namespace == _NS, job_runs.c.created_at > bindparam("since", type_=_TIME))
)
_find = Statement(
    insert(job_findings).values(
        {
            name: bindparam(name)
            for name in ("namespace", "run_id", "action", "scope", "fact_id", "other_id", "rule", "detail")
        }
    )
)
_forget_findings = Statement(delete(job_findings).where(job_findings.c.namespace == _NS, job_findings.c.run_id == _RUN))


async def claim(conn: Connection, namespace: str, run_id: UUID, lease: timedelta) -> Row | None:
    """Begin an attempt, which counts from here on; None where there is nothing to begin."""
    return await _claim.row(conn, namespace=namespace, run_id=run_id, lease=lease)


async def beat(conn: Connection, mark: Mark, standing: Standing, lease: timedelta) -> bool | None:
    """Prolong the lease; whether the run is to stop, or None where it is another attempt's by now."""
    row = await _beat.row(conn, lease=lease, **mark.parameters, **standing.parameters)
    return None if row is None else bool(row["cancel_requested"])


async def finish(conn: Connection, mark: Mark, standing: Standing, *, status: str, error: str | None) -> bool:
    """End an attempt and with it the run; False where it is another attempt's by now."""
    touched = await _finish.run(conn, new_status=status, new_error=error, **mark.parameters, **standing.parameters)
    return touched == 1


async def release(conn: Connection, mark: Mark, standing: Standing, *, error: str, burnt: bool) -> str | None:
    """Give an attempt up for a later one; the new status, or None where it is another attempt's by now."""
    row = await _release.row(conn, new_error=error, unburnt=0 if burnt else 1, **mark.parameters, **standing.parameters)
    return row["status"] if row else None


async def spend(conn: Connection, namespace: str, run_id: UUID, calls: int, tokens: int) -> None:
    await _spend.run(conn, namespace=namespace, run_id=run_id, more_calls=calls, more_tokens=tokens)


async def spent_since(conn: Connection, namespace: str, since: datetime) -> tuple[int, int]:
    """Calls and tokens that the namespace's runs have used, of those created since a moment."""
    row = await _spent.row(conn, namespace=namespace, since=since)
    return (row["calls"], row["tokens"]) if row else (0, 0)


async def add_findings(conn: Connection, namespace: str, run_id: UUID, found: Sequence[Finding]) -> None:
    await _find.run_many(
        conn,
        [
            {
                "namespace": namespace,
                "run_id": run_id,
                "action": finding.action,
                "scope": finding.scope,
                "fact_id": finding.fact_id,
                "other_id": finding.other_id,
                "rule": finding.rule,
                "detail": Jsonb(dict(finding.detail)),
            }
            for finding in found
        ],
    )


async def forget_findings(conn: Connection, namespace: str, run_id: UUID) -> None:
    """Drop what an attempt before this one had listed."""
    await _forget_findings.run(conn, namespace=namespace, run_id=run_id)


_count_findings = Statement(
    select(func.count().label("found")).where(
        job_findings.c.namespace == _NS,
        job_findings.c.run_id == _RUN,
        job_findings.c.action == bindparam("action", type_=Text),
    )
)


async def count_findings(conn: Connection, namespace: str, run_id: UUID, action: str) -> int:
    """How many findings of an action the run has, of all its attempts."""
    row = await _count_findings.row(conn, namespace=namespace, run_id=run_id, action=action)
    return int(row["found"]) if row else 0
