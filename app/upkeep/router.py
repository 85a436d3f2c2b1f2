"""/v1/jobs: what the worker is asked to do, and how it fares."""

import json
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from app.auth import Reader, Steward
from app.db import Row
from app.errors import Conflict, IdempotencyKeyReused, LlmNotConfigured, NotFound, ScopeForbidden, responses
from app.facts.visibility import sight_of
from app.idempotency import Answer, OnceDep
from app.paging import USUAL, CursorParam, Limit, Page, decode_cursor, page_of
from app.state import Db, RequestId, Running
from app.upkeep import queries, service
from app.upkeep.consolidation.service import require_llm
from app.upkeep.jobs import KindName, Status
from app.upkeep.schemas import FindingOut, JobIn, JobOut

router = APIRouter(prefix="/v1/jobs", tags=["Upkeep"])
JobId = Annotated[UUID, Path(description="The id of a job.")]


class JobFilters(BaseModel):
    """A page of jobs."""

    model_config = {"extra": "forbid"}

    kind: KindName | None = Field(default=None, description="Only jobs of this kind.")
    status: Status | None = Field(default=None, description="Only jobs that stand like this.")
    limit: Limit = USUAL
    cursor: CursorParam = None


class FindingFilters(BaseModel):
    """A page of findings."""

    model_config = {"extra": "forbid"}

    limit: Limit = USUAL
    cursor: CursorParam = None


def job_out(row: Row) -> JobOut:
    return JobOut(**{name: row[name] for name in JobOut.model_fields})


@router.post(
    "",
    status_code=202,
    response_model=JobOut,
    operation_id="startJob",
    summary="Start a job",
    responses=responses(NotFound, ScopeForbidden, LlmNotConfigured, IdempotencyKeyReused),
)
async def start_job(body: JobIn, caller: Steward, running: Running, once: OnceDep, request_id: RequestId) -> Response:
    """Queue a job for the worker; `Location` is where to ask how it fares.

    One job of a kind and scope runs at a time, the others wait. Jobs may be started again at will: none does
    anything twice. With `dry_run`, `/v1/jobs/{id}/findings` then lists exactly what a run would do. Consolidation
    needs a language model, and is refused where none is configured.
    """
    if body.kind == "consolidate":
        require_llm(running.settings)

    async def work(conn: Any) -> Answer:
        return Answer(202, job_out(await service.start(conn, caller, body, request_id)))

    answer = await once.answer(running.database, caller, work)
    answer.headers["Location"] = f"/v1/jobs/{json.loads(bytes(answer.body))['id']}"
    return answer


@router.get("", response_model=Page[JobOut], operation_id="listJobs", summary="List jobs")
async def list_jobs(caller: Reader, db: Db, filters: Annotated[JobFilters, Query()]) -> Response:
    """The namespace's jobs, newest first, those of the schedule included."""
    wanted = {name: value for name in ("kind", "status") if (value := getattr(filters, name)) is not None}
    described = {"list": "jobs", **wanted}
    after = decode_cursor(filters.cursor, (datetime, UUID), described) if filters.cursor else None
    sight, seen = sight_of(caller.reads, None)
    async with db.reading() as conn:
        rows = await queries.runs(
            conn, caller.namespace, filters=wanted, sight=sight, seen=seen, after=after, limit=filters.limit + 1
        )
    page = page_of(rows, filters.limit, key=lambda row: (row["created_at"], row["id"]), item=job_out, filters=described)
    return Answer(200, page).response()


@router.get(
    "/{job_id}", response_model=JobOut, operation_id="getJob", summary="Read a job", responses=responses(NotFound)
)
async def get_job(job_id: JobId, caller: Reader, db: Db) -> Response:
    """How a job fares; progress and counts are a second or two old while it runs."""
    async with db.reading() as conn:
        row = await service.visible(conn, caller, job_id)
    return Answer(200, job_out(row)).response()


@router.get(
    "/{job_id}/findings",
    response_model=Page[FindingOut],
    operation_id="listFindings",
    summary="List what a job did or would do",
    responses=responses(NotFound),
)
async def list_findings(job_id: JobId, caller: Reader, db: Db, filters: Annotated[FindingFilters, Query()]) -> Response:
    """What a job did, or what a dry run found that a run would do, fact by fact, with the rule. No texts."""
    described = {"list": "findings", "job": str(job_id)}
    (after,) = decode_cursor(filters.cursor, (int,), described) if filters.cursor else (0,)
    sight, seen = sight_of(caller.reads, None)
    async with db.reading() as conn:
        await service.visible(conn, caller, job_id)
        rows = await queries.findings(
            conn, caller.namespace, job_id, sight=sight, seen=seen, after=after, limit=filters.limit + 1
        )
    page = page_of(
        rows,
        filters.limit,
        key=lambda row: (row["position"],),
        item=lambda row: FindingOut(**{name: row[name] for name in FindingOut.model_fields}),
        filters=described,
    )
    return Answer(200, page).response()


@router.post(
    "/{job_id}/cancel",
    status_code=202,
    response_model=JobOut,
    operation_id="cancelJob",
    summary="Cancel a job",
    responses=responses(NotFound, Conflict, ScopeForbidden),
)
async def cancel_job(job_id: JobId, caller: Steward, db: Db, request_id: RequestId) -> Response:
    """A waiting job is cancelled at once, a running one within a second or two; what it has done by then stays."""
    row = await db.run(lambda conn: service.cancel(conn, caller, job_id, request_id))
    return Answer(202, job_out(row)).response()


@router.post(
    "/{job_id}/retry",
    status_code=202,
    response_model=JobOut,
    operation_id="retryJob",
    summary="Retry a job",
    responses=responses(NotFound, Conflict, ScopeForbidden),
)
async def retry_job(job_id: JobId, caller: Steward, db: Db, request_id: RequestId) -> Response:
    """Queue a job again that failed or was cancelled."""
    row = await db.run(lambda conn: service.retry(conn, caller, job_id, request_id))
    return Answer(202, job_out(row)).response()
