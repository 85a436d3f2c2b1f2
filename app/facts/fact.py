"""A fact inside the service, and a draft on its way to become one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from numpy import float32
from numpy.typing import NDArray

from app.auth import Tier

Retirement = Literal["superseded", "amended", "forgotten"]
ConflictKind = Literal[
    "value", "unit", "polarity", "reversal", "partial", "reassertion", "older", "lower_tier", "declared"
]


@dataclass(slots=True, kw_only=True)
class Fact:
    """A row of the ledger with its use; `retired_by_id` and the like change only while a write is planned."""

    namespace: str
    id: UUID
    chain_id: UUID
    scope: str
    agent: str | None
    kind: str
    subject: str | None
    content: str
    content_hash: bytes
    source_tier: Tier
    source_ref: str | None
    source_quote: str | None
    confidence: float | None
    tags: list[str]
    metadata: dict[str, Any]
    valid_from: datetime
    valid_to: datetime | None
    observed_at: datetime
    recorded_at: datetime
    superseded_by: UUID | None = None
    retired_at: datetime | None = None
    status: str = "active"
    head_id: UUID | None = None
    embedded: bool = False
    pinned: bool = False
    weight: float = 1.0
    observed_count: int = 1
    last_observed_at: datetime

    @property
    def is_current(self) -> bool:
        return self.status == "active" and self.kind != "retraction"

    @property
    def can_retire(self) -> bool:
        """Whether it has not ended yet: current, or scheduled for later, or stale, or past its own window."""
        return self.superseded_by is None and self.kind != "retraction"


@dataclass(slots=True, kw_only=True)
class Draft:
    """A statement that was checked, analysed and embedded, before it meets what the ledger holds.

    `position` is its place in the batch, refused items included; `selective` are its rare terms, by which its
    neighbours are found; `aliases` are other names of its subject, under which facts may have been written before.
    """

    scope: str
    agent: str | None
    kind: str
    kind_declared: bool
    subject: str | None
    content: str
    content_hash: bytes
    source_tier: Tier
    source_ref: str | None
    source_quote: str | None
    confidence: float | None
    tags: list[str]
    metadata: dict[str, Any]
    valid_from: datetime | None
    valid_to: datetime | None
    observed_at: datetime | None
    terms: Mapping[str, int]
    term_length: int
    terms_literal: str
    tier_capped: bool = False
    embedding: NDArray[float32] | None = None
    embedding_profile: str | None = None
    replaces: tuple[UUID, ...] = ()
    replaces_as: Retirement = "superseded"
    reason: str | None = None
    evidence: str | None = None
    force: bool = False
    position: int = 0
    selective: tuple[str, ...] = ()
    aliases: list[str] = field(default_factory=list)

    @property
    def addresses(self) -> list[str | None]:
        """The names under which facts about its subject may stand, the one that it is stored under first."""
        return [self.subject, *self.aliases]

    @property
    def place(self) -> str:
        """What of the scope this statement is about, for the lock: its subject, or else its very text."""
        return self.subject if self.subject is not None else self.content_hash.hex()


@dataclass(frozen=True, slots=True)
class Rules:
    """What the namespace lets a write do on its own."""

    policy: Literal["explicit", "suggest", "auto_key", "auto_inferred"]
    require_evidence: bool
    closed_vocabulary: bool


@dataclass(frozen=True, slots=True)
class Retired:
    """A fact that a decision retires, and the claim that does it."""

    fact: Fact
    rule: str
    reason: str
    evidence: str | None
    retired_as: Retirement = "superseded"
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Doubt:
    """A fact that may contradict the new one: both stay."""

    fact: Fact
    kind: ConflictKind
    detail: str
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    rule: str | None = None


@dataclass(slots=True)
class Decision:
    """What becomes of a draft."""

    reaffirms: Fact | None = None
    retires: list[Retired] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    reasserts: list[Fact] = field(default_factory=list)
    warnings: list[tuple[str, str]] = field(default_factory=list)
