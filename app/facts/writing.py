"""A write in the making: decisions become rows, and the rows go out in a fixed number of statements."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from app.audit.queries import Event, record
from app.auth import Caller
from app.db import Connection, Overtaken
from app.facts import storing
from app.facts.addresses import content_hash
from app.facts.detection import normalise
from app.facts.fact import Decision, Doubt, Draft, Fact, Retired
from app.facts.working import Working

_WRITTEN_ANEW = "written_anew/1"


@dataclass(frozen=True, slots=True)
class Written:
    """What a draft became."""

    fact: Fact
    decision: Decision
    doubt_links: list[UUID]

    @property
    def outcome(self) -> str:
        if self.decision.retires:
            return "superseded"
        return "reaffirmed" if self.decision.reaffirms is not None else "created"


@dataclass(slots=True)
class Step:
    """Facts to insert, then facts to retire. `ended` are the texts that the latter take from their addresses."""

    inserts: list[tuple[Fact, Draft]] = field(default_factory=list)
    endings: list[tuple[UUID, UUID, datetime, datetime, str]] = field(default_factory=list)
    ended: set[tuple[str, str | None, bytes]] = field(default_factory=set)


@dataclass(slots=True)
class Writing:
    """Collects what a transaction appends and retires, in order; `flush` sends it."""

    caller: Caller
    request_id: str | None
    working: Working
    steps: list[Step] = field(default_factory=lambda: [Step()])
    chain_steps: list[tuple[Fact, UUID]] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list)
    seen_again: Counter[UUID] = field(default_factory=Counter)
    seen_at: dict[UUID, datetime] = field(default_factory=dict)
    observations: list[dict[str, Any]] = field(default_factory=list)
    tags: dict[UUID, list[str]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def carry_out(self, draft: Draft, decision: Decision, now: datetime) -> Written:
        """Turn a decision into rows."""
        moment = self.working.next_instant(now, draft)
        if decision.reaffirms is not None:
            fact = decision.reaffirms
            self._reaffirm(draft, fact, moment)
        else:
            fact = self._create(draft, decision, moment)
        for retired in decision.retires:
            self.retire(retired, fact, moment)
        doubt_links = [self.contest(fact, doubt, moment) for doubt in decision.doubts]
        for earlier in decision.reasserts:
            self.draw("reasserts", fact, earlier, moment)
        return Written(fact, decision, doubt_links)

    def _create(self, draft: Draft, decision: Decision, moment: datetime) -> Fact:
        for stale in self.working.stale_with_same_text(draft):
            self._end(stale, "The same text was written anew.", moment)
        id_ = uuid7()
        chain_id = decision.retires[0].fact.chain_id if decision.retires else id_
        fact = self._fact(draft, id_, chain_id, moment)
        fact.status = status_at(fact, moment)
        self._insert(fact, draft)
        self.working.add(fact, draft.selective)
        self.log("remembered", fact, kind=fact.kind, tier=fact.source_tier)
        return fact

    def _fact(self, draft: Draft, id_: UUID, chain_id: UUID, moment: datetime) -> Fact:
        observed_at = draft.observed_at or moment
        return Fact(
            namespace=self.caller.namespace,
            id=id_,
            chain_id=chain_id,
            scope=draft.scope,
            agent=draft.agent,
            kind=draft.kind,
            subject=draft.subject,
            content=draft.content,
            content_hash=draft.content_hash,
            source_tier=draft.source_tier,
            source_ref=draft.source_ref,
            source_quote=draft.source_quote,
            confidence=draft.confidence,
            tags=draft.tags,
            metadata=draft.metadata,
            # What was observed earlier held from then on; what is only expected to be seen later does not.
            valid_from=draft.valid_from or min(observed_at, moment),
            valid_to=draft.valid_to,
            observed_at=observed_at,
            recorded_at=moment,
            embedded=draft.embedding_profile is not None,
            last_observed_at=observed_at,
        )

    def _insert(self, fact: Fact, draft: Draft) -> None:
        # An address holds a text current only once, so one that comes back waits until its former self has left.
        if _text_at_address(fact) in self.steps[-1].ended:
            self.steps.append(Step())
        self.steps[-1].inserts.append((fact, draft))

    def append_retraction(self, draft: Draft, fact: Fact, moment: datetime) -> Fact:
        """Append the entry that ends a fact's life without replacement; it joins the fact's chain."""
        entry = self._fact(draft, uuid7(), fact.chain_id, moment)
        self._insert(entry, draft)
        return entry

    def _end(self, stale: Fact, reason: str, moment: datetime) -> None:
        """Retire a stale digest, which would be in the way of its own words."""
        entry = self.append_retraction(retraction_of(stale, reason), stale, moment)
        self.retire(Retired(stale, _WRITTEN_ANEW, reason, None, "forgotten"), entry, moment)

    def _reaffirm(self, draft: Draft, fact: Fact, moment: datetime) -> None:
        seen = draft.observed_at or moment
        self.seen_again[fact.id] += 1
        self.seen_at[fact.id] = max(seen, self.seen_at.get(fact.id, seen))
        fact.observed_count += 1
        fact.last_observed_at = max(fact.last_observed_at, seen)
        self.log("reaffirmed", fact)
        if _says_something_new(draft, fact):
            self.observations.append(
                {
                    "namespace": self.caller.namespace,
                    "id": uuid7(),
                    "fact_id": fact.id,
                    "agent": draft.agent,
                    "source_tier": draft.source_tier,
                    "source_ref": draft.source_ref,
                    "source_quote": draft.source_quote,
                    "confidence": draft.confidence,
                    "tags": draft.tags,
                    "metadata": draft.metadata,
                    "observed_at": seen,
                    "recorded_at": moment,
                }
            )
            new_tags = [tag for tag in draft.tags if tag not in fact.tags]
            if new_tags:
                fact.tags = [*fact.tags, *new_tags]
                self.tags[fact.id] = fact.tags

    def retire(self, retired: Retired, successor: Fact, moment: datetime) -> None:
        """Point a fact at its successor, with the claim that ends it."""
        old = retired.fact
        ended_at = max(old.valid_from, successor.valid_from)
        step = self.steps[-1]
        step.endings.append((old.id, successor.id, moment, ended_at, retired.retired_as))
        step.ended.add(_text_at_address(old))
        self.chain_steps.append((old, successor.id))
        old.superseded_by, old.retired_at, old.status = successor.id, moment, retired.retired_as
        kind = "amends" if retired.retired_as == "amended" else "supersedes"
        self.draw(kind, successor, old, moment, reason=retired.reason, evidence=retired.evidence, rule=retired.rule)
        forced = {"forced": True} if retired.forced else {}
        self.log(retired.retired_as, old, other=successor, rule=retired.rule, **forced)

    def contest(self, fact: Fact, doubt: Doubt, moment: datetime) -> UUID:
        """Draw the conflict between a fact and one that it may contradict; both stay."""
        detail = {"detail": doubt.detail, "removed": list(doubt.removed), "added": list(doubt.added)}
        link = self.draw("contradicts", fact, doubt.fact, moment, rule=doubt.rule, conflict=doubt.kind, detail=detail)
        self.log("contested", fact, other=doubt.fact, conflict=doubt.kind)
        return link

    def draw(self, kind: str, source: Fact, target: Fact, moment: datetime, **claim: Any) -> UUID:
        """Draw a link from one fact to another."""
        row = {
            "namespace": self.caller.namespace,
            "id": uuid7(),
            "source_id": source.id,
            "target_id": target.id,
            "kind": kind,
            "reason": None,
            "evidence": None,
            "rule": None,
            "conflict": None,
            "detail": {},
            "drawn_by": self.caller.actor,
            "drawn_at": moment,
        } | claim
        self.links.append(row)
        return UUID(str(row["id"]))

    def log(self, action: str, fact: Fact, other: Fact | None = None, **detail: Any) -> None:
        """Note a change of state for the audit trail."""
        self.events.append(
            Event(
                namespace=self.caller.namespace,
                actor=self.caller.actor,
                action=action,
                scope=fact.scope,
                fact_id=fact.id,
                other_id=other.id if other else None,
                request_id=self.request_id,
                detail=detail,
            )
        )

    async def flush(self, conn: Connection) -> None:
        """Send everything: replacements first, then retirements. Raises Overtaken where one came too late."""
        namespace = self.caller.namespace
        for step in self.steps:
            await storing.insert_facts(conn, step.inserts)
            if step.endings and await storing.retire(conn, namespace, step.endings) != len(step.endings):
                raise Overtaken
        async with conn.pipeline():
            await storing.extend_chains(conn, namespace, self.chain_steps)
            await storing.insert_links(conn, self.links)
            await storing.observe_again(
                conn, namespace, [(id_, times, self.seen_at[id_]) for id_, times in self.seen_again.items()]
            )
            await storing.insert_observations(conn, self.observations)
            await storing.set_tags(
                conn,
                [{"namespace": namespace, "fact_id": id_, "new_tags": tags} for id_, tags in self.tags.items()],
            )
            await record(conn, self.events)


def retraction_of(fact: Fact, reason: str) -> Draft:
    """The entry that ends a fact's life without replacement, on its way to become one."""
    return Draft(
        scope=fact.scope,
        agent=None,
        kind="retraction",
        kind_declared=True,
        subject=None,
        content=reason,
        content_hash=content_hash(normalise(reason)),
        source_tier=fact.source_tier,
        source_ref=None,
        source_quote=None,
        confidence=None,
        tags=[],
        metadata={},
        valid_from=None,
        valid_to=None,
        observed_at=None,
        terms={},
        term_length=0,
        terms_literal="",
    )


def _text_at_address(fact: Fact) -> tuple[str, str | None, bytes]:
    return (fact.scope, fact.subject, fact.content_hash)


def status_at(fact: Fact, moment: datetime) -> str:
    """How a fact that is not retired stands at a moment."""
    if fact.valid_from > moment:
        return "scheduled"
    return "expired" if fact.valid_to is not None and fact.valid_to <= moment else "active"


def _says_something_new(draft: Draft, fact: Fact) -> bool:
    """Whether an observation adds to what is held; leaving a field out adds nothing."""
    return (
        (draft.agent is not None and draft.agent != fact.agent)
        or draft.source_tier != fact.source_tier
        or (draft.source_ref is not None and draft.source_ref != fact.source_ref)
        or (draft.source_quote is not None and draft.source_quote != fact.source_quote)
        or (draft.confidence is not None and draft.confidence != fact.confidence)
        or any(tag not in fact.tags for tag in draft.tags)
        or any(fact.metadata.get(key) != value for key, value in draft.metadata.items())
    )
