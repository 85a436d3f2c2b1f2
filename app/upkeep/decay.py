"""Decay: a fact that nobody recalls weighs less as time goes by. It says nothing about whether the fact is true.

The weight is exp(-ln 2 · hours since the last access / half-life); before its first access a fact counts as
accessed when it was recorded. It is computed from these alone, never from the weight before, so that a run may be
repeated. Retired facts decay as well; pinned ones do not.
"""

from functools import lru_cache
from uuid import UUID

from sqlalchemy import Double, Text, Uuid, bindparam, cast, func, literal_column, select, update

from app.db import Statement
from app.facts.model import fact_use, facts_history
from app.upkeep.jobs import Counts, JobRun, Kind
from app.upkeep.schedule import every

BATCH = 5_000
# A change smaller than this share of the weight is not worth a write: it is less than five minutes' decay at the
# usual half-life.
_LEAST_CHANGE = "1e-4"

_NS = bindparam("namespace", type_=Text)


_AFTER, _UP_TO = bindparam("after", type_=Uuid), bindparam("up_to", type_=Uuid)
_LAST = UUID(int=2**128 - 1)

# The id at which a batch ends; none where less than a batch is left.
_bound = Statement(
    select(fact_use.c.fact_id)
    .where(fact_use.c.namespace == _NS, fact_use.c.fact_id > _AFTER)
    .order_by(fact_use.c.fact_id)
    .offset(literal_column(str(BATCH - 1)))
    .limit(literal_column("1"))
)


@lru_cache(maxsize=4)
def _step(*, scoped: bool, writes: bool) -> Statement:
    """The facts of one range of ids whose weight changes: changed, or only counted."""
    f = facts_history.c
    # The weight is taken from the row that is written, so an access counted meanwhile is not lost.
    weight = func.decayed_weight(
        func.coalesce(fact_use.c.last_accessed_at, f.recorded_at),
        cast(bindparam("half_life_h", type_=Double), Double),
        func.now(),
        type_=Double,
    )
    where = (
        fact_use.c.namespace == _NS,
        fact_use.c.fact_id > _AFTER,
        fact_use.c.fact_id <= _UP_TO,
        f.namespace == _NS,
        f.id > _AFTER,
        f.id <= _UP_TO,
        f.id == fact_use.c.fact_id,
        *([f.scope == bindparam("scope", type_=Text)] if scoped else []),
        fact_use.c.pinned.is_(literal_column("false")),
        func.abs(weight - fact_use.c.weight) > literal_column(_LEAST_CHANGE) * fact_use.c.weight,
    )
    if writes:
        return Statement(update(fact_use).values(weight=weight).where(*where))
    return Statement(select(fact_use.c.fact_id).where(*where))


_size = Statement(select(func.count().label("facts")).select_from(fact_use).where(fact_use.c.namespace == _NS))


async def decay(run: JobRun) -> Counts:
    """Bring the weights of a namespace, or of one scope of it, up to date. Counts: `changed`."""
    async with run.database.reading() as conn:
        row = await _size.row(conn, namespace=run.namespace)
    left = row["facts"] if row else 0
    run.expect(left)
    run.advance(0, changed=0)
    statement = _step(scoped=run.scope is not None, writes=not run.dry_run)
    after = UUID(int=0)
    while after != _LAST:
        async with run.database.reading() as conn:
            bound = await _bound.row(conn, namespace=run.namespace, after=after)
        up_to = bound["fact_id"] if bound else _LAST
        changed = await _decay_range(run, statement, after, up_to)
        done = BATCH if bound else max(0, left - run.done)
        run.advance(done, changed=changed)
        after = up_to
    return run.counts


async def _decay_range(run: JobRun, statement: Statement, after: UUID, up_to: UUID) -> int:
    parameters = {
        "namespace": run.namespace,
        "after": after,
        "up_to": up_to,
        "half_life_h": run.settings.decay_half_life_h,
        **({"scope": run.scope} if run.scope is not None else {}),
    }
    return await run.database.run(lambda conn: statement.run(conn, **parameters))


KIND = Kind("decay", decay, every("decay", "decay_every_h"))
