"""`palimpsest checkup`, run as a person runs it."""

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from app.embedded import Cluster
from app.main import create_app
from tests.clients import Memory, make_key
from tests.commands import run
from tests.conftest import settings_for
from tests.serving import running


@pytest.fixture
def variables(fresh_database: Cluster) -> dict[str, str]:
    return {"DATABASE_URL": fresh_database.api_dsn}


@pytest.fixture
def client(fresh_database: Cluster) -> Iterator[Memory]:
    key = make_key(fresh_database, "default", roles=["read", "write", "curate", "admin"], max_tier="system")
    with running(create_app(settings_for(fresh_database))) as url, Memory(url, key) as client:
        yield client


def test_an_empty_memory_is_healthy(tmp_path: Path, variables: dict[str, str]) -> None:
    said = run("checkup", at=tmp_path, **variables)

    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.splitlines() == ["0 facts, 0 of them retired (0.0%).", "Nothing to do."]


def test_what_is_found_is_told_worst_first_and_ends_with_an_exit_code(
    tmp_path: Path, variables: dict[str, str], client: Memory, fresh_database: Cluster
) -> None:
    client.policy(policy="explicit")
    retired = client.fact("The event store runs on Postgres.")
    client.supersede(retired["id"], content="The event store runs on DynamoDB.")
    with psycopg.connect(fresh_database.superuser_dsn, autocommit=True) as superuser:
        superuser.execute("DELETE FROM links WHERE kind = 'supersedes'")

    said = run("checkup", at=tmp_path, **variables)

    assert said.returncode == 1
    severities = [line.split()[0] for line in said.stdout.splitlines()[1:] if not line.startswith(" ")]
    assert severities == sorted(severities, key=["damage", "warning", "work"].index)
    assert "retirements without claim" in said.stdout
    assert retired["id"] in said.stdout


def test_json_is_what_the_service_answers_for_the_scopes_that_are_named(
    tmp_path: Path, variables: dict[str, str], client: Memory
) -> None:
    client.batch({"content": "The fern is green.", "scope": "office"}, {"content": "The oak is old.", "scope": "yard"})

    said = run("checkup", "--json", "--scope", "office", at=tmp_path, **variables)

    served = client.get("/v1/checkup", scope="office")
    assert json.loads(said.stdout) | {"at": None} == served | {"at": None}
    assert served["facts"] == 1
