"""The compose file is valid, keeps the roles apart, and its first step prepares a fresh server."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from app import embedded
from app.embedded import Cluster
from app.embedded.site import binaries
from app.main import create_app
from app.schema import migrate
from tests.clients import Memory, make_key
from tests.conftest import settings_for
from tests.serving import running

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docker-compose.yml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("migrate", "api", "worker")
PASSWORDS = {name: f"a 'quoted' \\ password of {name}" for name in ("OWNER", "API", "WORKER")}


def validated(file: Path) -> subprocess.CompletedProcess[str]:
    """The verdict of the compose specification's own schema."""
    command = [str(Path(sys.executable).with_name("check-jsonschema")), "--builtin-schema", "vendor.compose-spec"]
    return subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)


def comes_after(name: str) -> set[str]:
    """Everything that a service waits for, directly or not."""
    waits = set(SERVICES[name].get("depends_on", {}))
    return waits.union(*(comes_after(other) for other in waits))


def test_the_file_is_valid_compose() -> None:
    checked = validated(FILE)

    assert checked.returncode == 0, checked.stdout


def test_a_misspelt_key_would_be_noticed(tmp_path: Path) -> None:
    file = tmp_path / "docker-compose.yml"
    file.write_text(FILE.read_text().replace("restart: unless-stopped", "restrat: unless-stopped"))

    assert validated(file).returncode == 1


def test_no_password_has_a_default() -> None:
    values = {
        f"{name}.{key}": str(value)
        for name, service in SERVICES.items()
        for key, value in service["environment"].items()
        if key.endswith("PASSWORD")
    }

    assert len(values) == 8
    assert [name for name, value in values.items() if not re.fullmatch(r"\$\{\w+_PASSWORD:\?[^}]+\}", value)] == []


@pytest.mark.parametrize(
    ("name", "role"), [("migrate", "MEMORY_OWNER"), ("api", "MEMORY_API"), ("worker", "MEMORY_WORKER")]
)
def test_a_process_gets_the_password_of_its_own_role_and_no_other(name: str, role: str) -> None:
    environment = SERVICES[name]["environment"]
    (address,) = [value for key, value in environment.items() if key.endswith("DATABASE_URL")]

    assert set(re.findall(r"\$\{(\w+)_PASSWORD", str(environment))) == {role}
    assert f"//{role.lower()}@db:" in address


def test_only_the_api_is_published_and_only_on_this_machine() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert published == {"api": ["127.0.0.1:${PALIMPSEST_PORT:-8000}:8000"]}


@pytest.mark.parametrize("name", OURS)
def test_our_processes_can_write_nowhere_but_in_memory(name: str) -> None:
    service = SERVICES[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "volumes" not in service


def test_the_data_outlives_the_containers() -> None:
    assert SERVICES["db"]["volumes"] == ["database:/var/lib/postgresql/data"]
    assert "database" in COMPOSE["volumes"]


def test_the_steps_wait_for_each_other() -> None:
    conditions = {
        name: {other: how["condition"] for other, how in service.get("depends_on", {}).items()}
        for name, service in SERVICES.items()
    }

    assert conditions["roles"] == {"db": "service_healthy"}
    assert conditions["migrate"] == {"roles": "service_completed_successfully"}
    assert comes_after("api") == comes_after("worker") == {"db", "roles", "migrate"}


def test_the_processes_that_stay_are_watched() -> None:
    assert "/readyz" in str(SERVICES["api"]["healthcheck"]["test"])
    assert "pg_isready" in SERVICES["db"]["healthcheck"]["test"]
    assert {name for name, service in SERVICES.items() if service["restart"] == "unless-stopped"} == {
        "db",
        "api",
        "worker",
    }


def prepare_roles(dsn: str, **passwords: str) -> subprocess.CompletedProcess[str]:
    """What the service `roles` runs, with the passwords as it gets them."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "MEMORY_"))}
    given = {f"MEMORY_{name}_PASSWORD": value for name, value in passwords.items()}
    program, *arguments = [str(word) for word in SERVICES["roles"]["entrypoint"]]
    arguments[arguments.index("/roles.sql")] = str(ROOT / "migrations" / "roles.sql")
    return subprocess.run(
        [str(binaries() / program), *arguments, "--dbname", dsn],
        env=environment | given,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Cluster]:
    """A server with an empty database and without our roles, as a fresh volume gives it."""
    with embedded.running(tmp_path / "server", {"fsync": "off"}) as cluster:
        dsn = cluster.superuser_dsn
        with psycopg.connect(dsn.replace("/palimpsest?", "/postgres?"), autocommit=True) as superuser:
            superuser.execute("DROP DATABASE palimpsest")
            superuser.execute("DROP ROLE memory_owner, memory_api, memory_worker")
            superuser.execute("CREATE DATABASE palimpsest TEMPLATE template0")
        yield cluster


def test_without_a_password_no_role_is_made(server: Cluster) -> None:
    refused = prepare_roles(server.superuser_dsn, OWNER="one", API="two")

    with psycopg.connect(server.superuser_dsn) as superuser:
        made = superuser.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE 'memory%'").fetchall()
    assert refused.returncode != 0
    assert made == []


def test_the_roles_step_prepares_a_server_for_the_migrations_and_the_service(server: Cluster) -> None:
    first = prepare_roles(server.superuser_dsn, **PASSWORDS)
    again = prepare_roles(server.superuser_dsn, **PASSWORDS)

    migrate(server.owner_dsn)

    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    key = make_key(server, "acme")
    with running(create_app(settings_for(server))) as url, Memory(url, key) as memory:
        memory.remember("The roles were made by hand.")
        assert memory.recalled("Who made the roles?") == ["The roles were made by hand."]


def test_the_roles_step_sets_the_passwords_that_it_was_given(server: Cluster) -> None:
    prepare_roles(server.superuser_dsn, **PASSWORDS)
    with psycopg.connect(server.superuser_dsn) as superuser:
        kept = superuser.execute(
            "SELECT rolname, rolpassword FROM pg_authid WHERE rolname LIKE 'memory%' ORDER BY rolname"
        ).fetchall()

    assert [name for name, _ in kept] == ["memory_api", "memory_owner", "memory_worker"]
    assert all(secret.startswith("SCRAM-SHA-256$") for _, secret in kept)
    assert all(password not in secret for _, secret in kept for password in PASSWORDS.values())
