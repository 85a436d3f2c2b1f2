"""The tables of jobs: a run, and what it found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Identity,
    Integer,
    MetaData,
    Table,
    Text,
    Uuid,
    literal_column,
)
from sqlalchemy.dialects.postgresql import JSONB

_METADATA = MetaData()
_TIME = TIMESTAMP(timezone=True)
job_runs = Table(
    "job_runs",
    _METADATA,
    Column("namespace", Text, primary_key=True),
    Column("id", Uuid, primary_key=True),
    Column("kind", Text),
    Column("scope", Text),
    Column("status", Text),
    Column("dry_run", Boolean),
    Column("automatic", Boolean),
    Column("parameters", JSONB),
    Column("requested_by", Text),
    Column("request_id", Text),
    Column("counts", JSONB),
    Column("progress", JSONB),
    Column("attempts", Integer),
    Column("attempts_allowed", Integer),
    Column("postponed", Integer),
    Column("calls", BigInteger),
    Column("tokens", BigInteger),
    Column("error", Text),
    Column("cancel_requested", Boolean),
    Column("lease_until", _TIME),
    Column("created_at", _TIME),
    Column("started_at", _TIME),
    Column("finished_at", _TIME),
)
job_findings = Table(
    "job_findings",
    _METADATA,
    Column("namespace", Text, primary_key=True),
    Column("run_id", Uuid, primary_key=True),
    Column("position", BigInteger, Identity(always=True), primary_key=True),
    Column("action", Text),
    Column("scope", Text),
    Column("fact_id", Uuid),
    Column("other_id", Uuid),
    Column("rule", Text),
    Column("detail", JSONB),
)


def word(text: str) -> ColumnElement[str]:
    """A fixed word in a statement."""
    return literal_column(f"'{text}'", Text)


ACTIVE = job_runs.c.status.in_([word("queued"), word("running")])


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a run did, or a dry run would do. `detail` holds no text of a fact."""

    action: str
    fact_id: UUID | None = None
    other_id: UUID | None = None
    scope: str | None = None
    rule: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
