"""A run of review. Rules speak first; a model is asked, where there is one, about what passed them."""

from dataclasses import dataclass, field
from functools import partial
from typing import Literal
from uuid import UUID

from uuid_utils.compat import uuid7

from app.auth import Caller
from app.db import Connection
from app.errors import AppError, Conflict, FactNotFound
from app.facts import retiring
from app.llm import LanguageModel, LlmFailure, build_llm
from app.upkeep.budget import Budget, BudgetSpent
from app.upkeep.consolidation.writing import worker
from app.upkeep.jobs import Counts, JobFailed, JobRun, Kind, TryLater
from app.upkeep.model import Finding
from app.upkeep.proposals import queries as proposals
from app.upkeep.proposals.model import Proposal
from app.upkeep.review import queries
from app.upkeep.review.asking import PROMPT_VERSION, doubts
from app.upkeep.review.checks import Claim, faults
from app.upkeep.schedule import every

RULE = "review/1"
_PAGE = 200
_BEGINNING = UUID(int=0)
# What taking a retirement back is refused with where it does not stand any more, or its fact was removed.
_OVERTAKEN = frozenset({Conflict.code, FactNotFound.code})
_WORDS = {
    "no_reason": "no reason is given",
    "evidence_not_verbatim": "the evidence is not in the replacement's own words",
    "only_adds": "the replacement only adds something",
    "only_continues": "the replacement only says that something continues",
    "only_develops": "the same story develops further: amend rather than supersede",
    "event_retired_by_rule": "a rule retired an event",
    "less_trusted_source": "a rule let a less trusted source retire it",
    "another_subject": "a rule let another subject retire it",
    "detail_dropped": "a detail of it was lost",
    "polarity": "one says the opposite of the other",
    "not_borne_out": "the wording does not bear it out",
    "doubted": "the model does not find that a standing state ended",
}


async def review(run: JobRun) -> Counts:
    """The handler of the job."""
    llm = build_llm(run.settings)
    try:
        reviewing = Reviewing(run, llm)
        await reviewing.go_through()
    except LlmFailure as failure:
        if failure.remedy == "wait":
            raise TryLater(f"the language model: {failure}", after_s=failure.retry_after) from None
        raise JobFailed(f"the language model: {failure}") from None
    finally:
        if llm is not None:
            await llm.aclose()
    return dict(run.counts)


