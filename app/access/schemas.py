"""Keys and namespaces on the wire."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.auth import Role, Tier
from app.text import Instant, NonBlank

Policy = Literal["explicit", "suggest", "auto_key", "auto_inferred"]
NamespaceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Pattern = Annotated[NonBlank, Field(max_length=200)]


class NamespaceOut(BaseModel):
    """A tenant, and what a write may do in it without being told."""

    name: str
    policy: Policy
    require_evidence: bool
    closed_vocabulary: bool
    consolidate_may_retire: bool


class NamespacePatch(BaseModel):
    """What to change; what is left out stays as it is."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"policy": "auto_key", "require_evidence": False}]}
    )

    policy: Policy = Field(
        default="auto_key",
        description="`explicit`: nothing retires without being told. `suggest`: candidates come back as conflicts. "
        "`auto_key`: a state at the same address may. `auto_inferred`: the same statement with another value may.",
    )
    require_evidence: bool = Field(default=False, description="Whether every retirement needs a verbatim quote.")
    closed_vocabulary: bool = Field(default=False, description="Whether only registered subjects are taken.")
    consolidate_may_retire: bool = Field(
        default=False, description="Whether consolidation may retire, within its gates, instead of proposing."
    )


class KeyIn(BaseModel):
    """A key to make. Its namespace is the caller's."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"name": "scheduler", "roles": ["read", "write"], "read_scopes": ["shared", "team/*"]}]
        },
    )

    name: Annotated[NonBlank, Field(max_length=100)] = Field(description="Who uses it; the audit trail shows it.")
    roles: Annotated[list[Role], Field(min_length=1, max_length=4)] = Field(
        default=["read", "write"],
        description="`read`, `write`, `curate` (restore, resolve, demote) and `admin` (keys, settings).",
    )
    read_scopes: Annotated[list[Pattern], Field(min_length=1, max_length=100)] = Field(
        default=["*"], description="Exact scopes, `prefix/*`, or `*` for all."
    )
    write_scopes: Annotated[list[Pattern], Field(min_length=1, max_length=100)] = Field(
        default=["*"], description="Exact scopes, `prefix/*`, or `*` for all."
    )
    max_tier: Tier = Field(default="user", description="The highest tier of trust that its word gets.")
    expires_at: Instant | None = Field(default=None, description="From when on it no longer works.")


class KeyOut(BaseModel):
    """A key, without the secret."""

    id: UUID
    namespace: str
    name: str
    prefix: str
    roles: list[Role]
    read_scopes: list[str]
    write_scopes: list[str]
    max_tier: Tier
    created_at: Instant
    expires_at: Instant | None
    revoked_at: Instant | None


class NewKeyOut(KeyOut):
    """A key with its text, which is shown this once."""

    key: str
