"""Making, starting, finding and stopping the server of one embedded cluster."""

import os
import shutil
import signal
import socket
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from app.embedded.site import MAJOR, SOCKET_NAME, EmbeddedUnavailable, Site, hand_over, let_in, own_user, run

# One machine, one service. What protects committed rows (fsync, synchronous_commit) keeps its safe default.
_SETTINGS = {
    "listen_addresses": "",  # No TCP; the socket's folder, its mode and `peer` say who may connect.
    "port": "5432",  # PGPORT in the environment would change it otherwise.
    "unix_socket_permissions": "0700",
    "hba_file": "../pg_hba.conf",
    "ident_file": "../pg_ident.conf",
    "max_connections": "60",
    "shared_buffers": "256MB",
    "maintenance_work_mem": "256MB",  # Holds the vector index of about 100,000 facts while it is built.
    "random_page_cost": "1.1",  # The default of 4 is for spinning disks and avoids indexes.
    "autovacuum_naptime": "10s",  # A store that was just filled gets its statistics soon.
    "jit": "off",  # Compiling costs more than these short statements take.
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",  # They would be most of the log.
}
_TROUBLE = ("PANIC:", "FATAL:", "ERROR:", "error:")


def initialise(site: Site) -> None:
    """Make the cluster beside its place and move it there whole: one cut short is never taken for it."""
    if site.data.exists() and any(site.data.iterdir()):
        raise EmbeddedUnavailable(f"{site.data} holds files but no database: choose another --data-dir.")
    staging = site.home / "postgres.new"
    if staging.exists():
        shutil.rmtree(staging)
    staging.mkdir(mode=0o700)
    hand_over(staging, site)
    let_in(site)
    # The built-in locale sorts the same on every system, also after an update of its C library.
    locale = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C", "--encoding=UTF8")
    code, output = run(site, staging, "initdb", "--username=postgres", "--auth=peer", *locale)
    if code:
        shutil.rmtree(staging, ignore_errors=True)
        raise EmbeddedUnavailable(f"The database in {site.home} could not be made: {_complaint(output)}.")
    staging.rename(site.data)
    _sync(site.home)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def require_version(site: Site) -> None:
    version = (site.data / "PG_VERSION").read_text().strip()
    if version != MAJOR:
        raise EmbeddedUnavailable(
            f"{site.data} was made by Postgres {version}, and this release embeds Postgres {MAJOR}: "
            "export it with the release that made it and import that here, or choose another --data-dir."
        )


def is_running(site: Site) -> bool:
    return _postmaster(site) is not None


def launch(site: Site, settings: Mapping[str, str]) -> None:
    """Start the server, which `settings` may configure further, and wait until it has recovered."""
    if not _wait_until(lambda: not _strays(site), 5):
        raise EmbeddedUnavailable(f"Processes of a crashed database still run, end them first: {_strays(site)}.")
    if _answers(site.socket_dir / SOCKET_NAME):
        raise EmbeddedUnavailable(f"{site.home} is being served from elsewhere, such as another container.")
    # Postgres would refuse to start if the number in there is another program's by now, or a zombie's.
    for stale in (site.data / "postmaster.pid", site.socket_dir / f"{SOCKET_NAME}.lock"):
        stale.unlink(missing_ok=True)
    let_in(site)
    _make_socket_dir(site)
    _configure(site, settings)
    log = _fresh_log(site)
    # The paths are relative to PGDATA, since pg_ctl pastes them into a shell command without quoting.
    options = f"-c config_file=../postgresql.conf -c cluster_name={site.name}"
    code, output = run(
        site, site.data, "pg_ctl", "start", "--silent", "--timeout=120", f"--log=../{log.name}", "-o", options
    )
    if code:
        said = _complaint(log.read_text(errors="replace") or output)
        raise EmbeddedUnavailable(f"The database in {site.home} does not start: {said} (more in {log}).")


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(os.fsencode(path))
        except OSError:
            return False
    return True


