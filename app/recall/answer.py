"""From ranked candidates to the list that is shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from app.auth import Caller
from app.db import Connection
from app.facts.schemas import PastFactOut
from app.facts.visibility import sight_of
from app.recall import presenting, queries
from app.recall.ranking import Ranked
from app.recall.relevance import LIKELY
from app.recall.schemas import RecallIn, ReplacedOut, ResultOut
from app.recall.search import Found


@dataclass(frozen=True, slots=True)
class Line:
    """A place in the list: a ranked fact, or (`echo`, a sighting) a retired one shown below it or alone."""

    ranked: Ranked
    echo: int | None = None

    @property
    def id(self) -> UUID:
        return self.ranked.id


def lines_of(found: Found, ask: RecallIn) -> tuple[list[Line], int]:
    """The list before it is cut, and how many candidates were not relevant enough."""
    floor = ask.min_relevance or 0.0
    kept = [one for one in found.ranked if one.relevance >= floor]
    lines: list[Line] = []
    for one in kept:
        if one.id not in found.forgotten:
            lines.append(Line(one))
        if "retired" in ask.include:
            lines.extend(Line(one, echo) for echo in _worth_showing(one, found))
    return lines, len(found.ranked) - len(kept)


def _worth_showing(one: Ranked, found: Found) -> list[int]:
    """The retired facts that meet the question themselves, the latest first."""
    meeting = (at for at in one.echoes if at == one.best or found.measured.relevance[at] >= LIKELY)
    return sorted(meeting, key=lambda at: (found.seen[at].retired_at, found.seen[at].echo_id), reverse=True)


async def results_of(
    conn: Connection, caller: Caller, ask: RecallIn, found: Found, lines: Sequence[Line]
) -> list[ResultOut]:
    """The facts of the lines. One that was retired since it was found is left out, with all below it."""
    if ask.as_of is not None or ask.known_at is not None:
        return await _results_of_the_past(conn, caller, ask, found, lines)
    heads = [line.id for line in lines if line.echo is None]
    echoes = {found.seen[at].echo_id for line in lines for at in (line.echo, line.ranked.best) if at is not None}
    current = await queries.current_facts(conn, caller.namespace, sight_of(caller.reads, None), heads)
    past = await queries.past_facts(conn, caller.namespace, [id_ for id_ in echoes if id_])
    held = {row["id"]: presenting.current_out(row) for row in current}
    retired: dict[UUID | None, PastFactOut] = {row["id"]: presenting.past_out(row) for row in past}
    results: list[ResultOut] = []
    for line in lines:
        if line.echo is not None:
            old = retired.get(found.seen[line.echo].echo_id)
            if old and (line.id in held or line.id == old.id):
                results.append(presenting.retired_out(line.ranked, line.echo, old, found, explain=ask.explain))
        elif line.id in held:
            fact, replaces, conflicts = held[line.id]
            shown = presenting.result_out(line.ranked, fact, found, explain=ask.explain)
            shown.replaces = _merged(retired.get(shown.forwarded_by), replaces)
            shown.conflicts_with = conflicts
            results.append(shown)
    return results


async def _results_of_the_past(
    conn: Connection, caller: Caller, ask: RecallIn, found: Found, lines: Sequence[Line]
) -> list[ResultOut]:
    rows = await queries.past_facts(conn, caller.namespace, [line.id for line in lines])
    facts = {row["id"]: presenting.past_out(row) for row in rows}
    held = [line for line in lines if line.id in facts]
    return [presenting.result_out(line.ranked, facts[line.id], found, explain=ask.explain) for line in held]


def _merged(led_here: PastFactOut | None, replaces: Sequence[ReplacedOut]) -> list[ReplacedOut]:
    """What led here first, then what the fact directly replaced, each once."""
    if led_here is None or led_here.retired_at is None or led_here.id in {old.id for old in replaces}:
        return list(replaces)
    first = ReplacedOut.model_construct(id=led_here.id, retired_at=led_here.retired_at, reason=led_here.reason)
    return [first, *replaces]
