"""States that were written ahead of their time: when it comes, they do what a write at that moment would do."""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from sqlalchemy import TIMESTAMP, and_, bindparam, func, literal_column, or_, select, tuple_

from app.auth import ROLES, Caller, Scopes
from app.db import Connection, Database, Statement
from app.facts.meeting import meet
from app.facts.model import facts_active
from app.facts.queries import have_met
from app.facts.vocabulary import subject_aliases
from app.upkeep.model import word

_BATCH = 200

_new, _old = facts_active.alias("new"), facts_active.alias("old")
_mine, _theirs = subject_aliases.alias("mine"), subject_aliases.alias("theirs")
_meant = select(_mine.c.subject).where(_mine.c.namespace == _new.c.namespace, _mine.c.alias == _new.c.subject)
# All names of its subject: its own, the one that counts, and the aliases of either.
_names = (
    select(_new.c.subject)
    .correlate(_new)
    .union_all(
        _meant.correlate(_new),
        select(_theirs.c.alias)
        .where(
            _theirs.c.namespace == _new.c.namespace,
            or_(_theirs.c.subject == _new.c.subject, _theirs.c.subject.in_(_meant.correlate(_new))),
        )
        .correlate(_new),
    )
    .scalar_subquery()
)
_arrived = Statement(
    select(_new.c.namespace, _new.c.id, func.array_agg(_old.c.id).label("held"))
    .join_from(
        _new,
        _old,
        and_(
            _old.c.namespace == _new.c.namespace,
            _old.c.scope == _new.c.scope,
            _old.c.subject == func.any(func.array(_names)),
            _old.c.kind == word("state"),
            tuple_(_old.c.valid_from, _old.c.recorded_at) < tuple_(_new.c.valid_from, _new.c.recorded_at),
        ),
    )
    .where(
        _new.c.kind == word("state"),
        _new.c.superseded_by.is_(None),
        _new.c.valid_from > _new.c.recorded_at,
        _new.c.valid_from > bindparam("since", type_=TIMESTAMP(timezone=True)),
        ~have_met(_new.c.namespace, _new.c.id, _old.c.id),
    )
    .group_by(_new.c.namespace, _new.c.id, _new.c.valid_from)
    .order_by(_new.c.valid_from, _new.c.id)
    .limit(literal_column(str(_BATCH)))
)


def worker_in(namespace: str) -> Caller:
    """The worker as a caller: it acts by rules alone, and the audit trail calls it `worker`."""
    everything = Scopes.parse(["*"])
    return Caller(namespace, "worker", frozenset(ROLES), everything, everything, "system")


async def settle(database: Database, since: datetime) -> int:
    """Let the states that became valid after `since` meet what stands at their address; how many did meet it."""
    async with database.reading() as conn:
        rows = await _arrived.rows(conn, since=since)
    for row in rows:
        namespace, id_, held = row["namespace"], row["id"], row["held"]
        await database.run(lambda conn, n=namespace, i=id_, h=held: _meet(conn, n, i, h))  # type: ignore[misc]
    return len(rows)


async def _meet(conn: Connection, namespace: str, id_: UUID, held: list[UUID]) -> None:
    met = await meet(conn, worker_in(namespace), id_, held, None)
    if met is None:
        return
    for retired in met.decision.retires:
        reason = f"The statement that was to replace it at the subject {met.fact.subject!r} became valid."
        met.writing.retire(replace(retired, reason=reason), met.fact, met.moment)
    for doubt in met.decision.doubts:
        met.writing.contest(met.fact, doubt, met.moment)
    await met.writing.flush(conn)
