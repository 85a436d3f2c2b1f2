"""From ranked candidates to the list that is shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from app.auth import Caller
from app.db import Connection
from app.facts.schemas import PastFactOut
from app.facts.visibility import sight_of
from app.recall import presenting, queries
from app.recall.ranking import Echo, Ranked
from app.recall.relevance import LIKELY
from app.recall.schemas import RecallIn, ReplacedOut, ResultOut
from app.recall.search import Found


@dataclass(frozen=True, slots=True)
class Line:
    """A place in the list: a ranked fact, or (`echo`) a retired one that is shown below it or alone."""

    ranked: Ranked
    echo: Echo | None = None

    @property
    def id(self) -> UUID:
        return self.ranked.candidate.id


def lines_of(found: Found, ask: RecallIn) -> tuple[list[Line], int]:
    """The list before it is cut, and how many candidates were not relevant enough."""
    floor = ask.min_relevance or 0.0
    kept = [one for one in found.ranked if one.relevance >= floor]
    lines: list[Line] = []
    for one in kept:
        if one.candidate.id not in found.forgotten:
            lines.append(Line(one))
        if "retired" in ask.include:
            lines.extend(Line(one, echo) for echo in _worth_showing(one))
    return lines, len(found.ranked) - len(kept)


def _worth_showing(one: Ranked) -> list[Echo]:
    """The retired facts that meet the question themselves, the latest first."""
    meeting = (echo for echo in one.candidate.echoes if echo == one.echo or echo.likelihood >= LIKELY)
    return sorted(meeting, key=lambda echo: (echo.retired_at, echo.id), reverse=True)


async def results_of(
    conn: Connection, caller: Caller, ask: RecallIn, lines: Sequence[Line]
) -> list[ResultOut]:
    """The facts of the lines. One that was retired since it was found is left out, with all below it."""
    if ask.as_of is not None or ask.known_at is not None:
        return await _results_of_the_past(conn, caller, ask, lines)
    heads = [line.id for line in lines if line.echo is None]
    echoes = {echo.id for line in lines for echo in (line.echo, line.ranked.echo) if echo}
    current = (
        await queries.current_facts(conn, caller.namespace, sight_of(caller.reads, None), heads)
        if heads
        else []
    )
    past = await queries.past_facts(conn, caller.namespace, sorted(echoes)) if echoes else []
    held = {row["id"]: presenting.current_out(row) for row in current}
    retired = {row["id"]: presenting.past_out(row) for row in past}
    results: list[ResultOut] = []
    for line in lines:
        if line.echo is None and line.id in held:
            fact, replaces, conflicts = held[line.id]
            led_here = retired.get(line.ranked.echo.id) if line.ranked.echo else None
            replaced = _merged(led_here, replaces)
            shown = presenting.result_out(
                line.ranked, fact, replaces=replaced, conflicts=conflicts, explain=ask.explain
            )
            results.append(shown)
        elif line.echo and line.echo.id in retired and (line.id in held or line.id == line.echo.id):
            past_fact = retired[line.echo.id]
            results.append(presenting.retired_out(line.ranked, line.echo, past_fact, explain=ask.explain))
    return results


async def _results_of_the_past(
    conn: Connection, caller: Caller, ask: RecallIn, lines: Sequence[Line]
) -> list[ResultOut]:
    rows = await queries.past_facts(conn, caller.namespace, [line.id for line in lines])
    facts = {row["id"]: presenting.past_out(row) for row in rows}
    held = [line for line in lines if line.id in facts]
    return [presenting.result_out(line.ranked, facts[line.id], explain=ask.explain) for line in held]


def _merged(led_here: PastFactOut | None, replaces: Sequence[ReplacedOut]) -> list[ReplacedOut]:
    """What led here first, then what the fact directly replaced, each once."""
    if led_here is None or led_here.retired_at is None or led_here.id in {old.id for old in replaces}:
        return list(replaces)
    first = ReplacedOut.model_construct(
        id=led_here.id, retired_at=led_here.retired_at, reason=led_here.reason
    )
    return [first, *replaces]
