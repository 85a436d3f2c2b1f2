"""A statement that something changed: "moved to 9:00", "was raised to $149", "is now led by"."""

from app.facts.detection import lexicon
from app.facts.detection.finding import Finding, conflict
from app.facts.detection.frames import Clause, content_of
from app.facts.detection.segments import TYPED, Segment, is_scope, kind_of, segments
from app.facts.detection.single_valued import compatible

CHANGED_TO = "changed-to/1"


def change_target(clause: Clause) -> int:
    """The index behind "moved to", "was changed to", "went up to"; -1 if the clause tells of no change."""
    if clause.verb < 0 or clause.denies or clause.question:
        return -1
    tokens = clause.tokens
    before = {token.low for token in tokens[: clause.verb]}
    if tokens[clause.verb].low in lexicon.HYPOTHETICAL or not lexicon.SUPPOSING.isdisjoint(before):
        return -1
    index = clause.verb
    while index + 1 < len(tokens) and (tokens[index].key in {"be", "get"}):
        index += 1
    if tokens[index].base not in lexicon.CHANGE_VERBS or not tokens[index].form:
        return -1
    for at in range(index + 1, len(tokens)):
        if tokens[at].low in {"to", "into"} and at + 1 < len(tokens):
            return at + 1
    return index + 1 if tokens[index].base == "become" and index + 1 < len(tokens) else -1


def compare_change(new: Clause, held: Clause) -> Finding | None:
    """A finding if the new clause says that a value of the held clause's subject changed."""
    target = change_target(new)
    if target < 0 or held.verb < 0 or held.denies or held.question or new.additive:
        return None
    if not _same_subject(new, held):
        return None
    parts = segments(held, _complement(held), len(held.tokens))
    new_parts = segments(new, target, len(new.tokens))
    if not parts or not new_parts:
        return None
    replaced = _replaced(new, held, parts, new_parts[0])
    if replaced is None or held.keys[replaced.start : replaced.end] == new.keys[new_parts[0].start : new_parts[0].end]:
        return None
    return _finding(new, held, parts, new_parts, replaced)


def _finding(
    new: Clause, held: Clause, parts: list[Segment], new_parts: list[Segment], replaced: Segment
) -> Finding | None:
    taken = {replaced.opener} | {part.opener for part in new_parts[1:]}
    lost = [
        held.words(part.start, part.end)
        for part in parts
        if part != replaced and part.opener not in taken and not set(held.keys[part.start : part.end]) <= set(new.keys)
    ]
    removed, added = held.words(replaced.start, replaced.end), new.words(new_parts[0].start, new_parts[0].end)
    if lost:
        detail = f'"{removed}" changed to "{added}", but the new statement says nothing about "{", ".join(lost)}".'
        return conflict("partial", detail, (removed, *lost), (added,), CHANGED_TO)
    narrowed = any(is_scope(new, part) and part.opener not in {p.opener for p in parts} for part in new_parts[1:])
    detail = f'The new statement says that "{removed}" changed to "{added}".'
    return Finding(
        "partial" if narrowed else "value",
        retires=not narrowed and not new.still,
        detail=detail,
        removed=(removed,),
        added=(added,),
        rule=CHANGED_TO,
    )


def _same_subject(new: Clause, held: Clause) -> bool:
    mine, theirs = content_of(new.subject), content_of(held.subject)
    return bool(mine) and mine == theirs


def _complement(held: Clause) -> int:
    """Where the held clause's values begin: behind its verbs."""
    index = held.verb + 1
    while index < len(held.tokens) and held.tokens[index].form in {"ed", "participle"} and not held.tokens[index].det:
        index += 1
    return index


def _replaced(new: Clause, held: Clause, parts: list[Segment], value: Segment) -> Segment | None:
    """The held segment that the new value answers: the first of its kind."""
    kind = kind_of(new.tokens[value.start : value.end])
    kinds = [kind_of(held.tokens[part.start : part.end]) for part in parts]
    for part, other in zip(parts, kinds, strict=True):
        if kind == other or (kind in TYPED and compatible(kind, other)):
            return part
    for part, other in zip(parts, kinds, strict=True):
        if compatible(kind, other):
            return part
    return None
