"""Whether a slot of a statement holds one value at a time, so that another value there is a change.

A state has one answer (a copula, a place, a time, an amount, an office); an object of an action is usually one of
many. Complements and prepositional phrases therefore count as single-valued unless the verb is known to list, and
direct objects as many-valued unless they are measured or serve one purpose.
"""

from typing import Literal, NamedTuple

from app.facts.detection import lexicon
from app.facts.detection.frames import Clause
from app.facts.detection.predicates import is_aux
from app.facts.detection.segments import TYPED, Segment, kind_of
from app.facts.detection.tokens import Token

Verdict = Literal["replace", "conflict", "quiet"]
_COUNTED = frozenset({"amount", "number"})
_UNTYPED = frozenset({"name", "noun", "bare"})
_LOCATING = frozenset({"in", "at", "on", "near", "by"})


class Slot(NamedTuple):
    """The place where two clauses of one frame differ: `start` is common, `value` is the first segment of each."""

    new: Clause
    held: Clause
    start: int
    new_value: Segment
    held_value: Segment
    suffix: tuple[Token, ...]

    @property
    def new_tokens(self) -> tuple[Token, ...]:
        return self.new.tokens[self.new_value.start : self.new_value.end]

    @property
    def held_tokens(self) -> tuple[Token, ...]:
        return self.held.tokens[self.held_value.start : self.held_value.end]


def verb_end(clause: Clause, stop: int) -> int:
    """The index of the last verb of the main verb's group before `stop`."""
    last = clause.verb
    for index in range(clause.verb + 1, stop):
        token = clause.tokens[index]
        if not is_aux(token) and not (token.form and is_aux(clause.tokens[last]) and not token.det):
            break
        last = index
    return last


def compatible(first: str, second: str) -> bool:
    """Whether values of two kinds can answer one question."""
    if first == second or (first in _UNTYPED and second in _UNTYPED):
        return True
    return {first, second} in ({"date", "weekday"}, {"number", "version"}, {"freq", "weekday"}, {"number", "name"})


def head_noun(subject: tuple[Token, ...]) -> str:
    """The noun that the subject is about: "limit" in "rate limit on the public API"."""
    head = ""
    for token in subject:
        if head and token.kind == "word" and (token.low in lexicon.PREPOSITIONS or token.low in lexicon.RELATIVES):
            break
        head = token.low
    return head


def names_attribute(subject: tuple[Token, ...]) -> bool:
    """Whether the subject is an attribute or an office ("the theme", "Lena's manager", "the capital of …")."""
    head = head_noun(subject)
    known = head in lexicon.ATTRIBUTE_NOUNS or head.removesuffix("s") in lexicon.ATTRIBUTE_NOUNS
    return known or any(token.key == "'s" for token in subject) or any(token.low == "of" for token in subject)


def is_definite(subject: tuple[Token, ...]) -> bool:
    first = subject[0] if subject else None
    return first is not None and (first.det == "the" or first.low in lexicon.POSSESSIVES)


def same_dimension(first: str, second: str) -> bool:
    """Whether two states exclude each other: enabled/disabled, draft/approved, red/green."""
    return any(first in group and second in group for group in lexicon.STATUS_DIMENSIONS)


def _describes(tokens: tuple[Token, ...]) -> bool:
    """Whether a bare value is an adjective, of which a subject may have many."""
    if len(tokens) != 1:
        return False
    low = tokens[0].low
    return low in lexicon.ADJECTIVES or (tokens[0].kind == "word" and low.endswith(lexicon.ADJECTIVE_ENDINGS))


def judge(slot: Slot) -> Verdict:
    """Whether the new value takes the place of the held one."""
    end = verb_end(slot.new, slot.start)
    bridge = slot.new.tokens[end + 1 : slot.start]
    kinds = _kinds(slot, bridge)
    if _names_category(bridge):
        return "replace"
    if _is_listing(slot, end, bridge, kinds) or _is_event(slot, end, bridge):
        return "quiet"
    verb = slot.new.tokens[end]
    openers = [token for token in bridge if _is_opener(token)]
    if openers or slot.new_value.opener or slot.held_value.opener:
        return _judge_phrase(slot, end, bridge, kinds)
    if verb.key in {"be", "become"} and not any(token.low == "of" for token in bridge):
        return _judge_complement(slot, kinds)
    return _judge_object(slot, verb, end, bridge, kinds)


