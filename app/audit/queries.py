"""The audit trail: one row for every change of state, appended in the transaction that makes it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Column,
    Identity,
    MetaData,
    Table,
    Text,
    Uuid,
    bindparam,
    cast,
    insert,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from app.db import Connection, Row, Statement

audit_events = Table(
    "audit_events",
    MetaData(),
    Column("namespace", Text, primary_key=True),
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("at", TIMESTAMP(timezone=True)),
    Column("actor", Text),
    Column("action", Text),
    Column("scope", Text),
    Column("fact_id", Uuid),
    Column("other_id", Uuid),
    Column("request_id", Text),
    Column("detail", JSONB),
)


@dataclass(frozen=True, slots=True)
class Event:
    """A change of state. `detail` holds no text of a fact, so that the trail outlives an erasure."""

    namespace: str
    actor: str
    action: str
    scope: str | None = None
    fact_id: UUID | None = None
    other_id: UUID | None = None
    request_id: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)


_FIELDS = ("namespace", "actor", "action", "scope", "fact_id", "other_id", "request_id", "detail")
_record = Statement(insert(audit_events).values({name: bindparam(name) for name in _FIELDS}))


async def record(conn: Connection, events: Sequence[Event]) -> None:
    """Append events."""
    await _record.run_many(
        conn,
        [{name: getattr(event, name) for name in _FIELDS} | {"detail": Jsonb(event.detail)} for event in events],
    )


_page = Statement(
    select(audit_events)
    .where(
        audit_events.c.namespace == bindparam("namespace", type_=Text),
        or_(
            bindparam("before", type_=BigInteger).is_(None),
            audit_events.c.id < cast(bindparam("before", type_=BigInteger), BigInteger),
        ),
        or_(
            bindparam("fact_id", type_=Uuid).is_(None),
            audit_events.c.fact_id == bindparam("fact_id", type_=Uuid),
        ),
        or_(
            bindparam("action", type_=Text).is_(None),
            audit_events.c.action == bindparam("action", type_=Text),
        ),
        or_(
            bindparam("scopes", type_=ARRAY(Text)).is_(None),
            audit_events.c.scope.is_(None),
            audit_events.c.scope == bindparam("scopes", type_=ARRAY(Text)).any_(),
        ),
    )
    .order_by(audit_events.c.id.desc())
    .limit(bindparam("limit", type_=BigInteger))
)


async def page(
    conn: Connection,
    namespace: str,
    *,
    limit: int,
    before: int | None = None,
    fact_id: UUID | None = None,
    action: str | None = None,
    scopes: Sequence[str] | None = None,
) -> list[Row]:
    """Events, newest first; those of the given scopes where scopes are given."""
    return await _page.rows(
        conn,
        namespace=namespace,
        limit=limit,
        before=before,
        fact_id=fact_id,
        action=action,
        scopes=None if scopes is None else list(scopes),
    )