def _make_socket_dir(site: Site) -> None:
    folder = site.socket_dir
    if folder == site.data:
        return
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        hand_over(folder, site)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != site.uid or found.st_mode & 0o077:
        raise EmbeddedUnavailable(f"{folder} is not this service's: remove it, or choose a shorter --data-dir.")


def _configure(site: Site, settings: Mapping[str, str]) -> None:
    """Write the three configuration files anew; what `ALTER SYSTEM` has set is kept, and wins."""
    chosen = {**_SETTINGS, "unix_socket_directories": str(site.socket_dir), **settings}
    lines = [f"{name} = '{_escaped(value)}'" for name, value in chosen.items()]
    # `peer` asks the kernel who connects, so no password is kept: the server's account and ours may.
    users = sorted({site.user, own_user()})
    _write(site, "postgresql.conf", ["include 'postgres/postgresql.conf'", *lines])
    _write(site, "pg_hba.conf", ["local all all peer map=palimpsest"])
    _write(site, "pg_ident.conf", [f'palimpsest "{user}" all' for user in users])


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")


def _write(site: Site, name: str, lines: list[str]) -> None:
    path = site.home / name
    path.write_bytes(os.fsencode("\n".join(("# Written anew at every start.", *lines, ""))))
    hand_over(path, site)


def _fresh_log(site: Site) -> Path:
    """An empty log; the last one is kept beside it."""
    log = site.home / "postgres.log"
    if log.exists():
        log.replace(site.home / "postgres.log.1")
    log.touch(mode=0o600)
    hand_over(log, site)
    return log


def _complaint(output: str) -> str:
    """The line that says what went wrong, without the time and process in front of it."""
    lines = [line for line in output.splitlines() if line.strip()] or ["it left no message"]
    trouble = [line for line in lines if any(word in line for word in _TROUBLE)]
    said = (trouble or lines)[-1]
    for word in _TROUBLE:
        said = said.rpartition(word)[2]
    return said.strip().rstrip(".")


def await_ready(site: Site) -> None:
    """Wait for a server that another process started and left while it was still recovering."""
    if not _wait_until(lambda: _is_ready(site), 60):
        raise EmbeddedUnavailable(f"The database in {site.home} is still recovering: try again in a minute.")


def _is_ready(site: Site) -> bool:
    """The eighth line of the pid file is the server's state."""
    with suppress(FileNotFoundError):
        return (site.data / "postmaster.pid").read_bytes().split(b"\n")[7:8] == [b"ready   "]
    return False


def _postmaster(site: Site) -> psutil.Process | None:
    """The server's main process; a program that has been given its number since is not taken for it."""
    try:
        process = psutil.Process(int((site.data / "postmaster.pid").read_bytes().split()[0]))
        ours = f"cluster_name={site.name}" in process.cmdline() and process.uids().effective == site.uid
    except (FileNotFoundError, IndexError, ValueError, psutil.Error):
        return None
    return process if ours else None


def _strays(site: Site) -> list[int]:
    """The numbers of the cluster's processes, whether or not their postmaster lives."""
    return [
        process.pid
        for process in psutil.process_iter(["name", "uids", "cmdline"])
        if process.info["name"] == "postgres"
        and process.info["uids"].effective == site.uid
        and site.name in " ".join(process.info["cmdline"] or ())
    ]


def shut_down(site: Site) -> None:
    """A fast shutdown, which ends open sessions; what does not obey is ended harder, and recovers later."""
    process = _postmaster(site)
    if process is not None:
        for number, patience in ((signal.SIGINT, 5), (signal.SIGQUIT, 3), (signal.SIGKILL, 3)):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
            if _wait_until(lambda: _has_ended(process), patience):
                break
    if site.socket_dir != site.data:
        with suppress(OSError):
            site.socket_dir.rmdir()


def _has_ended(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    return True


def _wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return met
