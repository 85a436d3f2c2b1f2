"""A run of consolidation: what is new is shown to the model batch by batch, and every answer goes through the gate.

No connection is held while the model thinks. A fact counts as asked about in the transaction that settles the answer
about it and never before, so a run that fails or is killed has done nothing that a later one would have to know.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from uuid_utils.compat import uuid7

from app.auth import Caller
from app.db import Connection
from app.errors import LlmNotConfigured
from app.facts import preparing
from app.facts.fact import Fact
from app.llm import LanguageModel, LlmFailure, build_llm
from app.settings import Settings
from app.state import Service
from app.upkeep.budget import Budget, BudgetSpent
from app.upkeep.consolidation import marks, noticing, queries
from app.upkeep.consolidation.actions import Action, Digest, Malformed, read_actions
from app.upkeep.consolidation.asking import FORM, PROMPT_VERSION, Shown, question
from app.upkeep.consolidation.cohesion import clusters
from app.upkeep.consolidation.settling import Answered, Asked, Settling, settle
from app.upkeep.consolidation.writing import draft_of, worker
from app.upkeep.jobs import Counts, JobFailed, JobRun, Kind, Place, TryLater
from app.upkeep.model import Finding
from app.upkeep.proposals.model import Call

LARGEST_BATCH = 20
LARGEST_PROMPT = 12_000
MOST_FACTS = 2_000
MOST_CONTEXT = 10
# An endpoint that answers nonsense to whatever it is asked is not worth dividing batches for.
MOST_FAILURES_IN_A_ROW = 8
_PAUSE = timedelta(minutes=1)
NO_MODEL = "no language model is configured: set LLM_URL and LLM_MODEL"


class Stopped(Exception):
    """The run ends early, of its own accord; the sentence says why."""


def require_llm(settings: Settings) -> None:
    """Raise LlmNotConfigured where there is no model to ask."""
    if not settings.llm_url or not settings.llm_model:
        raise LlmNotConfigured


async def consolidate(run: JobRun) -> Counts:
    """The handler of the job."""
    llm = build_llm(run.settings)
    if llm is None:
        raise JobFailed(NO_MODEL)
    try:
        async with run.database.reading() as conn:
            scopes = await queries.waiting_scopes(
                conn, run.namespace, PROMPT_VERSION, run.settings.consolidate_min_facts
            )
        wanted = [scope for scope in scopes if run.scope is None or scope == run.scope]
        run.expect(sum(min(scopes[scope], MOST_FACTS) for scope in wanted))
        consolidation = Consolidation(run, llm)
        for scope in wanted:
            await consolidation.work_through(scope)
    except (Stopped, BudgetSpent) as stop:
        await _say(run, str(stop))
    except LlmFailure as failure:
        if failure.remedy == "wait":
            raise TryLater(f"the language model: {failure}", after_s=failure.retry_after) from None
        raise JobFailed(f"the language model: {failure}") from None
    finally:
        await llm.aclose()
    return dict(run.counts)


async def _say(run: JobRun, why: str) -> None:
    run.advance(0, stopped=1)
    async with run.database.transaction() as conn:
        await run.report(conn, [Finding("stopped", scope=run.scope, rule=PROMPT_VERSION, detail={"reason": why})])


@dataclass(slots=True)
class Consolidation:
    """The state of one run."""

    run: JobRun
    llm: LanguageModel
    caller: Caller = field(init=False)
    budget: Budget = field(init=False)
    retired: int = 0
    failed_in_a_row: int = 0

    def __post_init__(self) -> None:
        self.caller = worker(self.run.namespace, "consolidate")
        self.budget = Budget(self.run)

    async def work_through(self, scope: str) -> None:
        """Ask about everything that is new in a scope."""
        run = self.run
        async with run.database.reading() as conn:
            new = await queries.new_facts(conn, run.namespace, scope, PROMPT_VERSION, MOST_FACTS)
        packed = pack(clusters(new))
        if run.dry_run:
            await self._foretell(scope, packed)
            return
        async with run.database.transaction() as conn:
            await marks.begin_marks(conn, run.namespace, [fact.id for fact in new], PROMPT_VERSION)
        waiting = deque((batch, True) for batch in packed)
        while waiting:
            batch, whole = waiting.popleft()
            parts = await self._ask_about(scope, batch, whole=whole)
            waiting.extendleft((part, False) for part in reversed(parts))

    async def _foretell(self, scope: str, batches: Sequence[Sequence[Fact]]) -> None:
        """What a run would ask about; what it would be answered, only the model can say (`mode`: `propose`)."""
        asked = [
            Finding("would_ask", fact.id, scope=scope, rule=PROMPT_VERSION, detail={"batch": number})
            for number, batch in enumerate(batches, 1)
            for fact in batch
        ]
        async with self.run.database.transaction() as conn:
            await self.run.report(conn, asked)
        self.run.advance(len(asked), would_ask=len(asked), would_call=len(batches))

    async def _ask_about(self, scope: str, batch: Sequence[Fact], *, whole: bool) -> list[list[Fact]]:
        """Ask about one batch; where that fails for the batch's own sake, its halves, which are to be asked about."""
        asked = await self._question(scope, batch, whole=whole)
        if not asked.new:
            self.run.advance(len(batch), gone=len(batch))
            return []
        try:
            actions, call = await self._ask(asked)
        except LlmFailure as failure:
            if failure.remedy != "divide":
                raise
            return await self._divide(asked, failure)
        self.failed_in_a_row = 0
        await self._settle(asked, await self._embedded(asked, actions, call))
        return []

    async def _question(self, scope: str, batch: Sequence[Fact], *, whole: bool) -> Asked:
        """The facts to show: those of the batch that are still current, and older ones around them.

        A part of a batch that failed is shown alone, since the fault may lie in what was around it.
        """
        run = self.run
        async with run.database.reading() as conn:
            ids = [fact.id for fact in batch]
            done = await marks.done_among(conn, run.namespace, ids, PROMPT_VERSION)
            current = {fact.id: fact for fact in await queries.current_facts(conn, run.namespace, ids)}
            new = [current[id_] for id_ in ids if id_ in current and id_ not in done]
            context = await self._context(conn, scope, new) if whole else []
            vocabulary = await queries.vocabulary(conn, run.namespace, scope)
        return Asked(scope, Shown.of([*new, *context]), tuple(new), tuple(vocabulary))

    async def _context(self, conn: Connection, scope: str, new: Sequence[Fact]) -> list[Fact]:
        if not new:
            return []
        found = (await queries.around(conn, self.run.namespace, scope, new))[:MOST_CONTEXT]
        # A digest may grow, and then it needs all of the facts that it was made from.
        digests = await queries.digests_over(conn, self.run.namespace, [fact.id for fact in found])
        known = {fact.id for fact in (*new, *found)}
        missing = {id_ for sources in digests.values() for id_ in sources} - known
        rest = await queries.current_facts(conn, self.run.namespace, sorted(missing))
        return [*found, *rest[:MOST_CONTEXT]]

    async def _ask(self, asked: Asked) -> tuple[list[Action | Malformed], Call]:
        reply = await self.llm.ask(question(asked.shown, asked.vocabulary), FORM, self.budget)
        return read_actions(reply.text), Call(id=uuid7(), model=self.llm.model, tokens=reply.tokens)

    async def _divide(self, asked: Asked, failure: LlmFailure) -> list[list[Fact]]:
        """Halve a batch that cannot be asked about; the fact that is left alone at the end is the poison."""
        self.failed_in_a_row += 1
        self.run.advance(0, **{f"failed_{failure.cause}": 1})
        if self.failed_in_a_row >= MOST_FAILURES_IN_A_ROW:
            raise Stopped(f"{self.failed_in_a_row} answers in a row were of no use, the last one: {failure}")
        new = list(asked.new)
        if len(new) > 1:
            middle = (len(new) + 1) // 2
            return [new[:middle], new[middle:]]
        async with self.run.database.transaction() as conn:
            await marks.mark_failed(conn, self.run.namespace, [new[0].id], PROMPT_VERSION)
            found = Finding(
                "unanswered", new[0].id, scope=asked.scope, rule=PROMPT_VERSION, detail={"cause": failure.cause}
            )
            await self.run.report(conn, [found])
        self.run.advance(1, unanswered=1)
        return []

    async def _embedded(self, asked: Asked, actions: Sequence[Action | Malformed], call: Call) -> Answered:
        """The answer, its digests with their vectors; without an embedder they are found by their words until later."""
        drafts = {
            place: draft_of(action.text, asked.scope, "digest")
            for place, action in enumerate(actions)
            if isinstance(action, Digest)
        }
        if drafts:
            service = Service(self.run.settings, self.run.database, self.run.embedder)
            await preparing.embed(service, list(drafts.values()))
        return Answered(actions, drafts, call)

    async def _settle(self, asked: Asked, answered: Answered) -> None:
        run = self.run
        settled = await run.database.run(
            partial(
                settle,
                caller=self.caller,
                job_id=run.id,
                asked=asked,
                answered=answered,
                apply=run.parameters.get("mode") != "propose",
                retirements_left=run.settings.consolidate_max_retirements - self.retired,
            )
        )
        if settled is None:
            run.advance(len(asked.new), overtaken=len(asked.new))
            return
        self._count(settled)
        run.advance(len(asked.new), asked=len(asked.new), ask_again=len(settled.ask_again))
        if settled.over_cap:
            raise Stopped("the run proposed to retire more facts than one run may")

    def _count(self, settled: Settling) -> None:
        self.retired = self.run.settings.consolidate_max_retirements - settled.retirements_left
        for proposal in settled.made:
            self.run.advance(0, **{f"{proposal.kind}_{proposal.verdict}": 1})


def pack(groups: Sequence[Sequence[Fact]]) -> list[list[Fact]]:
    """Whole groups together, in order, as many as fit one question."""
    batches: list[list[Fact]] = []
    room, size = 0, 0
    for group in groups:
        length = sum(len(fact.content) for fact in group)
        if not batches or len(group) > room or size + length > LARGEST_PROMPT:
            batches.append([])
            room, size = LARGEST_BATCH, 0
        batches[-1].extend(group)
        room -= len(group)
        size += length
    return batches


async def due(conn: Connection, settings: Settings) -> Sequence[Place]:
    """Where enough new facts have gathered; nowhere without a model."""
    if not settings.llm_url or not settings.llm_model:
        return []
    return await noticing.due(conn, PROMPT_VERSION, settings.consolidate_min_facts, _PAUSE)


KIND = Kind("consolidate", consolidate, due)