@dataclass(slots=True)
class Reviewing:
    """The state of one run."""

    run: JobRun
    llm: LanguageModel | None
    caller: Caller = field(init=False)
    budget: Budget = field(init=False)

    def __post_init__(self) -> None:
        self.caller = worker(self.run.namespace, "review")
        self.budget = Budget(self.run)

    async def go_through(self) -> None:
        """Test every retirement that stands."""
        after = _BEGINNING
        while True:
            async with self.run.database.reading() as conn:
                claims = await queries.claims(conn, self.run.namespace, self.run.scope, after, _PAGE)
                links = [claim.link_id for claim in claims]
                rejected = await proposals.rejected_links(conn, self.run.namespace, links)
            for claim in claims:
                found = faults(claim)
                doubted = not found and claim.link_id not in rejected and await self._is_doubted(claim)
                if found or doubted:
                    await self._failed(claim, found or ["doubted"], known=claim.link_id in rejected)
                self.run.advance(1, reviewed=1)
            if len(claims) < _PAGE:
                return
            after = claims[-1].link_id

    async def _is_doubted(self, claim: Claim) -> bool:
        """What the model thinks; an answer that is of no use counts for the retirement, and is counted."""
        if self.llm is None or self.run.dry_run or claim.kind != "supersedes" or claim.new.kind == "retraction":
            return False
        try:
            return await doubts(self.llm, claim, self.budget)
        except LlmFailure as failure:
            if failure.remedy != "divide":
                raise
            self.run.advance(0, **{f"failed_{failure.cause}": 1})
        except BudgetSpent as spent:
            self.llm = None
            self.run.advance(0, stopped=1)
            async with self.run.database.transaction() as conn:
                stopped = Finding("stopped", scope=self.run.scope, rule=RULE, detail={"reason": str(spent)})
                await self.run.report(conn, [stopped])
        return False

    async def _failed(self, claim: Claim, found: list[str], *, known: bool) -> None:
        """List what failed. What somebody decided to keep is not put up again."""
        apply = bool(self.run.parameters.get("apply")) and not self.run.dry_run and self._may_take_back(claim, found)
        if known:
            self.run.advance(0, kept_by_decision=1)
        elif apply:
            await self._take_back(claim, found)
        else:
            await self.run.database.run(partial(self._list, claim, found, "waiting", None))
            self.run.advance(0, failing=1)

    @staticmethod
    def _may_take_back(claim: Claim, found: list[str]) -> bool:
        """A model's doubt alone does not overrule what somebody said themselves; that waits for a person."""
        return claim.by_rule or found != ["doubted"]

    async def _take_back(self, claim: Claim, found: list[str]) -> None:
        reason = _sentence(found)

        async def restore(conn: Connection) -> None:
            await retiring.restore(conn, self.caller, claim.old.id, reason, None, replace=False, undoing=claim.new.id)
            await self._list(claim, found, "applied", None, conn)

        try:
            await self.run.database.run(restore)
        except AppError as refusal:
            if refusal.code in _OVERTAKEN:
                self.run.advance(0, overtaken=1)
                return
            await self.run.database.run(partial(self._list, claim, found, "refused", refusal.code))
            self.run.advance(0, failing=1, **{refusal.code: 1})
        else:
            self.run.advance(0, failing=1, taken_back=1)

    async def _list(
        self,
        claim: Claim,
        found: list[str],
        verdict: Literal["waiting", "applied", "refused"],
        why: str | None,
        conn: Connection,
    ) -> None:
        run = self.run
        reason = _sentence(found) if why is None else f"{_sentence(found)} It was not taken back: {why}."
        if not run.dry_run:
            await self._keep(conn, claim, found, verdict, reason)
        action = "would_demote" if run.dry_run else {"waiting": "failed", "applied": "demoted"}.get(verdict, "failed")
        detail = {"checks": found, "link": str(claim.link_id)}
        listed = Finding(action, claim.old.id, claim.new.id, scope=claim.old.scope, rule=claim.rule, detail=detail)
        await run.report(conn, [listed])

    async def _keep(
        self,
        conn: Connection,
        claim: Claim,
        found: list[str],
        verdict: Literal["waiting", "applied", "refused"],
        reason: str,
    ) -> None:
        """Keep it as a proposal. One of an earlier run that waits is this very one, and is decided by it."""
        run = self.run
        if verdict != "waiting":
            earlier = await proposals.waiting_demotions(conn, run.namespace, [claim.link_id])
            for id_ in earlier.values():
                waiting = await proposals.find(conn, run.namespace, id_, lock=True)
                if waiting is not None and verdict == "applied":
                    await proposals.decide(
                        conn, waiting, verdict, self.caller.actor, reason=reason, result=claim.old.id
                    )
        await proposals.add(
            conn,
            [
                Proposal(
                    namespace=run.namespace,
                    id=uuid7(),
                    job_id=run.id,
                    scope=claim.old.scope,
                    kind="demotion",
                    fact_ids=[claim.old.id, claim.new.id],
                    link_id=claim.link_id,
                    content={"checks": found},
                    rule=PROMPT_VERSION if found == ["doubted"] else RULE,
                    model=self.llm.model if self.llm is not None and found == ["doubted"] else None,
                    verdict=verdict,
                    reason=reason,
                    result_id=claim.old.id if verdict == "applied" else None,
                )
            ],
        )


def _sentence(found: list[str]) -> str:
    told = "; ".join(_WORDS[name] for name in found)
    return f"Review: {told}."


KIND = Kind("review", review, every("review", "review_every_h"))
