"""The statements on subjects."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Integer,
    Text,
    Uuid,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    literal_column,
    select,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by
from sqlalchemy.dialects.postgresql import insert as pg_insert

from app.db import Connection, Row, Statement
from app.facts.fact import Fact
from app.facts.model import facts_active, facts_history
from app.facts.queries import fact_columns, have_met, to_fact, with_use
from app.facts.reading import past_facts
from app.facts.visibility import Sight, within
from app.facts.vocabulary import subject_aliases, subjects

Seen = tuple[Sight, Mapping[str, Any]]

_NS = bindparam("namespace", type_=Text)
_SUBJECT = bindparam("subject", type_=Text)
_LIMIT = bindparam("limit", type_=Integer)
_names = bindparam("names", type_=ARRAY(Text)).any_()


@lru_cache(maxsize=8)
def _list(sight: Sight, *, registered: bool) -> Statement:
    after = bindparam("after", type_=Text)
    zero = cast(literal_column("0"), BigInteger)
    # Each side is cut to the page before they meet, so that the index on subjects is read no further than that.
    held = (
        select(facts_active.c.subject, func.count().label("facts"))
        .where(
            facts_active.c.namespace == _NS,
            facts_active.c.subject.is_not(None),
            facts_active.c.subject > after,
            *within(facts_active.c.scope, sight),
        )
        .group_by(facts_active.c.subject)
        .order_by(facts_active.c.subject)
        .limit(_LIMIT)
        .subquery()
    )
    known = (
        select(subjects.c.subject, zero.label("facts"))
        .where(subjects.c.namespace == _NS, subjects.c.subject > after)
        .order_by(subjects.c.subject)
        .limit(_LIMIT)
        .subquery()
    )
    sides = [select(held.c.subject, held.c.facts)] + ([select(known.c.subject, known.c.facts)] if registered else [])
    every = union_all(*sides).subquery()
    return Statement(
        select(every.c.subject, cast(func.sum(every.c.facts), BigInteger).label("facts"))
        .group_by(every.c.subject)
        .order_by(every.c.subject)
        .limit(_LIMIT)
    )


async def list_subjects(
    conn: Connection, namespace: str, sight: Seen, *, registered: bool, after: str, limit: int
) -> dict[str, int]:
    """By subject, in order, how many current facts it has; those that are registered without any as well."""
    rows = await _list(sight[0], registered=registered).rows(
        conn, namespace=namespace, after=after, limit=limit, **sight[1]
    )
    return {row["subject"]: row["facts"] for row in rows}


_registered = Statement(
    select(subjects.c.subject, subjects.c.description).where(subjects.c.namespace == _NS, subjects.c.subject == _names)
)
_aliases = Statement(
    select(subject_aliases.c.alias, subject_aliases.c.subject)
    .where(
        subject_aliases.c.namespace == _NS,
        (subject_aliases.c.subject == _names) | (subject_aliases.c.alias == _names),
    )
    .order_by(subject_aliases.c.alias)
)


async def registered(conn: Connection, namespace: str, names: Sequence[str]) -> dict[str, str | None]:
    """The registered ones of these subjects, with their descriptions."""
    rows = await _registered.rows(conn, namespace=namespace, names=list(names))
    return {row["subject"]: row["description"] for row in rows}


async def aliases(conn: Connection, namespace: str, names: Sequence[str]) -> dict[str, str]:
    """By alias, its subject, where either is one of the names."""
    rows = await _aliases.rows(conn, namespace=namespace, names=list(names))
    return {row["alias"]: row["subject"] for row in rows}


@lru_cache(maxsize=4)
def _states(sight: Sight) -> Statement:
    return Statement(
        select(*fact_columns(facts_active))
        .select_from(with_use(facts_active))
        .where(
            facts_active.c.namespace == _NS,
            facts_active.c.subject == _names,
            facts_active.c.kind == literal_column("'state'"),
            *within(facts_active.c.scope, sight),
        )
        .order_by(
            func.array_position(bindparam("precedence", type_=ARRAY(Text)), facts_active.c.scope),
            facts_active.c.recorded_at.desc(),
            facts_active.c.id.desc(),
        )
        .limit(_LIMIT)
    )


@lru_cache(maxsize=4)
def _held(sight: Sight) -> Statement:
    at_subject = and_(
        facts_active.c.namespace == _NS, facts_active.c.subject == _names, *within(facts_active.c.scope, sight)
    )
    ever = and_(
        facts_history.c.namespace == _NS, facts_history.c.subject == _names, *within(facts_history.c.scope, sight)
    )
    return Statement(
        select(
            select(func.count()).select_from(facts_active).where(at_subject).scalar_subquery().label("facts"),
            exists(select(facts_history.c.id).where(ever)).label("known"),
        )
    )


async def states(
    conn: Connection, namespace: str, names: Sequence[str], sight: Seen, precedence: Sequence[str], limit: int
) -> list[Fact]:
    """The current states at the names, in the order of the scopes, then newest first."""
    rows = await _states(sight[0]).rows(
        conn, namespace=namespace, names=list(names), precedence=list(precedence), limit=limit, **sight[1]
    )
    return [to_fact(row) for row in rows]


async def held(conn: Connection, namespace: str, names: Sequence[str], sight: Seen) -> tuple[int, bool]:
    """How many current facts stand at the names, and whether there ever was one."""
    row = await _held(sight[0]).row(conn, namespace=namespace, names=list(names), **sight[1])
    return (row["facts"], row["known"]) if row else (0, False)


@lru_cache(maxsize=8)
def _history(sight: Sight, *, after: bool) -> Statement:
    position = tuple_(bindparam("after_at", type_=TIMESTAMP(timezone=True)), bindparam("after_id", type_=Uuid))
    return Statement(
        past_facts(sight)
        .where(
            facts_history.c.subject == _names,
            *([tuple_(facts_history.c.recorded_at, facts_history.c.id) > position] if after else []),
        )
        .order_by(facts_history.c.recorded_at, facts_history.c.id)
        .limit(_LIMIT)
    )


async def history(
    conn: Connection,
    namespace: str,
    names: Sequence[str],
    sight: Seen,
    *,
    after: tuple[Any, UUID] | None,
    limit: int,
) -> list[Row]:
    """Every fact that ever stood at the names, oldest first, with how each one's life ended."""
    position = {"after_at": after[0], "after_id": after[1]} if after else {}
    return await _history(sight[0], after=after is not None).rows(
        conn, namespace=namespace, names=list(names), limit=limit, **sight[1], **position
    )


