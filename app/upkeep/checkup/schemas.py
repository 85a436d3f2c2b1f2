"""A checkup on the wire."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from app.text import Instant

Severity = Literal["damage", "warning", "work"]


class CheckOut(BaseModel):
    """One thing that was looked for."""

    name: str
    severity: Severity = Field(
        description="`damage`: nothing should ever make this. `warning`: the memory gets worse by it. `work`: "
        "something for somebody to decide."
    )
    count: int
    ids: list[UUID] = Field(description="The first of them: facts, or what `of` says.")
    of: Literal["fact", "link", "job", "proposal", "subject"]
    examples: list[str] = Field(description="The first of them in words, where they are no ids.")
    advice: str = Field(description="What to do about it.")


class CheckupOut(BaseModel):
    """Everything that was looked for, whether found or not."""

    at: Instant
    healthy: bool = Field(description="Whether there is neither damage nor a warning.")
    facts: int
    retired: int
    retired_share: float = Field(description="Retired facts among all; above 0.2 a warning.")
    recent_notes: int = Field(description="The latest notes, of which some may be states without a subject.")
    findings: list[CheckOut]
