"""The statements of recall around its arms: what the words weigh, and the facts that were chosen."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Double,
    Integer,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    cast,
    column,
    func,
    literal_column,
    null,
    or_,
    select,
    table,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import TSQUERY, aggregate_order_by
from sqlalchemy.sql import FromClause

from app.db import Connection, Row, Statement, array_of_vectors
from app.facts.model import Vector, facts_active, facts_history, links, term_counts
from app.facts.queries import fact_columns, with_use
from app.facts.visibility import Sight, within
from app.recall.paths import Mention

_NS = bindparam("namespace", type_=Text)
_IDS = bindparam("ids", type_=ARRAY(Uuid))
_RETIRING: list[ColumnElement[str]] = [
    literal_column("'supersedes'"),
    literal_column("'amends'"),
]


@lru_cache(maxsize=8)
def _corpus(sight: Sight) -> Statement:
    catalogue = table("pg_class", column("relname", Text), column("reltuples", Double))
    counted = (
        select(
            term_counts.c.term,
            cast(func.sum(term_counts.c.facts), BigInteger).label("facts"),
            cast(func.sum(term_counts.c.tokens), BigInteger).label("words"),
        )
        .where(
            term_counts.c.namespace == _NS,
            term_counts.c.term == bindparam("terms", type_=ARRAY(Text)).any_(),
            *within(term_counts.c.scope, sight),
        )
        .group_by(term_counts.c.term)
    )
    indexed: Any = select(null(), cast(catalogue.c.reltuples, BigInteger), literal_column("0")).where(
        catalogue.c.relname == literal_column("'facts_words'")
    )
    return Statement(union_all(counted, indexed))


async def frequencies(
    conn: Connection,
    namespace: str,
    sight: tuple[Sight, Mapping[str, Any]],
    terms: Sequence[str],
) -> tuple[dict[str, tuple[int, int]], int]:
    """By term, in how many facts of the scopes it occurs; under '' all facts and all their words.

    The second number is about how many current facts the whole database holds, as of its last statistics.
    """
    rows = await _corpus(sight[0]).rows(conn, namespace=namespace, **sight[1], terms=["", *terms])
    counts = {row["term"]: (row["facts"], row["words"]) for row in rows}
    indexed, _ = counts.pop(None, (0, 0))
    return counts, indexed


def yielding(found: FromClause) -> ColumnElement[Any]:
    """Pairs of ids as bytes: the fact's, and one at its subject that is newer or of a more trusted source.

    Null where there is none, or where somebody has decided.
    """
    pair = func.uuid_send(links.c.source_id).op("||")(func.uuid_send(links.c.target_id))
    return (
        select(func.string_agg(pair, literal_column("''::bytea")))
        .where(
            links.c.namespace == _NS,
            links.c.source_id == found.c.id,
            links.c.kind == literal_column("'contradicts'"),
            links.c.conflict.in_([literal_column("'older'"), literal_column("'lower_tier'")]),
            links.c.demoted_at.is_(None),
            links.c.resolved_at.is_(None),
        )
        .scalar_subquery()
    )


# --- Steps of a chain ---------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def _mentions(sight: Sight) -> Statement:
    arrays: dict[str, Any] = {"places": Integer, "names": Text, "nears": Vector()}
    named = (
        func.unnest(*(bindparam(name, type_=ARRAY(kind)) for name, kind in arrays.items()))
        .table_valued(*(column(name, kind) for name, kind in arrays.items()))
        .render_derived(name="named")
    )
    # Adding nothing keeps the vector index out: the words find few facts, and those are put in order.
    apart: ColumnElement[Any] = facts_active.c.embedding.op("<=>", return_type=Double())(named.c.nears)
    distance = apart + literal_column("0.0", Double)
    same_space = facts_active.c.embedding_profile == bindparam("profile", type_=Text)
    held = (
        select(facts_active.c.id, facts_active.c.content, facts_active.c.recorded_at)
        .where(
            facts_active.c.namespace == _NS,
            *within(facts_active.c.scope, sight),
            facts_active.c.terms.op("@@")(cast(named.c.names, TSQUERY)),
        )
        .order_by(case((same_space, distance), else_=null()), facts_active.c.id.desc())
        .limit(bindparam("limit", type_=Integer))
        .lateral("held")
    )
    return Statement(select(named.c.places.label("place"), held).select_from(named.join(held, true())))


async def mentions(
    conn: Connection,
    namespace: str,
    sight: tuple[Sight, Mapping[str, Any]],
    names: Sequence[str],
    nears: Sequence[Any],
    profile: str,
    limit: int,
) -> list[tuple[int, Mention]]:
    """For each name (a tsquery), the current facts that hold it, those first whose vectors are nearest to its own.

    Each comes with the place of its name. A name has no vector where its facts may come in any order.
    """
    return await _mentions(sight[0]).made(
        conn,
        lambda place, *fact: (place, Mention._make(fact)),
        namespace=namespace,
        **sight[1],
        places=list(range(len(names))),
        names=list(names),
        nears=array_of_vectors(nears),
        profile=profile,
        limit=limit,
    )


# --- The facts themselves -----------------------------------------------------------------------------------


def _replaces(sight: Sight) -> ColumnElement[Any]:
    """What a fact directly replaced, as arrays of id, instant and reason, the latest first."""
    old = facts_history.alias()
    entry = func.jsonb_build_array(links.c.target_id, old.c.retired_at, links.c.reason)
    return (
        select(func.jsonb_agg(aggregate_order_by(entry, old.c.retired_at.desc(), links.c.target_id)))
        .select_from(links)
        .join(
            old,
            and_(old.c.namespace == links.c.namespace, old.c.id == links.c.target_id),
        )
        .where(
            links.c.namespace == facts_active.c.namespace,
            links.c.source_id == facts_active.c.id,
            links.c.kind.in_(_RETIRING),
            links.c.demoted_at.is_(None),
            old.c.superseded_by == facts_active.c.id,
            *within(old.c.scope, sight),
        )
        .correlate(facts_active)
        .scalar_subquery()
    )


def _conflicts(sight: Sight) -> ColumnElement[Any]:
    """The current facts that contradict a fact, where nobody has decided."""
    other = facts_active.alias()
    far_end = case(
        (links.c.source_id == facts_active.c.id, links.c.target_id),
        else_=links.c.source_id,
    )
    return (
        select(func.array_agg(other.c.id.distinct()))
        .select_from(links)
        .join(other, and_(other.c.namespace == links.c.namespace, other.c.id == far_end))
        .where(
            links.c.namespace == facts_active.c.namespace,
            or_(
                links.c.source_id == facts_active.c.id,
                links.c.target_id == facts_active.c.id,
            ),
            links.c.kind == literal_column("'contradicts'"),
            links.c.demoted_at.is_(None),
            links.c.resolved_at.is_(None),
            *within(other.c.scope, sight),
        )
        .correlate(facts_active)
        .scalar_subquery()
    )


@lru_cache(maxsize=8)
def _current(sight: Sight) -> Statement:
    return Statement(
        select(
            *fact_columns(facts_active),
            _replaces(sight).label("replaces"),
            _conflicts(sight).label("conflicts"),
        )
        .select_from(with_use(facts_active))
        .where(facts_active.c.namespace == _NS, facts_active.c.id == _IDS.any_())
    )


_retiring = and_(
    links.c.namespace == facts_history.c.namespace,
    links.c.target_id == facts_history.c.id,
    links.c.source_id == facts_history.c.superseded_by,
    links.c.kind.in_(_RETIRING),
    links.c.demoted_at.is_(None),
)
_past = Statement(
    select(
        *fact_columns(facts_history),
        links.c.drawn_by.label("retired_by"),
        links.c.reason,
        links.c.evidence,
        links.c.rule,
    )
    .select_from(with_use(facts_history).outerjoin(links, _retiring))
    .where(facts_history.c.namespace == _NS, facts_history.c.id == _IDS.any_())
)


async def current_facts(
    conn: Connection,
    namespace: str,
    sight: tuple[Sight, Mapping[str, Any]],
    ids: Sequence[UUID],
) -> list[Row]:
    """The facts among `ids` that are still current, with what they replaced and what contradicts them.

    `sight` says what the caller may read: nothing outside it is named.
    """
    if not ids:
        return []
    return await _current(sight[0]).rows(conn, namespace=namespace, ids=list(ids), **sight[1])


async def past_facts(conn: Connection, namespace: str, ids: Sequence[UUID]) -> list[Row]:
    """Facts whatever became of them, with how each one's life ended if it did."""
    return await _past.rows(conn, namespace=namespace, ids=list(ids)) if ids else []
