"""The command line: what it prints, and the one sentence and exit code 1 when it cannot do its work."""

import json
import logging
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import structlog

from app import __main__
from app.embedded import Cluster
from app.schema import migrate
from app.settings import Settings, variable_of
from tests.clients import Memory, make_key
from tests.cluster import own_database
from tests.commands import environment

ROOT = Path(__file__).parents[1]
NOWHERE = "postgresql://memory_api:guess-me@127.0.0.1:1/palimpsest"


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str


Cli = Callable[..., Ended]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    """Runs a command in an empty folder, with no setting but those given; in this process, to save the start."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    monkeypatch.chdir(tmp_path)
    for name in set(os.environ) - set(environment()):
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("PALIMPSEST_DATA_DIR", str(tmp_path / "data"))

    def run(*arguments: str, **variables: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["palimpsest", *arguments])
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as end:
            __main__.main()
        said = capsys.readouterr()
        return Ended(int(end.value.code or 0), said.out, said.err)

    yield run
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def keyless(cluster: Cluster) -> Iterator[Cluster]:
    """A migrated database in which no key was ever made."""
    with own_database(cluster) as mine:
        migrate(mine.owner_dsn)
        yield mine


@pytest.fixture
def versioned(keyless: Cluster) -> Iterator[Cluster]:
    """The same, for tests that change the version of its schema."""
    with psycopg.connect(keyless.owner_dsn, autocommit=True) as owner:
        (version,) = owner.execute("SELECT version_num FROM alembic_version").fetchone() or ("",)
        yield keyless
        owner.execute("DELETE FROM alembic_version")
        owner.execute("INSERT INTO alembic_version VALUES (%s)", (version,))


@pytest.fixture
def empty_database(cluster: Cluster) -> Iterator[Cluster]:
    """A database without our schema."""
    with own_database(cluster) as mine:
        yield mine


def as_owner(database: Cluster, statement: str) -> None:
    with psycopg.connect(database.superuser_dsn, autocommit=True) as connection:
        connection.execute(statement.encode())


def refused(ended: Ended) -> str:
    """The one sentence of a command that could not do its work."""
    assert ended.code == 1, ended
    assert re.fullmatch(r"Error: [^\n]+[.:]\n", ended.err), ended.err
    assert "Traceback" not in ended.err
    return ended.err


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"POOL_SIZE": "0"}, "POOL_SIZE"),
        ({"PALIMPSEST_PORT": "eight"}, "PALIMPSEST_PORT"),
        ({"LOG_FORMAT": "xml"}, "LOG_FORMAT"),
        ({"TRUSTED_PROXIES": "10.0.0.0/8, the proxy"}, "TRUSTED_PROXIES"),
        ({"EMBEDDING_URL": "http://127.0.0.1:1/v1"}, "EMBEDDING_URL and EMBEDDING_MODEL must be set together"),
        ({"LLM_MODEL": "m"}, "LLM_URL and LLM_MODEL must be set together"),
        ({"EMBEDDING_URL": "127.0.0.1:1", "EMBEDDING_MODEL": "m"}, "EMBEDDING_URL: must start with http"),
        ({"DATABASE_URL": NOWHERE}, "Connection refused"),
        ({"DATABASE_URL": "guess-me"}, "DATABASE_URL is not of the form"),
        ({"DATABASE_URL": NOWHERE, "MIGRATION_DATABASE_URL": "guess-me"}, "MIGRATION_DATABASE_URL is not of the form"),
        ({"DATABASE_URL": NOWHERE, "MIGRATION_DATABASE_URL": NOWHERE}, "Connection refused"),
        ({"MIGRATION_DATABASE_URL": NOWHERE}, "is set without DATABASE_URL"),
    ],
)
def test_a_service_that_is_misconfigured_says_so_in_one_sentence(
    cli: Cli, variables: dict[str, str], sentence: str
) -> None:
    ended = cli("serve", **{"PALIMPSEST_PORT": "0"} | variables)

    assert sentence in refused(ended)
    assert "guess-me" not in ended.err


def test_a_file_that_is_not_utf8_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"POOL_SIZE=\xff")

    assert ".env" in refused(cli("serve", "--port", "0"))


@pytest.mark.parametrize("folder", ["/proc/palimpsest", "/dev/null/palimpsest"])
def test_a_folder_that_cannot_be_written_is_named(cli: Cli, folder: str) -> None:
    assert folder in refused(cli("serve", "--port", "0", "--data-dir", folder))


@pytest.mark.parametrize(
    "options", [("--host", "no.such.host.invalid"), ("--host", "203.0.113.1"), ("--port", "70000")]
)
def test_an_address_that_cannot_be_had_is_refused(cli: Cli, options: tuple[str, str]) -> None:
    refused(cli("serve", *options))


def test_a_busy_port_is_named(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        ended = cli("serve", "--port", str(port))

    assert f"Port {port} on 127.0.0.1 is in use already" in refused(ended)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "::ffff:127.0.0.1"])
def test_without_a_key_only_loopback_is_listened_on(cli: Cli, keyless: Cluster, host: str) -> None:
    ended = cli("serve", "--port", "0", "--host", host, DATABASE_URL=keyless.api_dsn)

    assert "palimpsest keys create" in refused(ended)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("UPDATE alembic_version SET version_num = '0001'", "run `palimpsest migrate`"),
        ("DELETE FROM alembic_version", "run `palimpsest migrate`"),
        ("UPDATE alembic_version SET version_num = 'later'", "schema is newer (later)"),
    ],
)
def test_a_schema_of_another_version_is_refused(cli: Cli, versioned: Cluster, change: str, sentence: str) -> None:
    as_owner(versioned, change)

    assert sentence in refused(cli("serve", "--port", "0", DATABASE_URL=versioned.api_dsn))


def test_a_newer_schema_is_not_migrated(cli: Cli, versioned: Cluster) -> None:
    as_owner(versioned, "UPDATE alembic_version SET version_num = 'later'")

    assert "schema is newer (later)" in refused(cli("migrate", MIGRATION_DATABASE_URL=versioned.owner_dsn))


def test_a_database_without_the_schema_is_not_filled_unasked(cli: Cli, empty_database: Cluster) -> None:
    ended = cli("serve", "--port", "0", DATABASE_URL=empty_database.api_dsn)

    assert "has no schema yet: run `palimpsest migrate`" in refused(ended)


def test_a_database_that_does_not_exist_is_named(cli: Cli, cluster: Cluster) -> None:
    ended = cli("serve", "--port", "0", DATABASE_URL=cluster.api_dsn.replace("/palimpsest?", "/elsewhere?"))

    assert 'database "elsewhere" does not exist' in refused(ended)


def test_a_role_that_does_not_exist_is_named(cli: Cli, cluster: Cluster) -> None:
    ended = cli("serve", "--port", "0", DATABASE_URL=cluster.api_dsn.replace("memory_api", "nobody_of_note"))

    assert 'role "nobody_of_note" does not exist' in refused(ended)


@pytest.mark.parametrize("variable", ["DATABASE_URL", "WORKER_DATABASE_URL"])
def test_a_role_that_reads_around_the_views_is_refused(cli: Cli, keyless: Cluster, variable: str) -> None:
    urls = {"DATABASE_URL": keyless.api_dsn, variable: keyless.owner_dsn}

    assert "can read ledger.facts directly" in refused(cli("serve", "--port", "0", **urls))


def test_a_server_without_pgvector_is_refused(cli: Cli, empty_database: Cluster) -> None:
    name = empty_database.owner_dsn.partition("?")[0].rpartition("/")[2]
    as_owner(empty_database, f"ALTER DATABASE {name} SET extension_control_path = '/nonexistent'")
    as_owner(empty_database, "DROP EXTENSION vector")

    ended = cli("migrate", MIGRATION_DATABASE_URL=empty_database.owner_dsn)

    assert "has no pgvector: install pgvector 0.8 or newer" in refused(ended)


def test_a_database_with_another_owners_schema_is_left_alone(cli: Cli, empty_database: Cluster) -> None:
    as_owner(empty_database, "CREATE SCHEMA ledger")

    ended = cli("migrate", MIGRATION_DATABASE_URL=empty_database.owner_dsn)

    assert 'nothing was changed: schema "ledger" already exists' in refused(ended)


def test_migrate_says_from_where_to_where(cli: Cli, empty_database: Cluster) -> None:
    first = cli("migrate", MIGRATION_DATABASE_URL=empty_database.owner_dsn)
    second = cli("migrate", MIGRATION_DATABASE_URL=empty_database.owner_dsn)

    assert re.fullmatch(r"The schema was migrated: empty → (\w+)\n", first.out)
    assert re.fullmatch(r"The schema is up to date: (\w+)\n", second.out)


def test_a_worker_without_its_own_role_says_so(cli: Cli) -> None:
    assert "is set without WORKER_DATABASE_URL" in refused(cli("worker", DATABASE_URL=NOWHERE))


def test_a_key_can_be_captured_and_opens_what_it_was_made_for(
    cli: Cli, database: Cluster, service_url: str, namespace: str
) -> None:
    made = cli(
        *("keys", "create", "--quiet", "--name", "scheduler", "--namespace", namespace),
        *("--role", "read", "--role", "write", "--read-scope", "*", "--write-scope", "team/*"),
        *("--max-tier", "observed", "--expires-at", "2999-01-01T00:00:00Z"),
        DATABASE_URL=database.api_dsn,
    )

    assert made.err == ""
    with Memory(service_url, made.out.strip(), namespace) as scheduler:
        fact = scheduler.fact("The build is green.", scope="team/ci", source={"tier": "system"})
        assert (fact["namespace"], fact["source"]["tier"]) == (namespace, "observed")
        scheduler.remember("The build is red.", scope="shared", status=403)


def test_a_key_is_shown_once_and_listed_without_its_secret(cli: Cli, database: Cluster, namespace: str) -> None:
    where = {"DATABASE_URL": database.api_dsn}
    ours = ("--namespace", namespace)
    key = cli("keys", "create", "--name", "scheduler", *ours, **where).out.strip()

    listed = cli("keys", "list", *ours, **where).out
    (described,) = [json.loads(line) for line in cli("keys", "list", "--json", *ours, **where).out.splitlines()]

    assert "scheduler" in listed
    assert described["prefix"] in key
    assert key.rpartition("_")[2] not in listed + json.dumps(described)


def test_a_revoked_key_is_listed_as_such(cli: Cli, database: Cluster, namespace: str) -> None:
    where = {"DATABASE_URL": database.api_dsn}
    ours = ("--namespace", namespace)
    cli("keys", "create", "--name", "scheduler", *ours, **where)
    key_id = json.loads(cli("keys", "list", "--json", *ours, **where).out)["id"]

    ended = cli("keys", "revoke", key_id, *ours, **where)

    assert "'scheduler'" in ended.out
    assert "revoked" in cli("keys", "list", *ours, **where).out


def test_every_key_of_a_long_list_is_listed(cli: Cli, database: Cluster, namespace: str) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("INSERT INTO namespaces (name) VALUES (%s)", (namespace,))
        owner.execute(
            "INSERT INTO api_keys"
            " (id, namespace, name, prefix, secret_hash, roles, read_scopes, write_scopes, max_tier)"
            " SELECT gen_random_uuid(), %s, 'n', 'many-' || n, '', '{read}', '{*}', '{*}', 'user'"
            " FROM generate_series(1, 401) AS n",
            (namespace,),
        )

    listed = cli("keys", "list", "--json", "--namespace", namespace, DATABASE_URL=database.api_dsn).out

    assert len({json.loads(line)["id"] for line in listed.splitlines()}) == 401


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--name", " "), "--name: "),
        (("--name", "x", "--role", "owner"), "--role: "),
        (("--name", "x", "--max-tier", "highest"), "--max-tier: "),
        (("--name", "x", "--read-scope", ""), "--read-scope: "),
        (("--name", "x", "--expires-at", "2999-01-01T00:00:00"), "--expires-at: "),
        (("--name", "x", "--namespace", "a b"), "--namespace: "),
    ],
)
def test_a_key_that_cannot_be_is_refused(cli: Cli, options: tuple[str, ...], sentence: str) -> None:
    assert sentence in refused(cli("keys", "create", *options))


def test_a_key_of_another_namespace_is_not_revoked(cli: Cli, database: Cluster, namespace: str) -> None:
    make_key(database, "theirs")

    ended = cli("keys", "revoke", str(uuid4()), "--namespace", "ours", DATABASE_URL=database.api_dsn)

    assert "no key with this id" in refused(ended)


def test_the_description_of_the_api_is_written_and_checked(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "openapi.json"

    assert cli("openapi", "--output", str(file)).code == 0
    assert cli("openapi", "--check", str(file)).code == 0
    file.write_text(file.read_text().replace("/v1/facts", "/v1/facets"))
    assert "is out of date" in refused(cli("openapi", "--check", str(file)))


def test_the_description_does_not_depend_on_the_settings(cli: Cli) -> None:
    plain = cli("openapi").out
    elsewhere = cli("openapi", ROOT_PATH="/memory", PALIMPSEST_PORT="9000").out

    assert json.loads(plain)["openapi"].startswith("3.")
    assert plain == elsewhere


def test_the_version_is_told(cli: Cli) -> None:
    assert re.fullmatch(r"palimpsest \d+\.\d+\.\d+\n", cli("version").out)


def test_the_example_of_the_settings_lists_each_with_its_default() -> None:
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()

    listed = dict(line[1:].split("=", 1) for line in lines if re.match(r"#[A-Z_]+=", line))

    assert listed == {variable_of(name, field): _written(field) for name, field in Settings.model_fields.items()}


def _written(field: Any) -> str:
    if field.default_factory is not None or field.default is None:
        return ""
    return str(field.default).lower() if isinstance(field.default, bool) else str(field.default)


def test_every_setting_is_described() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []
