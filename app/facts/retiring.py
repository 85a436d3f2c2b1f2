"""Ending a fact's life on somebody's word, and undoing it: supersede, amend, forget, restore, pin."""

from dataclasses import dataclass
from uuid import UUID

from app.auth import Caller
from app.db import Connection
from app.errors import (
    AddressTaken,
    Conflict,
    FactAlreadyRetired,
    FactNotFound,
    ReplacementRetired,
    SelfSupersede,
    TargetNewer,
)
from app.facts import lifecycle, nearby, queries, vocabulary
from app.facts.addresses import lock_key
from app.facts.decision import EXPLICIT, check_proof, check_tier, find_target
from app.facts.fact import Decision, Draft, Fact, Retired, Retirement
from app.facts.schemas import AmendIn, SupersedeIn
from app.facts.service import gather, inherit, remember
from app.facts.working import Working
from app.facts.writing import Writing, Written, retraction_of, status_at


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A fact that was retired without replacement, now or (`already`) earlier."""

    fact: Fact
    already: bool


async def _named(conn: Connection, caller: Caller, id_: UUID) -> Fact:
    """The fact with this id whatever became of it, if the caller may read it."""
    found = await queries.past_fact(conn, caller.namespace, id_)
    if found is None or found[0].kind == "retraction" or not caller.reads.admit(found[0].scope):
        raise FactNotFound
    return found[0]


async def replace_with_text(
    conn: Connection,
    caller: Caller,
    id_: UUID,
    draft: Draft,
    request_id: str | None,
    *,
    body: SupersedeIn | AmendIn,
    retired_as: Retirement = "superseded",
) -> Written:
    """Retire a fact by a new statement, which takes over what it leaves out."""
    old = await _named(conn, caller, id_)
    caller.must_write(old.scope)
    whole = inherit(draft, old, kind_given=body.kind is not None)
    whole.replaces_as = retired_as
    if isinstance(body, AmendIn):
        whole.replaces = tuple(dict.fromkeys((id_, *body.folds)))
    (result,) = await remember(conn, caller, [whole], request_id)
    if not isinstance(result, Written):
        raise result
    return result


async def replace_with_fact(
    conn: Connection,
    caller: Caller,
    id_: UUID,
    by: UUID,
    body: SupersedeIn,
    request_id: str | None,
    *,
    rule: str = EXPLICIT,
) -> Written:
    """Retire a fact by one that is current already. `rule` names who says so, if it is not the caller's own word."""
    if by == id_:
        raise SelfSupersede
    rules, now = await queries.rules_of(conn, caller.namespace)
    working = await lock_and_load(conn, caller, [id_, by])
    successor = working.facts.get(by)
    if successor is None or successor.kind == "retraction" or not caller.reads.admit(successor.scope):
        raise FactNotFound("This namespace holds no fact with the id given as `by`.", pointer="/by")
    # Saying the same again is no new claim, and the answer is the one that was given first.
    repeated = working.facts.get(id_)
    if repeated is not None and repeated.superseded_by == by and caller.writes.admit(repeated.scope):
        return Written(successor, Decision(retires=[_told(repeated, body, rule, forced=False)]), [])
    target = find_target(id_, working, caller)
    if not successor.is_current:
        raise ReplacementRetired(head=working.head_of(successor, caller.reads))
    check_proof(body.evidence, (successor.content, successor.source_quote), rules)
    if successor.valid_from < target.valid_from and not body.force:
        raise TargetNewer
    forced = check_tier(successor.source_tier, target, force=body.force) or successor.valid_from < target.valid_from
    claim = _told(target, body, rule, forced=forced)
    writing = Writing(caller, request_id, working)
    writing.retire(claim, successor, max(now, target.recorded_at, successor.recorded_at))
    await writing.flush(conn)
    return Written(successor, Decision(retires=[claim]), [])


def _told(target: Fact, body: SupersedeIn, rule: str, *, forced: bool) -> Retired:
    return Retired(target, rule, body.reason, body.evidence, forced=forced)


async def lock_and_load(conn: Connection, caller: Caller, ids: list[UUID]) -> Working:
    """Lock the places of facts, then load them with the heads of their chains."""
    places = await queries.places_of(conn, caller.namespace, ids)
    await queries.lock(conn, [lock_key(caller.namespace, scope, place) for scope, place in places])
    working = Working()
    working.hold(await nearby.load(conn, caller.namespace, [], ids))
    await lifecycle.load_heads(conn, caller.namespace, working)
    return working


