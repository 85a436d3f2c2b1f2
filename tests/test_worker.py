"""The worker starts, stops, and survives the loss of its database, of its process and of its jobs."""

import asyncio
import signal
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from app import worker
from app.db import PrivilegedRole
from app.embedded import Cluster
from app.settings import Settings
from tests.clients import Memory
from tests.conftest import served, settings_for
from tests.openai_server import OpenAIServer
from tests.working import finished, run_job, until, working

LEASE_S = 2


def cut_off_workers(superuser: psycopg.Connection[Any]) -> None:
    """End every connection of a worker to this database; tests beside this one have workers in theirs."""
    superuser.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE usename = 'memory_worker' AND datname = current_database()"
    )


@pytest.fixture
def settings(fresh_database: Cluster, server: OpenAIServer) -> Settings:
    return settings_for(
        fresh_database,
        embedding_url=server.base_url,
        embedding_model="stub-a",
        embedding_timeout_s=60,
        job_lease_s=LEASE_S,
        decay_every_h=0,
        prune_every_h=0,
    )


@pytest.fixture
def client(fresh_database: Cluster, settings: Settings, namespace: str) -> Iterator[Memory]:
    """A service without a worker."""
    with served(settings, fresh_database, namespace) as client:
        yield client


def test_a_role_that_can_read_around_the_views_is_refused(fresh_database: Cluster) -> None:
    settings = settings_for(fresh_database, worker_database_url=fresh_database.owner_dsn)

    with pytest.raises(PrivilegedRole):
        asyncio.run(worker.run(settings, asyncio.Event()))


def test_a_worker_without_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match="WORKER_DATABASE_URL"):
        asyncio.run(worker.run(Settings(_env_file=None, worker_database_url=None), asyncio.Event()))


def test_a_worker_that_stops_leaves_no_task_and_no_signal_handler(settings: Settings) -> None:
    before = signal.getsignal(signal.SIGTERM)

    async def start_and_stop() -> tuple[int, Any]:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(1, stop.set)
        work = asyncio.create_task(worker.run(settings, stop))
        await asyncio.sleep(0.8)
        meanwhile = signal.getsignal(signal.SIGTERM)
        await work
        return len(asyncio.all_tasks()), meanwhile

    left, meanwhile = asyncio.run(start_and_stop())

    assert left == 1
    assert meanwhile == before


def test_a_job_in_hand_is_given_back_when_the_worker_stops(
    client: Memory, settings: Settings, server: OpenAIServer
) -> None:
    server.embeddings = "500"
    client.fact("The boiler is serviced by Kettil.")
    server.embeddings = "timeout"
    asked = len(server.calls)
    job = client.post("/v1/jobs", {"kind": "embed_pending"}, status=202)

    with working(settings):
        until(lambda: len(server.calls) > asked)
    stopped = client.get(f"/v1/jobs/{job['id']}")
    server.embeddings = "ok"
    with working(settings):
        done = finished(client, job)

    assert stopped["status"] == "queued"
    assert stopped["error"] == "The worker was stopped."
    assert (done["status"], done["attempts"]) == ("succeeded", 2)


def test_a_running_job_stops_when_it_is_cancelled(client: Memory, settings: Settings, server: OpenAIServer) -> None:
    server.embeddings = "500"
    client.fact("The boiler is serviced by Kettil.")
    server.embeddings = "timeout"
    job = client.post("/v1/jobs", {"kind": "embed_pending"}, status=202)

    with working(settings):
        until(lambda: client.get(f"/v1/jobs/{job['id']}")["status"] == "running")
        client.post(f"/v1/jobs/{job['id']}/cancel", status=202)
        done = finished(client, job)

    assert done["status"] == "cancelled"


def test_a_worker_goes_on_after_it_lost_every_connection(
    client: Memory, settings: Settings, fresh_database: Cluster
) -> None:
    with working(settings), psycopg.connect(fresh_database.superuser_dsn, autocommit=True) as superuser:
        run_job(client, "decay")
        cut_off_workers(superuser)

        job = run_job(client, "decay")

    assert job["status"] == "succeeded"


def test_a_job_that_lost_its_connections_is_taken_up_again(
    client: Memory, settings: Settings, fresh_database: Cluster, server: OpenAIServer
) -> None:
    server.embeddings = "500"
    client.fact("The boiler is serviced by Kettil.")
    server.embeddings = "slow:1"
    asked = len(server.calls)

    with working(settings), psycopg.connect(fresh_database.superuser_dsn, autocommit=True) as superuser:
        job = client.post("/v1/jobs", {"kind": "embed_pending"}, status=202)
        until(lambda: len(server.calls) > asked)
        cut_off_workers(superuser)
        done = finished(client, job)

    assert done["status"] == "succeeded"
    assert {fact["embedding"] for fact in client.current()} == {"ready"}


def test_facts_whose_vectors_are_of_another_model_are_told_at_the_start(
    client: Memory, settings: Settings, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    client.fact("The boiler is serviced by Kettil.")
    changed = settings.model_copy(update={"embedding_model": "stub-b", "embedding_dimensions": 64})

    with working(changed):
        run_job(client, "decay")

    said = caplog.text + "".join(capsys.readouterr())
    assert "facts_of_other_profiles" in said
    assert "stub-a-64" in said