def _is_opener(token: Token) -> bool:
    return token.kind == "word" and token.low in lexicon.PREPOSITIONS and token.low not in {"of", "per"}


def _kinds(slot: Slot, bridge: tuple[Token, ...]) -> tuple[str, str]:
    """The kinds of both values; a bare number behind a noun ("room 5") is a name, behind a name a version."""
    kinds = kind_of(slot.new_tokens), kind_of(slot.held_tokens)
    if kinds != ("number", "number") or not bridge or _is_opener(bridge[-1]) or bridge[-1].low == "of":
        return kinds
    if slot.suffix and not _is_opener(slot.suffix[0]):
        return kinds
    if len(slot.new_tokens) > 1 or len(slot.held_tokens) > 1:
        return kinds
    return ("version", "version") if bridge[-1].kind == "name" else ("name", "name")


def _names_category(bridge: tuple[Token, ...]) -> bool:
    """ "the city of [Paris]": the slot is defined by what kind of thing fills it."""
    if len(bridge) < 2 or bridge[-1].low != "of":
        return False
    noun = bridge[-2]
    return noun.low in lexicon.CATEGORY_NOUNS and noun.det == "the"


def _is_listing(slot: Slot, end: int, bridge: tuple[Token, ...], kinds: tuple[str, str]) -> bool:
    """Whether the verb, the adjective or the relation takes many values side by side."""
    tokens, verb = slot.new.tokens, slot.new.tokens[end]
    if set(kinds) <= _COUNTED:
        return False
    if tokens[slot.new.verb].low in lexicon.PERMISSIONS:
        return True
    passive = end > slot.new.verb and tokens[end - 1].key == "be"
    opener = next((token.low for token in reversed(bridge) if _is_opener(token)), slot.new_value.opener)
    if not passive and opener == "with":
        return True
    if not passive and not opener and verb.base in lexicon.MANY_VERBS:
        return True
    if not passive and (verb.base, opener) in lexicon.MANY_VERB_PREPOSITIONS:
        return True
    if opener and verb.base in lexicon.MANY_PARTICIPLES and not set(kinds) <= TYPED:
        return verb.base not in lexicon.PURPOSE_VERBS or passive
    described = bridge[0].low if bridge else verb.low
    if described in lexicon.MANY_ADJECTIVES and not set(kinds) <= TYPED:
        return verb.key == "be" or passive
    nouns = [bridge[index - 1].low for index, token in enumerate(bridge) if token.low == "of" and index]
    return any(noun in lexicon.MANY_RELATIONS or noun.removesuffix("s") in lexicon.MANY_RELATIONS for noun in nouns)


def _is_event(slot: Slot, end: int, bridge: tuple[Token, ...]) -> bool:
    """Whether the clause tells what happened, which stays true; what happens once, or sets a value, is a state."""
    first, verb = slot.new.tokens[slot.new.verb], slot.new.tokens[end]
    active_past = end == slot.new.verb and verb.form in {"past", "ed"} and verb.key != "be"
    passive_past = end > slot.new.verb and first.low in {"was", "were", "been"}
    if not active_past and not passive_past:
        return False
    if verb.base in lexicon.ONCE_VERBS:
        return active_past and not any(_is_opener(token) for token in bridge)
    return not (verb.base in lexicon.CHANGE_VERBS and any(token.low == "to" for token in bridge))


def _judge_object(slot: Slot, verb: Token, end: int, bridge: tuple[Token, ...], kinds: tuple[str, str]) -> Verdict:
    """The slot is the verb's object, or a noun of its complement ("is a citizen of …")."""
    if not compatible(*kinds):
        return "quiet"
    if set(kinds) <= TYPED:
        return "replace"
    if bridge and bridge[-1].low == "of":
        return "replace"
    if end > slot.new.verb and slot.new.tokens[end - 1].key == "be":
        # "is called X", "are packed X": the participle's complement is one.
        return "replace" if not bridge else "conflict"
    if verb.base in lexicon.ONE_OBJECT_VERBS:
        return "replace"
    purpose = slot.suffix and slot.suffix[0].low in {"for", "as"}
    if purpose and verb.base in lexicon.PURPOSE_VERBS and not bridge:
        return "replace"
    return "quiet"


