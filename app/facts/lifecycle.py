"""Statements that change how a fact stands: undoing a retirement, pinning, and the heads of chains."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import TIMESTAMP, Boolean, Text, Uuid, bindparam, literal_column, null, select, update
from uuid_utils.compat import uuid7

from app.auth import Caller
from app.db import Connection, Statement
from app.facts import queries, storing
from app.facts.fact import Fact
from app.facts.model import fact_use, facts_history, links
from app.facts.working import Working

_NS = bindparam("namespace", type_=Text)
_ID = bindparam("fact_id", type_=Uuid)
_demote = Statement(
    update(links)
    .where(
        links.c.namespace == _NS,
        links.c.target_id == _ID,
        links.c.source_id == bindparam("successor", type_=Uuid),
        links.c.kind.in_([literal_column("'supersedes'"), literal_column("'amends'")]),
        links.c.demoted_at.is_(None),
    )
    .values(
        demoted_at=bindparam("moment", type_=TIMESTAMP(timezone=True)),
        demoted_by=bindparam("actor", type_=Text),
        demotion_reason=bindparam("why", type_=Text),
    )
)
_revive = Statement(
    update(facts_history)
    .where(facts_history.c.namespace == _NS, facts_history.c.id == _ID)
    .values(superseded_by=null(), retired_at=null(), retired_as=null(), ended_at=null())
)
_older = (
    select(facts_history.c.id)
    .where(facts_history.c.namespace == _NS, facts_history.c.id == _ID)
    .cte("older", recursive=True)
)
_below = facts_history.alias("below")
_older = _older.union(
    select(_below.c.id).join(_older, _below.c.superseded_by == _older.c.id).where(_below.c.namespace == _NS)
)
_relabel = Statement(
    update(facts_history)
    .where(facts_history.c.namespace == _NS, facts_history.c.id.in_(select(_older.c.id)))
    .values(chain_id=bindparam("label", type_=Uuid))
)
_pin = Statement(
    update(fact_use)
    .where(fact_use.c.namespace == _NS, fact_use.c.fact_id == _ID)
    .values(pinned=bindparam("value", type_=Boolean))
)


async def load_heads(conn: Connection, namespace: str, working: Working) -> None:
    """Find what stands at the end of the chains of the retired facts in hand."""
    retired = [fact for fact in working.facts.values() if fact.superseded_by is not None]
    if not retired:
        return
    heads = await queries.heads_of(conn, namespace, list({fact.chain_id for fact in retired}))
    for fact in retired:
        found = heads.get(fact.chain_id)
        fact.head_id = found.id if found else None
    working.hold(heads.values())


async def detach(
    conn: Connection,
    caller: Caller,
    fact: Fact,
    successor: UUID,
    moment: datetime,
    reason: str,
) -> None:
    """Bring a fact back with the chain that led to it, and demote the link that retired it."""
    namespace = caller.namespace
    await _demote.run(
        conn,
        namespace=namespace,
        fact_id=fact.id,
        successor=successor,
        moment=moment,
        actor=caller.actor,
        why=reason,
    )
    await _revive.run(conn, namespace=namespace, fact_id=fact.id)
    fact.chain_id = uuid7()
    await _relabel.run(conn, namespace=namespace, fact_id=fact.id, label=fact.chain_id)
    await storing.set_chain_head(conn, namespace, fact.chain_id, fact.id)


async def set_pinned(conn: Connection, namespace: str, id_: UUID, *, pinned: bool) -> None:
    await _pin.run(conn, namespace=namespace, fact_id=id_, value=pinned)
