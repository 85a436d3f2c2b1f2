"""Reads texts as words and finds the names in them: what one fact may share with another, or with a question."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from app.analyzer import is_stop_word, query_words

# A name has at most so many words; of a longer text only the first words are read.
LONGEST_NAME = 6
MOST_WORDS = 1_000
# How far around the name by which a fact was found the rest of it is read, in words: about two sentences.
NEARBY = 24

# How little is left of a link's quality in each case. They were set on made-up stores, not on published ones.
_GOES_ON = 0.35
_BEGINS_BEFORE = 0.45
_AFTER_A_CAPITAL = 0.7
_SAME_NEIGHBOUR = 0.2
_SAME_PREPOSITION = 0.7
_BOTH_AT_THE_END = 0.7
_ALWAYS_AT_THE_END = 0.35

_IDEOGRAPHS = "\u3041-\u30ff\u3400-\u9fff\uac00-\ud7ff\uf900-\ufaff"
_WORD = re.compile(f"[{_IDEOGRAPHS}]|[^\\W_{_IDEOGRAPHS}]+(?:[-_./:@&'\u2019+#]+[^\\W_{_IDEOGRAPHS}]+)*")
# Small words inside a name; elsewhere they join two names.
_JOINING = ("of", "the")
_POSSESSIVE = re.compile("['\u2019]s?$")
_SHAPED = re.compile(r"\d|\w[-_./:@&]\w|[a-z][A-Z]")
# What ends a phrase. A full stop after a short word belongs to an abbreviation.
_BREAKS = frozenset("!?;:()[]\n")
_SHORTEST_LAST_WORD = 4


Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text. Equal `key`s are the same word; the store indexes its `terms`; `spoken` is embedded.

    `content` means that it carries something, `capital` that it begins with a capital or a digit, `pauses` that
    punctuation stands before it and `breaks` that a phrase ends there. `cased` means that it is written as a part of
    a name may be, with a capital, digits or joints, and `named` that it must be one: a capital that begins a
    sentence says nothing.
    """

    surface: str
    spoken: str
    key: Key
    terms: tuple[str, ...]
    content: bool
    capital: bool
    cased: bool
    named: bool
    pauses: bool
    breaks: bool


Tokens = Sequence[Token]
Context = tuple[tuple[Key, bool], ...]


class Span(NamedTuple):
    """Words `start` to `end` (exclusive) of a text."""

    start: int
    end: int

    def __contains__(self, place: object) -> bool:
        return isinstance(place, int) and self.start <= place < self.end

    def holds(self, other: "Span") -> bool:
        """Whether the other lies inside."""
        return self.start <= other.start and other.end <= self.end


