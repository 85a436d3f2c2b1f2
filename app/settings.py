"""The settings, read once from the environment (and `.env`) and passed on from there."""

from pathlib import Path
from typing import Annotated, Literal

from platformdirs import user_data_path
from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


def _default_data_dir() -> Path:
    return user_data_path("palimpsest", appauthor=False)


def _named(name: str) -> AliasChoices:
    return AliasChoices(name, name.lower())


class Settings(BaseSettings):
    """Every setting with its default. The environment variable is the field's name in capitals.

    Times are in the unit that the name ends with. Secrets never appear in a representation or a log.
    """

    model_config = SettingsConfigDict(
        env_file=".env", extra="ignore", frozen=True, populate_by_name=True, env_ignore_empty=True
    )

    # Where the facts are.
    database_url: SecretStr | None = None
    worker_database_url: SecretStr | None = None
    migration_database_url: SecretStr | None = None
    data_dir: Path = Field(default_factory=_default_data_dir, validation_alias=_named("PALIMPSEST_DATA_DIR"))
    pool_size: Annotated[int, Field(ge=1, le=200)] = 10
    pool_timeout_s: Annotated[float, Field(gt=0, le=60)] = 5.0
    statement_timeout_ms: Annotated[int, Field(ge=100, le=600_000)] = 30_000

    # Where the service listens.
    host: str = Field(default="127.0.0.1", validation_alias=_named("PALIMPSEST_HOST"))
    port: Annotated[int, Field(ge=0, le=65_535)] = Field(default=8000, validation_alias=_named("PALIMPSEST_PORT"))
    root_path: str = ""
    max_body_bytes: Annotated[int, Field(ge=65_536)] = 2 * 1024 * 1024
    max_batch_bytes: Annotated[int, Field(ge=65_536)] = 64 * 1024 * 1024
    key_cache_s: Annotated[float, Field(ge=0, le=300)] = 2.0
    read_only: bool = False

    # How it speaks.
    log_format: Literal["console", "json"] = "console"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    # Embeddings: the local model unless both the address and the model are named.
    embedding_url: str | None = None
    embedding_model: str | None = None
    embedding_api_key: SecretStr | None = None
    embedding_dimensions: Annotated[int, Field(ge=1, le=4000)] | None = None
    embedding_timeout_s: Annotated[float, Field(gt=0, le=120)] = 5.0
    embedding_batch: Annotated[int, Field(ge=1, le=2048)] = 128
    embedding_query_prefix: str = ""
    embedding_document_prefix: str = ""

    # The model behind consolidation; without both of these the service decides by rules alone.
    llm_url: str | None = None
    llm_model: str | None = None
    llm_api_key: SecretStr | None = None
    llm_timeout_s: Annotated[float, Field(gt=0, le=600)] = 60.0

    # Recall.
    recall_deadline_ms: Annotated[int, Field(ge=10, le=60_000)] = 2_000

    # The worker's care for the memory.
    decay_half_life_h: Annotated[float, Field(gt=0)] = 720.0
    prune_below_weight: Annotated[float, Field(ge=0, le=1)] = 0.01
    prune_min_age_d: Annotated[float, Field(ge=0)] = 30.0
    idempotency_keep_h: Annotated[float, Field(gt=0)] = 24.0
