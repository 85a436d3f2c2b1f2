"""What becomes of an answer: every proposal passes the gate under locks, and gets its verdict in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from uuid_utils.compat import uuid7

from app.auth import Caller
from app.db import Connection
from app.errors import AppError
from app.facts import queries as facts
from app.facts import retiring
from app.facts.fact import Draft, Fact
from app.facts.schemas import SupersedeIn
from app.upkeep.consolidation import marks, queries
from app.upkeep.consolidation.actions import Action, Classification, Contradiction, Digest, Malformed
from app.upkeep.consolidation.asking import PROMPT_VERSION, Shown
from app.upkeep.consolidation.gate import (
    NewConflict,
    Refused,
    admit_conflict,
    admit_digest,
    admit_subject,
    check_retirement,
)
from app.upkeep.consolidation.writing import Held, hold, write_conflict, write_digest
from app.upkeep.proposals import queries as proposals
from app.upkeep.proposals.model import Call, Kind, Proposal

GROWN = "A digest over more facts was written."
_LONGEST_SHOWN = 500


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: the facts that it shows, and which of those are new."""

    scope: str
    shown: Shown
    new: tuple[Fact, ...]
    vocabulary: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer, with a draft (and its vector) for each digest that it proposes, by the action's place."""

    actions: Sequence[Action | Malformed]
    drafts: Mapping[int, Draft]
    call: Call


@dataclass(slots=True)
class Settling:
    """One answer on its way through the gate."""

    conn: Connection
    caller: Caller
    job_id: UUID
    asked: Asked
    answered: Answered
    held: Held
    apply: bool
    may_retire: bool
    closed_vocabulary: bool
    retirements_left: int
    made: list[Proposal] = field(default_factory=list)
    ask_again: set[UUID] = field(default_factory=set)
    over_cap: bool = False

    async def settle(self) -> None:
        """Contradictions first: what they retire is no source any more."""
        numbered = list(enumerate(self.answered.actions))
        for _, action in numbered:
            if isinstance(action, Contradiction):
                await self._contradiction(action)
            elif isinstance(action, Malformed):
                self._add("unreadable", [], "refused", action.reason)
        for place, action in numbered:
            if isinstance(action, Digest):
                await self._digest(action, self.answered.drafts[place])
            elif isinstance(action, Classification):
                self._classification(action)

    def _add(self, kind: Kind, ids: Sequence[UUID], verdict: str, reason: str | None = None) -> Proposal:
        call = self.answered.call
        proposal = Proposal(
            namespace=self.caller.namespace,
            id=uuid7(),
            job_id=self.job_id,
            scope=self.asked.scope,
            kind=kind,
            fact_ids=list(ids),
            rule=PROMPT_VERSION,
            model=call.model,
            call_id=call.id,
            tokens=call.tokens,
            verdict=verdict,  # type: ignore[arg-type]  # The three that are named below.
            reason=reason,
        )
        self.made.append(proposal)
        return proposal

    def _named(self, handles: Sequence[str]) -> list[UUID]:
        ids = dict.fromkeys(self.asked.shown.find(handle) for handle in handles)
        # What was erased meanwhile must not be named any more either.
        return [id_ for id_ in ids if id_ is not None and id_ in self.held.standing.facts]

    def _refuse(self, kind: Kind, handles: Sequence[str], refusal: Refused) -> None:
        ids = self._named(handles)
        if refusal.again:
            self.ask_again.update(ids)
        self._add(kind, ids, "refused", str(refusal))

    # --- Digests ---------------------------------------------------------------------------------------------

    async def _digest(self, action: Digest, draft: Draft) -> None:
        try:
            new = admit_digest(action, self.asked.shown, self.held.standing)
            if self.apply:
                fact = await write_digest(
                    self.conn, self.caller, self.held, new, draft, rule=PROMPT_VERSION, reason=GROWN
                )
            else:
                self.held.others_over(new.sources)
        except Refused as refusal:
            self._refuse("digest", action.sources, refusal)
            return
        proposal = self._add("digest", [source.id for source in new.sources], "applied" if self.apply else "waiting")
        proposal.content = {"text": new.text}
        proposal.result_id = fact.id if self.apply else None

    # --- Contradictions --------------------------------------------------------------------------------------

    async def _contradiction(self, action: Contradiction) -> None:
        try:
            new = admit_conflict(action, self.asked.shown, self.held.standing)
        except Refused as refusal:
            self._refuse("contradiction", [action.first, action.second], refusal)
            return
        if new.ended is not None and await self._retirement(new):
            return
        proposal = self._add("contradiction", [new.first.id, new.second.id], "applied" if self.apply else "waiting")
        proposal.content = {
            "reason": new.reason[:_LONGEST_SHOWN],
            "conflict": new.kind,
            "quotes": [action.first_quote, action.second_quote],
        }
        if self.apply:
            proposal.result_id = await write_conflict(self.conn, self.caller, self.held, new, PROMPT_VERSION)

    async def _retirement(self, new: NewConflict) -> bool:
        """Retire what ended, where the namespace lets a model do so and the facts bear it out; else say why not."""
        old, successor = new.ended, new.successor
        if old is None or not self.may_retire:
            return False
        hindrance = self._over_cap() or check_retirement(new)
        if hindrance is None and self.apply:
            hindrance = await self._supersede(old, successor, new)
        verdict = "refused" if hindrance else ("applied" if self.apply else "waiting")
        proposal = self._add("retirement", [old.id, successor.id], verdict, hindrance)
        proposal.content = {"reason": new.reason[:_LONGEST_SHOWN], "evidence": new.evidence}
        proposal.result_id = successor.id if verdict == "applied" else None
        return hindrance is None

    def _over_cap(self) -> str | None:
        if self.retirements_left <= 0:
            self.over_cap = True
            return "the run has retired as many facts as one run may"
        return None

    async def _supersede(self, old: Fact, successor: Fact, new: NewConflict) -> str | None:
        claim = SupersedeIn(by=successor.id, reason=new.reason, evidence=new.evidence)
        try:
            await retiring.replace_with_fact(
                self.conn, self.caller, old.id, successor.id, claim, None, rule=PROMPT_VERSION
            )
        except AppError as error:
            return error.code
        self.retirements_left -= 1
        old.superseded_by, old.status = successor.id, "superseded"
        return None

    # --- Classifications -------------------------------------------------------------------------------------

    def _classification(self, action: Classification) -> None:
        """These always wait: a text is never edited, so what is approved is written anew in the note's place."""
        vocabulary = frozenset(self.asked.vocabulary)
        try:
            new = admit_subject(action, self.asked.shown, self.held.standing, vocabulary, closed=self.closed_vocabulary)
        except Refused as refusal:
            self._refuse("classification", [action.fact], refusal)
            return
        if new is not None:
            proposal = self._add("classification", [new.fact.id], "waiting")
            proposal.content = {"kind": new.kind, "subject": new.subject}


