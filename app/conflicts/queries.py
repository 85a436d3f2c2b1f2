"""The statements on links and on the conflicts that some of them stand for."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    TIMESTAMP,
    ColumnElement,
    Integer,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY

from app.db import Connection, Row, Statement
from app.facts.fact import Fact
from app.facts.model import facts_active, facts_history, links
from app.facts.queries import fact_columns, to_fact, with_use
from app.facts.visibility import Sight, within

Seen = tuple[Sight, Mapping[str, Any]]

_NS = bindparam("namespace", type_=Text)
_ID = bindparam("id", type_=Uuid)
_LIMIT = bindparam("limit", type_=Integer)
_TIME = TIMESTAMP(timezone=True)
# A link that was demoted asserts nothing any more: it only relates its two facts.
_kind = case((links.c.demoted_at.is_not(None), literal_column("'relates_to'")), else_=links.c.kind)

_source = facts_active.alias("source")
_target = facts_active.alias("target")
_past_source = facts_history.alias("source")
_past_target = facts_history.alias("target")


def _ends(source: Any, target: Any) -> Any:
    return links.join(source, and_(source.c.namespace == links.c.namespace, source.c.id == links.c.source_id)).join(
        target, and_(target.c.namespace == links.c.namespace, target.c.id == links.c.target_id)
    )


def _touches(name: str) -> ColumnElement[bool]:
    wanted = bindparam(name, type_=Uuid)
    return or_(links.c.source_id == wanted, links.c.target_id == wanted)


# --- Conflicts -------------------------------------------------------------------------------------------------


def _conflict_filter(name: str) -> ColumnElement[bool]:
    match name:
        case "after":
            position = tuple_(bindparam("after_at", type_=_TIME), bindparam("after_id", type_=Uuid))
            return tuple_(links.c.drawn_at, links.c.id) < position
        case "kind":
            return links.c.conflict == bindparam("kind", type_=Text)
        case "subjects":
            wanted = bindparam("subjects", type_=ARRAY(Text)).any_()
            return or_(_source.c.subject == wanted, _target.c.subject == wanted)
        case "in_scopes":
            wanted = bindparam("in_scopes", type_=ARRAY(Text)).any_()
            return or_(_source.c.scope == wanted, _target.c.scope == wanted)
        case _:
            return _touches(name)


@lru_cache(maxsize=256)
def _open(filters: frozenset[str], sight: Sight) -> Statement:
    return Statement(
        select(links)
        .select_from(_ends(_source, _target))
        .where(
            links.c.namespace == _NS,
            links.c.kind == literal_column("'contradicts'"),
            links.c.resolved_at.is_(None),
            links.c.demoted_at.is_(None),
            *within(_source.c.scope, sight),
            *within(_target.c.scope, sight),
            *(_conflict_filter(name) for name in sorted(filters)),
        )
        .order_by(links.c.drawn_at.desc(), links.c.id.desc())
        .limit(_LIMIT)
    )


_facts = Statement(
    select(*fact_columns(facts_active))
    .select_from(with_use(facts_active))
    .where(facts_active.c.namespace == _NS, facts_active.c.id == bindparam("ids", type_=ARRAY(Uuid)).any_())
)


async def open_conflicts(
    conn: Connection,
    namespace: str,
    sight: Seen,
    filters: Mapping[str, Any],
    *,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> list[Row]:
    """The links of contradictions whose sides are both current and readable, newest first.

    `filters` may hold fact (UUID), kind, subjects and in_scopes (lists; either side may match).
    """
    names = frozenset(filters) | ({"after"} if after else frozenset())
    position = {"after_at": after[0], "after_id": after[1]} if after else {}
    return await _open(names, sight[0]).rows(conn, namespace=namespace, limit=limit, **sight[1], **filters, **position)


async def current_facts(conn: Connection, namespace: str, ids: Iterable[UUID]) -> dict[UUID, Fact]:
    """By id, those of the facts that are current."""
    rows = await _facts.rows(conn, namespace=namespace, ids=list(ids))
    return {row["id"]: to_fact(row) for row in rows}


# --- Links -----------------------------------------------------------------------------------------------------


def _link_filter(name: str) -> ColumnElement[bool]:
    match name:
        case "after":
            return links.c.id < bindparam("after", type_=Uuid)
        case "kind":
            return _kind == bindparam("kind", type_=Text)
        case _:
            return _touches(name)


@lru_cache(maxsize=64)
def _links(filters: frozenset[str], sight: Sight) -> Statement:
    return Statement(
        select(links)
        .select_from(_ends(_past_source, _past_target))
        .where(
            links.c.namespace == _NS,
            *within(_past_source.c.scope, sight),
            *within(_past_target.c.scope, sight),
            *(_link_filter(name) for name in sorted(filters)),
        )
        .order_by(links.c.id.desc())
        .limit(_LIMIT)
    )


async def list_links(
    conn: Connection, namespace: str, sight: Seen, filters: Mapping[str, Any], *, after: UUID | None, limit: int
) -> list[Row]:
    """Links between facts that the caller may read, the latest drawn first. `filters` may hold fact and kind."""
    names = frozenset(filters) | ({"after"} if after else frozenset())
    position = {"after": after} if after else {}
    return await _links(names, sight[0]).rows(conn, namespace=namespace, limit=limit, **sight[1], **filters, **position)


_link = Statement(
    select(links, _past_source.c.scope.label("source_scope"), _past_target.c.scope.label("target_scope"))
    .select_from(_ends(_past_source, _past_target))
    .where(links.c.namespace == _NS, links.c.id == _ID)
)
_standing = Statement(
    select(links)
    .where(
        links.c.namespace == _NS,
        links.c.kind == bindparam("kind", type_=Text),
        links.c.demoted_at.is_(None),
        links.c.resolved_at.is_(None),
        or_(
            and_(
                links.c.source_id == bindparam("one", type_=Uuid),
                links.c.target_id == bindparam("other", type_=Uuid),
            ),
            and_(
                links.c.source_id == bindparam("other", type_=Uuid),
                links.c.target_id == bindparam("one", type_=Uuid),
            ),
        ),
    )
    .order_by(links.c.id)
    .limit(literal_column("1"))
)
_settle = Statement(
    update(links)
    .where(links.c.namespace == _NS, links.c.id == _ID, links.c.resolved_at.is_(None), links.c.demoted_at.is_(None))
    .values(
        resolved_at=bindparam("moment", type_=_TIME),
        resolved_by=bindparam("actor", type_=Text),
        resolution=bindparam("why", type_=Text),
    )
)
_demote = Statement(
    update(links)
    .where(links.c.namespace == _NS, links.c.id == _ID, links.c.demoted_at.is_(None))
    .values(
        demoted_at=bindparam("moment", type_=_TIME),
        demoted_by=bindparam("actor", type_=Text),
        demotion_reason=bindparam("why", type_=Text),
    )
)


async def link(conn: Connection, namespace: str, id_: UUID) -> Row | None:
    """A link, with the scopes of its two facts."""
    return await _link.row(conn, namespace=namespace, id=id_)


async def standing_link(conn: Connection, namespace: str, kind: str, one: UUID, other: UUID) -> Row | None:
    """The link of this kind between two facts, in either direction, that nobody settled."""
    return await _standing.row(conn, namespace=namespace, kind=kind, one=one, other=other)


async def resolve(conn: Connection, namespace: str, id_: UUID, moment: datetime, actor: str, why: str) -> bool:
    """Note that both sides of a conflict stand; whether it was open until now."""
    return await _settle.run(conn, namespace=namespace, id=id_, moment=moment, actor=actor, why=why) > 0


async def demote(conn: Connection, namespace: str, id_: UUID, moment: datetime, actor: str, why: str) -> bool:
    """Note that a link asserts too much; whether it did until now."""
    return await _demote.run(conn, namespace=namespace, id=id_, moment=moment, actor=actor, why=why) > 0
