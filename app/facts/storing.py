"""The statements that write: facts, what retires them, and what stands around them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from sqlalchemy import (
    ARRAY,
    TIMESTAMP,
    BigInteger,
    Integer,
    Text,
    Uuid,
    bindparam,
    cast,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, TSVECTOR
from sqlalchemy.dialects.postgresql import insert as pg_insert

from app.db import Connection, Statement
from app.facts.fact import Draft, Fact
from app.facts.model import (
    chains,
    fact_use,
    facts_active,
    facts_history,
    links,
    observations,
)
from app.facts.queries import FACT_FIELDS, rows_of

_NS = bindparam("namespace", type_=Text)

_BORN_WITH = tuple(name for name in FACT_FIELDS if name not in ("superseded_by", "retired_at"))
_DERIVED = ("embedding_profile", "embedding", "term_length")
# Rows that one statement inserts. The words of all of them are counted at once, and a statement of more rows would
# take longer to plan than it saves.
_TOGETHER = 50


@lru_cache(maxsize=2)
def _insert_facts(count: int) -> Statement:
    return Statement(insert(facts_active).values([_new_row(place) for place in range(count)]))


def _new_row(place: int) -> dict[str, Any]:
    return {
        **{
            name: bindparam(f"{name}_{place}")
            for name in (*_BORN_WITH, "embedding_profile", "embedding", "term_length")
        },
        "terms": cast(bindparam(f"terms_{place}", type_=Text), TSVECTOR),
    }


_insert_use = Statement(
    insert(fact_use).values(namespace=_NS, fact_id=bindparam("fact_id"), last_observed_at=bindparam("last_observed_at"))
)
_ended = rows_of(
    "ended",
    ids=Uuid,
    successors=Uuid,
    moments=TIMESTAMP(timezone=True),
    ends=TIMESTAMP(timezone=True),
    ways=Text,
)
_retire = Statement(
    update(facts_history)
    .where(
        facts_history.c.namespace == _NS,
        facts_history.c.id == _ended.c.ids,
        facts_history.c.superseded_by.is_(None),
    )
    .values(
        superseded_by=_ended.c.successors,
        retired_at=_ended.c.moments,
        ended_at=_ended.c.ends,
        retired_as=_ended.c.ways,
    )
)
_move_head = Statement(
    update(chains)
    .where(chains.c.namespace == _NS, chains.c.head_id == bindparam("old_head", type_=Uuid))
    .values(head_id=bindparam("new_head", type_=Uuid))
)
_chain = pg_insert(chains).values(
    namespace=_NS, chain_id=bindparam("chain_id", type_=Uuid), head_id=bindparam("head_id", type_=Uuid)
)
_set_head = Statement(
    _chain.on_conflict_do_update(
        index_elements=[chains.c.namespace, chains.c.chain_id], set_={"head_id": _chain.excluded.head_id}
    )
)
_link = pg_insert(links).values(
    {
        name: bindparam(name)
        for name in (
            "namespace", "id", "source_id", "target_id", "kind", "reason", "evidence", "rule", "conflict",
            "drawn_by", "drawn_at",
        )
    }
    | {"detail": bindparam("detail", type_=JSONB)}
)  # fmt: skip
_insert_link = Statement(_link)
_observe = Statement(
    update(fact_use)
    .where(fact_use.c.namespace == _NS, fact_use.c.fact_id == bindparam("id", type_=Uuid))
    .values(
        observed_count=fact_use.c.observed_count + cast(bindparam("times", type_=BigInteger), BigInteger),
        last_observed_at=func.greatest(
            fact_use.c.last_observed_at, bindparam("moment", type_=TIMESTAMP(timezone=True))
        ),
    )
)
_insert_observation = Statement(
    insert(observations).values(
        {
            name: bindparam(name)
            for name in (
                "namespace", "id", "fact_id", "agent", "source_tier", "source_ref", "source_quote", "confidence",
                "tags", "metadata", "observed_at", "recorded_at",
            )
        }
    )
)  # fmt: skip
_set_tags = Statement(
    update(facts_history)
    .where(facts_history.c.namespace == _NS, facts_history.c.id == bindparam("fact_id", type_=Uuid))
    .values(tags=bindparam("new_tags", type_=ARRAY(Text)))
)


async def insert_facts(conn: Connection, facts: Sequence[tuple[Fact, Draft]]) -> None:
    """Append facts, with their use beside them."""
    whole = len(facts) - len(facts) % _TOGETHER
    for start in range(0, whole, _TOGETHER):
        await _insert_facts(_TOGETHER).run(conn, **_numbered(facts[start : start + _TOGETHER]))
    await _insert_facts(1).run_many(conn, [_numbered([pair]) for pair in facts[whole:]])
    await _insert_use.run_many(
        conn,
        [{"namespace": fact.namespace, "fact_id": fact.id, "last_observed_at": fact.observed_at} for fact, _ in facts],
    )


def _numbered(facts: Sequence[tuple[Fact, Draft]]) -> dict[str, Any]:
    rows = (_fact_parameters(fact, draft).items() for fact, draft in facts)
    return {f"{name}_{place}": value for place, row in enumerate(rows) for name, value in row}


def _fact_parameters(fact: Fact, draft: Draft) -> Mapping[str, Any]:
    return {name: getattr(fact, name) for name in _BORN_WITH} | {
        "metadata": Jsonb(fact.metadata),
        "embedding_profile": draft.embedding_profile,
        "embedding": draft.embedding,
        "terms": draft.terms_literal,
        "term_length": draft.term_length,
    }


async def retire(conn: Connection, namespace: str, rows: Sequence[tuple[UUID, UUID, datetime, datetime, str]]) -> int:
    """Point facts at their successors, those only that still stand; how many did."""
    ids, successors, moments, ends, ways = (list(column) for column in zip(*rows, strict=True))
    return await _retire.run(
        conn, namespace=namespace, ids=ids, successors=successors, moments=moments, ends=ends, ways=ways
    )


async def extend_chains(conn: Connection, namespace: str, steps: Sequence[tuple[Fact, UUID]]) -> None:
    """Make each successor the head of every chain that ended at the fact, in the order given."""
    for old, new in steps:
        await _set_head.run(conn, namespace=namespace, chain_id=old.chain_id, head_id=new)
        await _move_head.run(conn, namespace=namespace, old_head=old.id, new_head=new)


async def set_chain_head(conn: Connection, namespace: str, chain_id: UUID, head_id: UUID) -> None:
    """Say where a chain ends."""
    await _set_head.run(conn, namespace=namespace, chain_id=chain_id, head_id=head_id)


async def insert_links(conn: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    await _insert_link.run_many(conn, [{**row, "detail": Jsonb(row["detail"])} for row in rows])


async def observe_again(conn: Connection, namespace: str, rows: Sequence[tuple[UUID, int, datetime]]) -> None:
    """Count repeated observations of facts."""
    await _observe.run_many(
        conn,
        [{"namespace": namespace, "id": id_, "times": times, "moment": moment} for id_, times, moment in rows],
    )


async def insert_observations(conn: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    await _insert_observation.run_many(conn, [{**row, "metadata": Jsonb(row["metadata"])} for row in rows])


_register = Statement(
    select(
        func.register_embedding_profile(
            bindparam("profile", type_=Text), cast(bindparam("dimensions", type_=Integer), Integer)
        ).label("registered")
    )
)


async def register_profile(conn: Connection, profile: str, dimensions: int) -> None:
    """Make sure that the vectors of a profile have their indexes. Raises CheckViolation for another dimension."""
    await _register.rows(conn, profile=profile, dimensions=dimensions)


async def set_tags(conn: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    await _set_tags.run_many(conn, rows)
