"""What a worker does beside its jobs, every few seconds: it notices what is due, what was lost and what is old.

Every worker does all of this; each step may run in several at once.
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from time import monotonic

import psycopg
import structlog

from app.db import Connection, Database, Overtaken
from app.settings import Settings
from app.telemetry import describe
from app.upkeep import arrivals, schedule
from app.upkeep.jobs import Kind
from app.upkeep.queue import defer, enqueue

TICK_S = 2.0
_MINUTE_S = 60.0
# After a failure the schedule asks again so much later; a call may ask at once.
_PAUSE = timedelta(minutes=5)
_FOLD_AT = 20_000
_FOLD_MOST = 20_000
_FOLD_LATEST_S = 600.0

logger = structlog.get_logger("worker")


class Care:
    """The worker's rounds. `run` goes on until it is cancelled."""

    def __init__(self, database: Database, settings: Settings, kinds: Mapping[str, Kind]) -> None:
        self._database = database
        self._settings = settings
        self._kinds = kinds
        self._lease = timedelta(seconds=settings.job_lease_s)
        self._settled_to = datetime(1, 1, 1, tzinfo=UTC)
        self._folded_to = 0
        self._folded_at = -_FOLD_LATEST_S

    async def run(self) -> None:
        rounds = 0
        while True:
            steps = [self.recover, self.enqueue_due]
            if rounds % round(_MINUTE_S / TICK_S) == 0:
                steps += [self.settle, self.purge, self.fold]
            for step in steps:
                try:
                    await step()
                except (psycopg.Error, Overtaken) as problem:
                    logger.warning("upkeep_postponed", step=step.__name__, **describe(problem))
            rounds += 1
            await asyncio.sleep(TICK_S)

    async def recover(self) -> None:
        """Give the runs of dead workers to living ones."""
        async with self._database.transaction() as conn:
            put_back = await schedule.put_stalled_back(conn, self._lease)
            lost = await schedule.orphans(conn, self._lease)
            for row in lost:
                await defer(conn, row["namespace"], row["id"], row["kind"], row["scope"])
        if put_back or lost:
            logger.warning("jobs_recovered", stalled=put_back, orphaned=len(lost))

    async def enqueue_due(self) -> None:
        """Queue what the kinds find due, each place once."""
        async with self._database.transaction() as conn:
            if await schedule.begin(conn):
                for kind in self._kinds.values():
                    await self._enqueue(conn, kind)

    async def _enqueue(self, conn: Connection, kind: Kind) -> None:
        if kind.due is None:
            return
        for place in await kind.due(conn, self._settings):
            if not await schedule.is_resting(conn, place, kind.name, _PAUSE):
                namespace, scope = place
                await enqueue(conn, namespace, kind.name, scope=scope, requested_by="schedule", automatic=True)

    async def settle(self) -> None:
        """Let scheduled states take effect."""
        async with self._database.reading() as conn:
            now = await schedule.now(conn)
        met = await arrivals.settle(self._database, self._settled_to)
        # A transaction that was open then may show its facts only now.
        self._settled_to = now - timedelta(minutes=5)
        if met:
            logger.info("scheduled_states_settled", facts=met)

    async def purge(self) -> None:
        """Drop what was kept long enough."""
        async with self._database.transaction() as conn:
            await schedule.purge_idempotency_keys(conn, timedelta(hours=self._settings.idempotency_keep_h))
            await schedule.purge_runs(conn, timedelta(days=self._settings.job_keep_d))

    async def fold(self) -> None:
        """Fold the document frequencies when many rows were appended, and now and then."""
        async with self._database.reading() as conn:
            appended = await schedule.appended_term_counts(conn)
        late = monotonic() - self._folded_at > _FOLD_LATEST_S
        if appended - self._folded_to < _FOLD_AT and not (late and appended > self._folded_to):
            return
        folded = _FOLD_MOST
        while folded >= _FOLD_MOST:
            async with self._database.transaction() as conn:
                folded = await schedule.fold_term_counts(conn, _FOLD_MOST)
        self._folded_to, self._folded_at = appended, monotonic()
