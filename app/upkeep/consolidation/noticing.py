"""Where consolidation is due: asked every few seconds, so it looks into indexes and never walks the facts."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    CompoundSelect,
    FromClause,
    Integer,
    Interval,
    Text,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
    true,
    tuple_,
    union,
)
from sqlalchemy.sql.selectable import LateralFromClause

from app.db import Connection, Statement
from app.facts.model import facts_active
from app.upkeep.consolidation.marks import MOST_FAILURES, marks
from app.upkeep.jobs import Place
from app.upkeep.model import job_runs, word

_VERSION = bindparam("version", type_=Text)
_THRESHOLD = bindparam("threshold", type_=Integer)
_PAUSE = bindparam("pause", type_=Interval)


def _is_statement(view: FromClause) -> ColumnElement[bool]:
    return view.c.kind.in_([word("state"), word("note"), word("event")])


def _places() -> CTE:
    """Each namespace and scope once: as many looks into the index as there are scopes, however many facts."""
    place = facts_active.c.namespace, facts_active.c.scope
    first = select(*place).order_by(*place).limit(literal_column("1")).subquery("first")
    places = select(first).cte("places", recursive=True)
    following = (
        select(*place)
        .where(tuple_(*place) > tuple_(places.c.namespace, places.c.scope))
        .order_by(*place)
        .limit(literal_column("1"))
        .lateral("following")
    )
    return places.union_all(select(following).select_from(places.join(following, true())))


def _newest(place: FromClause, most: ColumnElement[int], name: str) -> LateralFromClause:
    """Of the newest statements of a place, whether each was never asked about."""
    fact, mark = facts_active.alias(f"{name}_fact"), marks.alias(f"{name}_mark")
    # Not as two equalities: with those the planner may walk all of a namespace by time to find an idle scope's facts.
    its = tuple_(fact.c.namespace, fact.c.scope)
    return (
        select(or_(mark.c.fact_id.is_(None), mark.c.prompt_version != _VERSION).label("unasked"))
        .select_from(fact.outerjoin(mark, and_(mark.c.namespace == fact.c.namespace, mark.c.fact_id == fact.c.id)))
        .where(its >= tuple_(place.c.namespace, place.c.scope), its <= tuple_(place.c.namespace, place.c.scope))
        .where(_is_statement(fact))
        .order_by(fact.c.namespace, fact.c.scope, fact.c.recorded_at.desc(), fact.c.id.desc())
        .limit(most)
        .lateral(name)
    )


def _wanting() -> CompoundSelect[Any]:
    """Places where enough of the newest statements were never asked about, or a question was left unanswered.

    A place is asked about from its oldest statement on, so what is new stands at its end, but for what was committed
    late: twice as many are looked at as must be new.
    """
    places = _places()
    latest = _newest(places, literal_column("1", Integer), "latest")
    newer = _newest(places, literal_column("2", Integer) * _THRESHOLD, "newer")
    gathered = (
        select(places.c.namespace, places.c.scope)
        .select_from(places.join(latest, latest.c.unasked).join(newer, newer.c.unasked))
        .group_by(places.c.namespace, places.c.scope)
        .having(func.count() >= _THRESHOLD)
    )
    left = (
        select(facts_active.c.namespace, facts_active.c.scope)
        .select_from(
            marks.join(
                facts_active,
                and_(facts_active.c.namespace == marks.c.namespace, facts_active.c.id == marks.c.fact_id),
            )
        )
        .where(
            marks.c.done_at.is_(None),
            marks.c.prompt_version == _VERSION,
            marks.c.failures < literal_column(str(MOST_FAILURES)),
            _is_statement(facts_active),
        )
    )
    return union(gathered, left)


_wanted = _wanting().subquery("wanted")
_due = Statement(
    select(_wanted.c.namespace, _wanted.c.scope).where(
        ~exists().where(
            job_runs.c.namespace == _wanted.c.namespace,
            job_runs.c.kind == word("consolidate"),
            job_runs.c.scope == _wanted.c.scope,
            job_runs.c.finished_at > func.now() - _PAUSE,
        )
    )
)


async def due(conn: Connection, version: str, threshold: int, pause: timedelta) -> Sequence[Place]:
    """Namespaces and scopes with something to consolidate, those left out where a run has only just ended."""
    rows = await _due.rows(conn, version=version, threshold=threshold, pause=pause)
    return [(row["namespace"], row["scope"]) for row in rows]
