"""`palimpsest jobs start|list|show|watch|cancel|retry`"""

import asyncio
from typing import Annotated, get_args
from uuid import UUID

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from app import worker
from app.auth import DEVELOPMENT_NAMESPACE, ROLES, Caller, Scopes
from app.cli.databases import DataDir, Misconfigured, connected, opened, read_settings, run_once
from app.db import Database, Row
from app.settings import Settings
from app.upkeep import queries, service
from app.upkeep.jobs import KindName
from app.upkeep.router import job_out
from app.upkeep.schemas import JobIn

_LOOK_EVERY_S = 0.3
_ENDED = frozenset({"succeeded", "failed", "cancelled"})
_MOST_SHOWN = 200

jobs = typer.Typer(help="Start the worker's jobs, and see how they fare.", no_args_is_help=True)

Namespace = Annotated[str, typer.Option(help="The tenant whose facts the job works on.")]
JobId = Annotated[UUID, typer.Argument(help="The job's id, as `jobs list` shows it.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


@jobs.command()
def start(
    kind: Annotated[str, typer.Argument(metavar="|".join(get_args(KindName)), help="What to do.")],
    scope: Annotated[str | None, typer.Option(help="One scope instead of all.", show_default=False)] = None,
    namespace: Namespace = DEVELOPMENT_NAMESPACE,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; list what a run would do.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="For review: bring back what fails.")] = False,
    propose: Annotated[bool, typer.Option("--propose", help="For consolidate: keep proposals for approval.")] = False,
    wait: Annotated[bool, typer.Option(help="Work along until it has ended.")] = True,
    data_dir: DataDir = None,
) -> None:
    """Start a job and follow it. Without a running service, this command does the work itself."""
    try:
        mode = "propose" if propose else "apply"
        wanted = JobIn.model_validate({"kind": kind, "scope": scope, "dry_run": dry_run, "apply": apply, "mode": mode})
    except ValidationError as error:
        first = error.errors()[0]
        where = f"{first['loc'][0]}: " if first["loc"] else ""
        raise Misconfigured(f"{where}{first['msg']}") from None
    with opened(read_settings(data_dir=data_dir)) as settings:
        row = run_once(settings, "jobs", lambda conn: service.start(conn, _caller(namespace), wanted, None))
        if wait:
            row = _follow(settings, namespace, row)
            _print_findings(_findings(settings, namespace, row))
    _conclude(row)


