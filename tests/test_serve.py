"""`palimpsest serve` from its first start to its end: real processes, real ports, real folders."""

import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest

from app import embedded
from app.embedded import Cluster
from app.schema import migrate
from tests.clients import Memory, make_key
from tests.cluster import own_database
from tests.commands import COMMAND, Serving, environment, processes_of, run, serving


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder; pytest takes back the rights that the server's account gets below its own ones."""
    with tempfile.TemporaryDirectory(prefix="palimpsest-") as name:
        yield Path(name).resolve()


@pytest.fixture(scope="module")
def first_use() -> Iterator[Path]:
    """A data directory after its first use."""
    with tempfile.TemporaryDirectory(prefix="palimpsest-") as name:
        data_dir = Path(name).resolve() / "data"
        with embedded.running(data_dir) as cluster:
            migrate(cluster.owner_dsn)
        yield data_dir


@pytest.fixture
def data_dir(first_use: Path, folder: Path) -> Path:
    """A copy of that, for a test to use up."""
    subprocess.run(["cp", "-a", first_use, folder / "data"], check=True)
    return folder / "data"


@pytest.fixture
def keyed(database: Cluster, namespace: str) -> dict[str, str]:
    """The variables of a service on a server that is there already, in which a key exists."""
    make_key(database, namespace)
    return {"DATABASE_URL": database.api_dsn}


