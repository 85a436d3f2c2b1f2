"""Settling conflicts, drawing links and taking back what they assert."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from app.audit.queries import Event, record
from app.auth import Caller
from app.conflicts import queries
from app.conflicts.schemas import LinkIn, ResolveIn
from app.db import Connection, Row
from app.errors import Conflict, FactAlreadyRetired, FactNotFound, LinkNotFound, LinkSettled
from app.facts import retiring
from app.facts.decision import check_proof
from app.facts.fact import Fact
from app.facts.queries import rules_of
from app.facts.schemas import SupersedeIn
from app.facts.writing import Writing
from app.problems import invalid
from app.text import Fault

_RETIRING = ("supersedes", "amends")


@dataclass(frozen=True, slots=True)
class Resolved:
    """A settled conflict: its link, and what became of the two facts."""

    link: Row
    kept: list[Fact]
    retired: list[UUID]


async def find_link(conn: Connection, caller: Caller, id_: UUID) -> Row:
    """A link between two facts that the caller may read. Raises LinkNotFound."""
    row = await queries.link(conn, caller.namespace, id_)
    if row is None or not all(caller.reads.admit(row[end]) for end in ("source_scope", "target_scope")):
        raise LinkNotFound
    return row


async def resolve(conn: Connection, caller: Caller, id_: UUID, body: ResolveIn, request_id: str | None) -> Resolved:
    """Settle a conflict: keep one side, which retires the other, or note that both stand."""
    link = await find_link(conn, caller, id_)
    if link["kind"] != "contradicts":
        raise LinkNotFound("The link with this id is not about a conflict.")
    ends = (link["source_id"], link["target_id"])
    if body.keep != "both" and body.keep not in ends:
        detail = "Must be `both`, or the id of one of the two facts of this conflict."
        raise invalid([Fault("/keep", "not_in_conflict", detail)])
    working = await retiring.lock_and_load(conn, caller, list(ends))
    held = [working.facts[end] for end in ends if end in working.facts]
    # It is looked at again under the lock, where nobody else settles it meanwhile.
    link = await find_link(conn, caller, id_)
    if link["resolved_at"] or link["demoted_at"] or len(held) < 2 or not all(fact.is_current for fact in held):
        raise LinkSettled
    if body.keep == "both":
        return await _keep_both(conn, caller, link, held, body.reason, request_id)
    kept, gone = sorted(held, key=lambda fact: fact.id != body.keep)
    # Whoever settles a conflict has seen both sides, so neither date nor tier stands in the way; it is audited.
    claim = SupersedeIn(by=kept.id, reason=body.reason, evidence=body.evidence, force=True)
    await retiring.replace_with_fact(conn, caller, gone.id, kept.id, claim, request_id)
    return Resolved(link, [kept], [gone.id])


async def _keep_both(
    conn: Connection, caller: Caller, link: Row, held: list[Fact], reason: str, request_id: str | None
) -> Resolved:
    for fact in held:
        caller.must_write(fact.scope)
    _, now = await rules_of(conn, caller.namespace)
    if not await queries.resolve(conn, caller.namespace, link["id"], now, caller.actor, reason):
        raise LinkSettled
    await record(conn, [_event(caller, "resolved", held[0], held[1], request_id, link=link["id"], keep="both")])
    return Resolved(await find_link(conn, caller, link["id"]), held, [])


async def draw(conn: Connection, caller: Caller, body: LinkIn, request_id: str | None) -> tuple[Row, bool]:
    """Draw a link between two facts; the link, and whether it is new."""
    working = await retiring.lock_and_load(conn, caller, [body.source_id, body.target_id])
    ends = []
    for name in ("source_id", "target_id"):
        fact = working.facts.get(getattr(body, name))
        if fact is None or fact.kind == "retraction" or not caller.reads.admit(fact.scope):
            raise FactNotFound(f"This namespace holds no fact with the id given as `{name}`.", pointer=f"/{name}")
        if body.kind == "contradicts" and not fact.is_current:
            raise FactAlreadyRetired(
                f"Only current facts contradict each other, and `{name}` is not one.",
                head=working.head_of(fact, caller.reads),
            )
        ends.append(fact)
    source, target = ends
    caller.must_write(source.scope)
    if body.evidence is not None:
        texts = (source.content, source.source_quote, target.content, target.source_quote)
        rules, _ = await rules_of(conn, caller.namespace)
        check_proof(body.evidence, texts, rules)
    held = await queries.standing_link(conn, caller.namespace, body.kind, source.id, target.id)
    if held is not None:
        return held, False
    return await _draw(conn, caller, body, source, target, Writing(caller, request_id, working)), True


async def _draw(conn: Connection, caller: Caller, body: LinkIn, source: Fact, target: Fact, writing: Writing) -> Row:
    _, now = await rules_of(conn, caller.namespace)
    claim: dict[str, Any] = {"reason": body.reason, "evidence": body.evidence, "rule": "explicit"}
    if body.kind == "contradicts":
        claim |= {"conflict": "declared", "detail": {"detail": body.reason, "removed": [], "added": []}}
    id_ = writing.draw(body.kind, source, target, now, **claim)
    conflict = {"conflict": "declared"} if body.kind == "contradicts" else {}
    writing.log("contested" if conflict else "linked", source, other=target, link=str(id_), **conflict)
    await writing.flush(conn)
    return await find_link(conn, caller, id_)


async def demote(
    conn: Connection, caller: Caller, id_: UUID, reason: str, request_id: str | None
) -> tuple[Row, Fact | None]:
    """Make a link relate its facts and no more; what it retired comes back, unless its address is taken."""
    link = await find_link(conn, caller, id_)
    if link["demoted_at"] is not None:
        raise LinkSettled
    if link["kind"] == "derived_from":
        raise Conflict("A digest is derived from its sources whatever is said about it, so this link stays.")
    if link["kind"] in _RETIRING:
        fact, _ = await retiring.restore(
            conn, caller, link["target_id"], reason, request_id, replace=False, undoing=link["source_id"]
        )
        return await find_link(conn, caller, id_), fact
    await _demote(conn, caller, link, reason, request_id)
    return await find_link(conn, caller, id_), None


async def _demote(conn: Connection, caller: Caller, link: Row, reason: str, request_id: str | None) -> None:
    working = await retiring.lock_and_load(conn, caller, [link["source_id"], link["target_id"]])
    source, target = working.facts[link["source_id"]], working.facts[link["target_id"]]
    caller.must_write(source.scope)
    _, now = await rules_of(conn, caller.namespace)
    if not await queries.demote(conn, caller.namespace, link["id"], now, caller.actor, reason):
        raise LinkSettled
    await record(conn, [_event(caller, "demoted", source, target, request_id, link=link["id"], kind=link["kind"])])


def _event(caller: Caller, action: str, fact: Fact, other: Fact, request_id: str | None, **detail: Any) -> Event:
    return Event(
        namespace=caller.namespace,
        actor=caller.actor,
        action=action,
        scope=fact.scope,
        fact_id=fact.id,
        other_id=other.id,
        request_id=request_id,
        detail={name: str(value) for name, value in detail.items()},
    )
