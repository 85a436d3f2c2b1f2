"""/v1/conflicts and /v1/links: what contradicts what, and how facts hang together."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from app.auth import Curator, Reader, Writer
from app.conflicts import queries, service
from app.conflicts.schemas import (
    DemotedOut,
    DemoteIn,
    LinkIn,
    LinkKind,
    OpenConflictOut,
    ResolvedOut,
    ResolveIn,
)
from app.db import Connection, Row
from app.errors import (
    AddressTaken,
    Conflict,
    EvidenceNotFound,
    EvidenceRequired,
    FactAlreadyRetired,
    FactNotFound,
    IdempotencyKeyReused,
    LinkNotFound,
    LinkSettled,
    ScopeForbidden,
    responses,
)
from app.facts import vocabulary
from app.facts.fact import ConflictKind, Fact
from app.facts.presenting import fact_out, link_out
from app.facts.schemas import LinkOut, Scope, Subject
from app.facts.visibility import sight_of
from app.idempotency import Answer, OnceDep
from app.paging import USUAL, CursorParam, Limit, Page, decode_cursor, page_of
from app.state import Db, RequestId, Running

router = APIRouter(prefix="/v1", tags=["Conflicts"])
LinkId = Annotated[UUID, Path(description="The id of a link.")]


class ConflictFilters(BaseModel):
    """Which conflicts to list."""

    model_config = {"extra": "forbid"}

    scope: list[Scope] | None = Field(
        default=None, max_length=100, description="Those with a fact in one of these scopes."
    )
    subject: Subject | None = Field(default=None, description="Those with a fact at this subject.")
    fact: UUID | None = Field(default=None, description="Those of this fact.")
    kind: ConflictKind | None = None
    limit: Limit = USUAL
    cursor: CursorParam = None


class LinkFilters(BaseModel):
    """Which links to list."""

    model_config = {"extra": "forbid"}

    fact: UUID | None = Field(default=None, description="Those from or to this fact.")
    kind: LinkKind | None = Field(default=None, description="A demoted link is of the kind `relates_to`.")
    limit: Limit = USUAL
    cursor: CursorParam = None


@router.get(
    "/conflicts",
    response_model=Page[OpenConflictOut],
    operation_id="listConflicts",
    summary="What contradicts what",
    responses=responses(ScopeForbidden),
)
async def list_conflicts(caller: Reader, db: Db, filters: Annotated[ConflictFilters, Query()]) -> Response:
    """Pairs of facts that may contradict each other, the latest doubt first. Only pairs whose sides are both current
    now, and both readable with this key; as soon as one side is replaced the pair is gone from here."""
    asked = caller.asked(filters.scope)
    given = filters.model_dump(exclude_none=True, exclude={"limit", "cursor", "scope"})
    described = {"list": "conflicts", "scope": asked, **{name: str(value) for name, value in given.items()}}
    after = decode_cursor(filters.cursor, (datetime, UUID), described) if filters.cursor else None
    async with db.reading() as conn:
        if subject := given.pop("subject", None):
            given["subjects"] = (await vocabulary.addresses(conn, caller.namespace, [subject]))[subject]
        if asked is not None:
            given["in_scopes"] = asked
        links = await queries.open_conflicts(
            conn,
            caller.namespace,
            sight_of(caller.reads, None),
            given,
            after=(after[0], after[1]) if after else None,
            limit=filters.limit + 1,
        )
        ends = {link[end] for link in links for end in ("source_id", "target_id")}
        facts = await queries.current_facts(conn, caller.namespace, ends)
    page = page_of(
        links,
        filters.limit,
        key=lambda link: (link["drawn_at"], link["id"]),
        item=lambda link: _conflict_out(link, facts),
        filters=described,
    )
    # A fact may have been retired between the two statements.
    page.items = [item for item in page.items if item is not None]
    return Answer(200, page).response()


def _conflict_out(link: Row, facts: dict[UUID, Fact]) -> OpenConflictOut | None:
    fact, other = facts.get(link["source_id"]), facts.get(link["target_id"])
    if fact is None or other is None:
        return None
    detail = link["detail"]
    return OpenConflictOut.model_construct(
        id=link["id"],
        kind=link["conflict"] or "declared",
        detail=detail.get("detail"),
        removed=detail.get("removed", []),
        added=detail.get("added", []),
        rule=link["rule"],
        drawn_by=link["drawn_by"],
        drawn_at=link["drawn_at"],
        fact=fact_out(fact),
        other=fact_out(other),
    )


@router.post(
    "/conflicts/{link_id}/resolve",
    response_model=ResolvedOut,
    operation_id="resolveConflict",
    summary="Settle a conflict",
    responses=responses(
        ScopeForbidden, LinkNotFound, LinkSettled, EvidenceNotFound, EvidenceRequired, IdempotencyKeyReused
    ),
)
async def resolve(
    link_id: LinkId, body: ResolveIn, caller: Curator, running: Running, once: OnceDep, request_id: RequestId
) -> Response:
    """Keep one fact, and it retires the other, whatever their dates and tiers; or keep `both`, and the pair is not
    listed again. Should the retired fact ever be restored, the two contradict each other again."""

    async def work(conn: Connection) -> Answer:
        done = await service.resolve(conn, caller, link_id, body, request_id)
        kept = [fact_out(fact) for fact in done.kept]
        answer = ResolvedOut.model_construct(link=link_out(done.link), kept=kept, superseded=done.retired)
        return Answer(200, answer)

    return await once.answer(running.database, caller, work)


@router.get(
    "/links",
    response_model=Page[LinkOut],
    operation_id="listLinks",
    summary="How facts hang together",
)
async def list_links(caller: Reader, db: Db, filters: Annotated[LinkFilters, Query()]) -> Response:
    """Links between facts, current or not, the latest first: what replaced, amended, contradicts, repeats or relates
    to what, with the reason, the evidence and who drew it."""
    given: dict[str, Any] = filters.model_dump(exclude_none=True, exclude={"limit", "cursor"})
    described = {"list": "links", **{name: str(value) for name, value in given.items()}}
    after = decode_cursor(filters.cursor, (UUID,), described)[0] if filters.cursor else None
    async with db.reading() as conn:
        rows = await queries.list_links(
            conn,
            caller.namespace,
            sight_of(caller.reads, None),
            given,
            after=after,
            limit=filters.limit + 1,
        )
    page = page_of(rows, filters.limit, key=lambda row: (row["id"],), item=link_out, filters=described)
    return Answer(200, page).response()


@router.post(
    "/links",
    status_code=201,
    response_model=LinkOut,
    operation_id="drawLink",
    summary="Draw a link",
    responses={
        200: {"model": LinkOut, "description": "These two facts were linked like this before."},
        **responses(ScopeForbidden, FactNotFound, FactAlreadyRetired, EvidenceNotFound, IdempotencyKeyReused),
    },
)
async def draw_link(body: LinkIn, caller: Writer, running: Running, once: OnceDep, request_id: RequestId) -> Response:
    """Say that two current facts contradict each other, or that two facts belong together. Neither ends a fact's
    life: to replace one, use `supersede`."""

    async def work(conn: Connection) -> Answer:
        link, new = await service.draw(conn, caller, body, request_id)
        return Answer(201 if new else 200, link_out(link))

    return await once.answer(running.database, caller, work)


@router.post(
    "/links/{link_id}/demote",
    response_model=DemotedOut,
    operation_id="demoteLink",
    summary="Take back what a link asserts",
    responses=responses(ScopeForbidden, LinkNotFound, LinkSettled, AddressTaken, Conflict, IdempotencyKeyReused),
)
async def demote(
    link_id: LinkId, body: DemoteIn, caller: Curator, running: Running, once: OnceDep, request_id: RequestId
) -> Response:
    """The link stays, as `relates_to`, with your reason. What it retired is current again, unless another fact has
    taken its place: then the answer is 409, and `restore` with `replace` settles it."""

    async def work(conn: Connection) -> Answer:
        link, restored = await service.demote(conn, caller, link_id, body.reason, request_id)
        fact = fact_out(restored) if restored is not None else None
        return Answer(200, DemotedOut.model_construct(link=link_out(link), restored=fact))

    return await once.answer(running.database, caller, work)
