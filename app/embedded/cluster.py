"""Sharing one embedded server between processes, and the database, roles and extension in it."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import psycopg
from psycopg import sql

from app.embedded import server
from app.embedded.site import EmbeddedUnavailable, Site, find_site

if sys.platform != "win32":
    import fcntl

_DATABASE = "palimpsest"
_OWNER, _API, _WORKER = "memory_owner", "memory_api", "memory_worker"
_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Cluster:
    """How to reach a running cluster: libpq URIs without a password, good for this account only."""

    data_dir: Path
    owner_dsn: str
    api_dsn: str
    worker_dsn: str
    superuser_dsn: str


@contextmanager
def running(data_dir: Path, settings: Mapping[str, str] = _NO_SETTINGS) -> Iterator[Cluster]:
    """Start or share the server in `data_dir`; the last process that leaves stops it.

    Meanwhile SIGTERM and SIGHUP unwind the stack as Ctrl-C does (SystemExit of 128 + the signal's number), so
    that no server is left behind; where the caller has a handler of its own, that one stays.
    Raises EmbeddedUnavailable.
    """
    with _explained(data_dir):
        in_use = _lock(find_site(data_dir).home / "use.lock", shared=True)
    with _handling(_default_signals(), _unwind):
        try:
            yield start(data_dir, settings)
        finally:
            with _handling((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), signal.SIG_IGN):
                os.close(in_use)
                stop(data_dir)


def start(data_dir: Path, settings: Mapping[str, str] = _NO_SETTINGS) -> Cluster:
    """Make the cluster on first use, start its server unless it runs, and prepare the database in it.

    `settings` are further server settings; they count if this call starts the server, which outlives this
    process until `stop`. Raises EmbeddedUnavailable.
    """
    with _explained(data_dir):
        site = find_site(data_dir)
        with _locked(site.home / "start.lock"):
            if not (site.data / "PG_VERSION").exists():
                server.initialise(site)
            server.require_version(site)
            if not server.is_running(site):
                server.launch(site, settings)
            server.await_ready(site)
            _prepare_database(site)
        return Cluster(site.home, *(site.dsn(role, _DATABASE) for role in (_OWNER, _API, _WORKER, "postgres")))


def stop(data_dir: Path) -> bool:
    """Stop the server unless a process is still inside `running`; whether none runs now."""
    with _explained(data_dir):
        if not (data_dir / "postgres").exists():
            return True
        site = find_site(data_dir)
        with _locked(site.home / "start.lock"):
            try:
                alone = _lock(site.home / "use.lock", wait=False)
            except BlockingIOError:
                return False
            try:
                server.shut_down(site)
            finally:
                os.close(alone)
    return True


def _prepare_database(site: Site) -> None:
    """Make the roles, the database and the extension, as far as they are missing."""
    roles = sql.SQL(", ").join(map(sql.Identifier, (_OWNER, _API, _WORKER)))
    database, owner = sql.Identifier(_DATABASE), sql.Identifier(_OWNER)
    with psycopg.connect(site.dsn("postgres", "postgres"), autocommit=True) as connection:
        present = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles")}
        for role in (_OWNER, _API, _WORKER):
            if role not in present:
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN NOINHERIT").format(sql.Identifier(role)))
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (_DATABASE,)).fetchone():
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(database, owner))
        connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database))
        connection.execute(sql.SQL("GRANT CONNECT, TEMPORARY ON DATABASE {} TO {}").format(database, roles))
    with psycopg.connect(site.dsn("postgres", _DATABASE), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute("ALTER EXTENSION vector UPDATE")
        connection.execute(sql.SQL("GRANT USAGE, CREATE ON SCHEMA public TO {}").format(owner))


@contextmanager
def _explained(data_dir: Path) -> Iterator[None]:
    """Say in one sentence what the system or Postgres objects to."""
    try:
        yield
    except PermissionError as error:
        raise EmbeddedUnavailable(
            f"Cannot keep data in {data_dir}: no permission for {error.filename or data_dir}; "
            "make it writable or choose another folder with --data-dir."
        ) from error
    except (FileExistsError, NotADirectoryError) as error:
        raise EmbeddedUnavailable(
            f"Cannot keep data in {data_dir}: that path leads to a file; choose a folder with --data-dir."
        ) from error
    except OSError as error:
        raise EmbeddedUnavailable(f"Cannot keep data in {data_dir}: {error.strerror or error}.") from error
    except psycopg.Error as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise EmbeddedUnavailable(f"The database in {data_dir} could not be prepared: {said[-1]}.") from error


def _lock(path: Path, *, shared: bool = False, wait: bool = True) -> int:
    """Take a lock that the kernel gives back when its holder ends, even by kill -9; its file descriptor.

    Release it by closing: an explicit unlock would also unlock it for processes forked from this one.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = _lock(path)
    try:
        yield
    finally:
        os.close(descriptor)


def _unwind(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _default_signals() -> list[signal.Signals]:
    """Those that would end Python on the spot; under nohup, SIGHUP is not one of them."""
    return [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_DFL]


@contextmanager
def _handling(
    numbers: Iterable[signal.Signals], handler: Callable[[int, object], None] | signal.Handlers
) -> Iterator[None]:
    """Handle `numbers` with `handler`; only the main thread may, in another one nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
