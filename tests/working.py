"""Runs the worker in this process, on a thread of its own, or in a process that a test may kill."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from time import monotonic, sleep
from typing import Any

from app import worker
from app.settings import Settings
from tests.clients import Memory


@contextmanager
def working(settings: Settings) -> Iterator[None]:
    """A worker that takes jobs until the block ends. What ends it before that is raised at the end."""
    failures: list[BaseException] = []
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    def work() -> None:
        try:
            loop.run_until_complete(worker.run(settings, stop))
        except BaseException as failure:  # noqa: BLE001 - it is raised where the test sees it.
            failures.append(failure)
        finally:
            loop.close()

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(stop.set)
        thread.join(timeout=20)
    if failures:
        raise failures[0]
    assert not thread.is_alive(), "the worker did not stop"


def until(condition: Callable[[], Any], *, seconds: float = 30, what: str = "it") -> Any:
    """What `condition` returns once that is true; asked again and again, so that nothing depends on the time."""
    deadline = monotonic() + seconds
    while not (found := condition()):
        if monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {seconds} s")
        sleep(0.05)
    return found


def finished(memory: Memory, job: Any, *, seconds: float = 30) -> Any:
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
