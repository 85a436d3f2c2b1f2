"""What recall found, in the shapes that go out."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from app.facts.presenting import fact_out, past_fact_out
from app.facts.queries import to_fact
from app.facts.schemas import FactOut, PastFactOut
from app.recall.question import Question
from app.recall.ranking import ARMS, ECHO, RECENCY, Measures, Ranked, Ranks
from app.recall.schemas import (
    AppliedOut,
    RanksOut,
    RecallIn,
    ReplacedOut,
    ResultOut,
    ScoresOut,
    TermOut,
)
from app.recall.search import Found
from app.wire import made

_ENDING = ("retired_by", "reason", "evidence", "rule")


def current_out(row: Mapping[str, Any]) -> tuple[FactOut, list[ReplacedOut], list[UUID]]:
    """A current fact, what it directly replaced, and what contradicts it."""
    members = dict(row)
    replaces, conflicts = members.pop("replaces") or [], members.pop("conflicts") or []
    replaced = [
        ReplacedOut.model_construct(id=UUID(id_), retired_at=datetime.fromisoformat(at), reason=reason)
        for id_, at, reason in replaces
    ]
    return fact_out(to_fact(members)), replaced, sorted(conflicts)


def past_out(row: Mapping[str, Any]) -> PastFactOut:
    """A fact of the past, with how its life ended if it did."""
    members = dict(row)
    ending = {name: members.pop(name) for name in _ENDING}
    return past_fact_out(to_fact(members), ending)


def result_out(
    ranked: Ranked,
    fact: FactOut | PastFactOut,
    found: Found,
    *,
    explain: bool,
    forwarded_by: UUID | None = None,
    replaces: Sequence[ReplacedOut] = (),
    conflicts: Sequence[UUID] = (),
) -> ResultOut:
    """A fact in its place, with what led there, what it replaces and what contradicts it."""
    return made(
        ResultOut,
        fact=fact,
        score=ranked.score,
        relevance=round(ranked.relevance, 4),
        ranks=_ranks_out(found.ranks, ranked.best) if explain else None,
        scores=_scores_out(found.measured, ranked.best) if explain else None,
        forwarded_by=forwarded_by,
        replaces=list(replaces),
        conflicts_with=list(conflicts),
        via=[],
    )


def _ranks_out(ranks: Ranks, at: int) -> RanksOut:
    places: dict[str, Any] = {arm: place or None for arm, place in zip(ARMS, ranks.arms[:, at].tolist(), strict=True)}
    return RanksOut.model_construct(**places, recency=float(ranks.recency[at]))


def _scores_out(measured: Measures, at: int) -> ScoresOut:
    cosine = float(measured.cosine[at])
    return ScoresOut.model_construct(
        vector=None if math.isnan(cosine) else cosine,
        words=float(measured.words[at]),
        exact=float(measured.exact[at]),
        share=float(measured.share[at]),
    )


def applied_out(ask: RecallIn, scopes: Sequence[str] | None, asked: Question | None) -> AppliedOut:
    terms = zip(asked.terms, asked.weights, strict=True) if asked else ()
    weights = {**ARMS, "recency": RECENCY, "echo": ECHO}
    return AppliedOut.model_construct(
        scopes=None if scopes is None else list(scopes),
        k=ask.k,
        hops=ask.hops,
        subject=ask.subject,
        kinds=ask.kinds,
        tags=ask.tags,
        min_tier=ask.min_tier,
        min_relevance=ask.min_relevance,
        as_of=ask.as_of,
        known_at=ask.known_at,
        weights=weights if ask.explain else None,
        terms=[TermOut.model_construct(term=term, weight=weight) for term, weight in terms] if ask.explain else None,
    )
