"""Decay: a fact that nobody recalls weighs less as time goes by. It says nothing about whether the fact is true.

The weight is exp(-ln 2 · hours since the last access / half-life); before its first access a fact counts as
accessed when it was recorded. It is computed from these alone, never from the weight before, so that a run may be
repeated. Retired facts decay as well; pinned ones do not.
"""

from functools import lru_cache
from uuid import UUID

from sqlalchemy import BigInteger, Double, Integer, Text, Uuid, bindparam, cast, func, literal_column, select, update

from app.db import Connection, Row, Statement
from app.facts.model import fact_use, facts_history
from app.upkeep.jobs import Counts, JobRun, Kind
from app.upkeep.schedule import every

BATCH = 5_000
# A change smaller than this share of the weight is not worth a write: it is less than five minutes' decay at the
# usual half-life.
_LEAST_CHANGE = "1e-4"

_NS = bindparam("namespace", type_=Text)


@lru_cache(maxsize=4)
def _step(*, scoped: bool, writes: bool) -> Statement:
    """One batch in the order of ids: how many facts it holds, how many change, and the last id."""
    batch = (
        select(fact_use.c.fact_id, facts_history.c.recorded_at)
        .join_from(
            fact_use,
            facts_history,
            (facts_history.c.namespace == fact_use.c.namespace) & (facts_history.c.id == fact_use.c.fact_id),
        )
        .where(
            fact_use.c.namespace == _NS,
            fact_use.c.fact_id > bindparam("after", type_=Uuid),
            *([facts_history.c.scope == bindparam("scope", type_=Text)] if scoped else []),
        )
        .order_by(fact_use.c.fact_id)
        .limit(bindparam("most", type_=Integer))
        .cte("batch")
    )
    weight = func.decayed_weight(
        func.coalesce(fact_use.c.last_accessed_at, batch.c.recorded_at),
        cast(bindparam("half_life_h", type_=Double), Double),
        func.now(),
        type_=Double,
    )
    changes = (
        fact_use.c.namespace == _NS,
        fact_use.c.fact_id == batch.c.fact_id,
        fact_use.c.pinned.is_(literal_column("false")),
        func.abs(weight - fact_use.c.weight) > literal_column(_LEAST_CHANGE) * fact_use.c.weight,
    )
    if writes:
        # The weight is taken from the row that is written, so an access counted meanwhile is not lost.
        changed = update(fact_use).values(weight=weight).where(*changes).returning(fact_use.c.fact_id).cte("changed")
    else:
        changed = select(fact_use.c.fact_id).where(*changes).cte("changed")
    last = select(batch.c.fact_id).order_by(batch.c.fact_id.desc()).limit(literal_column("1"))
    return Statement(
        select(
            select(func.count(type_=BigInteger)).select_from(batch).scalar_subquery().label("seen"),
            select(func.count(type_=BigInteger)).select_from(changed).scalar_subquery().label("changed"),
            last.scalar_subquery().label("last"),
        )
    )


_size = Statement(select(func.count().label("facts")).select_from(fact_use).where(fact_use.c.namespace == _NS))


async def decay(run: JobRun) -> Counts:
    """Bring the weights of a namespace, or of one scope of it, up to date. Counts: `facts`, `changed`."""
    async with run.database.reading() as conn:
        row = await _size.row(conn, namespace=run.namespace)
    run.expect(row["facts"] if row and run.scope is None else 0)
    statement = _step(scoped=run.scope is not None, writes=not run.dry_run)
    after: UUID | None = UUID(int=0)
    while after is not None:
        after = await _batch(run, statement, after)
    return run.counts


async def _batch(run: JobRun, statement: Statement, after: UUID) -> UUID | None:
    async def step(conn: Connection) -> Row | None:
        return await statement.row(
            conn,
            namespace=run.namespace,
            after=after,
            most=BATCH,
            half_life_h=run.settings.decay_half_life_h,
            **({"scope": run.scope} if run.scope is not None else {}),
        )

    row = await run.database.run(step)
    if row is None or not row["seen"]:
        return None
    run.advance(row["seen"], facts=row["seen"], changed=row["changed"])
    return UUID(str(row["last"])) if row["seen"] == BATCH else None


KIND = Kind("decay", decay, every("decay", "decay_every_h"))
