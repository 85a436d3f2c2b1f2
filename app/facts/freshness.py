"""Which of the facts that a client holds are no longer current, and how many facts stand how."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import Text, Uuid, and_, bindparam, func, literal_column, select, text
from sqlalchemy.dialects.postgresql import ARRAY

from app.db import Connection, Row, Statement
from app.facts.model import chains, facts_active, facts_history, links
from app.facts.visibility import Sight, within

_NS = bindparam("namespace", type_=Text)


@lru_cache(maxsize=4)
def _standing(sight: Sight) -> Statement:
    retiring = and_(
        links.c.namespace == facts_history.c.namespace,
        links.c.target_id == facts_history.c.id,
        links.c.source_id == facts_history.c.superseded_by,
        links.c.kind.in_([literal_column("'supersedes'"), literal_column("'amends'")]),
        links.c.demoted_at.is_(None),
    )
    own_chain = and_(chains.c.namespace == facts_history.c.namespace, chains.c.chain_id == facts_history.c.chain_id)
    # A head in a scope that the caller may not read is not named.
    visible_head = and_(
        facts_active.c.namespace == chains.c.namespace,
        facts_active.c.id == chains.c.head_id,
        *within(facts_active.c.scope, sight),
    )
    return Statement(
        select(
            facts_history.c.id,
            facts_history.c.status,
            facts_history.c.retired_at,
            facts_history.c.superseded_by,
            facts_active.c.id.label("head"),
            links.c.reason,
        )
        .select_from(
            facts_history.outerjoin(links, retiring).outerjoin(chains, own_chain).outerjoin(facts_active, visible_head)
        )
        .where(
            facts_history.c.namespace == _NS,
            facts_history.c.id == bindparam("ids", type_=ARRAY(Uuid)).any_(),
            facts_history.c.kind != literal_column("'retraction'"),
            *within(facts_history.c.scope, sight),
        )
    )


async def standing(
    conn: Connection, namespace: str, ids: Sequence[UUID], sight: tuple[Sight, Mapping[str, Any]]
) -> dict[UUID, Row]:
    """By id, how each fact stands now; one that the caller may not read, or that never was, is absent."""
    rows = await _standing(sight[0]).rows(conn, namespace=namespace, ids=list(ids), **sight[1])
    return {row["id"]: row for row in rows}


@lru_cache(maxsize=4)
def _counts(sight: Sight) -> Statement:
    return Statement(
        select(
            facts_history.c.scope,
            facts_history.c.kind,
            facts_history.c.status,
            func.count().label("facts"),
        )
        .where(
            facts_history.c.namespace == _NS,
            facts_history.c.kind != literal_column("'retraction'"),
            *within(facts_history.c.scope, sight),
        )
        .group_by(text("GROUPING SETS ((kind, status), (scope, status))"))
    )


async def counts(conn: Connection, namespace: str, sight: tuple[Sight, Mapping[str, Any]]) -> list[Row]:
    """How many facts stand how: by kind (where `scope` is null) and by scope (where `kind` is null)."""
    return await _counts(sight[0]).rows(conn, namespace=namespace, **sight[1])
