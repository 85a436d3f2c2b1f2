"""The shapes of facts on the wire."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from app.auth import Tier
from app.facts.addresses import normalise_subject
from app.facts.fact import ConflictKind
from app.text import Instant, Metadata, NonBlank

LARGEST_CONTENT = 20_000
LARGEST_BATCH = 1_000

Kind = Literal["state", "event", "note", "digest"]
WrittenKind = Literal["state", "event", "note"]
Status = Literal["active", "superseded", "amended", "forgotten", "expired", "scheduled", "stale"]
Outcome = Literal["created", "reaffirmed", "superseded"]


def _subject(value: str) -> str:
    normal = normalise_subject(value)
    if not normal:
        raise PydanticCustomError("blank", "Must hold at least one visible character.")
    return normal


def _real_number(value: object) -> object:
    if isinstance(value, bool | str):
        raise PydanticCustomError("float_type", "Must be a number between 0 and 1.")
    return value


Content = Annotated[NonBlank, Field(max_length=LARGEST_CONTENT)]
Scope = Annotated[NonBlank, Field(max_length=200)]
Subject = Annotated[NonBlank, Field(max_length=500), AfterValidator(_subject), Field(max_length=500)]
Agent = Annotated[NonBlank, Field(max_length=200)]
Tag = Annotated[NonBlank, Field(max_length=100)]
Reason = Annotated[NonBlank, Field(max_length=2_000)]
Evidence = Annotated[NonBlank, Field(max_length=LARGEST_CONTENT)]
Confidence = Annotated[float, BeforeValidator(_real_number), Field(ge=0, le=1, allow_inf_nan=False)]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SourceIn(_In):
    """Where the statement comes from."""

    tier: Tier | None = Field(
        default=None,
        description="How much the source is trusted: `system` > `user` > `observed` > `inferred`. "
        "At most the key's own; `observed` when left out.",
    )
    ref: Annotated[NonBlank, Field(max_length=2_000)] | None = Field(
        default=None, description="What it refers to: an address, a file, a message id."
    )
    quote: Evidence | None = Field(default=None, description="The words of the source, verbatim.")


class FactFields(_In):
    """What a statement may say about itself besides its text."""

    kind: WrittenKind | None = Field(
        default=None,
        description="`state`: one current answer at a time, needs a subject. `event`: happened, true for ever. "
        "`note`: unclassified. When left out: `state` with a subject, else `note`.",
    )
    subject: Subject | None = Field(
        default=None,
        description="The address of a state, such as `team.standup.time`. Case and Unicode form do not matter.",
    )
    agent: Agent | None = Field(default=None, description="Who writes.")
    source: SourceIn = Field(default_factory=SourceIn)
    confidence: Confidence | None = Field(default=None, description="How sure the writer is, 0 to 1.")
    tags: Annotated[list[Tag], Field(max_length=64)] | None = Field(default=None, description="Matched exactly.")
    metadata: Metadata | None = Field(default=None, description="Any JSON object of at most 16 KiB.")
    valid_from: Instant | None = Field(default=None, description="From when on it holds; now when left out.")
    valid_to: Instant | None = Field(default=None, description="From when on it no longer holds (half-open).")
    observed_at: Instant | None = Field(default=None, description="When it was observed; now when left out.")

    @model_validator(mode="after")
    def _window_is_forward(self) -> "FactFields":
        if self.valid_to and self.valid_from and self.valid_to <= self.valid_from:
            raise PydanticCustomError("window_empty", "`valid_to` must be later than `valid_from`.")
        return self


class RememberIn(FactFields):
    """A statement to remember."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "content": "Team standup is at 9:30 in the Oak room.",
                    "subject": "team.standup.time",
                    "scope": "shared",
                    "agent": "scheduler",
                    "source": {"tier": "user"},
                    "tags": ["calendar"],
                }
            ]
        }
    )

    content: Content = Field(description="The statement, 1 to 20,000 characters. It is never edited afterwards.")
    scope: Scope = Field(default="shared", description="Where it holds: a team, project, user or agent.")
    supersedes: Annotated[list[UUID], Field(max_length=100)] = Field(
        default_factory=list, description="Current facts that this one replaces. Needs a `reason`."
    )
    reason: Reason | None = Field(default=None, description="Why those facts no longer hold.")
    evidence: Evidence | None = Field(
        default=None, description="A quote that shows it, word for word from `content` or `source.quote`."
    )
    force: bool = Field(default=False, description="Retire a fact of a more trusted tier all the same.")

    @model_validator(mode="after")
    def _state_has_subject(self) -> "RememberIn":
        if self.kind == "state" and self.subject is None:
            raise PydanticCustomError("subject_required", "A `state` needs a `subject`: the address of its answer.")
        if self.supersedes and self.reason is None:
            raise PydanticCustomError("reason_required", "`supersedes` needs a `reason`: why they no longer hold.")
        return self