async def forget(conn: Connection, caller: Caller, id_: UUID, reason: str, request_id: str | None) -> Forgotten:
    """Retire a fact without replacement: a retraction is appended whose text is the reason."""
    _, now = await queries.rules_of(conn, caller.namespace)
    working = await lock_and_load(conn, caller, [id_])
    fact = working.facts.get(id_)
    if fact is not None and fact.status == "forgotten" and caller.writes.admit(fact.scope):
        return Forgotten(fact, already=True)
    fact = find_target(id_, working, caller)
    writing = Writing(caller, request_id, working)
    draft = retraction_of(fact, reason)
    moment = working.next_instant(max(now, fact.recorded_at), draft)
    entry = writing.append_retraction(draft, fact, moment)
    writing.retire(Retired(fact, EXPLICIT, reason, None, "forgotten"), entry, moment)
    await writing.flush(conn)
    return Forgotten(fact, already=False)


async def restore(
    conn: Connection,
    caller: Caller,
    id_: UUID,
    reason: str,
    request_id: str | None,
    *,
    replace: bool,
    undoing: UUID | None = None,
) -> tuple[Fact, list[Retired]]:
    """Undo a retirement. The link that made it stays, demoted, with the reason why it was wrong.

    With `undoing`, only the retirement by that fact is undone.
    """
    named = await _named(conn, caller, id_)
    caller.must_write(named.scope)
    rules, now = await queries.rules_of(conn, caller.namespace)
    likeness = _likeness(named)
    # Its subject may have become another one's alias since; what stands there now is in its way as well.
    await vocabulary.resolve(conn, caller.namespace, [likeness], rules)
    working = await gather(conn, caller.namespace, [likeness], rules, named=[id_])
    fact = working.facts[id_]
    if fact.superseded_by is None or undoing not in (None, fact.superseded_by):
        raise Conflict("This fact was never retired, or is restored already.")
    taken = [*working.current_states(likeness)] if fact.kind == "state" else []
    twin = working.same_text(likeness, now)
    if twin is not None and twin.id not in {held.id for held in taken}:
        taken.append(twin)
    if taken and not replace:
        raise AddressTaken(head=taken[-1].id)
    writing = Writing(caller, request_id, working)
    moment = working.next_instant(now, likeness)
    undone = fact.superseded_by
    replaced = [Retired(held, EXPLICIT, reason, None) for held in [*taken, *working.stale_with_same_text(likeness)]]
    for claim in replaced:
        writing.retire(claim, fact, moment)
    writing.log("restored", fact, undone=str(undone))
    # What is replaced leaves first, since an address holds a text current only once.
    await writing.flush(conn)
    await lifecycle.detach(conn, caller, fact, undone, moment, reason)
    fact.superseded_by, fact.retired_at, fact.status = None, None, status_at(fact, moment)
    return fact, replaced


def _likeness(fact: Fact) -> Draft:
    """A draft at the fact's own place, by which what stands there now is found."""
    draft = retraction_of(fact, fact.content)
    draft.kind, draft.subject, draft.content_hash = fact.kind, fact.subject, fact.content_hash
    return draft


async def pin(conn: Connection, caller: Caller, id_: UUID, request_id: str | None, *, pinned: bool) -> Fact:
    """Keep a current fact from decay and pruning, or stop doing so; once is as good as twice."""
    working = await lock_and_load(conn, caller, [id_])
    fact = working.facts.get(id_)
    if fact is not None and not fact.can_retire and fact.kind != "retraction" and caller.reads.admit(fact.scope):
        raise FactAlreadyRetired(
            "A retired fact cannot be pinned; `head` is what stands in its place.",
            head=working.head_of(fact, caller.reads),
        )
    fact = find_target(id_, working, caller)
    if fact.pinned != pinned:
        fact.pinned = pinned
        await lifecycle.set_pinned(conn, caller.namespace, id_, pinned=pinned)
        writing = Writing(caller, request_id, working)
        writing.log("pinned" if pinned else "unpinned", fact)
        await writing.flush(conn)
    return fact