async def settle(
    conn: Connection,
    caller: Caller,
    job_id: UUID,
    asked: Asked,
    answered: Answered,
    *,
    apply: bool,
    retirements_left: int,
) -> Settling | None:
    """Carry out what the gate admits of an answer, keep every proposal, and mark the new facts as asked about.

    None where another run has settled all of these facts meanwhile, so that the answer is of no use any more.
    """
    namespace = caller.namespace
    before = await queries.digests_over(conn, namespace, asked.shown.ids)
    held = await hold(conn, namespace, asked.shown.ids, list(answered.drafts.values()), list(before))
    fresh = [fact.id for fact in asked.new if fact.id in held.standing.facts]
    done = await marks.done_among(conn, namespace, fresh, PROMPT_VERSION)
    if len(done) == len(fresh):
        return None
    rules, _ = await facts.rules_of(conn, namespace)
    settling = Settling(
        conn=conn,
        caller=caller,
        job_id=job_id,
        asked=asked,
        answered=answered,
        held=held,
        apply=apply,
        may_retire=await queries.may_retire(conn, namespace),
        closed_vocabulary=rules.closed_vocabulary,
        retirements_left=retirements_left,
    )
    await settling.settle()
    await proposals.add(conn, settling.made)
    settled = [id_ for id_ in fresh if id_ not in settling.ask_again]
    await marks.mark_done(conn, namespace, settled, PROMPT_VERSION)
    return settling
