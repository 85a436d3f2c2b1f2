"""The statements of plain reads, and of what a write looks at before it decides; each composed once."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    MetaData,
    Table,
    Text,
    Uuid,
    and_,
    bindparam,
    column,
    exists,
    func,
    literal_column,
    or_,
    select,
)
from sqlalchemy.sql import FromClause
from sqlalchemy.sql.selectable import NamedFromClause

from app.db import Connection, Row, Statement
from app.facts.fact import Fact, Rules
from app.facts.model import (
    chains,
    fact_use,
    facts_active,
    facts_history,
    links,
)

_namespaces = Table(
    "namespaces",
    MetaData(),
    Column("name", Text),
    Column("policy", Text),
    Column("require_evidence", Boolean),
    Column("closed_vocabulary", Boolean),
)
_NS = bindparam("namespace", type_=Text)


def array_of(name: str, kind: Any) -> ColumnElement[Any]:
    return bindparam(name, type_=ARRAY(kind))


def rows_of(name: str, **columns: Any) -> NamedFromClause:
    """The rows of parallel arrays bound by the columns' names."""
    arrays = [array_of(key, kind) for key, kind in columns.items()]
    wanted = [column(key, kind) for key, kind in columns.items()]
    return func.unnest(*arrays).table_valued(*wanted).render_derived(name=name)


# --- Reading facts ---------------------------------------------------------------------------------------------

FACT_FIELDS = (
    "namespace",
    "id",
    "chain_id",
    "scope",
    "agent",
    "kind",
    "subject",
    "content",
    "content_hash",
    "source_tier",
    "source_ref",
    "source_quote",
    "confidence",
    "tags",
    "metadata",
    "valid_from",
    "valid_to",
    "observed_at",
    "recorded_at",
    "superseded_by",
    "retired_at",
)


def fact_columns(view: FromClause) -> list[ColumnElement[Any]]:
    """What a Fact is read from: a view's columns, its use, and whether it has a vector."""
    return [
        *(view.c[name] for name in FACT_FIELDS),
        view.c.embedding_profile.is_not(None).label("embedded"),
        func.coalesce(fact_use.c.pinned, literal_column("false")).label("pinned"),
        func.coalesce(fact_use.c.weight, literal_column("1.0")).label("weight"),
        func.coalesce(fact_use.c.observed_count, literal_column("1")).label("observed_count"),
        func.coalesce(fact_use.c.last_observed_at, view.c.observed_at).label("last_observed_at"),
        (view.c.status if "status" in view.c else literal_column("'active'", Text)).label("status"),
    ]


def with_use(view: FromClause) -> FromClause:
    """The view beside the use of its facts."""
    return view.outerjoin(fact_use, and_(fact_use.c.namespace == view.c.namespace, fact_use.c.fact_id == view.c.id))


def to_fact(row: Row) -> Fact:
    return Fact(**row)


_current = Statement(
    select(*fact_columns(facts_active))
    .select_from(with_use(facts_active))
    .where(facts_active.c.namespace == _NS, facts_active.c.id == bindparam("id", type_=Uuid))
)
_past = Statement(
    select(*fact_columns(facts_history), facts_history.c.ended_at, chains.c.head_id, links.c.reason)
    .select_from(
        with_use(facts_history)
        .outerjoin(
            chains,
            and_(chains.c.namespace == facts_history.c.namespace, chains.c.chain_id == facts_history.c.chain_id),
        )
        .outerjoin(
            links,
            and_(
                links.c.namespace == facts_history.c.namespace,
                links.c.target_id == facts_history.c.id,
                links.c.source_id == facts_history.c.superseded_by,
                links.c.kind.in_([literal_column("'supersedes'"), literal_column("'amends'")]),
                links.c.demoted_at.is_(None),
            ),
        )
    )
    .where(facts_history.c.namespace == _NS, facts_history.c.id == bindparam("id", type_=Uuid))
    .limit(literal_column("1"))
)
_is_current = Statement(
    select(facts_active.c.id, facts_active.c.scope).where(
        facts_active.c.namespace == _NS, facts_active.c.id == bindparam("id", type_=Uuid)
    )
)


