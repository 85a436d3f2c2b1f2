"""Jobs on the wire."""

from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from app.access.schemas import NamespaceName
from app.facts.schemas import Scope
from app.text import Instant
from app.upkeep.jobs import KindName, Status


class JobIn(BaseModel):
    """A job to start."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"kind": "prune", "dry_run": True}, {"kind": "decay"}]}
    )

    kind: KindName = Field(
        description="`decay`: bring weights up to date. `prune`: remove what nobody has used for long. "
        "`consolidate`: digests, contradictions and classification, with an LLM. `review`: test retirements again. "
        "`reembed`: vectors of the present model for all facts. `embed_pending`: for those without. "
        "`rederive`: rebuild stale digests."
    )
    namespace: NamespaceName | None = Field(default=None, description="The key's own; it may be left out.")
    scope: Scope | None = Field(default=None, description="One scope; all of the namespace if left out.")
    dry_run: bool = Field(
        default=False, description="Change nothing, and list under `/findings` what a run would do now."
    )
    apply: bool = Field(default=False, description="For `review`: bring back what fails, instead of listing it.")
    mode: Literal["apply", "propose"] = Field(
        default="apply", description="For `consolidate`: `propose` keeps every proposal for somebody to approve."
    )

    @model_validator(mode="after")
    def _only_where_it_means_something(self) -> Self:
        if self.apply and self.kind != "review":
            raise PydanticCustomError("apply_is_for_review", "`apply` belongs to jobs of the kind `review`.")
        if self.mode == "propose" and self.kind != "consolidate":
            raise PydanticCustomError("mode_is_for_consolidate", "`mode` belongs to jobs of the kind `consolidate`.")
        return self


class Progress(BaseModel):
    """How far a job is, in the facts or pieces that its kind counts."""

    done: int
    total: int | None = Field(description="Null as long as it is not known.")


def _from_the_start(progress: object) -> object:
    """A run that has not begun has noted nothing yet."""
    return {"done": 0, "total": None} | progress if isinstance(progress, dict) else progress


class JobOut(BaseModel):
    """A job and how it fares."""

    id: UUID
    kind: KindName
    namespace: str
    scope: str | None
    status: Status
    dry_run: bool
    counts: dict[str, int] = Field(description="What was done so far, by name.")
    progress: Annotated[Progress, BeforeValidator(_from_the_start)]
    attempts: int = Field(description="How often it was begun; an attempt counts from its beginning.")
    calls: int = Field(description="Calls to the LLM, of all attempts.")
    tokens: int = Field(description="Tokens that these calls used.")
    error: str | None = Field(description="Why it failed, or why it waits for another attempt.")
    requested_by: str
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None


class FindingOut(BaseModel):
    """One thing that a job did, or that a dry run would do."""

    action: str = Field(description="What, such as `pruned` or, of a dry run, `prune`.")
    fact_id: UUID | None
    other_id: UUID | None = Field(description="The other fact that it is about, such as the successor.")
    scope: str | None
    rule: str | None
    detail: dict[str, Any]
