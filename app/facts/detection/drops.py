"""The value-drop guard: what a held statement says that its replacement would silently lose."""

from app.facts.detection import lexicon
from app.facts.detection.frames import Clause, Statement
from app.facts.detection.segments import TYPED, Segment, is_exception, kind_of, segments
from app.facts.detection.values import common_prefix, common_suffix


def dropped_in(new: Statement, held: Statement) -> tuple[str, ...]:
    """The details of `held` that `new` neither repeats nor replaces in their slot, in the words of `held`."""
    stated = frozenset().union(*(frozenset(clause.keys) for clause in new.clauses))
    lost: list[str] = []
    free = _offered(new, held)
    for clause in held.clauses:
        partner = _partner(clause, new)
        lost.extend(_aligned(partner, clause, stated) if partner else _by_kind(clause, stated, free))
    return tuple(dict.fromkeys(lost))


def _partner(clause: Clause, new: Statement) -> Clause | None:
    """The new clause that shares the held clause's frame: its subject and verb stand at the same place."""
    for other in new.clauses:
        if common_prefix(other, clause) > max(clause.verb, 0) and other.verb == clause.verb:
            return other
    return None


def _aligned(new: Clause, held: Clause, stated: frozenset[str]) -> list[str]:
    """Phrase by phrase: the first answers the first, the others answer those with their preposition."""
    prefix = common_prefix(new, held)
    suffix = common_suffix(new, held, prefix)
    new_parts = segments(new, prefix, len(new.keys) - suffix)
    held_parts = segments(held, prefix, len(held.keys) - suffix)
    openers = {part.opener for part in new_parts}
    lost = []
    for index, part in enumerate(held_parts):
        answered = (index == 0 and new_parts and not is_exception(part)) or part.opener in openers
        if not answered and not set(held.keys[part.start : part.end]) <= stated:
            lost.append(held.words(part.start, part.end))
    return lost


def _details(clause: Clause) -> list[tuple[str, Segment]]:
    """`(kind, where)` of each time, number, name and exception of a clause, behind its subject."""
    found: list[tuple[str, Segment]] = []
    for part in segments(clause, 0, len(clause.tokens)):
        if is_exception(part):
            found.append(("exception", part))
            continue
        start = part.start
        while start < part.end:
            end = _detail_end(clause, start, part.end)
            if end > start:
                found.append((kind_of(clause.tokens[start:end]), Segment(part.opener, start, end)))
            start = max(end, start + 1)
    return found


def _detail_end(clause: Clause, start: int, stop: int) -> int:
    """Where the detail that starts here ends: one typed value, or a name of any length; `start` if none does."""
    tokens = clause.tokens
    if tokens[start].kind in TYPED:
        return start + 1
    end = start
    while end < stop and (tokens[end].kind == "name" or (end > start and tokens[end].low in {"of", "de", "van"})):
        end += 1
    while end > start and tokens[end - 1].kind != "name":
        end -= 1
    return end


def _offered(new: Statement, held: Statement) -> dict[str, int]:
    """How many details of each kind the new statement brings that the held one does not have."""
    known = frozenset().union(*(frozenset(clause.keys) for clause in held.clauses))
    offered: dict[str, int] = {}
    for clause in new.clauses:
        for kind, part in _details(clause):
            if not set(clause.keys[part.start : part.end]) <= known:
                offered[kind] = offered.get(kind, 0) + 1
        first = clause.tokens[0] if clause.tokens else None
        if first is not None and first.kind == "word" and first.key not in known and _opens_as_name(clause):
            offered["name"] = offered.get("name", 0) + 1
    return offered


def _opens_as_name(clause: Clause) -> bool:
    """Whether the first word may be a name: capitalised, and neither a function word nor a known verb."""
    first = clause.tokens[0]
    written = clause.text[first.start : first.end]
    return written[:1].isupper() and not first.det and first.low not in lexicon.STOP_WORDS and not first.form


def _by_kind(held: Clause, stated: frozenset[str], free: dict[str, int]) -> list[str]:
    """Without a shared frame a detail is replaced by another of its kind, one for one."""
    lost = []
    for kind, part in _details(held):
        keys = held.keys[part.start : part.end]
        if set(keys) <= stated:
            continue
        if kind != "exception" and free.get(kind, 0) > 0:
            free[kind] -= 1
            continue
        lost.append(held.words(part.start, part.end))
    return lost
