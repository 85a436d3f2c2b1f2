"""`palimpsest keys create|list|revoke`"""

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import typer
from pydantic import TypeAdapter, ValidationError
from rich.console import Console
from rich.table import Table

from app.access import queries, service
from app.access.schemas import KeyIn, KeyOut, NamespaceName
from app.auth import DEVELOPMENT_NAMESPACE, ROLES, TIERS
from app.cli.databases import DataDir, Misconfigured, opened, read_settings, run_once
from app.db import Connection, Row

_ACTOR = "cli"
_PAGE = 200

keys = typer.Typer(help="Make, list and revoke the keys that agents call with.", no_args_is_help=True)

Namespace = Annotated[str, typer.Option(help="The tenant whose facts the key opens.")]


Roles = Annotated[
    list[str], typer.Option("--role", metavar="|".join(ROLES), help="What it may do; give it again for more.")
]
Reads = Annotated[list[str], typer.Option("--read-scope", help="A scope it may read: a name, `prefix/*`, or `*`.")]
Writes = Annotated[list[str], typer.Option("--write-scope", help="A scope it may write, likewise.")]
HighestTier = Annotated[str, typer.Option(metavar="|".join(TIERS), help="The highest trust that its word gets.")]
Expiry = Annotated[
    str | None,
    typer.Option(help="From when on it no longer works, such as 2027-01-01T00:00:00Z.", show_default=False),
]
_USUAL = ["read", "write"]
_ALL = ["*"]


@keys.command()
def create(
    name: Annotated[str, typer.Option(help="Who uses it; the audit trail shows it.")],
    namespace: Namespace = DEVELOPMENT_NAMESPACE,
    roles: Roles = _USUAL,
    read_scopes: Reads = _ALL,
    write_scopes: Writes = _ALL,
    max_tier: HighestTier = "user",
    expires_at: Expiry = None,
    *,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the key and nothing else.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Make a key and print it, this once. The first one ends the open development mode."""
    wanted = _key(
        name=name,
        roles=roles,
        read_scopes=read_scopes,
        write_scopes=write_scopes,
        max_tier=max_tier,
        expires_at=expires_at,
    )
    tenant = _checked(namespace)
    with opened(read_settings(data_dir=data_dir)) as settings:
        made = run_once(settings, "keys", lambda conn: service.create_key(conn, tenant, wanted, _ACTOR))
    typer.echo(made.text)
    if not quiet:
        typer.echo(
            f"That is the key {name!r} of the namespace {tenant!r}. It is shown this once: "
            "the service keeps only a hash of it.",
            err=True,
        )


@keys.command("list")
def list_keys(
    namespace: Namespace = DEVELOPMENT_NAMESPACE,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    data_dir: DataDir = None,
) -> None:
    """List a namespace's keys, oldest first, without their secrets."""
    tenant = _checked(namespace)
    with opened(read_settings(data_dir=data_dir)) as settings:
        found = [KeyOut(**row) for row in run_once(settings, "keys", lambda conn: _all(conn, tenant))]
    if as_json:
        for key in found:
            typer.echo(key.model_dump_json())
    else:
        Console().print(_table(found))


@keys.command()
def revoke(
    key_id: Annotated[UUID, typer.Argument(help="The key's id, as `keys list` shows it.")],
    namespace: Namespace = DEVELOPMENT_NAMESPACE,
    data_dir: DataDir = None,
) -> None:
    """Revoke a key. Running services refuse it within KEY_CACHE_S seconds."""
    tenant = _checked(namespace)
    with opened(read_settings(data_dir=data_dir)) as settings:
        row = run_once(settings, "keys", lambda conn: service.revoke_key(conn, tenant, key_id, _ACTOR))
    typer.echo(f"The key {row['name']!r} of the namespace {tenant!r} is revoked.")


def _key(**given: Any) -> KeyIn:
    try:
        return KeyIn(**given)
    except ValidationError as error:
        first = error.errors()[0]
        option = str(first["loc"][0]).removesuffix("s").replace("_", "-")
        said = first["msg"].removeprefix("Value error, ").removesuffix(".")
        raise Misconfigured(f"--{option}: {said}.") from None


def _checked(namespace: str) -> str:
    try:
        return TypeAdapter(NamespaceName).validate_python(namespace)
    except ValidationError:
        raise Misconfigured(
            "--namespace: up to 100 letters, digits, dots, dashes and underscores, a letter or digit first."
        ) from None


async def _all(conn: Connection, namespace: str) -> list[Row]:
    found: list[Row] = []
    page = await queries.list_keys(conn, namespace, after=None, limit=_PAGE)
    while page:
        found += page
        last = page[-1]
        page = await queries.list_keys(conn, namespace, after=(last["created_at"], last["id"]), limit=_PAGE)
    return found


def _table(found: list[KeyOut]) -> Table:
    table = Table("id", "name", "state", "roles", "reads", "writes", "tier", "made")
    table.columns[0].no_wrap = True
    for key in found:
        table.add_row(
            str(key.id),
            key.name,
            _state(key),
            *(", ".join(names) for names in (key.roles, key.read_scopes, key.write_scopes)),
            key.max_tier,
            f"{key.created_at:%Y-%m-%d}",
        )
    return table


def _state(key: KeyOut) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is None:
        return "active"
    return "expired" if key.expires_at <= datetime.now(UTC) else f"until {key.expires_at:%Y-%m-%d}"
