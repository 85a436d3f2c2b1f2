"""Starting jobs, calling them off and asking for them again: who may, and what the audit trail says."""

from typing import Any
from uuid import UUID

from app.audit.queries import Event, record
from app.auth import Caller
from app.db import Connection, Row
from app.errors import Conflict, NotFound, ScopeForbidden
from app.upkeep import queries, queue
from app.upkeep.schemas import JobIn


async def start(conn: Connection, caller: Caller, wanted: JobIn, request_id: str | None) -> Row:
    """Queue a job. Raises NotFound for another namespace, ScopeForbidden where the key does not open the scope."""
    if wanted.namespace not in (None, caller.namespace):
        raise NotFound("There is no such namespace.")
    _must_open(caller, wanted.scope, to_write=not wanted.dry_run)
    row = await queue.enqueue(
        conn,
        caller.namespace,
        wanted.kind,
        scope=wanted.scope,
        dry_run=wanted.dry_run,
        parameters={"apply": wanted.apply, "mode": wanted.mode},
        requested_by=caller.actor,
        request_id=request_id,
    )
    if row is None:
        raise LookupError("a job that a caller asks for is always queued")
    detail = {"kind": wanted.kind, "dry_run": wanted.dry_run, "apply": wanted.apply, "mode": wanted.mode}
    await _record(conn, caller, "job_requested", row, request_id, **detail)
    return row


def _must_open(caller: Caller, scope: str | None, *, to_write: bool) -> None:
    """A job without a scope works on all of them, so it needs a key that opens all of them."""
    scopes = caller.writes if to_write else caller.reads
    if scope is None and not scopes.everything:
        raise ScopeForbidden("This key does not open every scope of the namespace: name one as `scope`.")
    if scope is not None and not scopes.admit(scope):
        raise ScopeForbidden(f"This key does not open the scope {scope[:100]!r}.")


async def visible(conn: Connection, caller: Caller, job_id: UUID) -> Row:
    """A job of the caller's namespace, of a scope that the key may read."""
    row = await queries.run(conn, caller.namespace, job_id)
    if row is None or not (row["scope"] is None or caller.reads.admit(row["scope"])):
        raise NotFound("This namespace has no job with this id.")
    return row


async def cancel(conn: Connection, caller: Caller, job_id: UUID, request_id: str | None) -> Row:
    """Cancel a job that waits, or ask a running one to stop. Raises Conflict where it has ended."""
    row = await visible(conn, caller, job_id)
    _must_open(caller, row["scope"], to_write=not row["dry_run"])
    cancelled = await queries.cancel(conn, caller.namespace, job_id)
    if cancelled is None:
        raise Conflict("The job has ended already.")
    await _record(conn, caller, "job_cancelled", cancelled, request_id)
    return cancelled


async def retry(conn: Connection, caller: Caller, job_id: UUID, request_id: str | None) -> Row:
    """Queue a job again that failed or was cancelled. Raises Conflict where it is neither."""
    row = await visible(conn, caller, job_id)
    _must_open(caller, row["scope"], to_write=not row["dry_run"])
    queued = await queries.queue_again(conn, caller.namespace, job_id)
    if queued is None:
        raise Conflict(f"Only a job that failed or was cancelled can be retried; this one is {row['status']}.")
    await queue.defer(conn, caller.namespace, job_id, queued["kind"], queued["scope"])
    await _record(conn, caller, "job_retried", queued, request_id)
    return queued


async def _record(
    conn: Connection, caller: Caller, action: str, row: Row, request_id: str | None, **detail: Any
) -> None:
    event = Event(
        caller.namespace,
        caller.actor,
        action,
        scope=row["scope"],
        request_id=request_id,
        detail={"job": str(row["id"]), **detail},
    )
    await record(conn, [event])
