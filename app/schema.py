"""Brings the database to the schema that this code knows, one process at a time."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

import migrations

_LOCK = 0x50A11_4E57


class SchemaUnusable(Exception):
    """The database cannot be used as it is; the text is one sentence for the operator."""


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _refuse_newer(connection: Connection, script: ScriptDirectory) -> str | None:
    current = MigrationContext.configure(connection).get_current_revision()
    known = {revision.revision for revision in script.walk_revisions()}
    if current is not None and current not in known:
        raise SchemaUnusable(
            f"The database schema is newer ({current}) than this version of Palimpsest knows "
            f"({script.get_current_head()}): upgrade Palimpsest, or restore the database's earlier backup."
        )
    return current


def _refuse_missing_vector(connection: Connection) -> None:
    available = connection.exec_driver_sql(
        "SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS installed,"
        " (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS available"
    ).one()
    if available.installed is None and available.available is None:
        raise SchemaUnusable(
            "The Postgres server has no pgvector: install pgvector 0.8 or newer on it "
            "(for instance the image pgvector/pgvector:pg17)."
        )
    if available.installed is None:
        connection.exec_driver_sql("CREATE EXTENSION vector")


def migrate(owner_url: str) -> tuple[str | None, str]:
    """Apply what is missing, under an advisory lock; the revisions before and after.

    Raises SchemaUnusable where the server is unreachable, lacks pgvector, or is ahead of this code.
    """
    url = make_url(owner_url.replace("postgres://", "postgresql://", 1)).set(drivername="postgresql+psycopg")
    config = _config()
    script = ScriptDirectory.from_config(config)
    try:
        with create_engine(url, poolclass=NullPool).connect() as connection:
            connection.exec_driver_sql(f"SELECT pg_advisory_lock({_LOCK})")
            connection.commit()
            before = _refuse_newer(connection, script)
            _refuse_missing_vector(connection)
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
            return before, script.get_current_head() or ""
    except OperationalError as problem:
        raise SchemaUnusable(f"The database cannot be reached: {str(problem.orig).strip()}") from problem
