"""/v1/freshness and /v1/stats: how the facts stand, without their texts."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from app.auth import Reader
from app.errors import ScopeForbidden, responses
from app.facts import freshness
from app.facts.schemas import Kind, Scope, Status
from app.facts.visibility import sight_of
from app.idempotency import Answer
from app.state import Db
from app.text import Instant

MOST_IDS = 1_000
MOST_SCOPES = 200
_RETIRED: tuple[Status, ...] = ("superseded", "amended", "forgotten")

router = APIRouter(prefix="/v1", tags=["Facts"])


class FreshnessIn(BaseModel):
    """Facts that a client holds."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"ids": ["019ad9a0-53f1-7b8e-a2f4-0c2d9f6f4b11"]}]}
    )

    ids: Annotated[list[UUID], Field(min_length=1, max_length=MOST_IDS)] = Field(
        description="Ids of facts, 1 to 1,000."
    )


class StandingOut(BaseModel):
    """How one fact stands."""

    id: UUID
    status: Status | Literal["unknown"] = Field(
        description="`unknown`: there is no such fact, or the key may not read it."
    )
    current: bool
    head: UUID | None = Field(
        description="What stands in its place: the fact itself while it is current, null where nothing does."
    )
    reason: str | None = Field(description="Why it was retired.")
    retired_at: Instant | None


class FreshnessOut(BaseModel):
    """One entry for each id, in the order asked."""

    items: list[StandingOut]
    current: int
    outdated: int = Field(description="How many are known and not current.")
    unknown: int


class ScopeStats(BaseModel):
    """How the facts of a scope stand."""

    scope: str
    current: int
    retired: int


class StatsOut(BaseModel):
    """How many facts stand how, of those that the key may read."""

    namespace: str
    current: int
    retired: int
    retired_share: float = Field(description="Retired facts among the current and the retired ones, 0 to 1.")
    by_status: dict[Status, int]
    by_kind: dict[Kind, int] = Field(description="Current facts by kind.")
    by_scope: list[ScopeStats] = Field(description="The 200 largest scopes, largest first.")


class StatsFilters(BaseModel):
    """What the numbers are about."""

    model_config = {"extra": "forbid"}

    scope: list[Scope] | None = Field(
        default=None, max_length=100, description="One or several scopes; all that the key may read when left out."
    )


@router.post(
    "/freshness",
    response_model=FreshnessOut,
    operation_id="checkFreshness",
    summary="Which of the facts that I hold are still current?",
)
async def check_freshness(body: FreshnessIn, caller: Reader, db: Db) -> Response:
    """Send the ids that you keep in a prompt or a cache; the answer says which of them are outdated, why, and what
    stands in their place now. An id from somewhere else is `unknown`, just like one that never was."""
    ids = list(dict.fromkeys(body.ids))
    async with db.reading() as conn:
        found = await freshness.standing(conn, caller.namespace, ids, sight_of(caller.reads, None))
    items = [_standing_out(id_, found.get(id_)) for id_ in ids]
    unknown = len(ids) - len(found)
    current = sum(item.current for item in items)
    answer = FreshnessOut.model_construct(
        items=items, current=current, outdated=len(items) - current - unknown, unknown=unknown
    )
    return Answer(200, answer).response()


def _standing_out(id_: UUID, row: Mapping[str, Any] | None) -> StandingOut:
    if row is None:
        return StandingOut(id=id_, status="unknown", current=False, head=None, reason=None, retired_at=None)
    retired = row["superseded_by"] is not None
    current = row["status"] == "active"
    head = id_ if current else row["head"] if retired else None
    return StandingOut.model_construct(
        id=id_,
        status=row["status"],
        current=current,
        head=head,
        reason=row["reason"] if retired else None,
        retired_at=row["retired_at"],
    )


@router.get(
    "/stats",
    response_model=StatsOut,
    operation_id="readStats",
    summary="How many facts stand how",
    responses=responses(ScopeForbidden),
)
async def read_stats(caller: Reader, db: Db, filters: Annotated[StatsFilters, Query()]) -> Response:
    """Counts of the current and the retired facts that the key may read, by status, kind and scope. A retired share
    above one in five is worth a look: something rewrites facts more often than they change."""
    asked = caller.asked(filters.scope)
    async with db.reading() as conn:
        rows = await freshness.counts(conn, caller.namespace, sight_of(caller.reads, asked))
    return Answer(200, _stats_out(caller.namespace, rows)).response()


def _stats_out(namespace: str, rows: Iterable[Mapping[str, Any]]) -> StatsOut:
    by_status: Counter[Status] = Counter()
    by_kind: Counter[Kind] = Counter()
    current: Counter[str] = Counter()
    retired: Counter[str] = Counter()
    for row in rows:
        status, facts = row["status"], row["facts"]
        if row["kind"] is not None:
            by_status[status] += facts
            by_kind[row["kind"]] += facts if status == "active" else 0
        else:
            current[row["scope"]] += facts if status == "active" else 0
            retired[row["scope"]] += facts if status in _RETIRED else 0
    gone = sum(by_status[way] for way in _RETIRED)
    known = by_status["active"] + gone
    largest = sorted(current, key=lambda scope: (-current[scope] - retired[scope], scope))[:MOST_SCOPES]
    return StatsOut.model_construct(
        namespace=namespace,
        current=by_status["active"],
        retired=gone,
        retired_share=round(gone / known, 4) if known else 0.0,
        by_status=dict(sorted(by_status.items())),
        by_kind={kind: facts for kind, facts in sorted(by_kind.items()) if facts},
        by_scope=[
            ScopeStats.model_construct(scope=scope, current=current[scope], retired=retired[scope]) for scope in largest
        ],
    )
