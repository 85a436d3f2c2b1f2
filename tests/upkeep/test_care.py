"""What a worker looks after between its jobs: old keys and runs, the counts of words, and runs that were lost."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from app.db import connect
from app.embedded import Cluster
from app.upkeep.care import Care
from app.upkeep.kinds import KINDS
from tests.clients import Memory
from tests.conftest import settings_for
from tests.upkeep.ageing import age
from tests.working import finished, run_job, until, working


def with_care(database: Cluster, step: Callable[[Care], Awaitable[None]]) -> None:
    """Have one step of a worker's rounds done."""
    settings = settings_for(database, decay_every_h=0, prune_every_h=0, job_lease_s=1)

    async def work() -> None:
        async with connect(
            database.worker_dsn, size=2, timeout_s=10, statement_timeout_ms=10_000, name="test-care"
        ) as db:
            await step(Care(db, settings, KINDS))

    asyncio.run(work())


def test_old_idempotency_keys_are_dropped_and_fresh_ones_kept(
    memory: Memory, database: Cluster, owner: psycopg.Connection[Any]
) -> None:
    first = memory.post("/v1/jobs", {"kind": "decay"}, Idempotency_Key="old")
    memory.post("/v1/jobs", {"kind": "decay"}, Idempotency_Key="fresh")
    owner.execute(
        "UPDATE idempotency_keys SET created_at = now() - interval '2 days' WHERE namespace = %s AND key LIKE '%%:old'",
        [memory.namespace],
    )

    with_care(database, Care.purge)

    assert memory.post("/v1/jobs", {"kind": "decay"}, Idempotency_Key="old")["id"] != first["id"]
    assert len(memory.get("/v1/jobs")["items"]) == 3


def test_runs_that_ended_long_ago_are_dropped_with_their_findings(
    memory: Memory, database: Cluster, owner: psycopg.Connection[Any]
) -> None:
    fact = memory.fact("The boiler is serviced by Kettil.")
    age(database, [fact["id"]], days=730)
    with working(settings_for(database, decay_every_h=0, prune_every_h=0)):
        old = run_job(memory, "prune", dry_run=True)
        fresh = run_job(memory, "prune", dry_run=True)
    owner.execute("UPDATE job_runs SET finished_at = now() - interval '1 year' WHERE id = %s", [old["id"]])

    with_care(database, Care.purge)

    kept = owner.execute("SELECT run_id::text FROM job_findings WHERE namespace = %s", [memory.namespace]).fetchall()
    assert [job["id"] for job in memory.get("/v1/jobs", kind="prune")["items"]] == [fresh["id"]]
    assert kept == [(fresh["id"],)]


def test_folding_the_counts_of_words_leaves_their_sums_as_they_were(
    memory: Memory, database: Cluster, owner: psycopg.Connection[Any]
) -> None:
    for number in range(5):
        memory.fact(f"Crate {number} is on the shelf.")
    sums = (
        "SELECT scope, term, sum(facts), sum(tokens) FROM term_counts WHERE namespace = %s GROUP BY 1, 2 ORDER BY 1, 2"
    )
    before = owner.execute(sums, [memory.namespace]).fetchall()

    def rows_after_folding() -> int:
        with_care(database, Care.fold)
        row = owner.execute("SELECT count(*) FROM term_counts WHERE namespace = %s", [memory.namespace]).fetchone()
        return row[0] if row else 0

    # The statistics that tell of appended rows come in some seconds late.
    until(lambda: rows_after_folding() == len(before))
    assert owner.execute(sums, [memory.namespace]).fetchall() == before


@pytest.mark.parametrize("lost", ["todo", "doing"])
def test_a_run_whose_job_was_lost_from_the_queue_is_queued_again(
    memory: Memory, database: Cluster, owner: psycopg.Connection[Any], lost: str
) -> None:
    job = memory.post("/v1/jobs", {"kind": "decay"}, status=202)
    owner.execute("DELETE FROM procrastinate_jobs WHERE args->>'run' = %s", [job["id"]])
    if lost == "doing":
        owner.execute("UPDATE job_runs SET status = 'running', attempts = 1 WHERE id = %s", [job["id"]])
    owner.execute(
        "UPDATE job_runs SET created_at = now() - interval '1 hour', lease_until = CASE WHEN status = 'running'"
        " THEN now() - interval '1 hour' END WHERE id = %s",
        [job["id"]],
    )

    with_care(database, Care.recover)
    with working(settings_for(database, decay_every_h=0, prune_every_h=0)):
        done = finished(memory, job)

    assert done["status"] == "succeeded"


def test_a_run_that_kills_every_worker_is_given_up(
    memory: Memory, database: Cluster, owner: psycopg.Connection[Any]
) -> None:
    job = memory.post("/v1/jobs", {"kind": "decay"}, status=202)
    owner.execute(
        "UPDATE job_runs SET status = 'running', attempts = 5, lease_until = now() - interval '1 hour' WHERE id = %s",
        [job["id"]],
    )

    with working(settings_for(database, decay_every_h=0, prune_every_h=0)):
        done = finished(memory, job)

    assert done["status"] == "failed"
    assert "Given up after 5 attempts" in done["error"]
