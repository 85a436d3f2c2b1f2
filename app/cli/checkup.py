"""`palimpsest checkup`"""

from typing import Annotated

import typer
from rich.console import Console

from app.auth import DEVELOPMENT_NAMESPACE, Scopes
from app.cli.databases import DataDir, opened, read_settings, run_once
from app.facts.visibility import sight_of
from app.upkeep.checkup import service

_COLOURS = {"damage": "bold red", "warning": "yellow"}

_Namespace = Annotated[str, typer.Option(help="The tenant whose memory to look at.")]
_Scopes = Annotated[
    list[str] | None, typer.Option("--scope", help="Only this scope; give it again for more.", show_default=False)
]
_AsJson = Annotated[bool, typer.Option("--json", help="One JSON object, as GET /v1/checkup answers it.")]


def checkup(
    namespace: _Namespace = DEVELOPMENT_NAMESPACE,
    scopes: _Scopes = None,
    *,
    as_json: _AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Show how healthy the memory is and what is left to do. Exit code 1 where there is damage or a warning."""
    sight = sight_of(Scopes.parse(["*"]), scopes)
    with opened(read_settings(data_dir=data_dir)) as settings:
        report = run_once(settings, "checkup", lambda conn: service.checkup(conn, namespace, sight))
    if as_json:
        typer.echo(report.model_dump_json())
    else:
        console = Console(soft_wrap=True)
        for line in service.lines(report):
            console.print(line, style=_COLOURS.get(line.partition(" ")[0]), markup=False, highlight=False)
    if not report.healthy:
        raise typer.Exit(1)
