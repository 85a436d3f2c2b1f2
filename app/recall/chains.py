"""Recall over several facts: from the name in the question through the facts that its words describe.

A beam search without a language model. A chain starts at a fact that holds the rarest name of the question and
goes on, fact by fact, through the names that two facts share; it is worth what its steps explain of the question,
innermost words first. The search does no I/O of its own and calls its source once for each step.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from app.recall.evidence import Described, Floats, Lexicon, Rests, Vocabulary, spoken
from app.recall.naming import Span, Token, Tokens, find, names_in, read, rest_of, terms_of, turn, wholeness
from app.recall.paths import Entry, Mention, Path, best_of
from app.recall.question import Corpus, inverse_frequency

BEAM = 8
# Facts fetched for one name, and names looked up for one fact and in one step.
MOST_MENTIONS = 48
MOST_NAMES_OF_A_FACT = 14
MOST_NAMES = 96
_KEPT_OF_A_STEP = 40

# A name in the question counts like two words: a chain that starts elsewhere must make up for it.
_WORTH_OF_A_NAME = 2.0
# Names of the question that are not this close to the strongest one start no chain.
_NEARLY_AS_STRONG = 0.6
# Links below this quality are not followed.
_WEAKEST_LINK = 0.2
# What a link loses whose name the question uses itself, or is not written like one where others are.
_LOST_IF_ASKED = 0.6
_PLAIN_AMONG_NAMES = 0.6
# A name is rare enough when the logarithm of its frequency is two thirds of the way down.
_RARE_ENOUGH = 1.5
# From how many facts on it means something that a name ends nearly all of them.
_TELLING = 4
_NEARLY_ALL = 0.8


@dataclass(frozen=True, slots=True)
class Name:
    """What the facts of a step must hold: all the `terms`. Where too many do, those nearest to `near` count."""

    terms: tuple[str, ...]
    near: str


class Source(Protocol):
    """Where the current facts are."""

    async def mentioning(self, names: Sequence[Name], limit: int) -> Sequence[Sequence[Mention]]:
        """For each name, at most `limit` facts that hold all its terms, in any order."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Facts that lead from a name in the question to the last one of them. The score is 1 at most."""

    facts: tuple[UUID, ...]
    score: float


_Ways = list[tuple[Path, list[Entry]]]
_Entered = dict[UUID, tuple[Mention, Span]]


async def follow(question: str, hops: int, corpus: Corpus, source: Source, vocabulary: Vocabulary) -> list[Chain]:
    """The best chain to each fact that can be reached in at most `hops` steps, best first.

    `corpus` knows the terms of the question. Nothing comes back where no name of the question is known.
    Raises what the source and the embedder of the vocabulary raise.
    """
    search = _Search(question, corpus, source, vocabulary)
    ways = await search.starts()
    reached: list[Path] = []
    for step in range(hops):
        paths = best_of(await search.judged(ways), by=lambda path: (path.facts[-1].id, path.entry))
        reached += paths[:_KEPT_OF_A_STEP]
        if not paths or step == hops - 1:
            break
        ways = await search.onward(paths[:BEAM])
    best = best_of(reached, by=lambda path: path.facts[-1].id)
    return [Chain(tuple(fact.id for fact in path.facts), path.score) for path in best]


