"""Writing what the gate admitted: facts are locked, looked at once more, and changed in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.analyzer import analyze, tsvector_literal
from app.auth import TIERS, Caller, Scopes, Tier, rank
from app.db import Connection
from app.facts import nearby
from app.facts import queries as facts
from app.facts.addresses import content_hash, lock_key
from app.facts.detection import normalise
from app.facts.fact import Decision, Draft, Fact, Retired
from app.facts.lifecycle import load_heads
from app.facts.working import Working
from app.facts.writing import Writing
from app.upkeep.consolidation import queries
from app.upkeep.consolidation.gate import NewConflict, NewDigest, Refused, Standing


def worker(namespace: str, job: str) -> Caller:
    """The caller that a job acts as; it may do what the namespace's rules let anybody do."""
    everything = Scopes.parse(["*"])
    return Caller(namespace, f"worker:{job}", frozenset({"read", "write", "curate"}), everything, everything, "system")


def weakest(tiers: Sequence[Tier]) -> Tier:
    """The tier that is trusted least."""
    return min(tiers, key=rank, default=TIERS[-1])


def draft_of(content: str, scope: str, kind: str, **more: Any) -> Draft:
    """A statement on its way to become a fact; what `more` leaves out is empty."""
    terms = analyze(content)
    given: dict[str, Any] = {
        "agent": None,
        "subject": None,
        "source_tier": "inferred",
        "source_ref": None,
        "source_quote": None,
        "confidence": None,
        "tags": [],
        "metadata": {},
        "valid_from": None,
        "valid_to": None,
        "observed_at": None,
    }
    return Draft(
        scope=scope,
        kind=kind,
        kind_declared=True,
        content=content,
        content_hash=content_hash(normalise(content)),
        terms=terms.counts,
        term_length=terms.length,
        terms_literal=tsvector_literal(terms),
        **(given | more),
    )


@dataclass(slots=True)
class Held:
    """Facts under lock: how they stand, the digests over them, and the database's clock."""

    working: Working
    standing: Standing
    digests: dict[UUID, frozenset[UUID]]
    now: datetime

    def others_over(self, sources: Sequence[Fact]) -> list[Fact]:
        """The digests that a new one over these sources takes over. Raises Refused where one is not covered.

        A fact is in one digest at most, and a digest grows from sources only, never from another digest's text.
        """
        ids = {fact.id for fact in sources}
        covered = []
        for digest_id, its in self.digests.items():
            digest = self.working.facts.get(digest_id)
            if its.isdisjoint(ids) or (digest is not None and digest.status == "stale"):
                continue
            if digest is None:
                raise Refused("a source came into another digest meanwhile", again=True)
            if not its < ids:
                raise Refused("a source is in another digest already")
            covered.append(digest)
        return covered


async def hold(
    conn: Connection, namespace: str, ids: Sequence[UUID], drafts: Sequence[Draft], digests: Sequence[UUID] = ()
) -> Held:
    """Lock facts and the places of drafts until the transaction ends, then look at them.

    The rows are locked as well: a write may find a fact by its wording, and retire it without its place's lock.
    """
    _, now = await facts.rules_of(conn, namespace)
    named = [*ids, *digests]
    places = {(draft.scope, draft.place) for draft in drafts}
    places.update(await facts.places_of(conn, namespace, named))
    await facts.lock(conn, [lock_key(namespace, scope, place) for scope, place in places])
    await queries.lock_rows(conn, namespace, named)
    working = Working()
    working.hold(await nearby.load(conn, namespace, drafts, named))
    await load_heads(conn, namespace, working)
    contested, judged = await queries.contested_pairs(conn, namespace, ids)
    shown = {id_: working.facts[id_] for id_ in ids if id_ in working.facts}
    over = dict(await queries.digests_over(conn, namespace, ids))
    return Held(working, Standing(shown, contested, judged), over, now)


def digest_draft(new: NewDigest) -> Draft:
    """A digest inherits the weakest tier, the lowest confidence and the dates at which all of its sources hold."""
    sources = new.sources
    given = [fact.confidence for fact in sources if fact.confidence is not None]
    ends = [fact.valid_to for fact in sources if fact.valid_to is not None]
    return draft_of(
        new.text,
        sources[0].scope,
        "digest",
        source_tier=weakest([fact.source_tier for fact in sources]),
        confidence=min(given, default=None),
        valid_from=max(fact.valid_from for fact in sources),
        valid_to=min(ends, default=None),
        observed_at=max(fact.observed_at for fact in sources),
    )


async def write_digest(
    conn: Connection,
    caller: Caller,
    held: Held,
    new: NewDigest,
    embedded: Draft,
    *,
    rule: str,
    reason: str,
    instead_of: Sequence[Fact] = (),
) -> Fact:
    """Append a digest with its links, in the place of those that it covers and of those named. Raises Refused."""
    draft = digest_draft(new)
    draft.embedding, draft.embedding_profile = embedded.embedding, embedded.embedding_profile
    if held.working.same_text(draft, held.now) is not None:
        raise Refused("the same text is held already")
    replaced = [*held.others_over(new.sources), *instead_of]
    decision = Decision(retires=[Retired(digest, rule, reason, None) for digest in replaced])
    writing = Writing(caller, None, held.working)
    written = writing.carry_out(draft, decision, held.now)
    for source in new.sources:
        writing.draw(
            "derived_from", written.fact, source, written.fact.recorded_at, rule=rule, detail={"of": len(new.sources)}
        )
    await writing.flush(conn)
    for digest in decision.retires:
        held.digests.pop(digest.fact.id, None)
    held.digests[written.fact.id] = frozenset(fact.id for fact in new.sources)
    return written.fact


async def write_conflict(conn: Connection, caller: Caller, held: Held, new: NewConflict, rule: str) -> UUID:
    """Show that two facts contest each other; both stay."""
    writing = Writing(caller, None, held.working)
    detail = {"detail": new.reason, "removed": [], "added": []}
    link = writing.draw("contradicts", new.second, new.first, held.now, rule=rule, conflict=new.kind, detail=detail)
    writing.log("contested", new.second, other=new.first, conflict=new.kind)
    await writing.flush(conn)
    pair = frozenset((new.first.id, new.second.id))
    held.standing = Standing(held.standing.facts, held.standing.contested | {pair}, held.standing.judged | {pair})
    return link
