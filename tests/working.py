"""Runs the worker in this process, on a thread of its own, or in a process that a test may kill."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Queue
from threading import Thread
from time import monotonic, sleep
from typing import Any

from pydantic import SecretStr

from app import worker
from app.settings import Settings, variable_of
from tests.clients import Memory

_PROGRAM = (
    "import asyncio; from app import worker; from app.settings import Settings; "
    "asyncio.run(worker.run(Settings(_env_file=None), asyncio.Event()))"
)


@contextmanager
def working(settings: Settings) -> Iterator[None]:
    """A worker that takes jobs until the block ends. What ends it before that is raised at the end."""
    failures: list[BaseException] = []
    ending: Queue[Callable[[], None]] = Queue()

    async def work() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()

        def end() -> None:
            loop.call_soon_threadsafe(stop.set)

        ending.put(end)
        try:
            await worker.run(settings, stop)
        except BaseException as failure:  # noqa: BLE001 - it is raised where the test sees it.
            failures.append(failure)

    thread = Thread(target=lambda: asyncio.run(work()), daemon=True)
    thread.start()
    end = ending.get()
    try:
        yield
    finally:
        if thread.is_alive():
            end()
        thread.join(timeout=20)
    if failures:
        raise failures[0]
    assert not thread.is_alive(), "the worker did not stop"


@contextmanager
def killable(settings: Settings) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker in a process of its own, which is killed at the end of the block at the latest."""
    given = {
        variable_of(name, Settings.model_fields[name]): _told(settings, name) for name in settings.model_fields_set
    }
    process = subprocess.Popen([sys.executable, "-c", _PROGRAM], env=os.environ | given, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _told(settings: Settings, name: str) -> str:
    value = getattr(settings, name)
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def until(condition: Callable[[], Any], *, seconds: float = 60, what: str = "it") -> Any:
    """What `condition` returns once that is true; asked again and again, so that nothing depends on the time."""
    deadline = monotonic() + seconds
    while not (found := condition()):
        if monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {seconds} s")
        sleep(0.05)
    return found


def finished(memory: Memory, job: Any, *, seconds: float = 60) -> Any:
    """The job once it has ended, however that was."""

    def ended() -> Any:
        now = memory.get(f"/v1/jobs/{job['id']}")
        return now if now["status"] in ("succeeded", "failed", "cancelled") else None

    return until(ended, seconds=seconds, what=f"the end of the job {job['kind']}")


def run_job(memory: Memory, kind: str, **fields: Any) -> Any:
    """The job after it has succeeded."""
    job = finished(memory, memory.post("/v1/jobs", {"kind": kind} | fields, status=202))
    assert job["status"] == "succeeded", job
    return job


def findings(memory: Memory, job: Any) -> list[Any]:
    """All findings of a job."""
    items: list[Any] = []
    cursor = None
    while True:
        page = memory.get(f"/v1/jobs/{job['id']}/findings", limit=200, **({"cursor": cursor} if cursor else {}))
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return items
