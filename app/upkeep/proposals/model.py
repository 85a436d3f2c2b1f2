"""A proposal inside the service."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

Kind = Literal["digest", "contradiction", "retirement", "classification", "demotion", "unreadable"]
Verdict = Literal["applied", "refused", "waiting", "rejected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The call to a model that proposals came from."""

    id: UUID
    model: str
    tokens: int


@dataclass(slots=True, kw_only=True)
class Proposal:
    """Something that a job proposes. `content` repeats words of facts, and is emptied when one of them is removed.

    `fact_ids` are the facts that it is about, `result_id` is the fact or link that it became. `tokens` is the cost
    of the whole call that it came from, which other proposals with the same `call_id` share.
    """

    namespace: str
    id: UUID
    job_id: UUID
    scope: str
    kind: Kind
    fact_ids: list[UUID]
    rule: str
    content: dict[str, Any] = field(default_factory=dict)
    link_id: UUID | None = None
    model: str | None = None
    call_id: UUID | None = None
    tokens: int = 0
    verdict: Verdict = "waiting"
    reason: str | None = None
    result_id: UUID | None = None
    created_at: datetime | None = None
    decided_at: datetime | None = None
    decided_by: str | None = None
