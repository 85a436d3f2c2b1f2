"""Statements that share a meaning but not a frame: reordered, narrowed, or told in other words."""

from dataclasses import replace
from functools import lru_cache

from app.facts.detection import lexicon
from app.facts.detection.endings import is_event
from app.facts.detection.finding import Finding, conflict
from app.facts.detection.frames import Clause, content_of, parse
from app.facts.detection.segments import TYPED, opens_segment
from app.facts.detection.single_valued import verb_end
from app.facts.detection.tokens import Token
from app.facts.detection.values import common_prefix, common_suffix

NARROWED = "narrowed/1"
SAME_TOPIC = "same-topic/1"
_NARROWING = lexicon.EXCEPTIONS | {"if", "when", "unless"}


def inverted(clause: Clause) -> Clause:
    """ "Jonas is the on-call lead" as "the on-call lead is Jonas"; any other clause as it is."""
    verb = clause.verb
    if verb < 1 or clause.keys[verb] != "be" or clause.denies or verb + 1 >= len(clause.tokens):
        return clause
    subject, complement = clause.tokens[:verb], clause.tokens[verb + 1 :]
    named = all(token.kind == "name" or index == 0 for index, token in enumerate(subject))
    if complement[0].det != "the" or subject[0].det or not named or any(token.comma for token in complement):
        return clause
    tokens = (*complement, clause.tokens[verb], *(token._replace(kind="name") for token in subject))
    return replace(clause, tokens=tokens, keys=tuple(token.key for token in tokens), verb=len(complement))


def compare_narrowing(new: Clause, held: Clause) -> Finding | None:
    """A finding if the new clause repeats the held one and adds an exception or a condition to it."""
    prefix = common_prefix(new, held)
    suffix = common_suffix(new, held, prefix)
    if prefix + suffix != len(held.keys) or len(new.keys) <= len(held.keys) or new.denies != held.denies:
        return None
    end = len(new.keys) - suffix
    part = new.tokens[prefix:end]
    words = new.words(prefix, end)
    narrowing = any(token.low in _NARROWING and token.kind == "word" for token in part)
    phrased = any(phrase in words.casefold() for phrase in lexicon.EXCEPTION_PHRASES)
    titled = new.verb <= 0 and len(held.keys) > 1 and part[0].low == "for" and opens_segment(new.tokens, prefix)
    if not (narrowing or phrased or titled):
        return None
    detail = f'The new statement narrows the held one: "{words}".'
    return conflict("partial", detail, (), (words,), NARROWED)


def compare_topic(new: Clause, held: Clause) -> Finding | None:
    """A finding if both say one thing of one subject in other words, with another time, date or amount."""
    if _unfit(new) or _unfit(held):
        return None
    mine, theirs = _topic(new), _topic(held)
    if mine is None or theirs is None:
        return None
    (words, verb, value), (held_words, held_verb, held_value) = mine, theirs
    same_verb = verb == held_verb or "" in (verb, held_verb)
    if words != held_words or not same_verb or value.kind != held_value.kind or value.key == held_value.key:
        return None
    if value.size[1] != held_value.size[1]:
        return None
    removed = held.text[held_value.start : held_value.end]
    added = new.text[value.start : value.end]
    detail = f'Both speak of one thing and give another value: "{removed}" in the held fact, "{added}" in the new one.'
    return conflict("value", detail, (removed,), (added,), SAME_TOPIC)


def _unfit(clause: Clause) -> bool:
    return clause.verb < 0 or clause.denies or clause.question or clause.additive or is_event(clause)


def _topic(clause: Clause) -> tuple[frozenset[str], str, Token] | None:
    """The words that the clause is about, its verb ("" for one that only links) and its one typed value."""
    start = _body(clause)
    end = verb_end(clause, len(clause.tokens))
    values = [token for token in clause.tokens[start:] if token.kind in TYPED]
    words = [
        token
        for index, token in enumerate(clause.tokens[start:], start)
        if token.kind not in TYPED and not clause.verb <= index <= end
    ]
    topic = topic_words(content_of(words))
    if len(values) != 1 or not topic or clause.tokens.index(values[0]) < clause.verb:
        return None
    base = clause.tokens[end].base
    verb = "" if base in lexicon.LINKING_VERBS else "send" if base in lexicon.SENDING_VERBS else base
    return topic, verb, values[0]


def _body(clause: Clause) -> int:
    """Where the statement begins behind "from this quarter", "starting in April,", "as of May"."""
    tokens = clause.tokens
    index = 0
    if tokens[0].low == "as" and len(tokens) > 1 and tokens[1].low in {"of", "from"}:
        index = 2
    elif tokens[0].low in lexicon.ONSETS:
        index = 1
    else:
        return 0
    while index < len(tokens) and tokens[index].low in lexicon.PREPOSITIONS | {"this", "next", "today"}:
        index += 1
    return min(index + 1, max(clause.verb, 0))


def topic_words(words: frozenset[str]) -> frozenset[str]:
    """Everyday synonyms made one: bill and invoice, client and customer."""
    table = _synonyms()
    return frozenset(table.get(word, word) for word in words)


@lru_cache(maxsize=1)
def _synonyms() -> dict[str, str]:
    return {_key(word): _key(head) for word, head in lexicon.SYNONYMS.items()}


def _key(word: str) -> str:
    return parse(f"of {word}").clauses[0].keys[-1]
