"""Reversal wording: a statement that declares something over, and whether that something is the held fact.

A cue word alone says nothing ("the deprecated banner was removed from the settings page"): what the clause says is
over must be made of the words of the held statement, and the rest of the clause must not speak of anything else.
"""

from functools import lru_cache
from typing import NamedTuple

from app.facts.detection import lexicon
from app.facts.detection.finding import Finding
from app.facts.detection.frames import Clause, content_key, content_of
from app.facts.detection.predicates import is_aux
from app.facts.detection.segments import TYPED
from app.facts.detection.tokens import Token

DECLARED_OVER = "declared-over/1"
_PREDICATE_BE = frozenset({"be", "get"})
_TAKES_OVER = frozenset({"to", "by", "with", "in"})
_LIGHT = frozenset("be have do use run make need apply stand must take effect force place hold say longer".split())


class Ending(NamedTuple):
    """What a clause says is over, what else it speaks of, and the cue that says so."""

    ended: frozenset[str]
    rest: frozenset[str]
    cue: str
    wholly: bool
    arranged: bool
    by_subject: bool


def find_ending(clause: Clause) -> Ending | None:
    """The ending that a clause declares, if it does: not asked, denied, planned or supposed."""
    if clause.question or clause.denies or not clause.tokens:
        return None
    for index in range(len(clause.tokens)):
        ending = _predicate(clause, index) or _departure(clause, index)
        if ending is not None:
            return None if _is_hypothetical(clause, index) else ending
    return None


def _is_hypothetical(clause: Clause, index: int) -> bool:
    """Whether what comes before the cue plans, supposes or doubts it."""
    before = [token.low for token in clause.tokens[:index] if token.kind == "word"]
    if not lexicon.SUPPOSING.isdisjoint(before) or (index > 1 and clause.tokens[index - 2].low == "to"):
        return True
    return any(token.low in lexicon.HYPOTHETICAL for token in clause.tokens[max(clause.verb, 0) : index])


def _predicate(clause: Clause, index: int) -> Ending | None:
    """ "The freeze is rescinded", "the treaty has lapsed", "X was replaced by Y": the subject is over."""
    token = clause.tokens[index]
    before = clause.tokens[index - 1] if index else None
    if before is None or index < 1:
        return None
    participle = token.base in lexicon.ENDING_VERBS and token.form in {"ed", "participle", "base"}
    passive = before.key in _PREDICATE_BE and (participle or _is_over(clause, index))
    active = token.base in lexicon.SELF_ENDING and token.form in {"ed", "past"} and index == clause.verb
    if not passive and not (active and index + 1 == len(clause.tokens)):
        return None
    subject = clause.tokens[: index - 1 if passive else index]
    return _ending(clause, subject, index + 1, token.low, by_subject=True)


def _is_over(clause: Clause, index: int) -> bool:
    """ "is over", "is obsolete", standing as the predicate and not before a noun."""
    token = clause.tokens[index]
    following = clause.tokens[index + 1] if index + 1 < len(clause.tokens) else None
    closes = following is None or following.low in lexicon.PREPOSITIONS or following.comma
    return token.low in lexicon.ENDED_WORDS and closes


def _departure(clause: Clause, index: int) -> Ending | None:
    """ "We moved off X", "we switched from X to Y", "Jonas replaced Marta as lead": the object is over."""
    token = clause.tokens[index]
    if not token.form or index != _last_verb(clause) or (index and clause.tokens[index - 1].key == "be"):
        return None
    if token.form == "base" and index == 0:
        return None
    length = _phrase_length(clause.tokens, index)
    if not length:
        return None
    start = index + length
    stop = start
    while stop < len(clause.tokens) and not _closes_object(clause.tokens[stop], inside=stop > start):
        stop += 1
    if stop == start:
        return None
    ended = clause.tokens[start:stop]
    subject = clause.tokens[:index]
    if token.base in {"replace", "succeed", "supersede"} or clause.tokens[start - 1].low == "over":
        # Who replaces is the new value, not a thing that the held fact must speak of.
        subject = ()
    return _ending(clause, ended, stop, token.low, by_subject=False, subject=subject)


def _last_verb(clause: Clause) -> int:
    index = clause.verb
    while 0 <= index < len(clause.tokens) - 1 and is_aux(clause.tokens[index]):
        index += 1
    return index


def _phrase_length(tokens: tuple[Token, ...], index: int) -> int:
    for phrase in lexicon.LEAVING_PHRASES:
        window = tokens[index : index + len(phrase)]
        if len(window) == len(phrase) and window[0].base == phrase[0] and _reads(window[1:], phrase[1:]):
            return len(phrase)
    return 0


