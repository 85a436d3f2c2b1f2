"""`palimpsest`: the tree of commands, and what a person reads when one of them cannot do its work."""

import sys
from importlib.metadata import version as version_of

import psycopg
import typer

from app.cli.checkup import checkup
from app.cli.databases import Misconfigured
from app.cli.jobs import jobs
from app.cli.keys import keys
from app.cli.migrate import migrate
from app.cli.openapi import OutOfDate, openapi
from app.cli.serve import serve, worker
from app.db import PrivilegedRole
from app.embedded import EmbeddedUnavailable
from app.errors import AppError
from app.schema import SchemaUnusable
from app.serving import CannotListen
from app.telemetry import configure_logging

# Each of these says in one sentence what is wrong and what to do. Anything else is a bug, and shows its traceback.
_EXPLAINED = (
    AppError,
    CannotListen,
    EmbeddedUnavailable,
    Misconfigured,
    OutOfDate,
    PrivilegedRole,
    SchemaUnusable,
)

tree = typer.Typer(
    help="Memory for AI agents that never hands a retired fact back as if it were current.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for command in (serve, worker, migrate, checkup, openapi):
    tree.command()(command)
tree.add_typer(keys, name="keys")
tree.add_typer(jobs, name="jobs")


@tree.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"palimpsest {version_of('palimpsest')}")


def main() -> None:
    """Run the command that the arguments name; exit code 1 and one sentence where it cannot do its work."""
    # A library that we import opens the log at INFO; until a service runs, only trouble is worth a line.
    configure_logging(level="warning")
    try:
        tree()
    except _EXPLAINED as error:
        _fail(str(error))
    except psycopg.OperationalError as error:
        _fail(f"The database does not answer: {error}.")


def _fail(sentence: str) -> None:
    typer.secho(f"Error: {' '.join(sentence.split())}", fg="red", err=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
