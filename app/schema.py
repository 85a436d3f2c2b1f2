"""Brings the database to the schema that this code knows, one process at a time, and tells where it is not."""

from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg import errors
from psycopg.conninfo import make_conninfo
from sqlalchemy import URL, Connection, create_engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

import migrations

_LOCK = 0x50A11_4E57
_CONNECT_TIMEOUT_S = 5
_OLDEST_POSTGRES = 16
_OLDEST_VECTOR = (0, 8)
_ADDRESS = "of the form postgresql://user:password@host/name"


class SchemaUnusable(Exception):
    """The database cannot be used as it is; the text is one sentence for the operator."""


def _script() -> tuple[Config, ScriptDirectory]:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config, ScriptDirectory.from_config(config)


def _refuse_newer(current: str | None, script: ScriptDirectory) -> None:
    known = {revision.revision for revision in script.walk_revisions()}
    if current is not None and current not in known:
        raise SchemaUnusable(
            f"The database schema is newer ({current}) than this version of Palimpsest knows "
            f"({script.get_current_head()}): upgrade Palimpsest, or restore the database's earlier backup."
        )


def _refuse_old_server(connection: Connection) -> None:
    found = int(connection.exec_driver_sql("SHOW server_version_num").scalar_one()) // 10_000
    if found < _OLDEST_POSTGRES:
        raise SchemaUnusable(f"The server runs Postgres {found}, and Palimpsest needs {_OLDEST_POSTGRES} or newer.")


def _refuse_missing_vector(connection: Connection) -> None:
    found = connection.exec_driver_sql(
        "SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS installed,"
        " (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS available"
    ).one()
    if found.installed is None and found.available is None:
        raise SchemaUnusable(
            "The Postgres server has no pgvector: install pgvector 0.8 or newer on it "
            "(for instance the image pgvector/pgvector:pg17)."
        )
    version = found.installed or found.available
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_VECTOR:
        raise SchemaUnusable(f"The database has pgvector {version}, and Palimpsest needs 0.8 or newer.")
    if found.installed is None:
        connection.exec_driver_sql("CREATE EXTENSION vector")


def _url(owner_url: str) -> URL:
    try:
        given = make_url(owner_url.replace("postgres://", "postgresql://", 1))
    except (ArgumentError, ValueError):
        raise SchemaUnusable(f"MIGRATION_DATABASE_URL is not {_ADDRESS}.") from None
    # A host that never answers would otherwise be waited for as long as TCP does.
    patience = {"connect_timeout": str(_CONNECT_TIMEOUT_S)} | dict(given.query)
    return given.set(drivername="postgresql+psycopg", query=patience)


def migrate(owner_url: str) -> tuple[str | None, str]:
    """Apply what is missing, under an advisory lock and in one transaction; the revisions before and after.

    Raises SchemaUnusable where the server is unreachable, too old, lacks pgvector, refuses, or is ahead of this code.
    """
    config, script = _script()
    try:
        with create_engine(_url(owner_url), poolclass=NullPool).connect() as connection:
            connection.exec_driver_sql(f"SELECT pg_advisory_lock({_LOCK})")
            connection.commit()
            before = MigrationContext.configure(connection).get_current_revision()
            _refuse_newer(before, script)
            _refuse_old_server(connection)
            _refuse_missing_vector(connection)
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
            return before, script.get_current_head() or ""
    except OperationalError as problem:
        raise SchemaUnusable(f"The database cannot be used by its owner: {_said(problem.orig)}.") from problem
    except (DBAPIError, psycopg.Error) as problem:
        said = _said(getattr(problem, "orig", problem))
        raise SchemaUnusable(f"The database cannot be migrated, and nothing was changed: {said}.") from problem


def require_current(url: str, variable: str) -> None:
    """Raise SchemaUnusable unless `url`, which came from `variable`, leads to a database with just our schema."""
    _, script = _script()
    current, head = _revision(url, variable), script.get_current_head()
    _refuse_newer(current, script)
    if current != head:
        found = "has no schema yet" if current is None else f"has the schema {current}, and {head} is needed"
        raise SchemaUnusable(
            f"The database of {variable} {found}: run `palimpsest migrate` "
            "with MIGRATION_DATABASE_URL set to its owner."
        )


def _revision(url: str, variable: str) -> str | None:
    try:
        conninfo = make_conninfo(url.replace("postgresql+psycopg://", "postgresql://"))
    except psycopg.ProgrammingError:  # What libpq says may quote the password.
        raise SchemaUnusable(f"{variable} is not {_ADDRESS}.") from None
    try:
        with psycopg.connect(conninfo, connect_timeout=_CONNECT_TIMEOUT_S) as connection:
            row = connection.execute("SELECT version_num FROM public.alembic_version").fetchone()
            return str(row[0]) if row else None
    except errors.UndefinedTable:
        return None
    except errors.InsufficientPrivilege:
        raise SchemaUnusable(
            f"The role of {variable} may not use this database: name memory_api, or memory_worker for the worker."
        ) from None
    except psycopg.Error as problem:
        raise SchemaUnusable(f"The database of {variable} cannot be used: {_said(problem)}.") from problem


def _said(problem: BaseException | None) -> str:
    """The server's or the library's own words, on one line and without where they were met."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    trouble = [line for line in lines if "FATAL:" in line or "failed:" in line] or lines[:1] or ["no reason was given"]
    return trouble[-1].rpartition("FATAL:")[2].strip().rstrip(".")