async def current_fact(conn: Connection, namespace: str, id_: UUID) -> Fact | None:
    row = await _current.row(conn, namespace=namespace, id=id_)
    return to_fact(row) if row else None


async def past_fact(conn: Connection, namespace: str, id_: UUID) -> tuple[Fact, str | None] | None:
    """A fact whatever became of it, with the end of its chain and the reason of its retirement."""
    row = await _past.row(conn, namespace=namespace, id=id_)
    if row is None:
        return None
    reason = row.pop("reason")
    row.pop("ended_at")
    return to_fact(row), reason


async def current_scope(conn: Connection, namespace: str, id_: UUID) -> str | None:
    """The scope of a fact if it is current."""
    row = await _is_current.row(conn, namespace=namespace, id=id_)
    return row["scope"] if row else None


def have_met(namespace: ColumnElement[Any], one: ColumnElement[Any], other: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether two facts were ever looked at together: one replaced the other, or was in doubt of it."""
    kinds: list[ColumnElement[str]] = [literal_column(f"'{kind}'") for kind in ("contradicts", "supersedes", "amends")]
    either_way = or_(
        and_(links.c.source_id == one, links.c.target_id == other),
        and_(links.c.source_id == other, links.c.target_id == one),
    )
    return exists(select(links.c.id).where(links.c.namespace == namespace, links.c.kind.in_(kinds), either_way))


# --- Before a write --------------------------------------------------------------------------------------------

_rules = Statement(
    select(
        _namespaces.c.policy,
        _namespaces.c.require_evidence,
        _namespaces.c.closed_vocabulary,
        func.clock_timestamp().label("now"),
    ).where(_namespaces.c.name == _NS)
)
_wanted = rows_of("wanted", keys=BigInteger)
_lock = Statement(select(func.pg_advisory_xact_lock(_wanted.c["keys"]).label("locked")).select_from(_wanted))
_places = Statement(
    select(
        facts_history.c.scope,
        func.coalesce(
            facts_history.c.subject, func.encode(facts_history.c.content_hash, literal_column("'hex'"))
        ).label("place"),
    ).where(facts_history.c.namespace == _NS, facts_history.c.id == func.any(array_of("ids", Uuid)))
)


async def rules_of(conn: Connection, namespace: str) -> tuple[Rules, datetime]:
    """The namespace's rules, and the database's clock: every replica tells the same time."""
    row = await _rules.row(conn, namespace=namespace)
    if row is None:
        raise LookupError(f"namespace {namespace!r} does not exist")
    now = row.pop("now")
    return Rules(**row), now


async def places_of(conn: Connection, namespace: str, ids: Sequence[UUID]) -> list[tuple[str, str]]:
    """Scope and place of facts, which never change, so that their locks can be taken before they are read."""
    return [(row["scope"], row["place"]) for row in await _places.rows(conn, namespace=namespace, ids=list(ids))]


async def lock(conn: Connection, keys: Sequence[int]) -> None:
    """Take advisory locks until the end of the transaction, in one order for everybody."""
    await _lock.rows(conn, keys=sorted(set(keys)))


def loaded(view: FromClause, *more: ColumnElement[Any]) -> list[ColumnElement[Any]]:
    return [*fact_columns(view), *more]


_heads = Statement(
    select(*loaded(facts_history), chains.c.chain_id.label("of_chain"))
    .select_from(
        with_use(facts_history).join(
            chains,
            and_(chains.c.namespace == facts_history.c.namespace, chains.c.head_id == facts_history.c.id),
        )
    )
    .where(facts_history.c.namespace == _NS, chains.c.chain_id == func.any(array_of("chain_ids", Uuid)))
)


async def heads_of(conn: Connection, namespace: str, chain_ids: Sequence[UUID]) -> dict[UUID, Fact]:
    """By chain, the fact at its end, current or not."""
    rows = await _heads.rows(conn, namespace=namespace, chain_ids=list(chain_ids))
    return {row.pop("of_chain"): to_fact(row) for row in rows}