class SupersedeIn(FactFields):
    """What replaces a fact: new text, or `by` the id of a fact that is already current."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "content": "Team standup moved to 9:00 in the Oak room.",
                    "reason": "The stand-up was moved half an hour earlier.",
                    "evidence": "moved to 9:00",
                }
            ]
        }
    )

    content: Content | None = Field(default=None, description="The new statement.")
    by: UUID | None = Field(default=None, description="A current fact that already says it.")
    reason: Reason = Field(description="Which standing state ended, and why.")
    evidence: Evidence | None = Field(
        default=None, description="A quote that shows it, word for word from the new content or its source."
    )
    force: bool = Field(default=False, description="Retire although the replacement is older or less trusted.")

    @model_validator(mode="after")
    def _one_replacement(self) -> "SupersedeIn":
        if (self.content is None) == (self.by is None):
            raise PydanticCustomError("one_of", "Give either `content` (a new statement) or `by` (a fact's id).")
        described = self.model_fields_set - {"by", "reason", "evidence", "force"}
        if self.by is not None and described:
            raise PydanticCustomError(
                "not_with_by",
                "With `by` the fact exists already; leave out: {fields}.",
                {"fields": ", ".join(sorted(described))},
            )
        return self


class AmendIn(FactFields):
    """A merged text that keeps what was right and narrows or qualifies it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "content": "Deploys need approval, except for docs-only changes.",
                    "reason": "Docs-only changes were exempted.",
                }
            ]
        }
    )

    content: Content = Field(description="The merged statement.")
    folds: Annotated[list[UUID], Field(max_length=100)] = Field(
        default_factory=list, description="Further current facts that are folded in as well."
    )
    reason: Reason = Field(description="What was narrowed, and why.")
    evidence: Evidence | None = Field(default=None, description="A verbatim quote that shows it.")
    force: bool = Field(default=False, description="Fold in a fact of a more trusted tier all the same.")


class ForgetIn(_In):
    """Why a fact is retired without a replacement."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "The stand-up was cancelled for good."}]})

    reason: Reason = Field(description="Why it is forgotten; kept in the history.")


class RestoreIn(_In):
    """Why a retirement was wrong."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "It was retired by mistake."}]})

    reason: Reason = Field(description="Why the fact is current after all; kept in the history.")
    replace: bool = Field(default=False, description="Retire the fact that is current at the same subject by this one.")


class SourceOut(BaseModel):
    """Where the statement comes from."""

    tier: Tier
    ref: str | None
    quote: str | None


class FactOut(BaseModel):
    """A fact as it is read."""

    id: UUID
    namespace: str
    scope: str
    agent: str | None
    kind: Literal["state", "event", "note", "digest", "retraction"]
    subject: str | None
    content: str
    source: SourceOut
    confidence: float | None
    tags: list[str]
    metadata: dict[str, Any]
    valid_from: Instant
    valid_to: Instant | None
    observed_at: Instant
    recorded_at: Instant
    pinned: bool
    weight: float
    observed_count: int
    last_observed_at: Instant
    embedding: Literal["ready", "pending"] = Field(
        description="`pending` until its vector is there; it is found by its words at once."
    )
    status: Status


class PastFactOut(FactOut):
    """A fact in a history, with how its life ended if it did."""

    superseded_by: UUID | None
    retired_at: Instant | None
    retired_by: str | None
    reason: str | None
    evidence: str | None
    rule: str | None


class SupersededOut(BaseModel):
    """A fact that this write retired, and the rule that did it (`explicit` where it was told to)."""

    id: UUID
    rule: str


class ConflictOut(BaseModel):
    """A current fact that this one may contradict: both stay until somebody decides."""

    fact_id: UUID
    kind: ConflictKind
    detail: str
    removed: list[str] = Field(description="What the other fact says and this one does not.")
    added: list[str] = Field(description="What this fact says and the other one does not.")
    link_id: UUID | None


class WarningOut(BaseModel):
    """Something that the writer should know; the fact is stored all the same."""

    code: str
    detail: str


class RememberOut(BaseModel):
    """What a write did."""

    fact: FactOut
    outcome: Outcome
    superseded: list[SupersededOut]
    conflicts: list[ConflictOut]
    warnings: list[WarningOut]


class LinkOut(BaseModel):
    """A connection between two facts, with what it claims and who drew it."""

    id: UUID
    kind: Literal["supersedes", "amends", "derived_from", "contradicts", "relates_to", "reasserts"]
    source_id: UUID
    target_id: UUID
    reason: str | None
    evidence: str | None
    rule: str | None
    conflict: ConflictKind | None
    detail: dict[str, Any]
    drawn_by: str
    drawn_at: Instant
    demoted_at: Instant | None
    demoted_by: str | None
    demotion_reason: str | None
    resolved_at: Instant | None
    resolved_by: str | None
    resolution: str | None


class ObservationOut(BaseModel):
    """The same statement, observed again with something new about it."""

    id: UUID
    fact_id: UUID
    agent: str | None
    source: SourceOut
    confidence: float | None
    tags: list[str]
    metadata: dict[str, Any]
    observed_at: Instant
    recorded_at: Instant


class HistoryOut(BaseModel):
    """All that led to a fact and all that came of it, oldest first."""

    head: UUID | None = Field(description="What stands now; null where it was forgotten.")
    facts: list[PastFactOut]
    links: list[LinkOut]
    observations: list[ObservationOut]
    truncated: bool = Field(description="Whether older members of a very long chain were left out.")


class Rejected(BaseModel):
    """An item of a batch that could not be stored, as a problem."""

    index: int
    outcome: Literal["rejected"]
    problem: dict[str, Any]


class Stored(RememberOut):
    """An item of a batch that was stored."""

    index: int


class BatchOut(BaseModel):
    """One entry for each item, in order."""

    items: list[Stored | Rejected]
    created: int
    reaffirmed: int
    superseded: int
    rejected: int


class ForgetOut(BaseModel):
    """The fact as its history now shows it."""

    fact: PastFactOut
    outcome: Literal["forgotten", "already_forgotten"]


class RestoreOut(BaseModel):
    """The fact that is current again, and those that made room for it."""

    fact: FactOut
    superseded: list[SupersededOut]
