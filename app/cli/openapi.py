"""`palimpsest openapi`"""

import json
from pathlib import Path
from typing import Annotated

import typer

from app.main import create_app
from app.settings import Settings


class OutOfDate(Exception):
    """The file is not what the code describes; the text is one sentence for a terminal."""


def openapi(
    output: Annotated[Path | None, typer.Option(help="Write it to this file.", show_default=False)] = None,
    check: Annotated[
        Path | None, typer.Option(help="Fail unless this file holds just this.", show_default=False)
    ] = None,
) -> None:
    """Print the description of the API, as /openapi.json serves it with the default settings."""
    described = describe()
    if check is not None and (not check.exists() or check.read_text(encoding="utf-8") != described):
        raise OutOfDate(f"{check} is out of date: write it anew with `palimpsest openapi --output {check}`.")
    if output is not None:
        output.write_text(described, encoding="utf-8")
    if check is None and output is None:
        typer.echo(described, nl=False)


def describe() -> str:
    """The OpenAPI document as text; no setting of this machine is in it."""
    document = create_app(Settings.model_construct()).openapi()
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
