"""The statements on keys and namespaces."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    TIMESTAMP,
    Boolean,
    Column,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    Uuid,
    bindparam,
    func,
    insert,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as pg_insert

from app.db import Connection, Row, Statement

_METADATA = MetaData()
_TIME = TIMESTAMP(timezone=True)
namespaces = Table(
    "namespaces",
    _METADATA,
    Column("name", Text, primary_key=True),
    Column("policy", Text),
    Column("require_evidence", Boolean),
    Column("closed_vocabulary", Boolean),
    Column("consolidate_may_retire", Boolean),
)
api_keys = Table(
    "api_keys",
    _METADATA,
    Column("id", Uuid, primary_key=True),
    Column("namespace", Text),
    Column("name", Text),
    Column("prefix", Text),
    Column("secret_hash", LargeBinary),
    Column("roles", ARRAY(Text)),
    Column("read_scopes", ARRAY(Text)),
    Column("write_scopes", ARRAY(Text)),
    Column("max_tier", Text),
    Column("created_at", _TIME),
    Column("expires_at", _TIME),
    Column("revoked_at", _TIME),
)
_NS = bindparam("namespace", type_=Text)
_shown = [column for column in api_keys.c if column.name != "secret_hash"]
_given = (
    "id", "namespace", "name", "prefix", "secret_hash", "roles", "read_scopes", "write_scopes", "max_tier",
    "expires_at",
)  # fmt: skip

_namespace = Statement(select(namespaces).where(namespaces.c.name == _NS))
_add_namespace = Statement(pg_insert(namespaces).values(name=_NS).on_conflict_do_nothing())
_add_key = Statement(insert(api_keys).values({name: bindparam(name) for name in _given}).returning(*_shown))
_revoke = Statement(
    update(api_keys)
    .where(api_keys.c.namespace == _NS, api_keys.c.id == bindparam("key_id", type_=Uuid))
    .values(revoked_at=func.coalesce(api_keys.c.revoked_at, func.now()))
    .returning(*_shown)
)


@lru_cache(maxsize=2)
def _keys(*, after: bool) -> Statement:
    position = tuple_(bindparam("after_at", type_=_TIME), bindparam("after_id", type_=Uuid))
    return Statement(
        select(*_shown)
        .where(
            api_keys.c.namespace == _NS,
            *([tuple_(api_keys.c.created_at, api_keys.c.id) > position] if after else []),
        )
        .order_by(api_keys.c.created_at, api_keys.c.id)
        .limit(bindparam("limit", type_=Integer))
    )


@lru_cache(maxsize=32)
def _change(names: frozenset[str]) -> Statement:
    values = {name: bindparam(f"new_{name}", type_=namespaces.c[name].type) for name in sorted(names)}
    return Statement(update(namespaces).where(namespaces.c.name == _NS).values(values).returning(namespaces))


async def namespace(conn: Connection, name: str) -> Row | None:
    return await _namespace.row(conn, namespace=name)


async def ensure_namespace(conn: Connection, name: str) -> None:
    await _add_namespace.run(conn, namespace=name)


async def change_namespace(conn: Connection, name: str, changes: Mapping[str, Any]) -> Row | None:
    new = {f"new_{key}": value for key, value in changes.items()}
    return await _change(frozenset(changes)).row(conn, namespace=name, **new)


async def add_key(conn: Connection, key: Mapping[str, Any]) -> Row:
    row = await _add_key.row(conn, **key)
    if row is None:
        raise LookupError("the key was not returned")
    return row


async def revoke_key(conn: Connection, name: str, key_id: UUID) -> Row | None:
    return await _revoke.row(conn, namespace=name, key_id=key_id)


async def list_keys(conn: Connection, name: str, *, after: tuple[Any, UUID] | None, limit: int) -> list[Row]:
    position = {"after_at": after[0], "after_id": after[1]} if after else {}
    return await _keys(after=after is not None).rows(conn, namespace=name, limit=limit, **position)