@jobs.command("list")
def list_jobs(
    namespace: Namespace = DEVELOPMENT_NAMESPACE, *, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """List the namespace's latest jobs, newest first, those of the schedule included."""
    with opened(read_settings(data_dir=data_dir)) as settings:
        rows = run_once(
            settings,
            "jobs",
            lambda conn: queries.runs(
                conn, namespace, filters={}, sight="everything", seen={}, after=None, limit=_MOST_SHOWN
            ),
        )
    if as_json:
        for row in rows:
            typer.echo(job_out(row).model_dump_json())
        return
    table = Table("id", "kind", "scope", "status", "counts", "asked by", "when", "error")
    table.columns[0].no_wrap = True
    for row in rows:
        status = f"{row['status']} (dry run)" if row["dry_run"] else row["status"]
        table.add_row(
            str(row["id"]), row["kind"], row["scope"] or "all", status,
            _counts(row), row["requested_by"], f"{row['created_at']:%Y-%m-%d %H:%M}", row["error"] or "",
        )  # fmt: skip
    Console().print(table)


@jobs.command()
def show(
    job_id: JobId, namespace: Namespace = DEVELOPMENT_NAMESPACE, *, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Show a job and what it did, or would do."""
    with opened(read_settings(data_dir=data_dir)) as settings:
        row = run_once(settings, "jobs", lambda conn: service.visible(conn, _caller(namespace), job_id))
        found = _findings(settings, namespace, row)
    typer.echo(job_out(row).model_dump_json(indent=None if as_json else 2))
    if not as_json:
        _print_findings(found)


@jobs.command()
def watch(job_id: JobId, namespace: Namespace = DEVELOPMENT_NAMESPACE, data_dir: DataDir = None) -> None:
    """Follow a job until it has ended, and work along."""
    with opened(read_settings(data_dir=data_dir)) as settings:
        row = run_once(settings, "jobs", lambda conn: service.visible(conn, _caller(namespace), job_id))
        row = _follow(settings, namespace, row)
    _conclude(row)


@jobs.command()
def cancel(job_id: JobId, namespace: Namespace = DEVELOPMENT_NAMESPACE, data_dir: DataDir = None) -> None:
    """Cancel a job that waits, or stop one that runs."""
    with opened(read_settings(data_dir=data_dir)) as settings:
        _conclude(run_once(settings, "jobs", lambda conn: service.cancel(conn, _caller(namespace), job_id, None)))


@jobs.command()
def retry(job_id: JobId, namespace: Namespace = DEVELOPMENT_NAMESPACE, data_dir: DataDir = None) -> None:
    """Queue a job again that failed or was cancelled."""
    with opened(read_settings(data_dir=data_dir)) as settings:
        _conclude(run_once(settings, "jobs", lambda conn: service.retry(conn, _caller(namespace), job_id, None)))


def _caller(namespace: str) -> Caller:
    everything = Scopes.parse(["*"])
    return Caller(namespace, "cli", frozenset(ROLES), everything, everything, "system")


def _follow(settings: Settings, namespace: str, row: Row) -> Row:
    """Show a job's progress until it has ended; this process works along where it may."""

    async def follow() -> Row:
        stop = asyncio.Event()
        working = asyncio.create_task(worker.run(settings, stop)) if settings.worker_database_url else None
        try:
            async with connected(settings, "jobs") as database:
                with _bar() as bar:
                    return await _until_ended(database, bar, namespace, row)
        finally:
            stop.set()
            if working is not None:
                await working

    return asyncio.run(follow())


def _bar() -> Progress:
    return Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=Console(stderr=True),
    )  # fmt: skip


async def _until_ended(database: Database, bar: Progress, namespace: str, row: Row) -> Row:
    shown = bar.add_task(row["kind"], total=None)
    while row["status"] not in _ENDED:
        await asyncio.sleep(_LOOK_EVERY_S)
        async with database.reading() as conn:
            row = await service.visible(conn, _caller(namespace), row["id"])
        progress = row["progress"]
        description = f"{row['kind']}: {row['error'] or row['status']}"
        bar.update(shown, completed=progress.get("done", 0), total=progress.get("total"), description=description)
    return row


def _findings(settings: Settings, namespace: str, row: Row) -> list[Row]:
    return run_once(
        settings,
        "jobs",
        lambda conn: queries.findings(
            conn, namespace, row["id"], sight="everything", seen={}, after=0, limit=_MOST_SHOWN + 1
        ),
    )


def _print_findings(found: list[Row]) -> None:
    if not found:
        return
    table = Table("action", "fact", "scope", "rule")
    for item in found[:_MOST_SHOWN]:
        table.add_row(item["action"], str(item["fact_id"] or ""), item["scope"] or "", item["rule"] or "")
    Console().print(table)
    if len(found) > _MOST_SHOWN:
        typer.echo(f"These are the first {_MOST_SHOWN}; GET /v1/jobs/{{id}}/findings lists them all.")


def _counts(row: Row) -> str:
    return ", ".join(f"{name} {number}" for name, number in row["counts"].items())


def _conclude(row: Row) -> None:
    said = f"The job {row['kind']} {row['id']} is {row['status']}"
    counts = _counts(row)
    typer.echo(f"{said}: {counts}" if counts else said)
    if row["status"] == "failed":
        raise Misconfigured(row["error"] or "The job failed.")
