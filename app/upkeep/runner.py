"""Carries one attempt at a run out, and writes down how it ended whatever happens."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, Literal
from uuid import UUID

import psycopg
import structlog

from app.db import Database, Overtaken, Row
from app.embedding import Embedder
from app.settings import Settings
from app.telemetry import describe
from app.upkeep import attempts, queue
from app.upkeep.jobs import JobFailed, JobRun, Kind, TryLater

LONGEST_WAIT_S = 300.0

logger = structlog.get_logger("worker")


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ended. `later` gives the run back to the queue, `lost` means that another attempt has it."""

    outcome: Literal["succeeded", "failed", "cancelled", "later", "lost"]
    error: str | None = None
    after_s: float = 0.0
    burnt: bool = True


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs jobs of the given kinds. A worker that dies loses its run to another one after `lease`."""

    database: Database
    settings: Settings
    embedder: Embedder
    kinds: Mapping[str, Kind]
    lease: timedelta
    beat_s: float

    async def attempt(self, namespace: str, run_id: UUID) -> None:
        """Claim the run, carry it out and end it; nothing where it has ended or is another worker's."""
        async with self.database.transaction() as conn:
            row = await attempts.claim(conn, namespace, run_id, self.lease)
            if row is not None and (row["dry_run"] or row["attempts"] == 1):
                await attempts.forget_findings(conn, namespace, run_id)
        if row is None:
            return
        run = self._run(row)
        with structlog.contextvars.bound_contextvars(job=str(run.id), kind=run.kind, namespace=run.namespace):
            if row["attempts"] > row["attempts_allowed"]:
                error = f"Given up after {row['attempts'] - 1} attempts; the worker did not survive the last one."
                await self._end(run, Ending("failed", error))
            else:
                await self._end(run, await self._carry_out(run, row))

    def _run(self, row: Row) -> JobRun:
        return JobRun(
            namespace=row["namespace"],
            id=row["id"],
            kind=row["kind"],
            scope=row["scope"],
            dry_run=row["dry_run"],
            parameters=row["parameters"],
            attempt=row["attempts"],
            database=self.database,
            settings=self.settings,
            embedder=self.embedder,
            calls=row["calls"],
            tokens=row["tokens"],
        )

    async def _carry_out(self, run: JobRun, row: Row) -> Ending:
        kind = self.kinds.get(run.kind)
        if kind is None:
            return Ending("failed", "This worker does not know jobs of this kind.")
        work = asyncio.ensure_future(kind.handler(run))
        watch = asyncio.create_task(self._watch(run, work))
        wait = min(LONGEST_WAIT_S, 2.0 ** min(row["postponed"] + 1, 10))
        try:
            counts = await work
        except asyncio.CancelledError:
            if watch.done() and not watch.cancelled():
                return watch.result()
            return Ending("later", "The worker was stopped.", burnt=False)
        except JobFailed as failure:
            return Ending("failed", str(failure))
        except TryLater as delay:
            return Ending("later", str(delay), wait if delay.after_s is None else delay.after_s, burnt=False)
        except (psycopg.OperationalError, psycopg.InterfaceError, Overtaken) as failure:
            logger.warning("job_interrupted", **describe(failure))
            if run.attempt < row["attempts_allowed"]:
                return Ending("later", _named(failure), wait)
            return Ending("failed", _named(failure))
        except Exception as failure:  # noqa: BLE001 - whatever a handler raises, its run must say that it failed.
            logger.error("job_failed", **describe(failure))  # noqa: TRY400 - its words may quote a fact.
            return Ending("failed", _named(failure))
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
        run.counts = Counter(counts)
        return Ending("succeeded")

    async def _watch(self, run: JobRun, work: "asyncio.Future[Any]") -> Ending:
        """Keep the lease, and stop the work where it is lost or the run is called off."""
        good_until = monotonic() + self.lease.total_seconds()
        while True:
            await asyncio.sleep(self.beat_s)
            try:
                async with self.database.reading() as conn:
                    stop = await attempts.beat(conn, run.mark, run.standing, self.lease)
            except psycopg.Error:
                if monotonic() < good_until:
                    continue
                stop = None
            if stop is not False:
                work.cancel()
                return Ending("lost" if stop is None else "cancelled")
            good_until = monotonic() + self.lease.total_seconds()

    async def _end(self, run: JobRun, ending: Ending) -> None:
        logger.info("job_ended", outcome=ending.outcome, attempt=run.attempt, **run.counts)
        if ending.outcome == "lost":
            return
        async with self.database.transaction() as conn:
            if ending.outcome != "later":
                await attempts.finish(conn, run.mark, run.standing, status=ending.outcome, error=ending.error)
                return
            status = await attempts.release(conn, run.mark, run.standing, error=ending.error or "", burnt=ending.burnt)
            if status == "queued":
                at = datetime.now(UTC) + timedelta(seconds=ending.after_s) if ending.after_s else None
                await queue.defer(conn, run.namespace, run.id, run.kind, run.scope, at)


def _named(failure: Exception) -> str:
    """An exception without its words, since the database quotes rows in its messages."""
    code = getattr(failure, "sqlstate", None)
    return f"{type(failure).__name__}{f' ({code})' if code else ''}. The worker's log says where."
