"""Making and revoking keys, and changing what a namespace allows. Every change is audited."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from app.access import queries
from app.access.schemas import KeyIn, NamespacePatch
from app.audit.queries import Event, record
from app.auth import issue_key
from app.db import Connection, Row
from app.errors import NotFound


@dataclass(frozen=True, slots=True)
class NewKey:
    """What the database keeps of a key, and the text that is shown once."""

    row: Row
    text: str


async def create_key(
    conn: Connection, namespace: str, wanted: KeyIn, actor: str, request_id: str | None = None
) -> NewKey:
    """Make a key, and its namespace where that is new."""
    await queries.ensure_namespace(conn, namespace)
    issued = issue_key()
    row = await queries.add_key(
        conn,
        {
            "id": uuid7(),
            "namespace": namespace,
            "prefix": issued.prefix,
            "secret_hash": issued.secret_hash,
            **wanted.model_dump(),
        },
    )
    detail = {"key": str(row["id"]), "name": wanted.name, "roles": wanted.roles}
    await record(conn, [Event(namespace, actor, "key_created", request_id=request_id, detail=detail)])
    return NewKey(row, issued.text)


async def revoke_key(conn: Connection, namespace: str, key_id: UUID, actor: str, request_id: str | None = None) -> Row:
    """Revoke a key of the namespace; once is as good as twice."""
    row = await queries.revoke_key(conn, namespace, key_id)
    if row is None:
        raise NotFound("This namespace has no key with this id.")
    detail = {"key": str(key_id), "name": row["name"]}
    await record(conn, [Event(namespace, actor, "key_revoked", request_id=request_id, detail=detail)])
    return row


async def change_namespace(
    conn: Connection, namespace: str, patch: NamespacePatch, actor: str, request_id: str | None
) -> Row:
    """Change what is given and leave the rest."""
    changes: dict[str, Any] = patch.model_dump(exclude_unset=True)
    if not changes:
        row = await queries.namespace(conn, namespace)
    else:
        row = await queries.change_namespace(conn, namespace, changes)
        event = Event(namespace, actor, "namespace_changed", request_id=request_id, detail=changes)
        await record(conn, [event])
    if row is None:
        raise NotFound("There is no such namespace.")
    return row
