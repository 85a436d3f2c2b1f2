"""/v1/keys and /v1/namespaces, for administrators."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel

from app.access import queries, service
from app.access.schemas import KeyIn, KeyOut, NamespaceName, NamespaceOut, NamespacePatch, NewKeyOut
from app.auth import Admin, Reader
from app.errors import NotFound, responses
from app.idempotency import Answer
from app.paging import USUAL, CursorParam, Limit, Page, decode_cursor, page_of
from app.state import Db, RequestId

router = APIRouter(prefix="/v1", tags=["Access"])
Name = Annotated[NamespaceName, Path(description="The namespace of the key that asks.")]


class KeyFilters(BaseModel):
    """A page of keys."""

    model_config = {"extra": "forbid"}

    limit: Limit = USUAL
    cursor: CursorParam = None


@router.post(
    "/keys",
    status_code=201,
    response_model=NewKeyOut,
    operation_id="createKey",
    summary="Make a key",
)
async def create_key(body: KeyIn, caller: Admin, db: Db, request: Request, request_id: RequestId) -> Response:
    """A key of 256 random bits for the caller's namespace. The text is shown this once; the database keeps a hash.

    Note that the first key ends the open development mode: from then on every request needs one.
    """

    async def work(conn: Any) -> Answer:
        made = await service.create_key(conn, caller.namespace, body, caller.actor, request_id)
        return Answer(201, NewKeyOut(key=made.text, **made.row))

    answer = await db.run(work)
    request.app.state.keys.forget()
    return answer.response()


@router.get("/keys", response_model=Page[KeyOut], operation_id="listKeys", summary="List keys")
async def list_keys(caller: Admin, db: Db, filters: Annotated[KeyFilters, Query()]) -> Response:
    """The keys of the caller's namespace, oldest first, without their secrets."""
    described = {"list": "keys"}
    after = decode_cursor(filters.cursor, (datetime, UUID), described) if filters.cursor else None
    async with db.reading() as conn:
        rows = await queries.list_keys(conn, caller.namespace, after=after, limit=filters.limit + 1)
    page = page_of(
        rows,
        filters.limit,
        key=lambda row: (row["created_at"], row["id"]),
        item=lambda row: KeyOut(**row),
        filters=described,
    )
    return Answer(200, page).response()


@router.delete(
    "/keys/{key_id}",
    response_model=KeyOut,
    operation_id="revokeKey",
    summary="Revoke a key",
    responses=responses(NotFound),
)
async def revoke_key(key_id: UUID, caller: Admin, db: Db, request: Request, request_id: RequestId) -> Response:
    """The key stops working at once here, and within `KEY_CACHE_S` seconds on other replicas."""
    row = await db.run(lambda conn: service.revoke_key(conn, caller.namespace, key_id, caller.actor, request_id))
    request.app.state.keys.forget()
    return Answer(200, KeyOut(**row)).response()


@router.get(
    "/namespaces/{name}",
    response_model=NamespaceOut,
    operation_id="getNamespace",
    summary="Read a namespace's rules",
    responses=responses(NotFound),
)
async def get_namespace(name: Name, caller: Reader, db: Db) -> Response:
    """What a write may do in this namespace without being told. Only the key's own namespace is found."""
    _own(name, caller)
    async with db.reading() as conn:
        row = await queries.namespace(conn, name)
    if row is None:
        raise NotFound("There is no such namespace.")
    return Answer(200, NamespaceOut(**row)).response()


@router.patch(
    "/namespaces/{name}",
    response_model=NamespaceOut,
    operation_id="changeNamespace",
    summary="Change a namespace's rules",
    responses=responses(NotFound),
)
async def change_namespace(name: Name, body: NamespacePatch, caller: Admin, db: Db, request_id: RequestId) -> Response:
    """The next write follows the new rules. What the old ones retired stays retired; see `restore` and review."""
    _own(name, caller)
    row = await db.run(lambda conn: service.change_namespace(conn, name, body, caller.actor, request_id))
    return Answer(200, NamespaceOut(**row)).response()


def _own(name: str, caller: Reader) -> None:
    if name != caller.namespace:
        raise NotFound("There is no such namespace.")
