"""States that come to stand at one address without being written there: when their time comes, or by an alias."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.auth import Caller
from app.db import Connection
from app.facts import queries
from app.facts.decision import judge_state
from app.facts.fact import Decision, Draft, Fact
from app.facts.retiring import lock_and_load
from app.facts.writing import Writing


@dataclass(frozen=True, slots=True)
class Meeting:
    """A state, what the rules say of it and of those that it met, and the write that is to carry it out."""

    fact: Fact
    decision: Decision
    writing: Writing
    moment: datetime


async def meet(
    conn: Connection, caller: Caller, id_: UUID, held: Sequence[UUID], request_id: str | None
) -> Meeting | None:
    """Judge a state against others as if it were written now; None where it is gone or nothing decides by itself."""
    rules, now = await queries.rules_of(conn, caller.namespace)
    working = await lock_and_load(conn, caller, [id_, *held])
    fact = working.facts.get(id_)
    if fact is None or not fact.is_current or rules.policy == "explicit":
        return None
    decision = Decision()
    for old in (working.facts[other] for other in held if other in working.facts):
        if old.is_current:
            judge_state(_as_written_now(fact), old, decision, rules)
    return Meeting(fact, decision, Writing(caller, request_id, working), now)


def _as_written_now(fact: Fact) -> Draft:
    return Draft(
        scope=fact.scope,
        agent=fact.agent,
        kind=fact.kind,
        kind_declared=False,
        subject=fact.subject,
        content=fact.content,
        content_hash=fact.content_hash,
        source_tier=fact.source_tier,
        source_ref=fact.source_ref,
        source_quote=fact.source_quote,
        confidence=fact.confidence,
        tags=fact.tags,
        metadata=fact.metadata,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        observed_at=None,
        terms={},
        term_length=0,
        terms_literal="",
    )
