"""`palimpsest serve` and `palimpsest worker`"""

from contextlib import closing
from functools import partial
from importlib.metadata import version
from typing import Annotated

import typer
from psycopg.conninfo import conninfo_to_dict
from rich.console import Console

from app import serving
from app.cli.databases import DataDir, opened, opened_for_work, read_settings
from app.serving import Listening
from app.settings import Settings
from app.telemetry import configure_logging

_console = Console(highlight=False, soft_wrap=True)


def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[
        int | None, typer.Option(help="The port to listen on; 0 takes a free one.", show_default="8000")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Run the API and the worker: with no configuration, on an embedded Postgres.

    With DATABASE_URL, on that server; the worker runs along if WORKER_DATABASE_URL is set, and the schema is
    brought up to date first if MIGRATION_DATABASE_URL is.
    """
    given = read_settings(host=host, port=port, data_dir=data_dir)
    with closing(serving.bind(given.host, given.port)) as listener, opened(given, migrating=True) as settings:
        configure_logging(settings.log_format, settings.log_level)
        announce = partial(_announce, settings, embedded=given.database_url is None)
        serving.run(serving.serve(settings, listener, announce))


def worker(data_dir: DataDir = None) -> None:
    """Run a worker alone, on WORKER_DATABASE_URL or beside the embedded Postgres; any number may run."""
    given = read_settings(data_dir=data_dir)
    with opened_for_work(given) as settings:
        configure_logging(settings.log_format, settings.log_level)
        place = _place(settings, "worker_database_url", embedded=given.worker_database_url is None)
        serving.run(serving.work(settings, lambda: _say(f"Palimpsest worker {version('palimpsest')} · data {place}")))


def _announce(settings: Settings, listening: Listening, *, embedded: bool) -> None:
    place = _place(settings, "database_url", embedded=embedded)
    url = listening.url
    _say(f"Palimpsest {version('palimpsest')} · API {url}/v1 · docs {url}/docs · data {place}")
    if settings.worker_database_url is None:
        _say("No worker runs here, since WORKER_DATABASE_URL is not set: run `palimpsest worker` beside it.")
    if listening.development:
        _say(
            "Development mode: no key was made yet, so everybody on this machine may do everything, "
            "in the namespace 'default'. `palimpsest keys create` ends it."
        )


def _place(settings: Settings, name: str, *, embedded: bool) -> str:
    """Where the data is, without anybody's password."""
    url = getattr(settings, name)
    if embedded or url is None:
        return str(settings.data_dir)
    given = conninfo_to_dict(url.get_secret_value().replace("postgresql+psycopg://", "postgresql://"))
    return f"{given.get('dbname') or 'default database'} at {given.get('host') or 'the local server'}"


def _say(line: str) -> None:
    _console.print(line, markup=False)