def eventually(condition: Callable[[], Any]) -> None:
    """Wait for what another process is about to do."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


def test_the_first_start_needs_nothing_and_says_where_everything_is(folder: Path) -> None:
    home = folder / "my data"
    with serving("--data-dir", str(home), at=folder) as service, Memory(service.url, None) as memory:
        assert f"docs {service.url}/docs" in service.line
        assert service.line.endswith(f"data {home}\n")
        assert "keys create" in service.said("Development mode")
        assert memory.get("/readyz")["status"] == "ok"
        assert memory.http.get("/docs").status_code == 200

        memory.remember("The stand-up moved to 9:00.", subject="standup.time")

        assert memory.recalled("when is the stand-up") == ["The stand-up moved to 9:00."]
        assert service.stop() == 0
        assert processes_of(home) == []
        with pytest.raises(ProcessLookupError):
            os.killpg(service.process.pid, 0)


def test_a_key_made_beside_the_running_service_ends_the_open_mode(data_dir: Path, folder: Path) -> None:
    options = ("--data-dir", str(data_dir))
    with serving(*options, at=folder, KEY_CACHE_S="0") as service:
        httpx.get(f"{service.url}/v1/facts").raise_for_status()

        key = run("keys", "create", "--quiet", "--name", "agent", *options, at=folder).stdout.strip()

        assert httpx.get(f"{service.url}/v1/facts").status_code == 401
        with Memory(service.url, key) as agent:
            agent.remember("The key works.")


def test_two_services_share_a_data_directory_and_either_may_go_first(data_dir: Path, folder: Path) -> None:
    options = ("--data-dir", str(data_dir))
    with serving(*options, at=folder) as first, serving(*options, at=folder) as second:
        with Memory(first.url, None) as memory:
            memory.remember("Both see this.")

        first.stop()

        with Memory(second.url, None) as memory:
            assert memory.texts() == ["Both see this."]
        second.stop()
        assert processes_of(data_dir) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_in_flight_is_answered_and_an_idle_connection_does_not_matter(
    folder: Path, keyed: dict[str, str], number: signal.Signals
) -> None:
    body = b'{"query": "anything"}'
    with serving(at=folder, **keyed) as service, httpx.Client(base_url=service.url) as idle:
        idle.get("/livez")
        address = address_of(service)
        with socket.create_connection(address) as late:
            late.sendall(head(len(body)) + body[:-1])
            idle.get("/livez")

            service.process.send_signal(number)
            eventually(lambda: not listens(address))
            late.sendall(body[-1:])

            assert late.recv(100).startswith(b"HTTP/1.1 401")
        assert service.process.wait(timeout=30) == 0


def head(length: int) -> bytes:
    """The head of a request with a body of so many bytes."""
    lines = ("POST /v1/recall HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {length}")
    return "\r\n".join((*lines, "", "")).encode()


def address_of(service: Serving) -> tuple[str, int]:
    return "127.0.0.1", int(service.url.rpartition(":")[2])


def listens(address: tuple[str, int]) -> bool:
    with suppress(OSError), socket.create_connection(address):
        return True
    return False


def test_a_request_that_never_ends_does_not_keep_the_service(folder: Path, keyed: dict[str, str]) -> None:
    with serving(at=folder, **keyed) as service, socket.create_connection(address_of(service)) as stuck:
        stuck.sendall(head(99) + b"{")
        httpx.get(f"{service.url}/livez")

        assert service.stop() == 0


def test_with_a_key_every_interface_may_be_listened_on_and_the_missing_worker_is_told(
    folder: Path, keyed: dict[str, str]
) -> None:
    with serving("--host", "0.0.0.0", at=folder, **keyed) as service:
        assert "WORKER_DATABASE_URL is not set" in service.said("No worker")
        assert httpx.get(f"{service.url}/readyz").status_code == 200
        answer = httpx.get(f"{service.url}/v1/facts")

        assert answer.status_code == 401
        assert "server" not in answer.headers


def test_a_worker_runs_alone_and_ends_when_told(folder: Path, database: Cluster) -> None:
    with subprocess.Popen(
        [COMMAND, "worker"],
        cwd=folder,
        env=environment(WORKER_DATABASE_URL=database.worker_dsn),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "worker" in process.stdout.readline()

        process.terminate()

        assert process.wait(timeout=30) == 0


def test_every_acknowledged_write_is_there_after_all_processes_were_killed(data_dir: Path, folder: Path) -> None:
    options = ("--data-dir", str(data_dir))
    acknowledged: list[str] = []

    def write(url: str, writer: int) -> None:
        with suppress(httpx.TransportError), httpx.Client(base_url=url, timeout=30) as client:
            for number in range(1000):
                answer = client.post("/v1/facts", json={"content": f"Writer {writer} wrote {number}."})
                if answer.status_code == 201:
                    acknowledged.append(answer.json()["fact"]["id"])

    with serving(*options, at=folder) as service:
        writers = [threading.Thread(target=write, args=(service.url, each)) for each in range(8)]
        for writer in writers:
            writer.start()
        eventually(lambda: len(acknowledged) >= 100)
        service.process.kill()
        for process in processes_of(data_dir):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        for writer in writers:
            writer.join()

    with serving(*options, at=folder) as service, Memory(service.url, None) as memory:
        stored = {fact["id"] for fact in memory.current(limit=200)}
    assert len(acknowledged) >= 100
    assert set(acknowledged) <= stored


def test_of_many_replicas_one_migrates_and_the_others_go_on(folder: Path, cluster: Cluster) -> None:
    with own_database(cluster) as empty:
        variables = environment(MIGRATION_DATABASE_URL=empty.owner_dsn)
        replicas = [
            subprocess.Popen([COMMAND, "migrate"], cwd=folder, env=variables, stdout=subprocess.PIPE, text=True)
            for _ in range(5)
        ]
        said = sorted(replica.communicate()[0] for replica in replicas)

    assert [replica.returncode for replica in replicas] == [0] * 5
    assert len([line for line in said if line.startswith("The schema was migrated: empty")]) == 1
    assert len([line for line in said if line.startswith("The schema is up to date")]) == 4


def test_a_migration_that_is_killed_leaves_nothing_behind(folder: Path, cluster: Cluster) -> None:
    with own_database(cluster) as empty, psycopg.connect(empty.superuser_dsn) as blocker:
        variables = environment(MIGRATION_DATABASE_URL=empty.owner_dsn)
        # The migration makes tables first; then it waits for this when it makes its first function.
        blocker.execute("LOCK TABLE pg_catalog.pg_proc IN SHARE MODE")
        with subprocess.Popen([COMMAND, "migrate"], cwd=folder, env=variables) as process:
            eventually(lambda: count(empty, f"{_SESSIONS} AND wait_event_type = 'Lock'") == 1)
            process.kill()
        blocker.rollback()
        eventually(lambda: count(empty, _SESSIONS) == 0)

        left = count(empty, "SELECT count(*) FROM pg_namespace WHERE nspname = 'ledger'")
        assert (left, migrate(empty.owner_dsn)[0]) == (0, None)


_SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = 'memory_owner'"


def count(database: Cluster, query: str) -> int:
    """The one number that a query gives a superuser."""
    with psycopg.connect(database.superuser_dsn) as connection:
        (found,) = connection.execute(query.encode()).fetchone() or (0,)
        return int(found)
