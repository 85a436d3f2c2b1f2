"""The settings of a command, and the database that they lead to: brought up, checked, and put away again."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from pydantic import SecretStr, ValidationError
from pydantic_core import ErrorDetails

from app import embedded, schema
from app.db import Connection, Database, connect
from app.settings import Settings, variable_of

T = TypeVar("T")

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Where the embedded Postgres keeps everything.", show_default=False),
]


class Misconfigured(Exception):
    """The settings cannot be used; the text is one sentence for a terminal."""


def read_settings(**given: Any) -> Settings:
    """The settings from the environment and `.env`; what was given on the command line wins. Raises Misconfigured."""
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise Misconfigured("; ".join(map(_complaint, error.errors())) + ".") from None
    except UnicodeDecodeError:
        raise Misconfigured("The file .env in this folder is not UTF-8.") from None
    except PermissionError as error:
        raise Misconfigured(f"The file {error.filename} may not be read.") from None


def _complaint(error: ErrorDetails) -> str:
    said = error["msg"].removeprefix("Value error, ").replace("Input should", "should")
    if not error["loc"]:
        return said
    name = str(error["loc"][0])
    field = Settings.model_fields.get(name)
    return f"{variable_of(name, field) if field else name.upper()}: {said}"


@contextmanager
def opened(settings: Settings, *, migrating: bool = False) -> Iterator[Settings]:
    """The settings, with the addresses of a database that is up and has the schema that this code knows.

    Without DATABASE_URL that is the embedded one, which runs as long as somebody has it open, and is always
    brought up to date; a given one only with `migrating`, and if MIGRATION_DATABASE_URL names its owner.
    Raises Misconfigured, EmbeddedUnavailable or SchemaUnusable.
    """
    if settings.database_url is None:
        _refuse_orphans(settings, "worker_database_url", "migration_database_url")
        with _embedded(settings) as ready:
            yield ready
        return
    if migrating and settings.migration_database_url:
        schema.migrate(settings.migration_database_url.get_secret_value())
    schema.require_current(settings.database_url.get_secret_value(), "DATABASE_URL")
    if settings.worker_database_url:
        schema.require_current(settings.worker_database_url.get_secret_value(), "WORKER_DATABASE_URL")
    yield settings


@contextmanager
def opened_for_work(settings: Settings) -> Iterator[Settings]:
    """The same for a process that is a worker and nothing else."""
    if settings.worker_database_url is None:
        _refuse_orphans(settings, "database_url", "migration_database_url")
        with _embedded(settings) as ready:
            yield ready
        return
    schema.require_current(settings.worker_database_url.get_secret_value(), "WORKER_DATABASE_URL")
    yield settings


@contextmanager
def opened_for_migration(settings: Settings) -> Iterator[str]:
    """The address of the database as its owner, however old or empty it is."""
    if settings.migration_database_url:
        yield settings.migration_database_url.get_secret_value()
        return
    _refuse_orphans(settings, "database_url", "worker_database_url")
    with embedded.running(settings.data_dir) as cluster:
        yield cluster.owner_dsn


@contextmanager
def _embedded(settings: Settings) -> Iterator[Settings]:
    with embedded.running(settings.data_dir) as cluster:
        schema.migrate(cluster.owner_dsn)
        yield settings.model_copy(
            update={
                "data_dir": cluster.data_dir,
                "database_url": SecretStr(cluster.api_dsn),
                "worker_database_url": SecretStr(cluster.worker_dsn),
                "migration_database_url": SecretStr(cluster.owner_dsn),
            }
        )


def _refuse_orphans(settings: Settings, *names: str) -> None:
    """Some addresses of a server, but not the one that is needed: the embedded one is not what was meant."""
    present = [name.upper() for name in names if getattr(settings, name) is not None]
    addresses = {"DATABASE_URL", "WORKER_DATABASE_URL", "MIGRATION_DATABASE_URL"}
    if present:
        (missing,) = addresses - {name.upper() for name in names}
        raise Misconfigured(
            f"{' and '.join(present)} is set without {missing}: set that too, or none for the embedded Postgres."
        )


def run_once(settings: Settings, command: str, work: Callable[[Connection], Awaitable[T]]) -> T:
    """Do `work` in one transaction, as the API's role; Postgres shows the connection by the command's name."""

    async def run() -> T:
        async with connected(settings, command) as database:
            return await database.run(work)

    return asyncio.run(run())


def connected(settings: Settings, command: str) -> AbstractAsyncContextManager[Database]:
    """One connection as the API's role, for the settings of an open database."""
    if settings.database_url is None:
        raise ValueError("the database was not opened")
    return connect(
        settings.database_url.get_secret_value(),
        size=1,
        timeout_s=settings.pool_timeout_s,
        statement_timeout_ms=settings.statement_timeout_ms,
        name=f"palimpsest-{command}",
    )
