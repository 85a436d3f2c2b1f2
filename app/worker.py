"""The worker: takes jobs from the queue, keeps their leases, and looks after the memory between them."""

import asyncio
import logging
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import structlog
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException

from app.db import Database, connect, connection_string
from app.embedding import Embedder, build_embedder
from app.settings import Settings
from app.telemetry import describe
from app.upkeep.care import Care
from app.upkeep.embedding_jobs import mismatched
from app.upkeep.kinds import KINDS
from app.upkeep.queue import QUEUE, TASK
from app.upkeep.runner import Runner

_NAME = "palimpsest-worker"
_PAUSE_S = 2.0
# What a job in hand gets to come to an end of itself. One that does not is taken up again from the queue.
_GRACE_S = 0.3

logger = structlog.get_logger("worker")


async def run(settings: Settings, stop: asyncio.Event) -> None:
    """Work until `stop` is set; no signal handler is installed.

    Raises ValueError without WORKER_DATABASE_URL, PrivilegedRole for a role that could read around the views, and
    psycopg.Error where the database cannot be reached at the start. Later losses of it are waited out.
    """
    if settings.worker_database_url is None:
        raise ValueError("WORKER_DATABASE_URL is not set")
    # Its lines repeat for every job what the job's own line says.
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    url = settings.worker_database_url.get_secret_value()
    async with AsyncExitStack() as stack:
        embedder = build_embedder(settings)
        stack.push_async_callback(embedder.aclose)
        database = await stack.enter_async_context(
            connect(
                url,
                size=settings.worker_concurrency + 3,
                timeout_s=settings.pool_timeout_s,
                statement_timeout_ms=settings.statement_timeout_ms,
                name=_NAME,
            )
        )
        await _tell_mismatch(database, embedder)
        care: asyncio.Task[Any] = asyncio.create_task(Care(database, settings, KINDS).run(), name="care")
        working: asyncio.Task[Any] = asyncio.create_task(
            _work(settings, url, _runner(settings, database, embedder)), name="work"
        )
        stopping: asyncio.Task[Any] = asyncio.create_task(stop.wait(), name="stop")
        try:
            done, _ = await asyncio.wait([care, working, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(care, working, stopping)
        for ended in done:
            ended.result()


async def _end(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _runner(settings: Settings, database: Database, embedder: Embedder) -> Runner:
    lease = timedelta(seconds=settings.job_lease_s)
    return Runner(database, settings, embedder, KINDS, lease, beat_s=min(1.0, settings.job_lease_s / 5))


async def _tell_mismatch(database: Database, embedder: Embedder) -> None:
    """Say at the start how many facts still have vectors of another model."""
    if embedder.profile is not None:
        async with database.reading() as conn:
            others = await mismatched(conn, embedder.profile.name)
        if others:
            logger.warning("facts_of_other_profiles", profile=embedder.profile.name, facts=others)


async def _work(settings: Settings, url: str, runner: Runner) -> None:
    """Take jobs until cancelled; where the database is lost, begin again when it is back."""
    while True:
        try:
            async with _queue(settings, url, runner).open_async() as app:
                await app.run_worker_async(
                    queues=[QUEUE],
                    name=_NAME,
                    concurrency=settings.worker_concurrency,
                    install_signal_handlers=False,
                    shutdown_graceful_timeout=_GRACE_S,
                    fetch_job_polling_interval=2.0,
                    update_heartbeat_interval=settings.job_lease_s / 3,
                    stalled_worker_timeout=settings.job_lease_s,
                    delete_jobs="always",
                )
        except (psycopg.Error, ConnectorException) as problem:
            logger.warning("queue_lost", **describe(problem))
        await asyncio.sleep(_PAUSE_S)


def _queue(settings: Settings, url: str, runner: Runner) -> App:
    connector = PsycopgConnector(
        conninfo=connection_string(url, statement_timeout_ms=settings.statement_timeout_ms, name=f"{_NAME}-queue"),
        min_size=1,
        max_size=3,
        timeout=settings.pool_timeout_s,
    )
    app = App(connector=connector)

    @app.task(name=TASK, queue=QUEUE)
    async def attempt(namespace: str, run: str) -> None:
        await runner.attempt(namespace, UUID(run))

    return app
