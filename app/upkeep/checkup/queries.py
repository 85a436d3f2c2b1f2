"""The statements of a checkup. Each finds at most the first so many rows, and counts them all."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    TIMESTAMP,
    Column,
    ColumnElement,
    Integer,
    Interval,
    MetaData,
    Select,
    Table,
    Text,
    Uuid,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
)

from app.db import Connection, Statement
from app.facts.model import facts_active, facts_history, links
from app.facts.visibility import Sight, within
from app.upkeep.checkup import damage
from app.upkeep.checkup.damage import facts_where
from app.upkeep.model import job_runs, word

_META = MetaData()
_marks = Table(
    "consolidation_marks",
    _META,
    Column("namespace", Text),
    Column("fact_id", Uuid),
    Column("failures", Integer),
    Column("done_at", TIMESTAMP(timezone=True)),
)
_proposals = Table(
    "proposals",
    _META,
    Column("namespace", Text),
    Column("id", Uuid),
    Column("scope", Text),
    Column("verdict", Text),
)
_NS = bindparam("namespace", type_=Text)
_MOST = bindparam("most", type_=Integer)
_WEEK = bindparam("lately", type_=Interval)
_ONE: ColumnElement[int] = literal_column("1", Integer)
_not_ended = facts_history.c.superseded_by.is_(None)
_retiring = links.c.kind.in_([word("supersedes"), word("amends")])

Find = Callable[[Sight], Select[Any]]


def _claims(sight: Sight, *conditions: ColumnElement[bool]) -> Select[Any]:
    """Links that retire, by what they retired."""
    return (
        select(links.c.id)
        .select_from(
            links.join(
                facts_history,
                and_(facts_history.c.namespace == links.c.namespace, facts_history.c.id == links.c.target_id),
            )
        )
        .where(
            links.c.namespace == _NS,
            links.c.demoted_at.is_(None),
            *within(facts_history.c.scope, sight),
            *conditions,
        )
    )


def _without_reason(sight: Sight) -> Select[Any]:
    return _claims(sight, _retiring, func.coalesce(func.btrim(links.c.reason), word("")) == word(""))


def _without_evidence(sight: Sight) -> Select[Any]:
    # A rule is its own evidence, and what was forgotten has no replacement that could be quoted.
    return _claims(
        sight,
        _retiring,
        links.c.evidence.is_(None),
        links.c.rule == word("explicit"),
        facts_history.c.retired_as != word("forgotten"),
    )


def _open_conflicts(sight: Sight) -> Select[Any]:
    return _claims(sight, links.c.kind == word("contradicts"), links.c.resolved_at.is_(None), _not_ended)


def _stale(sight: Sight) -> Select[Any]:
    return facts_where(facts_history, sight, facts_history.c.stale_at.is_not(None), _not_ended)


def _pending(sight: Sight) -> Select[Any]:
    return facts_where(facts_active, sight, facts_active.c.embedding_profile.is_(None))


def _several_states(sight: Sight) -> Select[Any]:
    twin = facts_active.alias("twin")
    return facts_where(
        facts_active,
        sight,
        facts_active.c.kind == word("state"),
        exists().where(
            twin.c.namespace == facts_active.c.namespace,
            twin.c.scope == facts_active.c.scope,
            twin.c.subject == facts_active.c.subject,
            twin.c.kind == word("state"),
            twin.c.id < facts_active.c.id,
        ),
    )


def _same_words(sight: Sight) -> Select[Any]:
    seen = func.row_number().over(partition_by=(facts_active.c.scope, facts_active.c.terms), order_by=facts_active.c.id)
    ranked = (
        select(facts_active.c.id, seen.label("seen"))
        .where(
            facts_active.c.namespace == _NS,
            facts_active.c.kind.in_([word("state"), word("note")]),
            facts_active.c.term_length > _ONE,
            *within(facts_active.c.scope, sight),
        )
        .subquery("ranked")
    )
    return select(ranked.c.id).where(ranked.c.seen > _ONE)


def _unanswered(sight: Sight) -> Select[Any]:
    mark = and_(_marks.c.namespace == facts_active.c.namespace, _marks.c.fact_id == facts_active.c.id)
    asked = exists().where(mark, _marks.c.done_at.is_(None), _marks.c.failures >= literal_column("3"))
    return facts_where(facts_active, sight, asked)


def _failed_jobs(sight: Sight) -> Select[Any]:
    visible = [or_(job_runs.c.scope.is_(None), *within(job_runs.c.scope, sight))] if sight != "everything" else []
    return select(job_runs.c.id).where(
        job_runs.c.namespace == _NS,
        job_runs.c.status == word("failed"),
        job_runs.c.finished_at > func.now() - _WEEK,
        *visible,
    )


def _waiting(sight: Sight) -> Select[Any]:
    return select(_proposals.c.id).where(
        _proposals.c.namespace == _NS, _proposals.c.verdict == word("waiting"), *within(_proposals.c.scope, sight)
    )


CHECKS: Mapping[str, Find] = {
    "retirements_without_reason": _without_reason,
    "retirements_without_evidence": _without_evidence,
    "open_conflicts": _open_conflicts,
    "stale_digests": _stale,
    "facts_pending_embedding": _pending,
    "several_states_at_a_subject": _several_states,
    "near_duplicates": _same_words,
    "unanswered_facts": _unanswered,
    "failed_jobs": _failed_jobs,
    "waiting_proposals": _waiting,
    "dangling_successors": damage.dangling,
    "circular_chains": damage.circular,
    "texts_current_twice": damage.said_twice,
    "retirements_without_claim": damage.without_claim,
    "chains_without_head": damage.wrong_heads,
}


@lru_cache(maxsize=128)
def _check(name: str, sight: Sight) -> Statement:
    found = CHECKS[name](sight).subquery("found")
    return Statement(
        select(found.c.id, func.count().over().label("total")).select_from(found).order_by(found.c.id).limit(_MOST)
    )


async def find(
    conn: Connection, name: str, namespace: str, sight: tuple[Sight, Mapping[str, Any]], most: int, lately: object
) -> tuple[int, list[UUID]]:
    """How many rows a check finds, and the first of them."""
    needed = {"lately": lately} if name == "failed_jobs" else {}
    rows = await _check(name, sight[0]).rows(conn, namespace=namespace, most=most, **sight[1], **needed)
    return (rows[0]["total"] if rows else 0), [row["id"] for row in rows]


# --- Numbers and words -----------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _totals(sight: Sight) -> Statement:
    retired = func.count().filter(facts_history.c.superseded_by.is_not(None))
    return Statement(
        select(func.count().label("facts"), retired.label("retired"), func.now().label("at")).where(
            facts_history.c.namespace == _NS,
            facts_history.c.kind != word("retraction"),
            *within(facts_history.c.scope, sight),
        )
    )


@lru_cache(maxsize=4)
def _notes(sight: Sight) -> Statement:
    return Statement(
        select(facts_active.c.id, facts_active.c.content)
        .where(
            facts_active.c.namespace == _NS,
            facts_active.c.kind == word("note"),
            facts_active.c.subject.is_(None),
            *within(facts_active.c.scope, sight),
        )
        .order_by(facts_active.c.recorded_at.desc(), facts_active.c.id.desc())
        .limit(_MOST)
    )


@lru_cache(maxsize=4)
def _subjects(sight: Sight) -> Statement:
    return Statement(
        select(facts_active.c.subject)
        .where(
            facts_active.c.namespace == _NS, facts_active.c.subject.is_not(None), *within(facts_active.c.scope, sight)
        )
        .group_by(facts_active.c.subject)
        .order_by(facts_active.c.subject)
        .limit(_MOST)
    )


async def totals(conn: Connection, namespace: str, sight: tuple[Sight, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Facts, how many of them are retired, and the database's clock."""
    (row,) = await _totals(sight[0]).rows(conn, namespace=namespace, **sight[1])
    return row


async def latest_notes(
    conn: Connection, namespace: str, sight: tuple[Sight, Mapping[str, Any]], most: int
) -> Sequence[tuple[UUID, str]]:
    """The latest current notes without a subject."""
    rows = await _notes(sight[0]).rows(conn, namespace=namespace, most=most, **sight[1])
    return [(row["id"], row["content"]) for row in rows]


async def subjects(conn: Connection, namespace: str, sight: tuple[Sight, Mapping[str, Any]], most: int) -> list[str]:
    """Subjects in use."""
    rows = await _subjects(sight[0]).rows(conn, namespace=namespace, most=most, **sight[1])
    return [row["subject"] for row in rows]