# --- States that meet by an alias --------------------------------------------------------------------------------

_MOST_MEETINGS = 200
_state = select(
    facts_active.c.id,
    facts_active.c.subject,
    *(
        func.first_value(column)
        .over(
            partition_by=facts_active.c.scope,
            order_by=(facts_active.c.valid_from.desc(), facts_active.c.recorded_at.desc(), facts_active.c.id.desc()),
        )
        .label(f"newest_{column.name}")
        for column in (facts_active.c.id, facts_active.c.subject)
    ),
).where(
    facts_active.c.namespace == _NS, facts_active.c.subject == _names, facts_active.c.kind == literal_column("'state'")
)
_stranger = _state.subquery("stranger")
_strangers = Statement(
    select(_stranger.c.newest_id, func.array_agg(aggregate_order_by(_stranger.c.id, _stranger.c.id)).label("others"))
    .where(_stranger.c.subject != _stranger.c.newest_subject, ~have_met(_NS, _stranger.c.id, _stranger.c.newest_id))
    .group_by(_stranger.c.newest_id)
    .order_by(_stranger.c.newest_id)
    .limit(literal_column(str(_MOST_MEETINGS)))
)


async def strangers(conn: Connection, namespace: str, names: Sequence[str]) -> list[tuple[UUID, list[UUID]]]:
    """In each scope, the newest state at these names, and those at other names than its own that it never met."""
    rows = await _strangers.rows(conn, namespace=namespace, names=list(names))
    return [(row["newest_id"], row["others"]) for row in rows]


# --- Registering -----------------------------------------------------------------------------------------------

_lock = Statement(select(func.pg_advisory_xact_lock(func.hashtextextended(_NS, literal_column("7"))).label("locked")))
_insert = Statement(
    pg_insert(subjects)
    .values(
        namespace=_NS,
        subject=_SUBJECT,
        description=bindparam("description", type_=Text),
        registered_by=bindparam("actor", type_=Text),
    )
    .on_conflict_do_nothing()
    .returning(subjects.c.subject)
)
_describe = Statement(
    update(subjects)
    .where(subjects.c.namespace == _NS, subjects.c.subject == _SUBJECT)
    .values(description=bindparam("new_description", type_=Text))
)
_drop_aliases = Statement(
    delete(subject_aliases).where(subject_aliases.c.namespace == _NS, subject_aliases.c.subject == _SUBJECT)
)
_add_alias = Statement(
    pg_insert(subject_aliases).values(namespace=_NS, alias=bindparam("alias", type_=Text), subject=_SUBJECT)
)


async def lock_vocabulary(conn: Connection, namespace: str) -> None:
    """One change of a namespace's vocabulary at a time, until the transaction ends."""
    await _lock.row(conn, namespace=namespace)


async def register(
    conn: Connection, namespace: str, subject: str, description: str | None, aliases: Sequence[str], actor: str
) -> bool:
    """Say what a subject is; whether it is new."""
    row = await _insert.row(conn, namespace=namespace, subject=subject, description=description, actor=actor)
    if row is None:
        await _describe.run(conn, namespace=namespace, subject=subject, new_description=description)
        await _drop_aliases.run(conn, namespace=namespace, subject=subject)
    await _add_alias.run_many(conn, [{"namespace": namespace, "alias": alias, "subject": subject} for alias in aliases])
    return row is not None
