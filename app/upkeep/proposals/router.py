"""/v1/jobs/{id}/proposals and /v1/proposals: what jobs propose, and deciding about it."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response

from app.auth import Curator, Steward
from app.db import Connection
from app.errors import NotFound, ProposalDecided, ProposalNotFound, ScopeForbidden, responses
from app.facts import preparing
from app.facts.visibility import sight_of
from app.idempotency import Answer, OnceDep
from app.paging import USUAL, CursorParam, Limit, Page, decode_cursor, page_of
from app.state import Db, RequestId, Running
from app.upkeep.proposals import queries, service
from app.upkeep.proposals.model import Proposal, Verdict
from app.upkeep.proposals.schemas import ProposalOut, RejectIn
from app.upkeep.service import visible

router = APIRouter(prefix="/v1", tags=["Upkeep"])
ProposalId = Annotated[UUID, Path(description="The id of a proposal.")]


def _out(proposal: Proposal) -> ProposalOut:
    shown = {name: getattr(proposal, name) for name in ProposalOut.model_fields}
    return ProposalOut.model_construct(**shown)


@router.get(
    "/jobs/{job_id}/proposals",
    response_model=Page[ProposalOut],
    operation_id="listProposals",
    summary="What a job proposed",
    responses=responses(NotFound),
)
async def list_proposals(
    caller: Steward,
    db: Db,
    job_id: Annotated[UUID, Path(description="The id of a job.")],
    verdict: Annotated[Verdict | None, Query(description="Only those with this verdict.")] = None,
    limit: Limit = USUAL,
    cursor: CursorParam = None,
) -> Response:
    """Every proposal of a consolidation or a review with its model, cost and verdict, in order.

    Those with the verdict `waiting` are carried out by approving them.
    """
    described = {"list": "proposals", "job": str(job_id), "verdict": verdict}
    (after,) = decode_cursor(cursor, (UUID,), described) if cursor else (None,)
    async with db.reading() as conn:
        await visible(conn, caller, job_id)
        found = await queries.page(
            conn,
            caller.namespace,
            job_id,
            sight_of(caller.reads, None),
            verdict=verdict,
            after=after,
            limit=limit + 1,
        )
    page = page_of(found, limit, key=lambda one: (one.id,), item=_out, filters=described)
    return Answer(200, page).response()


@router.post(
    "/proposals/{proposal_id}/approve",
    response_model=ProposalOut,
    operation_id="approveProposal",
    summary="Carry a proposal out",
    responses=responses(ProposalNotFound, ProposalDecided, ScopeForbidden),
)
async def approve(
    proposal_id: ProposalId, caller: Curator, running: Running, once: OnceDep, request_id: RequestId
) -> Response:
    """Carry out a proposal that waits. The facts are looked at once more: where they have changed too much, the answer
    has the verdict `refused` and the `reason`, and nothing was written.
    """
    async with running.database.reading() as conn:
        draft = await service.draft_for(conn, caller, await service.find(conn, caller, proposal_id))
    await preparing.embed(running, [draft] if draft is not None else [])

    async def work(conn: Connection) -> Answer:
        return Answer(200, _out(await service.approve(conn, caller, proposal_id, draft, request_id)))

    return await once.answer(running.database, caller, work)


@router.post(
    "/proposals/{proposal_id}/reject",
    response_model=ProposalOut,
    operation_id="rejectProposal",
    summary="Reject a proposal",
    responses=responses(ProposalNotFound, ProposalDecided, ScopeForbidden),
)
async def reject(proposal_id: ProposalId, body: RejectIn, caller: Curator, db: Db, once: OnceDep) -> Response:
    """Decide that a proposal is not carried out. A rejected demotion is not proposed again."""

    async def work(conn: Connection) -> Answer:
        return Answer(200, _out(await service.reject(conn, caller, proposal_id, body.reason)))

    return await once.answer(db, caller, work)