@lru_cache(maxsize=1 << 14)
def read(text: str) -> tuple[Token, ...]:
    """The words of a text, in order."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    tokens: list[Token] = []
    end = 0
    for found in _WORD.finditer(text):
        between, end = text[end : found.start()], found.end()
        pauses = not tokens or not between.isspace()
        breaks = not tokens or (pauses and _ends_a_phrase(tokens[-1].surface, between))
        tokens.append(_token(found[0], pauses=pauses, breaks=breaks))
        if len(tokens) == MOST_WORDS:
            break
    return tuple(tokens)


def _ends_a_phrase(last: str, between: str) -> bool:
    return not _BREAKS.isdisjoint(between) or ("." in between and len(last) >= _SHORTEST_LAST_WORD)


@lru_cache(maxsize=1 << 15)
def _token(written: str, *, pauses: bool, breaks: bool) -> Token:
    surface = _POSSESSIVE.sub("", written)
    words = query_words(surface)
    shaped = bool(_SHAPED.search(surface))
    capital = surface[0].isupper() or surface[0].isdigit()
    return Token(
        surface=surface,
        spoken=surface.casefold(),
        key=tuple(part for word in words for part in word.parts),
        # A joined name is far rarer as a whole than its parts are.
        terms=tuple(term for word in words for term in (word.wholes[:1] if len(word.parts) > 1 else word.parts)),
        content=bool(words) and not all(map(is_stop_word, words)),
        capital=capital,
        cased=shaped or capital,
        named=shaped or (capital and not breaks),
        pauses=pauses,
        breaks=breaks,
    )


def names_in(tokens: Tokens, around: Span | None = None) -> Iterator[Span]:
    """Every run of words that may be a name, outside `around` and near it: longer ones first.

    It begins and ends with words that carry something, all written in one way.
    """
    spans = (span for start in _near(tokens, around) for span in _runs_from(tokens, start, around))
    yield from sorted(spans, key=lambda span: (span.start - span.end, span.start))


def _near(tokens: Tokens, around: Span | None) -> range:
    if around is None:
        return range(len(tokens))
    return range(max(0, around.start - NEARBY), min(len(tokens), around.end + NEARBY))


def _runs_from(tokens: Tokens, start: int, around: Span | None) -> Iterator[Span]:
    first = tokens[start]
    if not first.content:
        return
    for end in range(start + 1, min(len(tokens), start + LONGEST_NAME) + 1):
        last = tokens[end - 1]
        if (around and end - 1 in around) or (last.breaks and end - 1 > start):
            return
        number = last.surface.isdecimal()
        if last.content and not first.cased and last.cased and not number:
            return
        if last.content and (first.cased == last.cased or number):
            yield Span(start, end)


class Place(NamedTuple):
    """Where a name stands in a text.

    `wholeness` is 1 for a whole name and less where its neighbours make a longer name of it. `before` and `after`
    are the words beside it up to the first that carries something or to punctuation, each with whether it does.
    """

    span: Span
    wholeness: float
    before: Context
    after: Context

    @property
    def last(self) -> bool:
        """Whether nothing of its phrase follows the name."""
        return not self.after


def place_at(tokens: Tokens, span: Span) -> Place:
    """The name that these words make."""
    before = _context(tokens, span.start, -1)
    after = _context(tokens, span.end - 1, 1)
    return Place(span, wholeness(tokens, span), before, after)


@lru_cache(maxsize=1 << 15)
def place_of(name: tuple[Key, ...], text: str) -> Place | None:
    """Where the words of a name, given by their keys, first stand in a text, one after the other."""
    tokens = read(text)
    for start in range(len(tokens) - len(name) + 1):
        if tokens[start].key == name[0] and all(tokens[start + at].key == key for at, key in enumerate(name)):
            return place_at(tokens, Span(start, start + len(name)))
    return None


def keys_of(name: Tokens) -> tuple[Key, ...]:
    """The keys of some words."""
    return tuple(token.key for token in name)


def terms_of(name: Tokens) -> tuple[str, ...]:
    """The index terms that a text with this name holds."""
    return tuple(dict.fromkeys(term for token in name if token.content for term in token.terms))


def rest_of(tokens: Tokens, entry: Span) -> list[Token]:
    """The words that say something about the name at `entry`."""
    near = _near(tokens, entry)
    around = (*tokens[near.start : entry.start], *tokens[entry.end : near.stop])
    return [token for token in around if token.content]


def wholeness(tokens: Tokens, span: Span) -> float:
    """1 for a whole name, less where its neighbours make a longer name of it."""
    share = 1.0
    for edge, step in ((span.start, -1), (span.end - 1, 1)):
        if tokens[edge].capital:
            share *= _share_beside(tokens, edge, step)
    return share


def _share_beside(tokens: Tokens, edge: int, step: int) -> float:
    beside = _beside(tokens, edge, step)
    if beside is not None and not beside.content and beside.surface in _JOINING:
        beside = _beside(tokens, edge + step, step)
    if beside is None or not (beside.content and beside.capital):
        return 1.0
    if not beside.named:
        return _AFTER_A_CAPITAL
    # What stands before a name may be a title.
    return _GOES_ON if step > 0 else _BEGINS_BEFORE


def _beside(tokens: Tokens, at: int, step: int) -> Token | None:
    """The word next to a place, unless punctuation stands between."""
    beside = at + step
    if not 0 <= beside < len(tokens) or tokens[max(at, beside)].pauses:
        return None
    return tokens[beside]


def turn(leaving: Place, entering: Place, *, always_last: bool) -> float:
    """1 where a name plays another part in the fact that is entered than in the one that is left, else less.

    Two facts that say the same of two things ("A lies in X", "B lies in X") share X, but no question goes from
    A over X to B. `always_last` says that the name is the last word of nearly all the facts that hold it, as a set
    phrase is.
    """
    share = _sameness(leaving.before, entering.before) * _sameness(leaving.after, entering.after)
    if leaving.last and entering.last:
        share *= _ALWAYS_AT_THE_END if always_last else _BOTH_AT_THE_END
    return share


def _sameness(mine: Context, theirs: Context) -> float:
    if not mine or not theirs or mine[0] != theirs[0]:
        return 1.0
    # A word right beside the name belongs to it rather than to what is said of it ("the Lindach reservoir").
    return _SAME_NEIGHBOUR if len(mine) > 1 and mine == theirs and mine[-1][1] else _SAME_PREPOSITION


def _context(tokens: Tokens, at: int, step: int) -> Context:
    context: list[tuple[Key, bool]] = []
    while (beside := _beside(tokens, at, step)) and not (context and context[-1][1]):
        context.append((beside.key, beside.content))
        at += step
    return tuple(context)
