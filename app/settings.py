"""The settings, read once from the environment (and `.env`) and passed on from there."""

from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from platformdirs import user_data_path
from pydantic import AliasChoices, Field, SecretStr, field_validator, model_validator
from pydantic.fields import FieldInfo
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
        env_file=".env",
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        env_ignore_empty=True,
        use_attribute_docstrings=True,
    )

    # Where the facts are.
    database_url: SecretStr | None = None
    """Postgres 16 or newer with pgvector, as the role memory_api. Without it, Postgres is embedded."""
    worker_database_url: SecretStr | None = None
    """The same database as the role memory_worker. Without it, `serve` runs the API alone."""
    migration_database_url: SecretStr | None = None
    """The same database as its owner. Where it is set, `serve` brings the schema up to date first."""
    data_dir: Path = Field(default_factory=_default_data_dir, validation_alias=_named("PALIMPSEST_DATA_DIR"))
    """Where the embedded Postgres keeps everything; by default the user's data folder."""
    pool_size: Annotated[int, Field(ge=1, le=200)] = 10
    """The most database connections that one process opens for requests."""
    pool_timeout_s: Annotated[float, Field(gt=0, le=60)] = 5.0
    """How long a request waits for one of them before it is told to come back."""
    statement_timeout_ms: Annotated[int, Field(ge=100, le=600_000)] = 30_000
    """The longest that one statement may take."""

    # Where the service listens.
    host: str = Field(default="127.0.0.1", validation_alias=_named("PALIMPSEST_HOST"))
    """The address to listen on. Anything but a loopback address needs a key to exist."""
    port: Annotated[int, Field(ge=0, le=65_535)] = Field(default=8000, validation_alias=_named("PALIMPSEST_PORT"))
    """The port to listen on; 0 takes a free one."""
    root_path: str = ""
    """The prefix under which a proxy shows the service, such as /memory."""
    trusted_proxies: str = ""
    """Addresses or networks of proxies whose X-Forwarded headers count, with commas between; else none does."""
    max_body_bytes: Annotated[int, Field(ge=65_536)] = 2 * 1024 * 1024
    """The largest body of a request."""
    max_batch_bytes: Annotated[int, Field(ge=65_536)] = 64 * 1024 * 1024
    """The largest body of a batch."""
    key_cache_s: Annotated[float, Field(ge=0, le=300)] = 2.0
    """How long a key that was revoked by another process may still work here."""
    read_only: bool = False
    """Whether this process only reads, as from a standby server: not even accesses are counted."""

    # How it speaks.
    log_format: Literal["console", "json"] = "console"
    """`console` for people, `json` for collectors."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important lines that are still written."""

    # Embeddings: the local model unless both the address and the model are named.
    embedding_url: str | None = None
    """The base of an OpenAI-compatible API, such as https://api.openai.com/v1; needs EMBEDDING_MODEL."""
    embedding_model: str | None = None
    """The model's name there."""
    embedding_api_key: SecretStr | None = None
    """The key for it, where it wants one."""
    embedding_dimensions: Annotated[int, Field(ge=1, le=4000)] | None = None
    """The length to ask for, of models that let one choose."""
    embedding_timeout_s: Annotated[float, Field(gt=0, le=120)] = 5.0
    """The longest wait for embeddings, retries included."""
    embedding_batch: Annotated[int, Field(ge=1, le=2048)] = 128
    """The most texts in one request."""
    embedding_query_prefix: str = ""
    """What the model wants in front of a question."""
    embedding_document_prefix: str = ""
    """What the model wants in front of a text to be found."""

    # The model behind consolidation; without both of these the service decides by rules alone.
    llm_url: str | None = None
    """The base of an OpenAI-compatible chat API; needs LLM_MODEL."""
    llm_model: str | None = None
    """The model's name there."""
    llm_api_key: SecretStr | None = None
    """The key for it, where it wants one."""
    llm_timeout_s: Annotated[float, Field(gt=0, le=600)] = 60.0
    """The longest wait for one answer."""
    llm_calls_per_run: Annotated[int, Field(ge=1)] = 100
    """The most calls that one run of a job makes."""
    llm_tokens_per_run: Annotated[int, Field(ge=1)] = 400_000
    """The tokens after which a run makes no further call."""
    llm_calls_per_day: Annotated[int, Field(ge=1)] = 1_000
    """The most calls within 24 hours for each namespace."""
    llm_tokens_per_day: Annotated[int, Field(ge=1)] = 4_000_000
    """The tokens within 24 hours after which a namespace gets no further call."""
    consolidate_min_facts: Annotated[int, Field(ge=1)] = 20
    """How many new facts a scope must have before consolidation looks at it."""
    consolidate_max_retirements: Annotated[int, Field(ge=0)] = 10
    """The most facts that one run may retire, in namespaces that let it retire any."""

    # Recall.
    recall_deadline_ms: Annotated[int, Field(ge=10, le=60_000)] = 2_000
    """When recall stops waiting for an arm and answers with what it has."""

    # The worker's care for the memory.
    decay_half_life_h: Annotated[float, Field(gt=0)] = 720.0
    """After how long without a use a fact's weight has halved."""
    prune_below_weight: Annotated[float, Field(ge=0, le=1)] = 0.01
    """The weight below which a retired or unused fact is no longer worth storing."""
    prune_min_age_d: Annotated[float, Field(ge=0)] = 30.0
    """No fact younger than this is pruned."""
    decay_every_h: Annotated[float, Field(ge=0, le=168)] = 6.0
    """How often each namespace's weights are brought up to date; 0 leaves it to whoever asks."""
    prune_every_h: Annotated[float, Field(ge=0, le=168)] = 24.0
    """How often each namespace is pruned; 0 leaves it to whoever asks."""
    review_every_h: Annotated[float, Field(ge=0, le=8760)] = 168.0
    """How often the retirements of each namespace are tested again; 0 leaves it to whoever asks."""
    worker_concurrency: Annotated[int, Field(ge=1, le=32)] = 4
    """How many jobs one worker runs at the same time."""
    job_lease_s: Annotated[float, Field(ge=1, le=600)] = 30.0
    """How long after a worker's death its jobs are taken up by another one."""
    job_keep_d: Annotated[float, Field(ge=8)] = 30.0
    """How long a job that has ended is still shown."""
    idempotency_keep_h: Annotated[float, Field(gt=0)] = 24.0
    """How long an Idempotency-Key is remembered."""

    @field_validator("embedding_url", "llm_url")
    @classmethod
    def _must_be_http(cls, url: str | None) -> str | None:
        parts = urlsplit(url.strip()) if url else None
        if parts and (parts.scheme not in {"http", "https"} or not parts.hostname):
            raise ValueError("must start with http:// or https:// and name a host")
        return url

    @field_validator("trusted_proxies")
    @classmethod
    def _must_be_networks(cls, listed: str) -> str:
        for proxy in filter(None, map(str.strip, listed.split(","))):
            ip_network(proxy)
        return listed

    @model_validator(mode="after")
    def _must_be_whole(self) -> Self:
        """Half a configuration would be taken for none, in silence."""
        for name in ("embedding", "llm"):
            if bool(getattr(self, f"{name}_url")) != bool(getattr(self, f"{name}_model")):
                raise ValueError(f"{name.upper()}_URL and {name.upper()}_MODEL must be set together")
        return self


def variable_of(name: str, field: FieldInfo) -> str:
    """The environment variable that sets the field."""
    alias = field.validation_alias
    return str(alias.choices[0]) if isinstance(alias, AliasChoices) else name.upper()
