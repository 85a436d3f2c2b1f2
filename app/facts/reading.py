"""The statements of plain reads: the list of current facts, and the history of one."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    TIMESTAMP,
    ColumnElement,
    Integer,
    Select,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
    tuple_,
    union,
)
from sqlalchemy.dialects.postgresql import ARRAY

from app.db import Connection, Row, Statement
from app.facts.fact import Fact
from app.facts.model import chains, facts_active, facts_history, links, observations
from app.facts.queries import fact_columns, to_fact, with_use
from app.facts.visibility import Sight, within

_NS = bindparam("namespace", type_=Text)
_TIME = TIMESTAMP(timezone=True)


def _filter(name: str) -> ColumnElement[bool]:
    table = facts_active.c
    if name == "tag":
        return bindparam("tag", type_=Text) == func.any(table.tags)
    if name == "since":
        return table.recorded_at >= bindparam("since", type_=_TIME)
    if name == "after":
        return tuple_(table.recorded_at, table.id) < tuple_(
            bindparam("after_recorded_at", type_=_TIME), bindparam("after_id", type_=Uuid)
        )
    if name == "subjects":
        return table.subject == bindparam("subjects", type_=ARRAY(Text)).any_()
    columns = {"kind": table.kind, "agent": table.agent, "tier": table.source_tier}
    return columns[name] == bindparam(name, type_=Text)


@lru_cache(maxsize=512)
def _list(filters: frozenset[str], sight: Sight) -> Statement:
    return Statement(
        select(*fact_columns(facts_active))
        .select_from(with_use(facts_active))
        .where(
            facts_active.c.namespace == _NS,
            *within(facts_active.c.scope, sight),
            *(_filter(name) for name in sorted(filters)),
        )
        .order_by(facts_active.c.recorded_at.desc(), facts_active.c.id.desc())
        .limit(bindparam("limit", type_=Integer))
    )


async def list_facts(
    conn: Connection,
    namespace: str,
    sight: tuple[Sight, Mapping[str, Any]],
    filters: Mapping[str, Any],
    *,
    after: tuple[Any, UUID] | None,
    limit: int,
) -> list[Fact]:
    """Current facts, newest first, from behind the position `after` on."""
    names = frozenset(filters) | ({"after"} if after else frozenset())
    position = {"after_recorded_at": after[0], "after_id": after[1]} if after else {}
    rows = await _list(names, sight[0]).rows(conn, namespace=namespace, limit=limit, **sight[1], **filters, **position)
    return [to_fact(row) for row in rows]


# --- History ---------------------------------------------------------------------------------------------------

_mine = (
    select(facts_history.c.chain_id)
    .where(facts_history.c.namespace == _NS, facts_history.c.id == bindparam("id", type_=Uuid))
    .cte("mine")
)
# A fact that never was replaced, nor replaced anything by new text, is the head of a chain that no row tells of.
_ends = union(
    select(chains.c.head_id).where(chains.c.namespace == _NS, chains.c.chain_id.in_(select(_mine.c.chain_id))),
    select(bindparam("id", type_=Uuid)),
).cte("ends")
_chain_ids = union(
    select(_mine.c.chain_id),
    select(chains.c.chain_id).where(chains.c.namespace == _NS, chains.c.head_id.in_(select(_ends.c.head_id))),
    select(facts_history.c.chain_id).where(
        facts_history.c.namespace == _NS, facts_history.c.id.in_(select(_ends.c.head_id))
    ),
).cte("family")
_retiring = and_(
    links.c.namespace == facts_history.c.namespace,
    links.c.target_id == facts_history.c.id,
    links.c.source_id == facts_history.c.superseded_by,
    links.c.kind.in_([literal_column("'supersedes'"), literal_column("'amends'")]),
    links.c.demoted_at.is_(None),
)


def past_facts(sight: Sight) -> Select[Any]:
    """Facts whatever became of them, each with how its life ended.

    What replaced a fact may stand in a scope that the caller may not read; then neither its id nor its words show.
    """
    successor = facts_history.alias("successor")
    visible = and_(
        successor.c.namespace == facts_history.c.namespace,
        successor.c.id == facts_history.c.superseded_by,
        *within(successor.c.scope, sight),
    )
    return (
        select(
            *(column for column in fact_columns(facts_history) if column.name != "superseded_by"),
            successor.c.id.label("superseded_by"),
            links.c.drawn_by.label("retired_by"),
            links.c.reason,
            case((successor.c.id.is_not(None), links.c.evidence)).label("evidence"),
            links.c.rule,
        )
        .select_from(with_use(facts_history).outerjoin(links, _retiring).outerjoin(successor, visible))
        .where(facts_history.c.namespace == _NS, *within(facts_history.c.scope, sight))
    )


@lru_cache(maxsize=8)
def _history(sight: Sight) -> Statement:
    return Statement(
        past_facts(sight)
        .where(facts_history.c.chain_id.in_(select(_chain_ids.c.chain_id)))
        .order_by(facts_history.c.recorded_at.desc(), facts_history.c.id.desc())
        .limit(bindparam("limit", type_=Integer))
    )


@lru_cache(maxsize=8)
def _touching(sight: Sight) -> Statement:
    source, target = facts_history.alias("source"), facts_history.alias("target")
    wanted = bindparam("ids", type_=ARRAY(Uuid)).any_()
    return Statement(
        select(links)
        .join(source, and_(source.c.namespace == links.c.namespace, source.c.id == links.c.source_id))
        .join(target, and_(target.c.namespace == links.c.namespace, target.c.id == links.c.target_id))
        .where(
            links.c.namespace == _NS,
            or_(links.c.source_id == wanted, links.c.target_id == wanted),
            *within(source.c.scope, sight),
            *within(target.c.scope, sight),
        )
        .order_by(links.c.drawn_at, links.c.id)
    )


_observed = Statement(
    select(observations)
    .where(
        observations.c.namespace == _NS,
        observations.c.fact_id == bindparam("ids", type_=ARRAY(Uuid)).any_(),
    )
    .order_by(observations.c.recorded_at, observations.c.id)
)
_head = Statement(
    select(facts_active.c.id, facts_active.c.scope)
    .select_from(
        facts_active.join(
            chains, and_(chains.c.namespace == facts_active.c.namespace, chains.c.head_id == facts_active.c.id)
        )
    )
    .where(chains.c.namespace == _NS, chains.c.chain_id == bindparam("chain_id", type_=Uuid))
)


async def family(
    conn: Connection, namespace: str, id_: UUID, sight: tuple[Sight, Mapping[str, Any]], limit: int
) -> list[Row]:
    """All facts whose chains end where this one's does, newest first, with how each one's life ended."""
    return await _history(sight[0]).rows(conn, namespace=namespace, id=id_, limit=limit, **sight[1])


async def links_of(
    conn: Connection, namespace: str, ids: Sequence[UUID], sight: tuple[Sight, Mapping[str, Any]]
) -> list[Row]:
    """Every link from or to the facts whose other end can be seen as well, oldest first."""
    return await _touching(sight[0]).rows(conn, namespace=namespace, ids=list(ids), **sight[1])


async def observations_of(conn: Connection, namespace: str, ids: Sequence[UUID]) -> list[Row]:
    """What repeated observations added to the facts, oldest first."""
    return await _observed.rows(conn, namespace=namespace, ids=list(ids))


async def head(conn: Connection, namespace: str, chain_id: UUID) -> tuple[UUID, str] | None:
    """Id and scope of the current fact at the end of a chain."""
    row = await _head.row(conn, namespace=namespace, chain_id=chain_id)
    return (row["id"], row["scope"]) if row else None
