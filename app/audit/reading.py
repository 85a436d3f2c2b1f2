"""The statement that reads the audit trail."""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    ColumnElement,
    Integer,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    false,
    or_,
    select,
    true,
)

from app.audit.queries import audit_events as events
from app.db import Connection, Row, Statement
from app.facts.model import facts_history
from app.facts.visibility import Sight, within

_NS = bindparam("namespace", type_=Text)


def _filter(name: str) -> ColumnElement[bool]:
    match name:
        case "fact":
            return events.c.fact_id == bindparam("fact", type_=Uuid)
        case "since":
            return events.c.at >= bindparam("since", type_=TIMESTAMP(timezone=True))
        case "before":
            return events.c.id < bindparam("before", type_=BigInteger)
        case _:
            return events.c[name] == bindparam(name, type_=Text)


@lru_cache(maxsize=256)
def _page(filters: frozenset[str], sight: Sight, *, scoped: bool) -> Statement:
    # The other fact may stand in a scope that the caller may not read; then its id is kept back.
    other = facts_history.alias("other")
    seen = and_(true(), *within(other.c.scope, sight)) if sight != "everything" else true()
    shown = [column for column in events.c if column.name not in ("namespace", "other_id")]
    about_namespace = false() if scoped else events.c.scope.is_(None)
    return Statement(
        select(*shown, case((seen, events.c.other_id)).label("other_id"))
        .select_from(
            events.outerjoin(other, and_(other.c.namespace == events.c.namespace, other.c.id == events.c.other_id))
        )
        .where(
            events.c.namespace == _NS,
            or_(about_namespace, and_(true(), *within(events.c.scope, sight))),
            *(_filter(name) for name in sorted(filters)),
        )
        .order_by(events.c.id.desc())
        .limit(bindparam("limit", type_=Integer))
    )


async def page(
    conn: Connection,
    namespace: str,
    sight: tuple[Sight, Mapping[str, Any]],
    filters: Mapping[str, Any],
    *,
    scoped: bool,
    before: int | None,
    limit: int,
) -> list[Row]:
    """Events, newest first, older than `before`. With `scoped` those without a scope are left out.

    `filters` may hold fact (UUID), action, actor and since (datetime).
    """
    names = frozenset(filters) | ({"before"} if before is not None else frozenset())
    position: dict[str, int | datetime] = {"before": before} if before is not None else {}
    return await _page(names, sight[0], scoped=scoped).rows(
        conn, namespace=namespace, limit=limit, **sight[1], **filters, **position
    )
