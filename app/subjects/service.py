"""What is known at a subject, which subjects look alike, and registering one."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from app.audit.queries import Event, record
from app.auth import Caller
from app.db import Connection
from app.errors import SubjectNotFound, SubjectTaken
from app.facts import vocabulary
from app.facts.fact import Doubt, Fact
from app.facts.likeness import near_misses, nearest
from app.facts.meeting import meet
from app.facts.visibility import sight_of
from app.subjects import queries
from app.subjects.schemas import SubjectIn

# So many subjects at most are compared with one another; a namespace with more has other worries.
MOST_COMPARED = 10_000
MOST_CURRENT = 200


@dataclass(frozen=True, slots=True)
class Known:
    """A subject as it stands; `misses` are the subjects that probably mean the same."""

    subject: str
    registered: bool
    description: str | None
    aliases: list[str]
    alias_of: str | None
    facts: int
    misses: list[str]


async def describe(
    conn: Connection, namespace: str, counted: dict[str, int], misses: dict[str, list[str]]
) -> list[Known]:
    """The subjects with what is registered about them, in the order given."""
    names = list(counted)
    registered = await queries.registered(conn, namespace, names)
    aliases = await queries.aliases(conn, namespace, names)
    return [
        Known(
            subject=name,
            registered=name in registered,
            description=registered.get(name),
            aliases=[alias for alias, of in aliases.items() if of == name],
            alias_of=aliases.get(name),
            facts=facts,
            misses=misses.get(name, []),
        )
        for name, facts in counted.items()
    ]


async def vocabulary_of(conn: Connection, caller: Caller, asked: Sequence[str] | None) -> dict[str, int]:
    """The subjects that the caller may see, each with its number of current facts."""
    return await queries.list_subjects(
        conn,
        caller.namespace,
        sight_of(caller.reads, asked),
        registered=asked is None,
        after="",
        limit=MOST_COMPARED,
    )


async def closest(conn: Connection, caller: Caller, name: str, asked: Sequence[str] | None) -> list[Known]:
    """The subjects that look most like a name, best first; the subject itself leads if it is known."""
    known = await vocabulary_of(conn, caller, asked)
    wanted = ([name] if name in known else []) + await asyncio.to_thread(nearest, name, known)
    return await describe(conn, caller.namespace, {subject: known[subject] for subject in wanted}, {})


async def doubtful(conn: Connection, caller: Caller, asked: Sequence[str] | None) -> list[Known]:
    """The subjects that have a near miss, in order."""
    known = await vocabulary_of(conn, caller, asked)
    misses = await asyncio.to_thread(near_misses, list(known))
    return await describe(conn, caller.namespace, {subject: known[subject] for subject in misses}, misses)


async def look_up(conn: Connection, caller: Caller, name: str, asked: Sequence[str] | None) -> tuple[Known, list[Fact]]:
    """A subject, found by any of its names, with its current states. Raises SubjectNotFound."""
    sight = sight_of(caller.reads, asked)
    names = await known_names(conn, caller, name)
    facts, ever = await queries.held(conn, caller.namespace, names, sight)
    vocabulary_here = await vocabulary_of(conn, caller, None)
    misses = await asyncio.to_thread(near_misses, list({*vocabulary_here, names[0]}))
    (known,) = await describe(conn, caller.namespace, {names[0]: facts}, misses)
    if not ever and not known.registered:
        raise SubjectNotFound(nearest=nearest(name, vocabulary_here))
    current = await queries.states(conn, caller.namespace, names, sight, asked or [], MOST_CURRENT)
    return known, current


async def known_names(conn: Connection, caller: Caller, name: str) -> list[str]:
    """All names of the subject that a name means."""
    return (await vocabulary.addresses(conn, caller.namespace, [name]))[name]


async def register(conn: Connection, caller: Caller, subject: str, wanted: SubjectIn, request_id: str | None) -> bool:
    """Register a subject or say anew what it is; whether it is new. Raises SubjectTaken."""
    namespace = caller.namespace
    await queries.lock_vocabulary(conn, namespace)
    aliases = [alias for alias in dict.fromkeys(wanted.aliases) if alias != subject]
    taken = await queries.aliases(conn, namespace, [subject, *aliases])
    if subject in taken:
        raise SubjectTaken(f"{subject!r} is an alias of {taken[subject]!r}.", subject=taken[subject])
    for alias in aliases:
        if taken.get(alias, subject) != subject:
            raise SubjectTaken(f"{alias!r} is an alias of {taken[alias]!r}.", subject=taken[alias])
    for alias in await queries.registered(conn, namespace, aliases):
        raise SubjectTaken(f"{alias!r} is a registered subject itself.", subject=alias)
    new = await queries.register(conn, namespace, subject, wanted.description, aliases, caller.actor)
    detail = {"subject": subject, "aliases": aliases}
    action = "subject_registered" if new else "subject_changed"
    await record(conn, [Event(namespace, caller.actor, action, request_id=request_id, detail=detail)])
    await _introduce(conn, caller, [subject, *aliases], request_id)
    return new


async def _introduce(conn: Connection, caller: Caller, names: Sequence[str], request_id: str | None) -> None:
    """Let the states meet that stand at one address by an alias. A name retires nothing: what it would is in doubt."""
    for newest, others in await queries.strangers(conn, caller.namespace, names) if len(names) > 1 else ():
        met = await meet(conn, caller, newest, others, request_id)
        if met is not None:
            detail = f"Its subject is {names[0]!r} now, where a newer statement stands."
            for gone in met.decision.retires:
                met.writing.contest(gone.fact, Doubt(met.fact, "older", detail), met.moment)
            for doubt in met.decision.doubts:
                met.writing.contest(met.fact, doubt, met.moment)
            await met.writing.flush(conn)
