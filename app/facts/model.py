"""The doors to the facts, declared on the views: the table behind them has no name here."""

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Boolean,
    Column,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR
from sqlalchemy.types import UserDefinedType

METADATA = MetaData()
TIME = TIMESTAMP(timezone=True)


class Vector(UserDefinedType[object]):
    """pgvector's type; values are numpy arrays, which psycopg binds once pgvector is registered."""

    cache_ok = True

    def __init__(self, dimensions: int | None = None, *, half: bool = False) -> None:
        self.dimensions = dimensions
        self.half = half

    def get_col_spec(self, **_: object) -> str:
        name = "halfvec" if self.half else "vector"
        return name if self.dimensions is None else f"{name}({self.dimensions})"


def _fact_columns() -> list[Column[object]]:
    return [
        Column("namespace", Text, primary_key=True),
        Column("id", Uuid, primary_key=True),
        Column("chain_id", Uuid),
        Column("scope", Text),
        Column("agent", Text),
        Column("kind", Text),
        Column("subject", Text),
        Column("content", Text),
        Column("content_hash", LargeBinary),
        Column("source_tier", Text),
        Column("source_ref", Text),
        Column("source_quote", Text),
        Column("confidence", Double),
        Column("tags", ARRAY(Text)),
        Column("metadata", JSONB, key="metadata"),
        Column("valid_from", TIME),
        Column("valid_to", TIME),
        Column("observed_at", TIME),
        Column("recorded_at", TIME),
        Column("superseded_by", Uuid),
        Column("retired_at", TIME),
        Column("retired_as", Text),
        Column("ended_at", TIME),
        Column("stale_at", TIME),
        Column("embedding_profile", Text),
        Column("embedding", Vector()),
        Column("terms", TSVECTOR),
        Column("term_length", Integer),
    ]


VIEW = {"is_view": True}

facts_active = Table("facts_active", METADATA, *_fact_columns(), info=VIEW)
facts_history = Table("facts_history", METADATA, *_fact_columns(), Column("status", Text), info=VIEW)
fact_echoes = Table(
    "fact_echoes",
    METADATA,
    Column("namespace", Text, primary_key=True),
    Column("id", Uuid, primary_key=True),
    Column("scope", Text),
    Column("head_id", Uuid),
    Column("retired_at", TIME),
    Column("retired_as", Text),
    Column("source_tier", Text),
    Column("kind", Text),
    Column("embedding_profile", Text),
    Column("embedding", Vector()),
    Column("terms", TSVECTOR),
    Column("term_length", Integer),
    info=VIEW,
)

chains = Table(
    "chains",
    METADATA,
    Column("namespace", Text, primary_key=True),
    Column("chain_id", Uuid, primary_key=True),
    Column("head_id", Uuid, nullable=False),
)
links = Table(
    "links",
    METADATA,
    Column("namespace", Text, primary_key=True),
    Column("id", Uuid, primary_key=True),
    Column("source_id", Uuid, nullable=False),
    Column("target_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("reason", Text),
    Column("evidence", Text),
    Column("rule", Text),
    Column("conflict", Text),
    Column("detail", JSONB, nullable=False),
    Column("drawn_by", Text, nullable=False),
    Column("drawn_at", TIME, nullable=False),
    Column("demoted_at", TIME),
    Column("demoted_by", Text),
    Column("demotion_reason", Text),
    Column("resolved_at", TIME),
    Column("resolved_by", Text),
    Column("resolution", Text),
)
fact_use = Table(
    "fact_use",
    METADATA,
    Column("namespace", Text, primary_key=True),
    Column("fact_id", Uuid, primary_key=True),
    Column("weight", Double, nullable=False),
    Column("access_count", BigInteger, nullable=False),
    Column("last_accessed_at", TIME),
    Column("observed_count", BigInteger, nullable=False),
    Column("last_observed_at", TIME, nullable=False),
    Column("pinned", Boolean, nullable=False),
)
observations = Table(
    "observations",
    METADATA,
    Column("namespace", Text, primary_key=True),
    Column("id", Uuid, primary_key=True),
    Column("fact_id", Uuid, nullable=False),
    Column("agent", Text),
    Column("source_tier", Text, nullable=False),
    Column("source_ref", Text),
    Column("source_quote", Text),
    Column("confidence", Double),
    Column("tags", ARRAY(Text), nullable=False),
    Column("metadata", JSONB, key="metadata", nullable=False),
    Column("observed_at", TIME, nullable=False),
    Column("recorded_at", TIME, nullable=False),
)
term_counts = Table(
    "term_counts",
    METADATA,
    Column("namespace", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("term", Text, nullable=False),
    Column("facts", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
)