def _judge_complement(slot: Slot, kinds: tuple[str, str]) -> Verdict:
    """The slot is all that follows "is"."""
    subject = slot.new.subject
    words = slot.new.words(*slot.new_value[1:]).casefold(), slot.held.words(*slot.held_value[1:]).casefold()
    if same_dimension(*words):
        return "replace"
    attribute = names_attribute(subject)
    if slot.new.tokens[slot.new.verb].low in lexicon.PAST_BE:
        return "conflict" if attribute else "quiet"
    if not set(kinds) <= _UNTYPED:
        return "replace" if compatible(*kinds) or attribute else "quiet"
    return _judge_description(slot, kinds, attribute=attribute)


def _judge_description(slot: Slot, kinds: tuple[str, str], *, attribute: bool) -> Verdict:
    subject, values = slot.new.subject, (slot.new_tokens, slot.held_tokens)
    participles = any(value[0].form in {"ed", "participle"} for value in values)
    describing = participles or any(
        _describes(value) for value, kind in zip(values, kinds, strict=True) if kind == "bare"
    )
    if describing and head_noun(subject) not in lexicon.CATEGORY_NOUNS:
        return "conflict" if attribute else "quiet"
    if attribute:
        return "replace"
    if any(value[0].det == "a" for value in values):
        return "quiet"
    if is_definite(subject):
        return "replace"
    person = all(token.kind == "name" or index == 0 for index, token in enumerate(subject))
    if kinds == ("name", "name"):
        return "conflict" if person else "replace"
    return "quiet"


def _judge_phrase(slot: Slot, end: int, bridge: tuple[Token, ...], kinds: tuple[str, str]) -> Verdict:
    """The slot stands in a prepositional phrase."""
    if not compatible(*kinds):
        return "quiet"
    openers = [index for index, token in enumerate(bridge) if _is_opener(token)]
    if slot.new_value.opener or slot.held_value.opener:
        return _judge_openers(slot, kinds)
    opener = bridge[openers[-1]].low
    values = {token.low for token in (*slot.new_tokens, *slot.held_tokens)}
    if values & lexicon.SCOPE_WORDS:
        return "quiet"
    before = [token for token in bridge[: openers[-1]] if not _is_opener(token) and not token.low.endswith("ly")]
    if before and before[0].low not in lexicon.REPUTED:
        return _judge_qualifier(before, opener, kinds)
    passive = end > slot.new.verb
    if passive and opener == "to" and slot.new.tokens[end].base in lexicon.SPREADING_VERBS:
        return "conflict"
    if passive and opener == "for" and not set(kinds) <= TYPED:
        return "quiet"
    return "replace"


def _judge_openers(slot: Slot, kinds: tuple[str, str]) -> Verdict:
    """The phrases start with different prepositions, or only one of them with any."""
    words = slot.new.words(*slot.new_value[1:]).casefold(), slot.held.words(*slot.held_value[1:]).casefold()
    if same_dimension(*words):
        return "replace"
    if set(kinds) <= TYPED:
        return "replace" if kinds[0] == kinds[1] or "freq" in kinds else "conflict"
    located = {slot.new_value.opener, slot.held_value.opener} <= _LOCATING
    return "replace" if located and slot.start == verb_end(slot.new, slot.start) + 1 else "quiet"


def _judge_qualifier(before: list[Token], opener: str, kinds: tuple[str, str]) -> Verdict:
    """Another complement stands before the phrase: it may say where that one holds rather than be a value."""
    if set(kinds) <= TYPED:
        if any(token.kind in TYPED for token in before):
            return "quiet"
        return "conflict" if "weekday" in kinds else "replace"
    if opener == "for" or any(token.kind in TYPED for token in before):
        return "quiet"
    if before[0].det == "the" or before[0].low in lexicon.POSSESSIVES:
        return "replace"
    return "quiet" if opener in lexicon.SCOPE_PREPOSITIONS else "conflict"
