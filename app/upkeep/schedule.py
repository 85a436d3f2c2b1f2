"""What the schedule needs to know: where a job is due, which jobs lost their worker, and what is kept long enough."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Integer,
    Interval,
    MetaData,
    Table,
    Text,
    Uuid,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.db import Connection, Row, Statement
from app.idempotency import idempotency_keys
from app.settings import Settings
from app.upkeep.jobs import Due, KindName, Place
from app.upkeep.model import ACTIVE, job_findings, job_runs, word
from app.upkeep.queue import QUEUE

_PURGED_AT_ONCE = 5_000

_METADATA = MetaData()
_namespaces = Table("namespaces", _METADATA, Column("name", Text))
_jobs = Table(
    "procrastinate_jobs",
    _METADATA,
    Column("id", BigInteger),
    Column("queue_name", Text),
    Column("status", Text),
    Column("args", JSONB),
)
_events = Table(
    "procrastinate_events",
    _METADATA,
    Column("job_id", BigInteger),
    Column("type", Text),
    Column("at", DateTime(timezone=True)),
)
_now = func.clock_timestamp()
_KIND = bindparam("kind", type_=Text)
_LEASE = bindparam("lease", type_=Interval)
_PAUSE = bindparam("pause", type_=Interval)
_NS = bindparam("namespace", type_=Text)


# --- Due -------------------------------------------------------------------------------------------------------

_try_lock = Statement(
    select(
        func.pg_try_advisory_xact_lock(func.hashtextextended(word("palimpsest.schedule"), literal_column("0"))).label(
            "mine"
        )
    )
)
_long_ago = Statement(
    select(_namespaces.c.name)
    .where(
        ~exists().where(
            job_runs.c.namespace == _namespaces.c.name,
            job_runs.c.kind == _KIND,
            job_runs.c.scope.is_(None),
            job_runs.c.dry_run.is_(literal_column("false")),
            or_(ACTIVE, job_runs.c.created_at > _now - bindparam("every", type_=Interval)),
        )
    )
    .order_by(_namespaces.c.name)
)
_resting = Statement(
    select(
        exists()
        .where(
            job_runs.c.namespace == _NS,
            job_runs.c.kind == _KIND,
            job_runs.c.scope.is_not_distinct_from(bindparam("scope", type_=Text)),
            job_runs.c.automatic,
            or_(ACTIVE, and_(job_runs.c.status == word("failed"), job_runs.c.finished_at > _now - _PAUSE)),
        )
        .label("resting")
    )
)


async def begin(conn: Connection) -> bool:
    """Whether this transaction keeps the schedule: one worker does so at a time."""
    row = await _try_lock.row(conn)
    return bool(row and row["mine"])


def every(kind: KindName, hours: str) -> Due:
    """Due where the last run for a whole namespace was asked for so many hours ago; `hours` names the setting."""

    async def due(conn: Connection, settings: Settings) -> Sequence[Place]:
        wanted: float = getattr(settings, hours)
        if not wanted:
            return []
        rows = await _long_ago.rows(conn, kind=kind, every=timedelta(hours=wanted))
        return [(row["name"], None) for row in rows]

    return due


async def is_resting(conn: Connection, place: Place, kind: str, pause: timedelta) -> bool:
    """Whether the schedule's run of this kind is active, or failed within the pause."""
    row = await _resting.row(conn, namespace=place[0], scope=place[1], kind=kind, pause=pause)
    return bool(row and row["resting"])


# --- Lost ------------------------------------------------------------------------------------------------------

