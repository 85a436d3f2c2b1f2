"""The statements about digests that no longer hold."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import (
    Text,
    Uuid,
    and_,
    bindparam,
    func,
    null,
    or_,
    select,
    update,
)

from app.db import Connection, Statement
from app.facts import queries as facts
from app.facts.fact import Fact
from app.facts.model import facts_active, facts_history, links
from app.upkeep.model import word

_NS = bindparam("namespace", type_=Text)
_SCOPE = bindparam("scope", type_=Text)
_ID = bindparam("digest_id", type_=Uuid)
_stands = and_(facts_history.c.stale_at.is_not(None), facts_history.c.superseded_by.is_(None))
_stale = Statement(
    select(*facts.fact_columns(facts_history))
    .select_from(facts.with_use(facts_history))
    .where(
        facts_history.c.namespace == _NS,
        _stands,
        or_(_SCOPE.is_(None), facts_history.c.scope == _SCOPE),
    )
    .order_by(facts_history.c.id)
)
_places = select(facts_history.c.namespace).where(_stands)
_one, _other, _conflict = links.alias("one"), links.alias("other"), links.alias("conflict")


_contested = (
    select(facts_active.c.namespace, facts_active.c.id)
    .select_from(
        _conflict.join(
            _one,
            and_(
                _one.c.namespace == _conflict.c.namespace,
                _one.c.target_id == _conflict.c.source_id,
                _one.c.kind == word("derived_from"),
            ),
        )
        .join(
            _other,
            and_(
                _other.c.namespace == _one.c.namespace,
                _other.c.source_id == _one.c.source_id,
                _other.c.target_id == _conflict.c.target_id,
                _other.c.kind == word("derived_from"),
            ),
        )
        .join(
            facts_active,
            and_(
                facts_active.c.namespace == _one.c.namespace,
                facts_active.c.id == _one.c.source_id,
                facts_active.c.kind == word("digest"),
            ),
        )
    )
    .where(
        _conflict.c.kind == word("contradicts"),
        _conflict.c.resolved_at.is_(None),
        _conflict.c.demoted_at.is_(None),
    )
)
_due = Statement(_places.union(select(_contested.subquery("contested").c.namespace)))
_set_aside = Statement(
    update(facts_history)
    .where(
        facts_history.c.namespace == _NS,
        facts_history.c.stale_at.is_(None),
        facts_history.c.id.in_(select(_contested.where(_conflict.c.namespace == _NS).subquery("contested").c.id)),
    )
    .values(stale_at=func.now())
)
_sources = Statement(
    select(*facts.fact_columns(facts_history), links.c.detail)
    .select_from(
        facts.with_use(facts_history).join(
            links,
            and_(
                links.c.namespace == facts_history.c.namespace,
                links.c.target_id == facts_history.c.id,
                links.c.kind == word("derived_from"),
            ),
        )
    )
    .where(facts_history.c.namespace == _NS, links.c.source_id == _ID)
    .order_by(facts_history.c.id)
)
_revive = Statement(
    update(facts_history)
    .where(facts_history.c.namespace == _NS, facts_history.c.id == _ID, facts_history.c.superseded_by.is_(None))
    .values(stale_at=null())
)


async def places_due(conn: Connection) -> Sequence[tuple[str, str | None]]:
    """Namespaces that hold a digest which is stale, or whose sources contest each other."""
    return [(row["namespace"], None) for row in await _due.rows(conn)]


async def set_contested_aside(conn: Connection, namespace: str) -> int:
    """Take digests whose sources contest each other out of the current facts; how many those were."""
    return await _set_aside.run(conn, namespace=namespace)


async def stale_digests(conn: Connection, namespace: str, scope: str | None) -> list[Fact]:
    return [facts.to_fact(row) for row in await _stale.rows(conn, namespace=namespace, scope=scope)]


async def sources_of(conn: Connection, namespace: str, digest_id: UUID) -> tuple[list[Fact], int]:
    """What a digest was made from, as far as it still exists, and of how many facts it was made."""
    rows = await _sources.rows(conn, namespace=namespace, digest_id=digest_id)
    made_of = max((row.pop("detail").get("of", 0) for row in rows), default=0)
    return [facts.to_fact(row) for row in rows], made_of


async def revive(conn: Connection, namespace: str, digest_id: UUID) -> bool:
    """Make a stale digest current again."""
    return bool(await _revive.run(conn, namespace=namespace, digest_id=digest_id))
