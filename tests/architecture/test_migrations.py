"""The schema's history can be walked up and down, by one process at a time."""

import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import monotonic, sleep
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection, create_engine, make_url
from sqlalchemy.pool import NullPool

import migrations
from app.embedded import Cluster
from app.embedded.site import binaries
from app.facts.model import METADATA
from app.schema import SchemaUnusable, migrate
from tests.cluster import own_database

CONFIG = Config()
CONFIG.set_main_option("script_location", migrations.__path__[0].replace("%", "%%"))
CONFIG.set_main_option("path_separator", "os")
SCRIPT = ScriptDirectory.from_config(CONFIG)
REVISIONS = {script.revision: script for script in SCRIPT.walk_revisions()}
REPLICAS = 5


@pytest.fixture
def empty(cluster: Cluster) -> Iterator[Cluster]:
    """A database that no migration ever ran on."""
    with own_database(cluster) as mine:
        yield mine


def moved(dsn: str, move: Callable[[Config, str], None], revision: str) -> None:
    """Walk to a revision as the owner."""
    with connected(dsn) as connection:
        config = Config()
        config.set_main_option("script_location", CONFIG.get_main_option("script_location") or "")
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        move(config, revision)
        connection.commit()


def connected(dsn: str) -> Connection:
    return create_engine(make_url(dsn).set(drivername="postgresql+psycopg"), poolclass=NullPool).connect()


def schema_of(dsn: str) -> list[str]:
    """The schema as SQL, without the token that pg_dump draws anew each time."""
    dumped = subprocess.run(
        [str(binaries() / "pg_dump"), "--schema-only", "--dbname", dsn], capture_output=True, text=True, check=True
    )
    return [line for line in dumped.stdout.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]


def relations(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            """SELECT c.oid::regclass::text FROM pg_class AS c WHERE c.relnamespace IN
                (SELECT oid FROM pg_namespace WHERE nspname IN ('public', 'ledger'))
            AND c.relname NOT LIKE 'alembic_version%' ORDER BY 1"""
        )
        return [name for (name,) in found]


def test_the_history_has_one_base_and_one_head() -> None:
    assert len(SCRIPT.get_bases()) == 1
    assert len(SCRIPT.get_heads()) == 1


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=REVISIONS)
def test_a_revision_waits_only_so_long_for_a_lock(revision: Script) -> None:
    first = inspect.getsource(revision.module.upgrade).splitlines()[1].strip()

    assert first.startswith("execute(\"SET LOCAL lock_timeout = '"), first


def test_going_down_leaves_nothing_and_up_again_the_same(empty: Cluster) -> None:
    migrate(empty.owner_dsn)
    before = schema_of(empty.owner_dsn)

    moved(empty.owner_dsn, command.downgrade, "base")
    left = relations(empty.owner_dsn)
    migrate(empty.owner_dsn)

    assert left == []
    assert schema_of(empty.owner_dsn) == before


def test_every_single_step_can_be_undone_and_done_again(empty: Cluster) -> None:
    for revision in reversed(list(REVISIONS)):
        moved(empty.owner_dsn, command.upgrade, revision)
        after = schema_of(empty.owner_dsn)
        moved(empty.owner_dsn, command.downgrade, "-1")
        moved(empty.owner_dsn, command.upgrade, revision)

        assert schema_of(empty.owner_dsn) == after, revision


def in_core(name: str | None, kind: str, _: object) -> bool:
    """Whether Core declares it; indexes and constraints are the database's own affair."""
    tables = {table.name for table in METADATA.tables.values() if not table.info.get("is_view")}
    return {"table": name in tables, "column": True}.get(kind, kind == "schema")


def test_a_migration_written_by_comparison_would_be_empty(database: Cluster) -> None:
    views = {table.name for table in METADATA.tables.values() if table.info.get("is_view")}
    with connected(database.owner_dsn) as connection:
        context = MigrationContext.configure(
            connection, opts={"include_name": in_core, "include_object": lambda _, name, *__: name not in views}
        )

        assert compare_metadata(context, METADATA) == []


def test_replicas_that_start_together_migrate_once(empty: Cluster) -> None:
    with ProcessPoolExecutor(REPLICAS, mp_context=get_context("spawn")) as pool:
        walked = list(pool.map(migrate, [empty.owner_dsn] * REPLICAS))

    head = SCRIPT.get_current_head()
    assert sorted(walked, key=str) == sorted([(None, head), *[(head, head)] * (REPLICAS - 1)], key=str)


def test_migrating_again_changes_nothing(database: Cluster) -> None:
    head = SCRIPT.get_current_head()

    assert migrate(database.owner_dsn) == (head, head)


def until(condition: Callable[[], Any]) -> None:
    deadline = monotonic() + 30
    while not condition():
        assert monotonic() < deadline
        sleep(0.02)


def test_a_migration_that_is_killed_half_way_leaves_nothing(empty: Cluster) -> None:
    with psycopg.connect(empty.owner_dsn) as blocker, psycopg.connect(empty.superuser_dsn, autocommit=True) as watch:
        blocker.execute("CREATE TABLE links ()")
        waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        code = f"from app.schema import migrate; migrate({empty.owner_dsn!r})"
        with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as replica:
            until(lambda: watch.execute(waiting).fetchone())
            os.kill(replica.pid, signal.SIGKILL)
        blocker.rollback()
        others = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND usename = 'memory_owner'"
        blocker.close()
        until(lambda: watch.execute(others).fetchone() is None)

    assert relations(empty.owner_dsn) == []
    assert migrate(empty.owner_dsn) == (None, SCRIPT.get_current_head())


def test_a_database_that_is_newer_than_the_code_is_refused(fresh_database: Cluster) -> None:
    with psycopg.connect(fresh_database.owner_dsn, autocommit=True) as owner:
        owner.execute("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(SchemaUnusable, match=r"newer \(9999\)"):
        migrate(fresh_database.owner_dsn)
