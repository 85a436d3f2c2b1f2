"""The way into the job queue: a run and its job are added in the caller's transaction."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from procrastinate import PsycopgConnector
from procrastinate.manager import JobManager
from procrastinate.tasks import configure_task
from uuid_utils.compat import uuid7

from app.db import Connection, Row
from app.upkeep import queries
from app.upkeep.jobs import KindName

TASK = "palimpsest.run"
QUEUE = "upkeep"


async def enqueue(
    conn: Connection,
    namespace: str,
    kind: KindName,
    *,
    requested_by: str,
    scope: str | None = None,
    dry_run: bool = False,
    parameters: Mapping[str, Any] | None = None,
    request_id: str | None = None,
    automatic: bool = False,
) -> Row | None:
    """Queue a run. None for an `automatic` one whose like is queued or running already."""
    values = {
        "namespace": namespace,
        "id": uuid7(),
        "kind": kind,
        "scope": scope,
        "dry_run": dry_run,
        "automatic": automatic,
        "parameters": dict(parameters or {}),
        "requested_by": requested_by,
        "request_id": request_id,
    }
    row = await queries.add_run(conn, values)
    if row is not None:
        await defer(conn, namespace, row["id"], kind, scope)
    return row


async def defer(
    conn: Connection, namespace: str, run_id: UUID, kind: str, scope: str | None, at: datetime | None = None
) -> None:
    """Have a worker take the run up, at a moment or now. One of a kind, namespace and scope runs at a time."""
    await configure_task(
        name=TASK,
        # The job is inserted on the connection that is given, so the connector is never opened.
        job_manager=JobManager(PsycopgConnector()),
        lock=json.dumps([kind, namespace, scope]),
        queue=QUEUE,
        schedule_at=at,
        connection=conn,
    ).defer_async(namespace=namespace, run=str(run_id))
