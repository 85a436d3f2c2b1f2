"""/v1/audit: who changed what."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from app.audit import reading
from app.audit.schemas import EventOut
from app.auth import Steward
from app.errors import ScopeForbidden, responses
from app.facts.schemas import Scope
from app.facts.visibility import sight_of
from app.idempotency import Answer
from app.paging import USUAL, CursorParam, Limit, Page, decode_cursor, page_of
from app.state import Db
from app.text import Instant, NonBlank

router = APIRouter(prefix="/v1", tags=["Operations"])
Word = Annotated[NonBlank, Field(max_length=200)]


class AuditFilters(BaseModel):
    """What the trail may be narrowed to."""

    model_config = {"extra": "forbid"}

    fact: UUID | None = Field(default=None, description="What happened to this fact.")
    action: Word | None = Field(default=None, description="Such as `remembered`, `superseded` or `restored`.")
    actor: Word | None = Field(default=None, description="Such as `key:scheduler`.")
    scope: list[Scope] | None = Field(default=None, max_length=100, description="One or several scopes, exactly.")
    since: Instant | None = Field(default=None, description="At this time or later.")
    limit: Limit = USUAL
    cursor: CursorParam = None


@router.get(
    "/audit",
    response_model=Page[EventOut],
    operation_id="listAuditEvents",
    summary="Who changed what",
    responses=responses(ScopeForbidden),
)
async def list_events(caller: Steward, db: Db, filters: Annotated[AuditFilters, Query()]) -> Response:
    """Every change of state in the scopes that the key may read, newest first. Needs the role `curate` or `admin`.

    Events about the namespace itself, such as a new key, have no scope; a `scope` filter leaves them out. The trail
    is append-only and holds no text of any fact.
    """
    asked = caller.asked(filters.scope)
    given = filters.model_dump(exclude_none=True, exclude={"limit", "cursor", "scope"})
    described = {"list": "audit", "scope": asked, **{name: str(value) for name, value in given.items()}}
    after = decode_cursor(filters.cursor, (int,), described) if filters.cursor else None
    async with db.reading() as conn:
        rows = await reading.page(
            conn,
            caller.namespace,
            sight_of(caller.reads, asked),
            given,
            scoped=asked is not None,
            before=after[0] if after else None,
            limit=filters.limit + 1,
        )
    page = page_of(
        rows,
        filters.limit,
        key=lambda row: (row["id"],),
        item=lambda row: EventOut.model_construct(**row),
        filters=described,
    )
    return Answer(200, page).response()
