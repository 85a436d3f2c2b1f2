"""A plain pg_dump of the database restores into an empty one, and the service goes on from there."""

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from app.embedded import Cluster
from app.embedded.site import binaries
from app.main import create_app
from tests.clients import Memory, make_key
from tests.cluster import own_database
from tests.conftest import settings_for
from tests.serving import running

QUESTIONS = ("When is the standup?", "Where is the office?", "deployment", "the old release plan")


def run(program: str, *arguments: str) -> None:
    """Run a Postgres program, and fail with what it says."""
    ended = subprocess.run([str(binaries() / program), *arguments], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr


@contextmanager
def serving(database: Cluster, key: str) -> Iterator[Memory]:
    with running(create_app(settings_for(database))) as url, Memory(url, key) as client:
        yield client


def fill(memory: Memory) -> str:
    """Chains, forgotten, expired and scheduled facts, in several scopes; the id of one that was replaced."""
    now = datetime.now(UTC)
    first = memory.fact("The standup is at 9:30.", subject="team.standup.time", kind="state")
    memory.remember("The standup is at 9:00.", subject="team.standup.time", kind="state")
    memory.remember("The standup is at 8:45.", subject="team.standup.time", kind="state")
    memory.forget(memory.fact("The old release plan is in the wiki.")["id"])
    memory.remember("The office is in Lisbon.", scope="team/core", tags=["place"], metadata={"floor": 3})
    memory.remember("The office closes in August.", valid_from=(now + timedelta(days=30)).isoformat())
    memory.remember(
        "Deployment is frozen.",
        valid_from=(now - timedelta(days=2)).isoformat(),
        valid_to=(now - timedelta(days=1)).isoformat(),
    )
    for number in range(20):
        memory.remember(f"Deployment number {number} of the service went well.", kind="event")
    return str(first["id"])


def told(memory: Memory, fact_id: str) -> dict[str, Any]:
    """What clients see: counts, current facts, a history, and recalls."""
    return {
        "current": memory.current(),
        "history": memory.history(fact_id),
        "recalled": [memory.recall(question, k=5)["results"] for question in QUESTIONS],
    }


def rows(database: Cluster) -> dict[str, int]:
    """By table, how many rows it has."""
    with psycopg.connect(database.owner_dsn) as owner:
        found = owner.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('public', 'ledger')"
        ).fetchall()
        counts = {}
        for schema, table in found:
            row = owner.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, table))).fetchone()
            counts[f"{schema}.{table}"] = row[0] if row else 0
    return counts


@pytest.fixture
def blank(cluster: Cluster) -> Iterator[Cluster]:
    """A database with nothing in it, not even the extension."""
    with own_database(cluster, "template0") as mine:
        yield mine


def test_a_dump_restores_into_an_empty_database(fresh_database: Cluster, blank: Cluster, tmp_path: Path) -> None:
    dump = tmp_path / "palimpsest.dump"
    key = make_key(fresh_database, "acme", roles=["read", "write", "curate"], max_tier="user")
    with serving(fresh_database, key) as memory:
        fact_id = fill(memory)
        before = told(memory, fact_id)
    counted = rows(fresh_database)

    run("pg_dump", "-Fc", "--file", str(dump), "--dbname", fresh_database.superuser_dsn)
    run("pg_restore", "--exit-on-error", "--dbname", blank.superuser_dsn, str(dump))

    assert rows(blank) == counted
    with serving(blank, key) as memory:
        after = told(memory, fact_id)
        memory.remember("The standup is at 10:00.", subject="team.standup.time", kind="state")
        assert memory.recalled("When is the standup?", k=1) == ["The standup is at 10:00."]
    assert {"ledger.facts", "public.links", "public.audit_events"} <= {name for name, n in counted.items() if n > 0}
    assert after == before


def test_the_schema_alone_restores_and_serves(fresh_database: Cluster, blank: Cluster, tmp_path: Path) -> None:
    dump = tmp_path / "schema.sql"
    run("pg_dump", "--schema-only", "--file", str(dump), "--dbname", fresh_database.superuser_dsn)

    run(
        "psql",
        "--quiet",
        "--no-psqlrc",
        "--set",
        "ON_ERROR_STOP=1",
        "-o",
        "/dev/null",
        "--file",
        str(dump),
        blank.superuser_dsn,
    )

    with serving(blank, make_key(blank, uuid.uuid4().hex)) as memory:
        memory.remember("The vault is empty.")
        assert memory.texts() == ["The vault is empty."]
