"""Proposals on the wire."""

from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.facts.schemas import Reason
from app.text import Instant
from app.upkeep.proposals.model import Kind, Verdict


class ProposalOut(BaseModel):
    """Something that a job proposed, and what became of it."""

    id: UUID
    job_id: UUID
    scope: str
    kind: Kind = Field(
        description="`digest`: one text over several facts. `contradiction`: a conflict between two. `retirement`: the "
        "first fact is replaced by the second. `classification`: a kind and a subject for a note. `demotion`: a "
        "retirement that did not stand review. `unreadable`: part of an answer that is no proposal."
    )
    fact_ids: list[UUID] = Field(description="The facts that it is about, as far as they were shown and still exist.")
    link_id: UUID | None = Field(description="With a demotion: the link that retired the fact.")
    content: dict[str, Any] = Field(description="What is proposed; empty once one of the facts has been removed.")
    rule: str = Field(description="The version of the prompt or of the rules that it comes from.")
    model: str | None = Field(description="The model that was asked; null where rules alone proposed.")
    call_id: UUID | None = Field(description="Proposals of one call share it, and its cost.")
    tokens: int = Field(description="What the whole call cost.")
    verdict: Verdict
    reason: str | None = Field(description="Why it was refused, or why it is proposed.")
    result_id: UUID | None = Field(description="The fact or the link that it became.")
    created_at: Instant
    decided_at: Instant | None
    decided_by: str | None


class RejectIn(BaseModel):
    """Why a proposal is not to be carried out."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"reason": "Both rooms are in use."}]})

    reason: Reason