_run_of_job = and_(
    job_runs.c.namespace == _jobs.c.args.op("->>")(word("namespace")),
    job_runs.c.id == cast(_jobs.c.args.op("->>")(word("run")), Uuid),
)
_stalled = (
    select(_jobs.c.id)
    .where(
        _jobs.c.queue_name == word(QUEUE),
        _jobs.c.status == literal_column("'doing'"),
        # Between being fetched and being claimed a run has no lease yet.
        ~exists().where(
            _events.c.job_id == _jobs.c.id, _events.c.type == literal_column("'started'"), _events.c.at > _now - _LEASE
        ),
        ~exists().where(_run_of_job, job_runs.c.lease_until > _now),
    )
    .with_for_update(of=_jobs, skip_locked=True)
    .cte("stalled")
)
_retried = func.procrastinate_retry_job_v2(_stalled.c.id, _now, null(), null(), null())
_put_back = Statement(select(_retried.label("done")).select_from(_stalled))
_orphans = Statement(
    select(job_runs.c.namespace, job_runs.c.id, job_runs.c.kind, job_runs.c.scope)
    .where(
        ACTIVE,
        func.coalesce(job_runs.c.lease_until, job_runs.c.created_at) < _now - _LEASE,
        ~exists().where(_run_of_job, _jobs.c.status.in_([literal_column("'todo'"), literal_column("'doing'")])),
    )
    .with_for_update(skip_locked=True)
)


async def put_stalled_back(conn: Connection, lease: timedelta) -> int:
    """Put jobs whose worker died, or lost the database, back into the queue; how many those were."""
    return len(await _put_back.rows(conn, lease=lease))


async def orphans(conn: Connection, lease: timedelta) -> list[Row]:
    """Runs that should be going on but have no job in the queue, locked."""
    return await _orphans.rows(conn, lease=lease)


# --- Kept long enough ------------------------------------------------------------------------------------------

_old_runs = (
    select(job_runs.c.namespace, job_runs.c.id)
    .where(~ACTIVE, job_runs.c.finished_at < _now - bindparam("kept", type_=Interval))
    .limit(literal_column("200"))
)
_old = _old_runs.with_for_update(skip_locked=True).cte("old")
_their_findings = (
    delete(job_findings)
    .where(job_findings.c.namespace == _old.c.namespace, job_findings.c.run_id == _old.c.id)
    .returning(literal_column("1"))
    .cte("their_findings")
)
_purge_runs = Statement(
    delete(job_runs)
    .where(job_runs.c.namespace == _old.c.namespace, job_runs.c.id == _old.c.id)
    .add_cte(_their_findings)
)
_k = idempotency_keys.c
_old_keys = (
    select(_k.namespace, _k.route, _k.key)
    .where(_k.created_at < _now - bindparam("kept", type_=Interval))
    .limit(literal_column(str(_PURGED_AT_ONCE)))
)
_purge_keys = Statement(delete(idempotency_keys).where(tuple_(_k.namespace, _k.route, _k.key).in_(_old_keys)))
_fold = Statement(
    select(func.fold_term_counts(cast(bindparam("most", type_=Integer), Integer), type_=BigInteger).label("folded"))
)
_statistics = Table(
    "pg_stat_user_tables", _METADATA, Column("relname", Text), Column("n_tup_ins", BigInteger), schema="pg_catalog"
)
_appended = Statement(select(_statistics.c.n_tup_ins.label("rows")).where(_statistics.c.relname == word("term_counts")))
_moment = Statement(select(_now.label("now")))


async def purge_runs(conn: Connection, kept: timedelta) -> int:
    """Drop runs that ended long ago, with their findings, some hundred at once; how many."""
    return await _purge_runs.run(conn, kept=kept)


async def purge_idempotency_keys(conn: Connection, kept: timedelta) -> int:
    """Drop old idempotency keys, some thousand at once; how many."""
    return await _purge_keys.run(conn, kept=kept)


async def appended_term_counts(conn: Connection) -> int:
    """How many rows were ever appended to the document frequencies, as Postgres has counted so far."""
    row = await _appended.row(conn)
    return int(row["rows"]) if row else 0


async def fold_term_counts(conn: Connection, most: int) -> int:
    """Fold the document frequencies of up to so many terms; how many rows went into that."""
    row = await _fold.row(conn, most=most)
    return int(row["folded"]) if row else 0


async def now(conn: Connection) -> datetime:
    """The database's clock."""
    (row,) = await _moment.rows(conn)
    moment: datetime = row["now"]
    return moment
