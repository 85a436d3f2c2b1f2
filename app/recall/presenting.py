"""What recall found, in the shapes that go out."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from app.facts.presenting import fact_out, past_fact_out
from app.facts.queries import to_fact
from app.facts.schemas import FactOut, PastFactOut
from app.recall.question import Question
from app.recall.ranking import ECHO, EXACT, RECENCY, VECTOR, WORDS, Echo, Match, Ranked, Ranks
from app.recall.schemas import (
    AppliedOut,
    RanksOut,
    RecallIn,
    ReplacedOut,
    ResultOut,
    ScoresOut,
    TermOut,
)

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
    *,
    replaces: Sequence[ReplacedOut] = (),
    conflicts: Sequence[UUID] = (),
    via: Sequence[UUID] = (),
    explain: bool,
) -> ResultOut:
    """A fact in its place; `via` are the facts that were followed to reach it."""
    return ResultOut.model_construct(
        fact=fact,
        score=ranked.score,
        relevance=round(ranked.relevance, 4),
        ranks=_ranks_out(ranked.ranks) if explain else None,
        scores=_scores_out(ranked.match) if explain else None,
        forwarded_by=ranked.echo.id if ranked.echo else None,
        replaces=list(replaces),
        conflicts_with=list(conflicts),
        via=list(via),
    )


def retired_out(ranked: Ranked, echo: Echo, fact: PastFactOut, *, explain: bool) -> ResultOut:
    """A retired fact, shown with the score of the one that it stands below."""
    return ResultOut.model_construct(
        fact=fact,
        score=ranked.score,
        relevance=round(echo.likelihood, 4),
        ranks=None,
        scores=_scores_out(echo.match) if explain else None,
        forwarded_by=None,
        replaces=[],
        conflicts_with=[],
        via=[],
    )


def _ranks_out(ranks: Ranks) -> RanksOut:
    return RanksOut.model_construct(
        vector=ranks.vector, words=ranks.words, exact=ranks.exact, recency=ranks.recency
    )


def _scores_out(found: Match) -> ScoresOut:
    return ScoresOut.model_construct(
        vector=found.cosine, words=found.words, exact=found.exact, share=found.share
    )


def applied_out(ask: RecallIn, scopes: Sequence[str] | None, asked: Question | None) -> AppliedOut:
    terms = zip(asked.terms, asked.weights, strict=True) if asked else ()
    weights = {"vector": VECTOR, "words": WORDS, "exact": EXACT, "recency": RECENCY, "echo": ECHO}
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
        terms=[TermOut.model_construct(term=term, weight=weight) for term, weight in terms]
        if ask.explain
        else None,
    )
