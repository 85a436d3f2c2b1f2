"""Rederiving: a stale digest is revived, written anew from what is current, or dropped. Its sources never change."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from app.auth import Caller
from app.db import Connection
from app.facts import preparing, retiring
from app.facts.fact import Draft, Fact
from app.facts.lifecycle import load_heads
from app.facts.working import Working
from app.llm import LanguageModel, LlmFailure, build_llm
from app.settings import Settings
from app.state import Service
from app.upkeep.budget import Budget, BudgetSpent
from app.upkeep.consolidation import queries as consolidation
from app.upkeep.consolidation.actions import Digest, read_actions
from app.upkeep.consolidation.asking import FORM, Shown, question
from app.upkeep.consolidation.gate import MOST_SOURCES, Refused, Standing, check_digest
from app.upkeep.consolidation.writing import draft_of, hold, worker, write_digest
from app.upkeep.digests import queries
from app.upkeep.jobs import Counts, JobFailed, JobRun, Kind, Place, TryLater
from app.upkeep.model import Finding

RULE = "rederive/1"
TOO_FEW = "Fewer than two of its sources are current."
NO_MODEL = "Its sources have changed, and no language model is configured to write it anew."
NOTHING_FIT = "Its sources have changed, and no digest of what is current passed."
REWRITTEN = "Its sources have changed; it was written anew from what is current."


async def rederive(run: JobRun) -> Counts:
    """The handler of the job."""
    llm = build_llm(run.settings)
    try:
        if not run.dry_run:
            async with run.database.transaction() as conn:
                run.advance(0, contested=await queries.set_contested_aside(conn, run.namespace))
        async with run.database.reading() as conn:
            stale = await queries.stale_digests(conn, run.namespace, run.scope)
        run.expect(len(stale))
        rederiving = Rederiving(run, llm)
        for digest in stale:
            outcome = await rederiving.take_up(digest)
            run.advance(1, **{outcome: 1})
    except BudgetSpent as spent:
        run.advance(0, stopped=1)
        async with run.database.transaction() as conn:
            await run.report(conn, [Finding("stopped", scope=run.scope, rule=RULE, detail={"reason": str(spent)})])
    except LlmFailure as failure:
        if failure.remedy == "configure":
            raise JobFailed(f"the language model: {failure}") from None
        raise TryLater(f"the language model: {failure}", after_s=failure.retry_after) from None
    finally:
        if llm is not None:
            await llm.aclose()
    return dict(run.counts)


@dataclass(slots=True)
class Rederiving:
    """The state of one run."""

    run: JobRun
    llm: LanguageModel | None
    caller: Caller = field(init=False)
    budget: Budget = field(init=False)

    def __post_init__(self) -> None:
        self.caller = worker(self.run.namespace, "rederive")
        self.budget = Budget(self.run)

    async def take_up(self, digest: Fact) -> str:
        """Revive, rewrite or drop one digest; which of them it was.

        `overtaken`: another run saw to it, or its facts changed while the model thought; then it is due once more.
        """
        run = self.run
        async with run.database.reading() as conn:
            sources, made_of = await queries.sources_of(conn, run.namespace, digest.id)
            current = await _heads(conn, run.namespace, sources)
        # A source that was removed is not among them any more, and its words must not come back with the digest.
        unchanged = len(sources) == made_of and all(source.is_current for source in sources)
        if run.dry_run:
            return await self._foretell(digest, current, unchanged=unchanged)
        if unchanged and await run.database.run(partial(self._revive, digest, sources)):
            return "revived"
        if len(current) < 2:
            return await self._drop(digest, TOO_FEW)
        if self.llm is None:
            return await self._drop(digest, NO_MODEL)
        proposed = await self._propose(current, self.llm)
        if proposed is None:
            return await self._drop(digest, NOTHING_FIT)
        draft, chosen = proposed
        await preparing.embed(Service(run.settings, run.database, run.embedder), [draft])
        outcome = await run.database.run(partial(self._rewrite, digest, draft, chosen))
        return await self._drop(digest, NOTHING_FIT) if outcome == "refused" else outcome

    async def _foretell(self, digest: Fact, current: Sequence[Fact], *, unchanged: bool) -> str:
        lost = len(current) < 2 or self.llm is None
        action = "revive" if unchanged else ("drop" if lost else "ask")
        async with self.run.database.transaction() as conn:
            await self.run.report(conn, [Finding(action, digest.id, scope=digest.scope, rule=RULE)])
        return f"would_{action}"

    async def _revive(self, digest: Fact, sources: Sequence[Fact], conn: Connection) -> bool:
        """Make the digest current again, if all of its sources are and agree."""
        ids = [source.id for source in sources]
        held = await hold(conn, self.run.namespace, ids, [], [digest.id])
        if any(held.standing.current(id_) is None for id_ in ids) or held.standing.contested:
            return False
        revived = await queries.revive(conn, self.run.namespace, digest.id)
        if revived:
            await self._note(conn, "revived", digest)
        return revived

    async def _propose(self, current: Sequence[Fact], llm: LanguageModel) -> tuple[Draft, list[UUID]] | None:
        """A digest of the current facts that passes the gate as they are seen now."""
        shown = Shown.of(current[:MOST_SOURCES])
        try:
            reply = await llm.ask(question(shown, []), FORM, self.budget)
            actions = read_actions(reply.text)
        except LlmFailure as failure:
            if failure.remedy != "divide":
                raise
            self.run.advance(0, **{f"failed_{failure.cause}": 1})
            return None
        for action in actions:
            if isinstance(action, Digest):
                chosen = [id_ for handle in action.sources if (id_ := shown.find(handle)) is not None]
                facts = [fact for fact in current if fact.id in chosen]
                try:
                    check_digest(action.text, facts, Standing({fact.id: fact for fact in facts}))
                except Refused:
                    continue
                return draft_of(action.text, facts[0].scope, "digest"), [fact.id for fact in facts]
        return None

    async def _rewrite(self, digest: Fact, draft: Draft, ids: Sequence[UUID], conn: Connection) -> str:
        """Put a new digest in the place of the stale one, if its facts still stand: `rewritten`, `overtaken`,
        or `refused` by the gate.
        """
        over = await consolidation.digests_over(conn, self.run.namespace, ids)
        held = await hold(conn, self.run.namespace, ids, [draft], [digest.id, *over])
        stale = held.working.facts.get(digest.id)
        sources = [fact for id_ in ids if (fact := held.standing.current(id_)) is not None]
        if stale is None or stale.status != "stale" or len(sources) < len(ids):
            return "overtaken"
        try:
            new = check_digest(draft.content, sources, held.standing)
            if draft.content_hash == stale.content_hash:
                # An address holds a text once, so the old one leaves before the new one comes.
                await retiring.forget(conn, self.caller, stale.id, REWRITTEN, None)
                stale.superseded_by, stale.status = stale.id, "forgotten"
                held.digests.pop(stale.id, None)
            instead = [stale] if stale.status == "stale" else []
            written = await write_digest(
                conn, self.caller, held, new, draft, rule=RULE, reason=REWRITTEN, instead_of=instead
            )
        except Refused:
            return "refused"
        await self._note(conn, "rewritten", digest, written.id)
        return "rewritten"

    async def _drop(self, digest: Fact, reason: str) -> str:
        """Forget a digest that is still stale; another run beside this one may have seen to it meanwhile."""

        async def drop(conn: Connection) -> bool:
            held = await hold(conn, self.run.namespace, [], [], [digest.id])
            stale = held.working.facts.get(digest.id)
            if stale is None or stale.status != "stale":
                return False
            await retiring.forget(conn, self.caller, digest.id, reason, None)
            await self._note(conn, "dropped", digest)
            return True

        return "dropped" if await self.run.database.run(drop) else "overtaken"

    async def _note(self, conn: Connection, action: str, digest: Fact, other: UUID | None = None) -> None:
        await self.run.report(conn, [Finding(action, digest.id, other, scope=digest.scope, rule=RULE)])


async def _heads(conn: Connection, namespace: str, sources: Sequence[Fact]) -> list[Fact]:
    """What stands in the places of these facts now, each once and no digests among them."""
    working = Working()
    working.hold(sources)
    await load_heads(conn, namespace, working)
    heads = (working.head_fact(source) for source in sources)
    return list(
        {head.id: head for head in heads if head is not None and head.is_current and head.kind != "digest"}.values()
    )


async def due(conn: Connection, settings: Settings) -> Sequence[Place]:
    """Where a digest is stale or contested."""
    del settings
    return await queries.places_due(conn)


KIND = Kind("rederive", rederive, due)
