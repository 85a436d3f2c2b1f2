"""The statements that keep proposals and their verdicts."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from sqlalchemy import (
    ARRAY,
    TIMESTAMP,
    BigInteger,
    Column,
    Integer,
    MetaData,
    Table,
    Text,
    Uuid,
    bindparam,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as pg_insert

from app.db import Connection, Row, Statement
from app.facts.visibility import Sight, within
from app.upkeep.proposals.model import Proposal, Verdict

_TIME = TIMESTAMP(timezone=True)
_proposals = Table(
    "proposals",
    MetaData(),
    Column("namespace", Text, primary_key=True),
    Column("id", Uuid, primary_key=True),
    Column("job_id", Uuid),
    Column("scope", Text),
    Column("kind", Text),
    Column("fact_ids", ARRAY(Uuid)),
    Column("link_id", Uuid),
    Column("content", JSONB),
    Column("rule", Text),
    Column("model", Text),
    Column("call_id", Uuid),
    Column("tokens", BigInteger),
    Column("verdict", Text),
    Column("reason", Text),
    Column("result_id", Uuid),
    Column("created_at", _TIME),
    Column("decided_at", _TIME),
    Column("decided_by", Text),
)
_NS = bindparam("namespace", type_=Text)
_ID = bindparam("proposal_id", type_=Uuid)
_GIVEN = (
    "namespace", "id", "job_id", "scope", "kind", "fact_ids", "link_id", "content", "rule", "model", "call_id",
    "tokens", "verdict", "reason", "result_id",
)  # fmt: skip
_add = Statement(
    pg_insert(_proposals)
    .values({name: bindparam(name, type_=_proposals.c[name].type) for name in _GIVEN})
    .on_conflict_do_nothing()
)
_one = Statement(select(_proposals).where(_proposals.c.namespace == _NS, _proposals.c.id == _ID))
_locked = Statement(select(_proposals).where(_proposals.c.namespace == _NS, _proposals.c.id == _ID).with_for_update())
_decide = Statement(
    update(_proposals)
    .where(_proposals.c.namespace == _NS, _proposals.c.id == _ID)
    .values(
        verdict=bindparam("new_verdict", type_=Text),
        reason=func.coalesce(bindparam("new_reason", type_=Text), _proposals.c.reason),
        result_id=bindparam("new_result", type_=Uuid),
        decided_by=bindparam("actor", type_=Text),
        decided_at=func.clock_timestamp(),
    )
)
_settled_links = Statement(
    select(_proposals.c.link_id).where(
        _proposals.c.namespace == _NS,
        _proposals.c.kind == literal_column("'demotion'"),
        _proposals.c.verdict == literal_column("'rejected'"),
        _proposals.c.link_id == func.any(bindparam("links", type_=ARRAY(Uuid))),
    )
)
_waiting_links = Statement(
    select(_proposals.c.id, _proposals.c.link_id).where(
        _proposals.c.namespace == _NS,
        _proposals.c.kind == literal_column("'demotion'"),
        _proposals.c.verdict == literal_column("'waiting'"),
        _proposals.c.link_id == func.any(bindparam("links", type_=ARRAY(Uuid))),
    )
)


@lru_cache(maxsize=64)
def _page(sight: Sight, *, verdict: bool, after: bool) -> Statement:
    return Statement(
        select(_proposals)
        .where(
            _proposals.c.namespace == _NS,
            _proposals.c.job_id == bindparam("job_id", type_=Uuid),
            *within(_proposals.c.scope, sight),
            *([_proposals.c.verdict == bindparam("verdict", type_=Text)] if verdict else []),
            *([_proposals.c.id > bindparam("after", type_=Uuid)] if after else []),
        )
        .order_by(_proposals.c.id)
        .limit(bindparam("limit", type_=Integer))
    )


def _proposal(row: Row) -> Proposal:
    return Proposal(**row)


async def add(conn: Connection, proposals: Sequence[Proposal]) -> None:
    """Keep proposals. A demotion of a link that waits already is not put up twice."""
    await _add.run_many(
        conn,
        [
            {name: getattr(proposal, name) for name in _GIVEN} | {"content": Jsonb(proposal.content)}
            for proposal in proposals
        ],
    )


async def page(
    conn: Connection,
    namespace: str,
    job_id: UUID,
    sight: tuple[Sight, Mapping[str, Any]],
    *,
    verdict: Verdict | None,
    after: UUID | None,
    limit: int,
) -> list[Proposal]:
    """Proposals of a job, in the order in which they were made (their ids tell it), of the scopes in sight."""
    narrowed = {name: value for name, value in (("verdict", verdict), ("after", after)) if value is not None}
    statement = _page(sight[0], verdict=verdict is not None, after=after is not None)
    rows = await statement.rows(conn, namespace=namespace, job_id=job_id, limit=limit, **sight[1], **narrowed)
    return [_proposal(row) for row in rows]


async def find(conn: Connection, namespace: str, id_: UUID, *, lock: bool = False) -> Proposal | None:
    row = await (_locked if lock else _one).row(conn, namespace=namespace, proposal_id=id_)
    return _proposal(row) if row else None


async def decide(
    conn: Connection, proposal: Proposal, verdict: Verdict, actor: str, *, reason: str | None, result: UUID | None
) -> None:
    """Give a proposal its verdict; a reason that is left out keeps the one that it had."""
    await _decide.run(
        conn,
        namespace=proposal.namespace,
        proposal_id=proposal.id,
        new_verdict=verdict,
        new_reason=reason,
        new_result=result,
        actor=actor,
    )


async def rejected_links(conn: Connection, namespace: str, links: Sequence[UUID]) -> set[UUID]:
    """The links among these whose demotion somebody has rejected."""
    return {row["link_id"] for row in await _settled_links.rows(conn, namespace=namespace, links=list(links))}


async def waiting_demotions(conn: Connection, namespace: str, links: Sequence[UUID]) -> dict[UUID, UUID]:
    """By link, the demotion that waits for a decision."""
    rows = await _waiting_links.rows(conn, namespace=namespace, links=list(links))
    return {row["link_id"]: row["id"] for row in rows}
