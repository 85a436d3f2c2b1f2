"""From ranked candidates to the list that is shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import numpy as np

from app.auth import Caller
from app.db import Connection
from app.facts.schemas import FactOut, PastFactOut
from app.facts.visibility import sight_of
from app.recall import presenting, queries
from app.recall.ranking import Ranked
from app.recall.relevance import LIKELY
from app.recall.schemas import MOST_RESULTS, RecallIn, ReplacedOut, ResultOut
from app.recall.search import Found
from app.recall.sightings import Held


class Line(NamedTuple):
    """A place in the list: a ranked fact, or (`echo`, a sighting) a retired one shown below it or alone."""

    ranked: Ranked
    echo: int | None = None

    @property
    def id(self) -> UUID:
        return self.ranked.id


def lines_of(found: Found, ask: RecallIn) -> tuple[list[Line], int]:
    """The first lines of the list, and how many candidates were not relevant enough."""
    most = _lines_needed(ask)
    floor = ask.min_relevance or 0.0
    held = found.seen.held
    lines: list[Line] = []
    for one in found.ranked:
        if len(lines) >= most:
            break
        if one.relevance < floor:
            continue
        if held[one.best] != Held.FORGOTTEN:
            lines.append(Line(one))
        if "retired" in ask.include:
            lines.extend(Line(one, echo) for echo in _worth_showing(one, found))
    return lines[:most], int(np.count_nonzero(found.ranked.relevance < floor)) if floor else 0


def _lines_needed(ask: RecallIn) -> int:
    # Chains may bring a fact to the top from any place of the list, and the retired facts below it come along.
    return MOST_RESULTS if ask.hops > 1 and "retired" in ask.include else ask.k


def _worth_showing(one: Ranked, found: Found) -> list[int]:
    """The retired facts that meet the question themselves, the latest first."""
    meeting = (at for at in one.echoes if at == one.best or found.measured.relevance[at] >= LIKELY)
    rows = found.seen.rows
    return sorted(meeting, key=lambda at: (rows["retired_at"][at], rows["echo_id"][at]), reverse=True)


@dataclass(frozen=True, slots=True)
class Page:
    """The lines that one question gets, and where they come from."""

    ask: RecallIn
    found: Found
    lines: Sequence[Line]

    @property
    def is_past(self) -> bool:
        return self.ask.as_of is not None or self.ask.known_at is not None

    @property
    def current_ids(self) -> set[UUID]:
        return set() if self.is_past else {line.id for line in self.lines if line.echo is None}

    @property
    def past_ids(self) -> set[UUID]:
        """The retired facts that are shown or named, or everything where the question is about the past."""
        if self.is_past:
            return {line.id for line in self.lines}
        sightings = {at for line in self.lines for at in (line.echo, line.ranked.best) if at is not None}
        return {id_ for at in sightings if (id_ := self.found.seen.echo_id(at))}


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of some pages, by id: current ones with what they replaced and what contradicts them, and past ones."""

    current: Mapping[UUID, tuple[FactOut, list[ReplacedOut], list[UUID]]]
    past: Mapping[UUID | None, PastFactOut]


async def facts_of(conn: Connection, caller: Caller, pages: Sequence[Page]) -> Facts:
    """The facts of all pages, in at most two statements."""
    may_see = sight_of(caller.reads, None)
    current_ids = {id_ for page in pages for id_ in page.current_ids}
    past_ids = {id_ for page in pages for id_ in page.past_ids}
    current = await queries.current_facts(conn, caller.namespace, may_see, list(current_ids))
    past = await queries.past_facts(conn, caller.namespace, list(past_ids))
    return Facts(
        current={row["id"]: presenting.current_out(row) for row in current},
        past={row["id"]: presenting.past_out(row) for row in past},
    )


def results_of(page: Page, facts: Facts) -> list[tuple[UUID, ResultOut]]:
    """The results of a page, each with the id of the fact whose place it shares: its own, or that of its head.

    A fact that was retired since it was found is left out, with all below it.
    """
    results = ((line.id, _result(line, page, facts)) for line in page.lines)
    return [(id_, result) for id_, result in results if result is not None]


def _result(line: Line, page: Page, facts: Facts) -> ResultOut | None:
    found, explain = page.found, page.ask.explain
    if page.is_past:
        past = facts.past.get(line.id)
        return presenting.result_out(line.ranked, past, found, explain=explain) if past else None
    if line.echo is not None:
        old = facts.past.get(found.seen.echo_id(line.echo))
        shown = old and (line.id in facts.current or line.id == old.id)
        # It has the score of the fact that it stands below.
        ranked = line.ranked._replace(best=line.echo, relevance=float(found.measured.relevance[line.echo]))
        return presenting.result_out(ranked, old, found, explain=explain) if old and shown else None
    if line.id not in facts.current:
        return None
    fact, replaces, conflicts = facts.current[line.id]
    echo = found.seen.echo_id(line.ranked.best)
    if echo is not None:
        replaces = _merged(facts.past.get(echo), replaces)
    return presenting.result_out(
        line.ranked, fact, found, explain=explain, forwarded_by=echo, replaces=replaces, conflicts=conflicts
    )


def _merged(led_here: PastFactOut | None, replaces: list[ReplacedOut]) -> list[ReplacedOut]:
    """What led here first, then what the fact directly replaced, each once."""
    if led_here is None or led_here.retired_at is None or led_here.id in {old.id for old in replaces}:
        return replaces
    first = ReplacedOut.model_construct(id=led_here.id, retired_at=led_here.retired_at, reason=led_here.reason)
    return [first, *replaces]
