"""Pruning: what nobody has used for long is removed. It is the only mechanism that removes anything.

The rule is one statement, `prunable_facts` of the database, asked by the dry run and by the run, and asked once more
under locks for each batch. It looks at the weight that decay writes, as of now. A fact stays if it is pinned,
recorded, retired or observed again within the minimum age, not yet valid, in an open conflict, a source of a digest
that stands, or the successor of a fact that stays: chains are taken off from their oldest end.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    TIMESTAMP,
    Double,
    Interval,
    Text,
    Uuid,
    bindparam,
    cast,
    column,
    func,
    insert,
    literal_column,
    select,
)
from sqlalchemy.sql.selectable import TableValuedAlias

from app.db import Connection, Statement
from app.facts.addresses import lock_key
from app.facts.queries import lock, places_of
from app.upkeep.attempts import count_findings
from app.upkeep.jobs import Counts, JobRun, Kind
from app.upkeep.model import job_findings
from app.upkeep.schedule import every

RULE = "unused/1"
BATCH = 500

_RULE = literal_column(f"'{RULE}'", Text)
_RUN = cast(bindparam("run_id", type_=Uuid), Uuid)


def _given(name: str, kind: Any) -> Any:
    return cast(bindparam(name, type_=kind), kind)


_where = (
    _given("namespace", Text),
    _given("scope", Text),
    _given("half_life_h", Double),
    _given("below", Double),
    _given("min_age", Interval),
    _given("among", ARRAY(Uuid)),
)
_columns = (
    column("id", Uuid),
    column("chain_id", Uuid),
    column("scope", Text),
    column("superseded_by", Uuid),
    column("recorded_at", TIMESTAMP(timezone=True)),
)
_prunable: TableValuedAlias = func.prunable_facts(*_where).table_valued(*_columns, name="prunable")
_pruned: TableValuedAlias = func.prune_facts(*_where, _RUN, _RULE).table_valued(*_columns, name="pruned")


def _listed(rows: TableValuedAlias, action: str) -> Statement:
    """List the rows among the findings of the run; how many there were. The dates and weights are in the stones."""
    found = select(
        _given("namespace", Text),
        _RUN,
        literal_column(f"'{action}'", Text),
        rows.c.scope,
        rows.c.id,
        rows.c.superseded_by,
        _RULE,
    ).order_by(rows.c.recorded_at, rows.c.id)
    into = ["namespace", "run_id", "action", "scope", "fact_id", "other_id", "rule"]
    return Statement(insert(job_findings).from_select(into, found))


_find = Statement(select(_prunable.c.id).order_by(_prunable.c.chain_id, _prunable.c.recorded_at, _prunable.c.id))
_list_prunable = _listed(_prunable, "prune")
_prune_and_list = _listed(_pruned, "pruned")


async def prune(run: JobRun) -> Counts:
    """Remove what may go, or list it in a dry run. Counts: `prunable` or `pruned`, the findings say which."""
    parameters = {
        "namespace": run.namespace,
        "scope": run.scope,
        "half_life_h": run.settings.decay_half_life_h,
        "below": run.settings.prune_below_weight,
        "min_age": timedelta(days=run.settings.prune_min_age_d),
        "run_id": run.id,
    }
    if run.dry_run:
        async with run.database.transaction() as conn:
            listed = await _list_prunable.run(conn, **parameters, among=None)
        run.advance(listed, prunable=listed)
        return run.counts
    while await _pass(run, parameters):
        pass
    async with run.database.reading() as conn:
        # An attempt before this one may have been killed half-way.
        return {"pruned": await count_findings(conn, run.namespace, run.id, "pruned")}


async def _pass(run: JobRun, parameters: Mapping[str, Any]) -> int:
    """Remove what may go now. Another pass finds what was only held by facts of a later batch."""
    unread = {name: value for name, value in parameters.items() if name != "run_id"}
    async with run.database.reading() as conn:
        ids = [row["id"] for row in await _find.rows(conn, **unread, among=None)]
    run.expect(run.done + len(ids))
    removed = 0
    for start in range(0, len(ids), BATCH):
        removed += await _remove(run, parameters, ids[start : start + BATCH])
    return removed


async def _remove(run: JobRun, parameters: Mapping[str, Any], ids: Sequence[UUID]) -> int:
    async def work(conn: Connection) -> int:
        # The locks of the write path: nobody replaces, restores or repeats one of these facts meanwhile.
        places = await places_of(conn, run.namespace, ids)
        await lock(conn, [lock_key(run.namespace, scope, place) for scope, place in places])
        return await _prune_and_list.run(conn, **parameters, among=list(ids))

    removed = await run.database.run(work)
    run.advance(removed, pruned=removed)
    return removed


KIND = Kind("prune", prune, every("prune", "prune_every_h"))
