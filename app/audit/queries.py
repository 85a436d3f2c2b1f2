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
    insert,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.db import Connection, Statement

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
