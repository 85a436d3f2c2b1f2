"""/v1/subjects: the addresses of states."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from app.auth import Caller, Reader, Steward
from app.db import Connection
from app.errors import ScopeForbidden, SubjectNotFound, SubjectTaken, responses
from app.facts.presenting import fact_out, past_fact_out
from app.facts.queries import to_fact
from app.facts.schemas import PastFactOut, Scope, Subject
from app.facts.visibility import sight_of
from app.idempotency import Answer
from app.paging import USUAL, CursorParam, Limit, Page, decode_cursor, page_of
from app.state import Db, RequestId
from app.subjects import queries, service
from app.subjects.schemas import SubjectDetailOut, SubjectIn, SubjectOut
from app.subjects.service import Known

router = APIRouter(prefix="/v1/subjects", tags=["Subjects"])
Name = Annotated[
    Subject,
    Path(description="A subject or an alias, whatever its case; it may hold `/`.", examples=["team.standup.time"]),
]
Scopes = Annotated[
    list[Scope] | None, Field(max_length=100, description="One or several scopes, in order of precedence.")
]


class ScopeFilter(BaseModel):
    """Where to look."""

    model_config = {"extra": "forbid"}

    scope: Scopes = None


class HistoryFilters(ScopeFilter):
    """A page of a subject's history."""

    limit: Limit = USUAL
    cursor: CursorParam = None


class SubjectFilters(HistoryFilters):
    """Which subjects to list."""

    near: Subject | None = Field(
        default=None, description="Only the subjects that look like this one, the most alike first, six at most."
    )
    near_misses: bool = Field(
        default=False, description="Only the subjects that probably mean the same as another, and which that is."
    )

    @model_validator(mode="after")
    def _one_question(self) -> "SubjectFilters":
        if self.near is not None and self.near_misses:
            raise PydanticCustomError("one_of", "Give either `near` or `near_misses`.")
        return self


def _subject_out(known: Known) -> SubjectOut:
    return SubjectOut.model_construct(**_members(known))


def _members(known: Known) -> dict[str, Any]:
    return {
        "subject": known.subject,
        "registered": known.registered,
        "description": known.description,
        "aliases": known.aliases,
        "alias_of": known.alias_of,
        "facts": known.facts,
        "near_misses": known.misses,
    }


@router.get(
    "",
    response_model=Page[SubjectOut],
    operation_id="listSubjects",
    summary="List subjects",
    responses=responses(ScopeForbidden),
)
async def list_subjects(caller: Reader, db: Db, filters: Annotated[SubjectFilters, Query()]) -> Response:
    """The subjects that have current facts, and those that are registered, in alphabetical order. With `scope`, only
    those that have current facts there.

    Ask with `near` before you invent a subject, and with `near_misses` for names that drifted apart.
    """
    asked = caller.asked(filters.scope)
    described = {"list": "subjects", "scope": asked, "near": filters.near, "near_misses": filters.near_misses}
    after = decode_cursor(filters.cursor, (str,), described)[0] if filters.cursor else ""
    async with db.reading() as conn:
        rows = await _chosen(conn, caller, filters, asked, after)
    page = page_of(rows, filters.limit, key=lambda known: (known.subject,), item=_subject_out, filters=described)
    if filters.near is not None:
        page.next_cursor = None
    return Answer(200, page).response()


async def _chosen(
    conn: Connection, caller: Caller, filters: SubjectFilters, asked: Sequence[str] | None, after: str
) -> list[Known]:
    if filters.near is not None:
        return await service.closest(conn, caller, filters.near, asked)
    if filters.near_misses:
        found = await service.doubtful(conn, caller, asked)
        return [known for known in found if known.subject > after][: filters.limit + 1]
    counted = await queries.list_subjects(
        conn,
        caller.namespace,
        sight_of(caller.reads, asked),
        registered=asked is None,
        after=after,
        limit=filters.limit + 1,
    )
    return await service.describe(conn, caller.namespace, counted, {})


@router.get(
    "/{subject:path}/history",
    response_model=Page[PastFactOut],
    operation_id="getSubjectHistory",
    summary="All that was ever said at a subject",
    responses=responses(ScopeForbidden, SubjectNotFound),
)
async def get_history(subject: Name, caller: Reader, db: Db, filters: Annotated[HistoryFilters, Query()]) -> Response:
    """Every fact that ever stood at the subject, oldest first, each with how it stands now and, if it was retired,
    by whom, when, by which rule and why."""
    asked = caller.asked(filters.scope)
    described = {"list": "subject history", "scope": asked, "subject": subject}
    after = decode_cursor(filters.cursor, (datetime, UUID), described) if filters.cursor else None
    async with db.reading() as conn:
        names = await service.known_names(conn, caller, subject)
        sight = sight_of(caller.reads, asked)
        rows = await queries.history(conn, caller.namespace, names, sight, after=after, limit=filters.limit + 1)
        if not rows and after is None:
            await service.look_up(conn, caller, subject, asked)
    endings = [{name: row.pop(name) for name in ("retired_by", "reason", "evidence", "rule")} for row in rows]
    pairs = list(zip((to_fact(row) for row in rows), endings, strict=True))
    page = page_of(
        pairs,
        filters.limit,
        key=lambda pair: (pair[0].recorded_at, pair[0].id),
        item=lambda pair: past_fact_out(*pair),
        filters=described,
    )
    return Answer(200, page).response()


@router.get(
    "/{subject:path}",
    response_model=SubjectDetailOut,
    operation_id="getSubject",
    summary="What holds at a subject",
    responses=responses(ScopeForbidden, SubjectNotFound),
)
async def get_subject(subject: Name, caller: Reader, db: Db, filters: Annotated[ScopeFilter, Query()]) -> Response:
    """The current value of a subject: one, or one for each scope, or several where nobody settled a conflict. An
    alias leads to its subject. Where nothing is known at the name, `nearest` lists the closest ones."""
    asked = caller.asked(filters.scope)
    async with db.reading() as conn:
        known, current = await service.look_up(conn, caller, subject, asked)
    answer = SubjectDetailOut.model_construct(**_members(known), current=[fact_out(fact) for fact in current])
    return Answer(200, answer).response()


@router.put(
    "/{subject:path}",
    status_code=201,
    response_model=SubjectDetailOut,
    operation_id="registerSubject",
    summary="Register a subject",
    responses={
        200: {"model": SubjectDetailOut, "description": "It was registered before; this replaced what was said."},
        **responses(SubjectTaken),
    },
)
async def register_subject(subject: Name, body: SubjectIn, caller: Steward, db: Db, request_id: RequestId) -> Response:
    """Say what a subject is about and which other names mean it. Needs the role `curate` or `admin`; every key of the
    namespace sees registered subjects, so keep secrets out of their names.

    Where the namespace's vocabulary is closed, only registered subjects can be written to. Facts that were written
    under a name before it became an alias are found, and replaced, as this subject's. Where states of one scope meet
    so, the newest leads, and the others are in conflict with it until somebody settles that or writes anew.
    """

    async def work(conn: Connection) -> Answer:
        new = await service.register(conn, caller, subject, body, request_id)
        known, current = await service.look_up(conn, caller, subject, None)
        facts = [fact_out(fact) for fact in current]
        return Answer(201 if new else 200, SubjectDetailOut.model_construct(**_members(known), current=facts))

    return (await db.run(work)).response()