def _reads(tokens: tuple[Token, ...], words: tuple[str, ...]) -> bool:
    return all(token.low == word for token, word in zip(tokens, words, strict=True))


def _closes_object(token: Token, *, inside: bool) -> bool:
    return inside and token.kind == "word" and (token.low in lexicon.PREPOSITIONS - {"of"} or token.comma)


def _ending(
    clause: Clause,
    ended: tuple[Token, ...],
    after: int,
    cue: str,
    *,
    by_subject: bool,
    subject: tuple[Token, ...] = (),
) -> Ending | None:
    """Sorts the words of the clause; the replacement ("to Y", "by Y", "in favour of Y") is neither."""
    rest = list(subject)
    skipping = False
    for token in clause.tokens[after:]:
        if token.kind == "word" and token.low in lexicon.PREPOSITIONS:
            skipping = token.low in _TAKES_OVER or (skipping and token.low == "of")
        if not skipping and token.kind not in TYPED:
            rest.append(token)
    words = " ".join(clause.text.casefold().split())
    wholly = any(word in words for word in lexicon.WHOLLY)
    named = content_of(ended)
    arranged = by_subject and not named.isdisjoint(_arrangements())
    return Ending(named, content_of(rest) - _LIGHT, cue, wholly, arranged, by_subject) if named else None


@lru_cache(maxsize=1)
def _arrangements() -> frozenset[str]:
    return frozenset(content_key(word) for word in lexicon.ARRANGEMENTS)


def related(first: str, second: str) -> bool:
    """Whether two stems are one word or derived from one: "suspens" and "suspend", "countersign…"."""
    if first == second:
        return True
    shortest = min(len(first), len(second))
    if shortest < 5 or not (first.isalpha() and second.isalpha()):
        return False
    common = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), shortest)
    return (common >= 5 and common >= 0.7 * max(len(first), len(second))) or common == shortest >= 6


def within(words: frozenset[str], held: frozenset[str]) -> bool:
    """Whether every word has a relative among the held words."""
    return all(word in held or any(related(word, other) for other in held) for word in words)


def compare_ending(new: Clause, held: Clause) -> Finding | None:
    """A finding if the new clause declares over what the held one states."""
    ending = find_ending(new)
    if ending is None or held.denies or held.question or is_event(held):
        return None
    held_words = held.content - _LIGHT
    # "The 9:30 rule is off": a word for the arrangement counts only if the held statement has it too.
    ending = ending._replace(ended=_known(ending.ended, held_words), rest=_known(ending.rest, held_words))
    if not ending.ended or not within(ending.ended, held_words) or not within(ending.rest, held_words):
        return None
    retires = _covers(ending, new, held, held_words)
    if retires is None:
        return None
    removed = held.words(0, len(held.tokens))
    added = new.words(0, len(new.tokens))
    detail = f'The new statement declares the held one over ("{ending.cue}"): "{added}".'
    return Finding("reversal", retires=retires, detail=detail, removed=(removed,), added=(added,), rule=DECLARED_OVER)


def _known(words: frozenset[str], held: frozenset[str]) -> frozenset[str]:
    return words - (_arrangements() - held)


def _covers(ending: Ending, new: Clause, held: Clause, held_words: frozenset[str]) -> bool | None:
    """True if the ending is about the held statement as a whole, False if about a main part, None if neither."""
    named = ending.ended | ending.rest
    essential = held_words - (_arrangements() - named)
    share = len(named) / max(len(essential), 1)
    subject = content_of(held.subject) - _arrangements()
    whole_subject = ending.by_subject and bool(subject) and within(subject, ending.ended)
    value = content_of(held.tokens[held.verb + 1 :]) - _LIGHT if held.verb >= 0 else frozenset[str]()
    whole_value = bool(value) and within(value, ending.ended)
    if len(named) >= 2 and (share >= 0.5 or whole_subject or whole_value):
        return True
    if whole_subject or whole_value:
        return ending.wholly or ending.arranged or (whole_value and _same_subject(new, held))
    return None


def _same_subject(new: Clause, held: Clause) -> bool:
    return bool(new.subject) and [token.key for token in new.subject] == [token.key for token in held.subject]


def is_event(clause: Clause) -> bool:
    """Whether the clause tells what happened: past tense without "be"."""
    verb = clause.tokens[clause.verb] if clause.verb >= 0 else None
    if verb is None:
        return False
    return verb.form in {"past", "ed"} or verb.low == "been"
