"""One embedded Postgres for a whole test run, shared by the run's worker processes.

The controlling process calls `open_run` and `close_run`; whoever needs Postgres opens `cluster_of_the_run`.
"""

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
from psycopg import sql

from app import embedded
from app.embedded import Cluster

_FOLDER = "PALIMPSEST_TEST_CLUSTER"
_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "250"}


def open_run() -> None:
    """Choose the run's folder; worker processes inherit it through the environment."""
    os.environ[_FOLDER] = tempfile.mkdtemp(prefix="palimpsest-tests-")


def close_run() -> None:
    """Stop a server that a killed worker has left, and remove the folder."""
    folder = Path(os.environ.pop(_FOLDER))
    embedded.stop(folder)
    shutil.rmtree(folder)


@contextmanager
def cluster_of_the_run() -> Iterator[Cluster]:
    """The run's cluster, started by the first process that opens it and stopped by the last that leaves."""
    with embedded.running(Path(os.environ[_FOLDER]), _SETTINGS) as cluster:
        yield cluster


@contextmanager
def own_database(cluster: Cluster, template: str = "palimpsest") -> Iterator[Cluster]:
    """A copy of the database `template`, with whatever was migrated into it, under another name.

    Nobody may be connected to `template` meanwhile.
    """
    name = f"test_{uuid.uuid4().hex}"
    database, source = sql.Identifier(name), sql.Identifier(template)
    roles = sql.SQL("memory_owner, memory_api, memory_worker")
    with psycopg.connect(_dsn(cluster.superuser_dsn, "postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER memory_owner").format(database, source))
        connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database))
        connection.execute(sql.SQL("GRANT CONNECT, TEMPORARY ON DATABASE {} TO {}").format(database, roles))
        try:
            yield replace(
                cluster,
                owner_dsn=_dsn(cluster.owner_dsn, name),
                api_dsn=_dsn(cluster.api_dsn, name),
                worker_dsn=_dsn(cluster.worker_dsn, name),
                superuser_dsn=_dsn(cluster.superuser_dsn, name),
            )
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))


def _dsn(dsn: str, database: str) -> str:
    """The same server and role, another database."""
    server, _, query = dsn.partition("?")
    return f"{server.rpartition('/')[0]}/{database}?{query}"
