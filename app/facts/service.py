"""Remembering: a statement meets what is held, and one short transaction carries out what the rules decide."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from app.analyzer import quoted
from app.auth import Caller
from app.db import Connection
from app.errors import AppError
from app.facts import nearby, queries, vocabulary
from app.facts.addresses import lock_key
from app.facts.decision import decide
from app.facts.fact import Draft, Fact, Rules
from app.facts.lifecycle import load_heads
from app.facts.working import Working
from app.facts.writing import Writing, Written

# So many facts at most are compared with a new one; the rarest shared words choose them.
_MOST_NEIGHBOURS = 150
_WHOLE_SCOPE = "*"


async def remember(
    conn: Connection,
    caller: Caller,
    drafts: Sequence[Draft],
    request_id: str | None,
    *,
    atomic: bool = True,
    batch: bool = False,
) -> list[Written | AppError]:
    """Write statements in order, each seeing what the ones before it did.

    With `atomic` the first refusal is raised and nothing is written; without, a refused statement's place in the
    list holds its error. In a `batch` an error says which item it is about.
    """
    rules, now = await queries.rules_of(conn, caller.namespace)
    refused = await vocabulary.resolve(conn, caller.namespace, drafts, rules)
    working = await gather(conn, caller.namespace, drafts, rules)
    writing = Writing(caller, request_id, working)
    results: list[Written | AppError] = []
    for draft in drafts:
        try:
            if draft.position in refused:
                raise refused[draft.position]
            decision = decide(draft, working, rules, caller, now)
        except AppError as error:
            if batch:
                locate(error, draft.position)
            if atomic:
                raise
            results.append(error)
        else:
            results.append(writing.carry_out(draft, decision, now))
    await writing.flush(conn)
    return results


def locate(error: AppError, position: int) -> None:
    """Let an error say which item of a batch it is about."""
    error.extensions = {**error.extensions, "index": position}
    error.pointer = f"/facts/{position}{error.pointer}"


async def gather(
    conn: Connection, namespace: str, drafts: Sequence[Draft], rules: Rules, named: Sequence[UUID] = ()
) -> Working:
    """Lock every place that the drafts touch, then load what stands there."""
    ids = list({id_ for draft in drafts for id_ in draft.replaces}.union(named))
    places = {(draft.scope, _lock_place(draft, rules)) for draft in drafts}
    if ids:
        places.update(await queries.places_of(conn, namespace, ids))
    await queries.lock(conn, [lock_key(namespace, scope, place) for scope, place in places])
    working = Working()
    may_retire = bool(named) or rules.policy in ("auto_key", "auto_inferred")
    most = nearby.RETIRED if may_retire else nearby.DOUBTED
    working.hold(await nearby.load(conn, namespace, drafts, ids, most))
    await load_heads(conn, namespace, working)
    if rules.policy != "explicit" and not named:
        await _load_neighbours(conn, namespace, working, drafts)
    return working


def _lock_place(draft: Draft, rules: Rules) -> str:
    # Where wording alone may retire, two statements without a subject may be about the same thing.
    if draft.subject is None and rules.policy == "auto_inferred":
        return _WHOLE_SCOPE
    return draft.place


async def _load_neighbours(conn: Connection, namespace: str, working: Working, drafts: Sequence[Draft]) -> None:
    looking = [draft for draft in drafts if draft.kind != "event"]
    terms = {term for draft in looking for term in draft.terms}
    stored = await nearby.frequencies(conn, namespace, list({d.scope for d in looking}), list(terms))
    coming = Counter((draft.scope, term) for draft in looking for term in draft.terms) if len(looking) > 1 else {}
    asking, words = [], []
    for draft in looking:
        held = {term: stored.get((draft.scope, term), 0) for term in draft.terms}
        total = {term: held[term] + coming.get((draft.scope, term), 0) for term in draft.terms}
        draft.selective = _rarest(total)
        if known := [quoted(term) for term in draft.selective if held[term] > 0]:
            asking.append(draft)
            words.append(" | ".join(known))
    if asking:
        working.hold_neighbours(await nearby.neighbours(conn, namespace, asking, words))


def _rarest(frequencies: dict[str, int]) -> tuple[str, ...]:
    """The rare terms that together occur in few facts; at least the rarest that occurs at all."""
    chosen: list[str] = []
    budget = _MOST_NEIGHBOURS
    for term, facts in sorted(frequencies.items(), key=lambda item: (item[1], item[0])):
        if facts > budget and chosen:
            break
        budget -= facts
        if facts:
            chosen.append(term)
    return tuple(chosen)


def inherit(draft: Draft, old: Fact, *, kind_given: bool) -> Draft:
    """The draft with what it leaves out taken from the fact that it replaces."""
    subject = draft.subject if draft.subject is not None else old.subject
    kind = draft.kind if kind_given else (old.kind if old.kind in ("state", "event", "note") else "note")
    return replace(
        draft,
        scope=old.scope,
        subject=subject,
        kind="state" if kind == "note" and subject is not None and not kind_given else kind,
        kind_declared=kind_given,
        tags=draft.tags or list(old.tags),
        replaces=tuple(dict.fromkeys((old.id, *draft.replaces))),
    )
