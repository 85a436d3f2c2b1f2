"""Runs the API and the worker in this process, from the first signal that it may start to the last that ends it."""

import asyncio
import errno
import gc
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import structlog
import uvicorn
from fastapi import FastAPI

from app import worker
from app.auth import is_loopback
from app.db import connect
from app.main import create_app
from app.settings import Settings
from app.telemetry import describe

_GRACE_S = 2  # What requests in flight get to finish, so that the whole stop takes less than five seconds.
_WORKER_GRACE_S = 1.0  # And the worker after that; it was told at the same time.
_LAST_GRACE_S = 0.5  # And whatever is still there then.
_WORKER_PAUSE_S = 5.0
_OBJECTS_BETWEEN_COLLECTIONS = 20_000
_REASONS = {
    errno.EADDRINUSE: "is in use already: choose another one with --port",
    errno.EACCES: "may not be opened by this user: choose one above 1023 with --port",
    errno.EADDRNOTAVAIL: "is at no address of this machine: choose another --host",
}


class CannotListen(Exception):
    """The service cannot be reached, or must not be, where it was told to listen; one sentence for a terminal."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the service answers by now, and whether anybody on this machine may do everything."""

    url: str
    development: bool


def bind(host: str, port: int) -> socket.socket:
    """A socket with this address that does not listen yet. Raises CannotListen."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise CannotListen(f"There is no address {host!r}: choose another --host.") from None
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    # With the protocol named, asyncio turns Nagle's algorithm off, as it does for sockets of its own; without,
    # every second answer on a connection waits 40 ms for an acknowledgement.
    with ExitStack() as stack, _explained(host, port):
        listener = stack.enter_context(socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        stack.pop_all()
    return listener


@contextmanager
def _explained(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, f"cannot be opened: {error.strerror}")
        raise CannotListen(f"Port {port} on {host} {reason}.") from error


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run until `main` ends. Unlike `asyncio.run` it does not wait for ever for a task that will not be cancelled."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(main)
    finally:
        loop.run_until_complete(_leave_none_behind())
        loop.close()


async def _leave_none_behind() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    _, stubborn = await asyncio.wait(others, timeout=_LAST_GRACE_S) if others else ((), ())
    for task in stubborn:
        structlog.get_logger("app").warning("task_abandoned", task=getattr(task.get_coro(), "__qualname__", "?"))
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_GRACE_S):
            await asyncio.get_running_loop().shutdown_asyncgens()


async def serve(settings: Settings, listener: socket.socket, announce: Callable[[Listening], None]) -> None:
    """Serve on `listener` until SIGINT or SIGTERM; with WORKER_DATABASE_URL, the worker runs along.

    `announce` is called once, when requests are answered. Raises CannotListen, PrivilegedRole, psycopg.Error.
    """
    app, stop = create_app(settings), asyncio.Event()
    with _stopping(stop) as insistent:
        if settings.worker_database_url:
            await _check_worker_role(settings)
        async with app.router.lifespan_context(app):
            # FastAPI builds a route when it is first asked for; so the first request is as quick as the others.
            app.openapi()
            _leave_alone_what_stays()
            listening = await _listen(app, listener)
            server = _Server(_config(app, settings), lambda: announce(listening))
            following = asyncio.create_task(_follow(server, stop, insistent))
            working = asyncio.create_task(_work(settings, stop, app)) if settings.worker_database_url else None
            try:
                await server.serve(sockets=[listener])
            finally:
                stop.set()
                following.cancel()
                await _ended(working)


def _leave_alone_what_stays() -> None:
    """Let the collector of garbage pass by what lives as long as the process, and come less often.

    A recall makes a thousand small objects, which by default sends it through everything again and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)


async def work(settings: Settings, announce: Callable[[], None]) -> None:
    """Be a worker until SIGINT or SIGTERM. Raises PrivilegedRole or psycopg.Error where it cannot start."""
    stop = asyncio.Event()
    with _stopping(stop):
        await _check_worker_role(settings)
        working = asyncio.create_task(_work(settings, stop, None))
        announce()
        await stop.wait()
        await asyncio.wait({working}, timeout=_GRACE_S)
        await _ended(working)


async def _check_worker_role(settings: Settings) -> None:
    """Refuse a role that could read around the views now, and not in a log line of the worker's."""
    if settings.worker_database_url is None:
        raise ValueError("WORKER_DATABASE_URL is not set")
    async with connect(
        settings.worker_database_url.get_secret_value(),
        size=1,
        timeout_s=settings.pool_timeout_s,
        statement_timeout_ms=settings.statement_timeout_ms,
        name="palimpsest-worker",
    ):
        pass


async def _listen(app: FastAPI, listener: socket.socket) -> Listening:
    """Open the socket, unless it can be reached from elsewhere and no key keeps others out."""
    host, port = listener.getsockname()[:2]
    development = await app.state.keys.is_development()
    if development and not is_loopback(host):
        raise CannotListen(
            f"No key was made yet, so the service may listen on a loopback address only, and not on {host}: "
            "make a key first with `palimpsest keys create`."
        )
    with _explained(host, port):
        listener.listen(2048)
    return Listening(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}", development)


def _config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    proxies = [proxy.strip() for proxy in settings.trusted_proxies.split(",") if proxy.strip()]
    return uvicorn.Config(
        app,
        lifespan="off",  # It is entered above, where its errors can still be told in a sentence.
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
        timeout_graceful_shutdown=_GRACE_S,
    )


class _Server(uvicorn.Server):
    """Says when it answers, and leaves the signals to `serve`, which has more to end than the server."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def _stopping(stop: asyncio.Event) -> Iterator[asyncio.Event]:
    """Meanwhile SIGINT and SIGTERM set `stop`, and the second of them the event that is lent."""
    insistent, loop = asyncio.Event(), asyncio.get_running_loop()

    def end() -> None:
        (insistent if stop.is_set() else stop).set()

    def handle(_number: int, _frame: Any) -> None:
        loop.call_soon_threadsafe(end)

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # Under nohup, it stays ignored.
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield insistent
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


async def _follow(server: uvicorn.Server, stop: asyncio.Event, insistent: asyncio.Event) -> None:
    await stop.wait()
    server.should_exit = True
    await insistent.wait()
    server.force_exit = True


async def _work(settings: Settings, stop: asyncio.Event, app: FastAPI | None) -> None:
    """Run the worker until `stop`. One that fails is started again; meanwhile /readyz says that there is none."""
    missing: dict[str, str] = app.state.service.unavailable if app else {}
    while not stop.is_set():
        missing.pop("worker", None)
        try:
            await worker.run(settings, stop)
        except Exception as error:  # noqa: BLE001 - the API goes on, and the log and /readyz tell.
            structlog.get_logger("app").error("worker_failed", **describe(error))
        if not stop.is_set():
            missing["worker"] = "It failed, and is started again in a few seconds; the log says why."
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _WORKER_PAUSE_S)


async def _ended(working: asyncio.Task[None] | None) -> None:
    """Wait a moment for the worker, then cancel it: what it had begun is taken up again by the next one."""
    if working is None:
        return
    await asyncio.wait({working}, timeout=_WORKER_GRACE_S)
    working.cancel()
    await asyncio.wait({working}, timeout=_LAST_GRACE_S)
