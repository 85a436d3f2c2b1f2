"""Facts and what writes did to them, in the shapes that go out."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.errors import AppError, document
from app.facts.fact import Fact
from app.facts.schemas import (
    BatchOut,
    ConflictOut,
    FactOut,
    LinkOut,
    ObservationOut,
    PastFactOut,
    Rejected,
    RememberOut,
    SourceOut,
    Stored,
    SupersededOut,
    WarningOut,
)
from app.facts.writing import Written
from app.wire import made


def fact_members(fact: Fact) -> dict[str, Any]:
    """The members of a fact on the wire."""
    return {
        "id": fact.id,
        "namespace": fact.namespace,
        "scope": fact.scope,
        "agent": fact.agent,
        "kind": fact.kind,
        "subject": fact.subject,
        "content": fact.content,
        "source": made(SourceOut, tier=fact.source_tier, ref=fact.source_ref, quote=fact.source_quote),
        "confidence": fact.confidence,
        "tags": fact.tags,
        "metadata": fact.metadata,
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
        "observed_at": fact.observed_at,
        "recorded_at": fact.recorded_at,
        "pinned": fact.pinned,
        "weight": fact.weight,
        "observed_count": fact.observed_count,
        "last_observed_at": fact.last_observed_at,
        "embedding": "ready" if fact.embedded else "pending",
        # The entry that ends a life is itself nothing that holds.
        "status": "forgotten" if fact.kind == "retraction" else fact.status,
    }


def fact_out(fact: Fact) -> FactOut:
    return made(FactOut, **fact_members(fact))


def past_fact_out(fact: Fact, ending: Mapping[str, Any]) -> PastFactOut:
    """A fact of the past; `ending` holds retired_by, reason, evidence and rule."""
    claims: dict[str, Any] = {name: ending.get(name) for name in ("retired_by", "reason", "evidence", "rule")}
    return made(
        PastFactOut, **fact_members(fact), superseded_by=fact.superseded_by, retired_at=fact.retired_at, **claims
    )


def written_members(written: Written) -> dict[str, Any]:
    """The members of what a write did."""
    decision = written.decision
    return {
        "fact": fact_out(written.fact),
        "outcome": written.outcome,
        "superseded": [SupersededOut.model_construct(id=r.fact.id, rule=r.rule) for r in decision.retires],
        "conflicts": [
            ConflictOut.model_construct(
                fact_id=doubt.fact.id,
                kind=doubt.kind,
                detail=doubt.detail,
                removed=list(doubt.removed),
                added=list(doubt.added),
                link_id=link,
            )
            for doubt, link in zip(decision.doubts, written.doubt_links, strict=True)
        ],
        "warnings": [WarningOut.model_construct(code=code, detail=detail) for code, detail in decision.warnings],
    }


def remember_out(written: Written) -> RememberOut:
    return RememberOut.model_construct(**written_members(written))


def batch_out(results: Sequence[Written | AppError], instance: str, request_id: str) -> BatchOut:
    """One entry for each item of a batch, in order."""
    items: list[Stored | Rejected] = []
    for index, result in enumerate(results):
        if isinstance(result, AppError):
            problem = document(result, instance=instance, request_id=request_id)
            items.append(Rejected.model_construct(index=index, outcome="rejected", problem=problem))
        else:
            items.append(Stored.model_construct(index=index, **written_members(result)))
    outcomes = [item.outcome for item in items]
    return BatchOut.model_construct(
        items=items,
        created=outcomes.count("created"),
        reaffirmed=outcomes.count("reaffirmed"),
        superseded=outcomes.count("superseded"),
        rejected=outcomes.count("rejected"),
    )


def link_out(row: Mapping[str, Any]) -> LinkOut:
    """A link. One that was demoted asserts nothing any more: it only relates its two facts."""
    members = {name: row[name] for name in LinkOut.model_fields}
    if row["demoted_at"] is not None:
        members["kind"] = "relates_to"
    return LinkOut.model_construct(**members)


def observation_out(row: Mapping[str, Any]) -> ObservationOut:
    members = {name: row[name] for name in ObservationOut.model_fields if name != "source"}
    source = made(SourceOut, tier=row["source_tier"], ref=row["source_ref"], quote=row["source_quote"])
    return ObservationOut.model_construct(**members, source=source)
