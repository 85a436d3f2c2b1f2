"""States that were written ahead of their time: when it comes, they do what a write at that moment would do."""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from sqlalchemy import TIMESTAMP, and_, bindparam, exists, func, literal_column, or_, select, tuple_

from app.auth import ROLES, Caller, Scopes
from app.db import Connection, Database, Statement
from app.facts import queries
from app.facts.decision import judge_state
from app.facts.fact import Decision, Draft, Fact
from app.facts.model import facts_active, links
from app.facts.retiring import lock_and_load
from app.facts.vocabulary import subject_aliases
from app.facts.writing import Writing
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
_met_before = exists(
    select(links.c.id).where(
        links.c.namespace == _new.c.namespace,
        links.c.kind.in_([word("contradicts"), word("supersedes"), word("amends")]),
        or_(
            and_(links.c.source_id == _new.c.id, links.c.target_id == _old.c.id),
            and_(links.c.source_id == _old.c.id, links.c.target_id == _new.c.id),
        ),
    )
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
        ~_met_before,
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
    caller = worker_in(namespace)
    rules, now = await queries.rules_of(conn, namespace)
    working = await lock_and_load(conn, caller, [id_, *held])
    fact = working.facts.get(id_)
    if fact is None or not fact.is_current or rules.policy == "explicit":
        return
    decision = Decision()
    for old in (working.facts[other] for other in held if other in working.facts):
        if old.is_current:
            judge_state(_as_written_now(fact), old, decision, rules)
    writing = Writing(caller, None, working)
    for retired in decision.retires:
        reason = f"The statement that was to replace it at the subject {fact.subject!r} became valid."
        writing.retire(replace(retired, reason=reason), fact, now)
    for doubt in decision.doubts:
        writing.contest(fact, doubt, now)
    await writing.flush(conn)


def _as_written_now(fact: Fact) -> Draft:
    return Draft(
        scope=fact.scope,
        agent=fact.agent,
        kind=fact.kind,
        kind_declared=False,
        subject=fact.subject,
        content=fact.content,
        content_hash=fact.content_hash,
        source_tier=fact.source_tier,
        source_ref=fact.source_ref,
        source_quote=fact.source_quote,
        confidence=fact.confidence,
        tags=fact.tags,
        metadata=fact.metadata,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        observed_at=None,
        terms={},
        term_length=0,
        terms_literal="",
    )
