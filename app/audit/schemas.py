"""The audit trail on the wire."""

from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from app.text import Instant


class EventOut(BaseModel):
    """A change of state: who did what to which fact, and when."""

    id: int
    at: Instant
    actor: str
    action: str
    scope: str | None = Field(description="The fact's scope; null where the change is about the namespace.")
    fact_id: UUID | None
    other_id: UUID | None = Field(description="The other fact of the change, such as the one that replaced it.")
    request_id: str | None
    detail: dict[str, Any] = Field(description="What the change was; never a fact's text.")
