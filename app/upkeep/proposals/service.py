"""Deciding about proposals: what is approved goes through the same gate and the same calls as anybody's write."""

from uuid import UUID

from app.auth import Caller
from app.db import Connection
from app.errors import AppError, ProposalDecided, ProposalNotFound
from app.facts import retiring
from app.facts import service as facts
from app.facts.fact import Draft, Fact
from app.facts.queries import past_fact
from app.facts.schemas import SupersedeIn
from app.upkeep.consolidation import queries as consolidation
from app.upkeep.consolidation.gate import NewConflict, Refused, check_digest
from app.upkeep.consolidation.settling import GROWN
from app.upkeep.consolidation.writing import draft_of, hold, write_conflict, write_digest
from app.upkeep.proposals import queries
from app.upkeep.proposals.model import Proposal


async def find(conn: Connection, caller: Caller, id_: UUID, *, lock: bool = False) -> Proposal:
    """A proposal about a scope that the caller may read. Raises ProposalNotFound."""
    proposal = await queries.find(conn, caller.namespace, id_, lock=lock)
    if proposal is None or not caller.reads.admit(proposal.scope):
        raise ProposalNotFound
    return proposal


async def draft_for(conn: Connection, caller: Caller, proposal: Proposal) -> Draft | None:
    """The text that an approval would write, to be embedded before the transaction; None where it writes none."""
    if proposal.kind == "digest":
        return draft_of(str(proposal.content.get("text") or "-"), proposal.scope, "digest")
    if proposal.kind == "classification" and proposal.fact_ids:
        found = await past_fact(conn, caller.namespace, proposal.fact_ids[0])
        return _classified(found[0], proposal, caller) if found else None
    return None


def _classified(fact: Fact, proposal: Proposal, caller: Caller) -> Draft:
    """The note's words as a state or an event, in its place and with its dates."""
    return draft_of(
        fact.content,
        fact.scope,
        str(proposal.content.get("kind") or "note"),
        agent=fact.agent,
        subject=proposal.content.get("subject"),
        source_tier=caller.capped(fact.source_tier),
        source_ref=fact.source_ref,
        source_quote=fact.source_quote,
        confidence=fact.confidence,
        tags=list(fact.tags),
        metadata=dict(fact.metadata),
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        observed_at=fact.observed_at,
        replaces=(fact.id,),
        reason="The same statement, with its kind and subject.",
        force=True,
    )


async def approve(conn: Connection, caller: Caller, id_: UUID, draft: Draft | None, request_id: str | None) -> Proposal:
    """Carry a waiting proposal out. Where that is not possible any more, it is refused and says why."""
    proposal = await _waiting(conn, caller, id_)
    try:
        async with conn.transaction():
            result = await _carry_out(conn, caller, proposal, draft, request_id)
    except (Refused, AppError) as refusal:
        why = refusal.code if isinstance(refusal, AppError) else str(refusal)
        await queries.decide(conn, proposal, "refused", caller.actor, reason=why, result=None)
    else:
        await queries.decide(conn, proposal, "applied", caller.actor, reason=None, result=result)
    return await find(conn, caller, id_)


async def reject(conn: Connection, caller: Caller, id_: UUID, reason: str) -> Proposal:
    """Decide that a waiting proposal is not carried out."""
    proposal = await _waiting(conn, caller, id_)
    await queries.decide(conn, proposal, "rejected", caller.actor, reason=reason, result=None)
    return await find(conn, caller, id_)


async def _waiting(conn: Connection, caller: Caller, id_: UUID) -> Proposal:
    proposal = await find(conn, caller, id_, lock=True)
    caller.must_write(proposal.scope)
    if proposal.verdict != "waiting":
        raise ProposalDecided(verdict=proposal.verdict)
    return proposal


async def _carry_out(
    conn: Connection, caller: Caller, proposal: Proposal, draft: Draft | None, request_id: str | None
) -> UUID | None:
    match proposal.kind:
        case "digest":
            return await _write_digest(conn, caller, proposal, draft)
        case "contradiction":
            return await _write_conflict(conn, caller, proposal)
        case "retirement":
            return await _retire(conn, caller, proposal, request_id)
        case "classification" if draft is not None:
            (written,) = await facts.remember(conn, caller, [draft], request_id)
            return None if isinstance(written, AppError) else written.fact.id
        case "demotion":
            reason = proposal.reason or "It did not stand review."
            fact, _ = await retiring.restore(
                conn, caller, proposal.fact_ids[0], reason, request_id, replace=False, undoing=proposal.fact_ids[1]
            )
            return fact.id
        case _:
            raise Refused("the facts are gone")


async def _write_digest(conn: Connection, caller: Caller, proposal: Proposal, draft: Draft | None) -> UUID:
    if draft is None or "text" not in proposal.content:
        raise Refused("the facts are gone")
    ids = proposal.fact_ids
    before = await consolidation.digests_over(conn, caller.namespace, ids)
    held = await hold(conn, caller.namespace, ids, [draft], list(before))
    sources = [fact for id_ in ids if (fact := held.standing.current(id_)) is not None]
    if len(sources) < len(ids):
        raise Refused("a source was retired meanwhile")
    new = check_digest(draft.content, sources, held.standing)
    written = await write_digest(conn, caller, held, new, draft, rule=proposal.rule, reason=GROWN)
    return written.id


async def _write_conflict(conn: Connection, caller: Caller, proposal: Proposal) -> UUID:
    held = await hold(conn, caller.namespace, proposal.fact_ids, [])
    first, second = (held.standing.current(id_) for id_ in proposal.fact_ids)
    if first is None or second is None:
        raise Refused("one of the facts was retired meanwhile")
    if frozenset(proposal.fact_ids) in held.standing.judged:
        raise Refused("these two are contested already, or were before")
    said = proposal.content
    new = NewConflict(first, second, said.get("conflict", "value"), said.get("reason", ""), None, None)
    return await write_conflict(conn, caller, held, new, proposal.rule)


async def _retire(conn: Connection, caller: Caller, proposal: Proposal, request_id: str | None) -> UUID:
    old, successor = proposal.fact_ids
    said = proposal.content
    claim = SupersedeIn(by=successor, reason=said["reason"], evidence=said.get("evidence"))
    written = await retiring.replace_with_fact(conn, caller, old, successor, claim, request_id, rule=proposal.rule)
    return written.fact.id
