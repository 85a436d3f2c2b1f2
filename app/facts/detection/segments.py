"""A complement as segments: the value first, then each phrase that a preposition or a comma opens."""

from typing import NamedTuple

from app.facts.detection import lexicon
from app.facts.detection.frames import Clause
from app.facts.detection.tokens import Token

TYPED = frozenset({"amount", "number", "clock", "weekday", "date", "freq", "version"})

_LEADING = lexicon.PREPOSITIONS | {"last", "next", "this", "every", "least", "most", "roughly", "exactly", "max"}


class Segment(NamedTuple):
    """`opener` is the preposition (or participle after a comma) that introduces it; empty for the first value."""

    opener: str
    start: int
    end: int


def opens_segment(tokens: tuple[Token, ...], index: int) -> bool:
    """Whether a phrase of its own starts here: "in the Oak room", ", chaired by Priya", "except for tags"."""
    token = tokens[index]
    if token.kind != "word":
        return False
    if token.low in lexicon.EXCEPTIONS or token.low in lexicon.CONDITIONS:
        return True
    if token.low in lexicon.PREPOSITIONS and token.low not in {"of", "per", "than", "as"}:
        return True
    return token.comma and bool(token.form) and not token.det


def segments(clause: Clause, start: int, end: int) -> list[Segment]:
    """The segments of `tokens[start:end]`; a preposition straight behind another phrase's opener stays with it."""
    tokens = clause.tokens
    found: list[Segment] = []
    opener, first = "", start
    for index in range(start, end):
        if opener in lexicon.EXCEPTIONS and not tokens[index].comma:
            continue
        if not opens_segment(tokens, index) or (index and index == first and opener):
            continue
        if index > start and opens_segment(tokens, index - 1) and index - 1 == first:
            continue
        if index > first:
            found.append(Segment(opener, first, index))
        opener, first = tokens[index].low, index
    if first < end:
        found.append(Segment(opener, first, end))
    return found


def is_scope(clause: Clause, segment: Segment) -> bool:
    """Whether the phrase says where the statement holds ("for staging", "in production", "on Mondays")."""
    if not segment.opener:
        return False
    words = clause.tokens[segment.start + 1 : segment.end]
    if segment.opener == "for":
        return not any(token.kind == "amount" for token in words)
    if segment.opener in lexicon.CONDITIONS or segment.opener in lexicon.EXCEPTIONS:
        return True
    scoped = any(token.low in lexicon.SCOPE_WORDS or token.kind == "weekday" for token in words)
    return scoped and segment.opener in lexicon.SCOPE_PREPOSITIONS


def is_exception(segment: Segment) -> bool:
    return segment.opener in lexicon.EXCEPTIONS


def kind_of(tokens: tuple[Token, ...]) -> str:
    """What sort of value a phrase is: the kind of the typed token that leads it, "name", "noun" (a/the …) or "bare"."""
    for token in tokens:
        if token.kind in TYPED:
            return token.kind
        if token.kind != "word" or token.low not in _LEADING:
            break
    for token in tokens:
        if token.kind == "name":
            return "name"
    if tokens and tokens[0].det:
        return "noun"
    return "bare"
