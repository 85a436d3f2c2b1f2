"""One statement denies the other: "not", "never", "no longer", "cannot stand", opposite verbs and adjectives."""

from typing import NamedTuple

from app.facts.detection import lexicon
from app.facts.detection.finding import Finding, conflict
from app.facts.detection.frames import Clause
from app.facts.detection.predicates import is_aux
from app.facts.detection.segments import is_exception, is_scope, opens_segment, segments
from app.facts.detection.tokens import Token

POLARITY = "polarity/1"
STATE_ENDED = "state-ended/1"


class Claim(NamedTuple):
    """A clause reduced to what it affirms or denies."""

    keys: tuple[str, ...]
    denies: bool
    opposed: bool


def claim(clause: Clause) -> Claim:
    """The clause with its opposites written as denials: "hates" denies "like", "unsecured" denies "secured"."""
    keys: list[str] = []
    flips = 0
    tokens = clause.tokens
    for index, token in enumerate(tokens):
        if _bears(clause, index):
            # "cannot stand X" and "can stand X" both speak of liking.
            if keys and keys[-1] in lexicon.MODALS:
                keys.pop()
            keys.append("like")
        elif token.base in lexicon.OPPOSITES and not _is_participle(tokens, index):
            flips += token.base in lexicon.DENYING
            keys.append(lexicon.OPPOSITES[token.base])
        elif token.low in {"all", "every", "each", "some"} or (token.low in lexicon.DO and not is_aux(token)):
            continue
        else:
            keys.append(token.key)
    return Claim(tuple(keys), clause.denies != (flips % 2 == 1), flips > 0)


def _bears(clause: Clause, index: int) -> bool:
    token = clause.tokens[index]
    ability = index > 0 and clause.tokens[index - 1].low in lexicon.PERMISSIONS
    return token.low in lexicon.BEARING and ability and clause.negations % 2 == 1


def _is_participle(tokens: tuple[Token, ...], index: int) -> bool:
    """ "is disabled", "are forbidden": a state like any other, compared as a value."""
    return index > 0 and tokens[index - 1].key == "be" and tokens[index].form in {"ed", "participle"}


def compare_polarity(new: Clause, held: Clause) -> Finding | None:
    """A finding if one clause denies what the other says, whichever was written first."""
    if new.denies == held.denies and not (new.opposes or held.opposes):
        return _opposite_adjective(new, held)
    first, second = claim(new), claim(held)
    if first.denies == second.denies:
        return _opposite_adjective(new, held)
    if not _same_claim(first, second, new, held):
        return None
    removed, added = held.words(0, len(held.tokens)), new.words(0, len(new.tokens))
    if not new.ended:
        detail = f'One denies what the other says: "{removed}" and "{added}".'
        return conflict("polarity", detail, (removed,), (added,), POLARITY)
    narrowed = _adds_scope(new, held)
    detail = f'The new statement says that this is no longer so: "{removed}".'
    return Finding(
        "reversal", retires=not narrowed, detail=detail, removed=(removed,), added=(added,), rule=STATE_ENDED
    )


def _same_claim(first: Claim, second: Claim, new: Clause, held: Clause) -> bool:
    """Whether both speak of one thing: equal, or equal up to a phrase that only one of them has at the end."""
    if first.keys == second.keys:
        return True
    short, long, clause = (
        (first.keys, second.keys, held) if len(first.keys) < len(second.keys) else (second.keys, first.keys, new)
    )
    if len(short) > 1 and long[: len(short)] == short:
        tail = clause.tokens[len(clause.tokens) - (len(long) - len(short))]
        return (
            opens_segment(clause.tokens, len(clause.tokens) - (len(long) - len(short)))
            or tail.comma
            or (tail.kind in {"weekday", "freq", "date", "clock"})
        )
    return new.ended and _same_words(new, held)


def _same_words(new: Clause, held: Clause) -> bool:
    """Another order or voice: "X is no longer used for billing" and "we use X for billing"."""
    return len(held.content) > 1 and new.content == held.content


def _adds_scope(new: Clause, held: Clause) -> bool:
    """Whether the new clause ends the state only for a part: "… no longer … for contractors"."""
    old = {(part.opener, held.keys[part.start : part.end]) for part in segments(held, 0, len(held.tokens))}
    return any(
        (is_scope(new, part) or is_exception(part)) and (part.opener, new.keys[part.start : part.end]) not in old
        for part in segments(new, 0, len(new.tokens))
        if part.opener
    )


def _opposite_adjective(new: Clause, held: Clause) -> Finding | None:
    """ "secured" and "unsecured", "valid" and "invalid", in the same place of the same statement."""
    if new.denies or held.denies or len(new.tokens) != len(held.tokens):
        return None
    differing = [(one, other) for one, other in zip(new.tokens, held.tokens, strict=True) if one.key != other.key]
    if len(differing) != 1 or not _negates(*(token.low for token in differing[0])):
        return None
    one, other = differing[0]
    removed, added = held.text[other.start : other.end], new.text[one.start : one.end]
    detail = f'One denies what the other says: "{removed}" and "{added}".'
    return conflict("polarity", detail, (removed,), (added,), POLARITY)


def _negates(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if len(short) < 4 or any(short in group and long in group for group in lexicon.STATUS_DIMENSIONS):
        return False
    return any(long == prefix + short for prefix in lexicon.NEGATIVE_PREFIXES)
