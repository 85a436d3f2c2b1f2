"""Conflicts and links on the wire."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from app.facts.fact import ConflictKind
from app.facts.schemas import Evidence, FactOut, LinkOut, Reason
from app.text import Instant

LinkKind = Literal["supersedes", "amends", "derived_from", "contradicts", "relates_to", "reasserts"]


class OpenConflictOut(BaseModel):
    """Two current facts that may contradict each other."""

    id: UUID = Field(description="The id of the link between them, for `resolve` and `demote`.")
    kind: ConflictKind
    detail: str | None = Field(description="What the doubt is, in a sentence.")
    removed: list[str] = Field(description="What `other` says and `fact` does not.")
    added: list[str] = Field(description="What `fact` says and `other` does not.")
    rule: str | None
    drawn_by: str
    drawn_at: Instant
    fact: FactOut = Field(description="The fact that raised the doubt.")
    other: FactOut = Field(description="The fact that it may contradict.")


class ResolveIn(BaseModel):
    """What is to be kept."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"keep": "both", "reason": "They are about different rooms."}]},
    )

    keep: UUID | Literal["both"] = Field(description="The id of the fact that holds, or `both`.")
    reason: Reason = Field(description="Why; kept in the history.")
    evidence: Evidence | None = Field(
        default=None, description="A verbatim quote from the fact that is kept or its source."
    )


class ResolvedOut(BaseModel):
    """A conflict that is settled."""

    link: LinkOut
    kept: list[FactOut]
    superseded: list[UUID]


class LinkIn(BaseModel):
    """A connection to draw between two facts."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "kind": "relates_to",
                    "source_id": "019ad9a0-53f1-7b8e-a2f4-0c2d9f6f4b11",
                    "target_id": "019ad9a0-6a02-7c11-8d3e-5b1f0e7c9a22",
                    "reason": "Both are about the stand-up.",
                }
            ]
        },
    )

    kind: Literal["contradicts", "relates_to"] = Field(
        description="Facts are replaced by `supersede` and `amend`, which draw their own links."
    )
    source_id: UUID
    target_id: UUID
    reason: Reason | None = Field(default=None, description="What connects them.")
    evidence: Evidence | None = Field(
        default=None, description="A quote that shows it, word for word from one of the two facts or its source."
    )

    @model_validator(mode="after")
    def _two_facts(self) -> "LinkIn":
        if self.source_id == self.target_id:
            raise PydanticCustomError("self_link", "A link needs two facts; `target_id` is the same as `source_id`.")
        return self


class DemoteIn(BaseModel):
    """Why a link asserts too much."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"reason": "The quote is about another team."}]}
    )

    reason: Reason = Field(description="Why it is wrong; kept with the link.")


class DemotedOut(BaseModel):
    """A link that only relates its two facts from now on, and the fact that came back by it."""

    link: LinkOut
    restored: FactOut | None