class _Search:
    """One question on its way through the facts."""

    def __init__(self, question: str, corpus: Corpus, source: Source, vocabulary: Vocabulary) -> None:
        self._text = question
        self._question = read(question)
        self._content = [at for at, token in enumerate(self._question) if token.content]
        self._corpus = corpus
        self._source = source
        self._vocabulary = vocabulary
        self._lexicon = Lexicon.empty()

    async def starts(self) -> _Ways:
        """The facts that hold the strongest names of the question."""
        strengths = {span: self._strength(span) for span in names_in(self._question)}
        spans = sorted((span for span in strengths if strengths[span] > 0), key=lambda span: (-strengths[span], span))
        words = {span: self._question[span.start : span.end] for span in spans[:MOST_NAMES]}
        held = await self._mentions(Name(terms_of(name), self._text) for name in words.values())
        found = {span: _entered(held[terms_of(name)], name) for span, name in words.items()}
        strongest = max((strengths[span] for span in found if found[span]), default=0.0)
        chosen = [span for span in found if found[span] and strengths[span] >= _NEARLY_AS_STRONG * strongest]
        vectors = await self._vocabulary.vectors([spoken(self._question[at]) for at in self._content])
        return [
            (self._beginning(span, vectors), entries)
            for span, entries in _longest_only(chosen, found, wholeness_in=self._question)
        ]

    def _strength(self, span: Span) -> float:
        """How rare the words of a name are; 0 if one of them does not occur."""
        strength = 0.0
        for token in self._question[span.start : span.end]:
            if token.content:
                frequency = min(self._corpus.frequencies.get(term, 0) for term in token.terms)
                if not frequency:
                    return 0.0
                strength += inverse_frequency(frequency, self._corpus.facts) * _worth(token)
        return strength

    def _beginning(self, span: Span, vectors: Floats) -> Path:
        left = [row for row, at in enumerate(self._content) if at < span.start][::-1]
        right = [row for row, at in enumerate(self._content) if at >= span.end]
        words = [self._question[at] for at in self._content]
        described = Described([words[row] for row in left], [words[row] for row in right], vectors[left + right])
        named = sum(_worth(token) for token in self._question[span.start : span.end])
        return Path(described, named, sum(map(_worth, words)), described.unused())

    async def _mentions(self, names: Iterable[Name]) -> dict[tuple[str, ...], Sequence[Mention]]:
        distinct: dict[tuple[str, ...], Name] = {}
        for name in names:
            distinct.setdefault(name.terms, name)
        if not distinct:
            return {}
        return dict(zip(distinct, await self._source.mentioning(list(distinct.values()), MOST_MENTIONS), strict=True))

    async def judged(self, ways: _Ways) -> list[Path]:
        """The paths that are one step longer."""
        rests = {
            (entry.fact.id, entry.span): rest_of(read(entry.fact.content), entry.span)
            for _, entries in ways
            for entry in entries
        }
        if not rests:
            return []
        words = [self._question[at] for at in self._content] + [token for rest in rests.values() for token in rest]
        self._lexicon = await Lexicon.of(words, self._vocabulary)
        summed = Rests.of(list(rests.values()), self._lexicon)
        rows = {key: row for row, key in enumerate(rests)}
        gains = {path.described: path.described.weigh(summed, path.whole) for path, _ in ways}
        longer: list[Path] = []
        for path, entries in ways:
            chosen = [rows[entry.fact.id, entry.span] for entry in entries]
            longer += path.along(entries, gains[path.described][chosen]) if entries else []
        return longer

    async def onward(self, paths: Sequence[Path]) -> _Ways:
        """The facts that share a name with the last one of each path."""
        sameness = {path.described: path.described.sameness(self._lexicon) for path in paths}
        likely = [(path, list(self._names_beyond(path, sameness[path.described]))) for path in paths]
        wanted = [Name(terms_of(words), _nearness(words, path)) for path, names in likely for words, _, _ in names]
        held = await self._mentions(wanted[:MOST_NAMES])
        return [way for path, names in likely for way in self._ways_on(path, names, held)]

    def _names_beyond(self, path: Path, sameness: Floats) -> "Iterator[tuple[Tokens, Span, float]]":
        """The likeliest names in the last fact of a path besides the one that led there, longest first."""
        tokens = read(path.facts[-1].content)
        among_names = any(token.named for token in rest_of(tokens, path.entry))
        names = []
        for span in names_in(tokens, path.entry):
            words = tokens[span.start : span.end]
            quality = wholeness(tokens, span) * self._openness(words, sameness)
            if among_names and not words[0].named:
                quality *= _PLAIN_AMONG_NAMES
            if quality >= _WEAKEST_LINK:
                names.append((words, span, quality))
        likeliest = sorted(names, key=lambda name: -name[2])[:MOST_NAMES_OF_A_FACT]
        yield from sorted(likeliest, key=lambda name: (name[1].start - name[1].end, name[1]))

    def _openness(self, words: Tokens, sameness: Floats) -> float:
        """Less than 1 for words that the question uses: it leaves out the names that its answer goes over."""
        content = [token for token in words if token.content]
        return 1.0 - _LOST_IF_ASKED * float(sameness[self._lexicon.columns(content)].mean())

    def _ways_on(
        self,
        path: Path,
        names: "Sequence[tuple[Tokens, Span, float]]",
        held: dict[tuple[str, ...], Sequence[Mention]],
    ) -> _Ways:
        tokens = read(path.facts[-1].content)
        taken = {fact.id for fact in path.facts}
        ways: _Ways = []
        for words, span, likelihood in names:
            entered = _entered(held.get(terms_of(words), ()), words)
            quality = likelihood * self._rarity(len(entered))
            always_last = _is_always_last(entered)
            entries = []
            for fact, entry in entered.values():
                if fact.id not in taken:
                    there = read(fact.content)
                    part = wholeness(there, entry) * turn(tokens, span, there, entry, always_last=always_last)
                    if quality * part >= _WEAKEST_LINK:
                        entries.append(Entry(fact, entry, quality * part))
            taken.update(entry.fact.id for entry in entries)
            ways.append((path, entries))
        return ways

    def _rarity(self, facts: int) -> float:
        if not facts or not self._corpus.facts:
            return 0.0
        rarity = inverse_frequency(facts, self._corpus.facts) / math.log1p(self._corpus.facts)
        return min(1.0, _RARE_ENOUGH * rarity)


def _worth(token: Token) -> float:
    if not token.content:
        return 0.0
    return _WORTH_OF_A_NAME if token.named else 1.0


def _nearness(words: Tokens, path: Path) -> str:
    return " ".join(token.surface for token in [*path.described.remaining(path.table), *words])


def _entered(mentions: Sequence[Mention], name: Tokens) -> _Entered:
    """The facts in which the words of the name follow one another, and where."""
    entered: _Entered = {}
    for mention in mentions:
        span = find(read(mention.content), name)
        if span is not None:
            entered[mention.id] = (mention, span)
    return entered


def _is_always_last(entered: _Entered) -> bool:
    last = sum(span.end == len(read(fact.content)) for fact, span in entered.values())
    return len(entered) >= _TELLING and last >= _NEARLY_ALL * len(entered)


def _longest_only(
    spans: Sequence[Span], found: dict[Span, _Entered], *, wholeness_in: Tokens
) -> Iterator[tuple[Span, list[Entry]]]:
    """Each fact by the longest of the names that it holds, unless they do not overlap."""
    taken: dict[UUID, Span] = {}
    for span in sorted(spans, key=lambda span: (span.start - span.end, span)):
        quality = wholeness(wholeness_in, span)
        entries = []
        for fact, entry in found[span].values():
            if not taken.setdefault(fact.id, span).holds(span) or taken[fact.id] == span:
                entries.append(Entry(fact, entry, quality * wholeness(read(fact.content), entry)))
        yield span, entries
