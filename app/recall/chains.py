"""Recall over several facts: from the name in the question through the facts that its words describe.

A beam search without a language model. A chain starts at a fact that holds the rarest name of the question and
goes on, fact by fact, through the names that two facts share; it is worth what its steps explain of the question,
innermost words first. The search does no I/O of its own and calls its source once for each step.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from uuid import UUID

from app.recall.evidence import Described, Floats, Lexicon, Rests, Vocabulary
from app.recall.naming import (
    Key,
    Place,
    Span,
    Token,
    Tokens,
    keys_of,
    names_in,
    place_at,
    place_of,
    read,
    rest_of,
    terms_of,
    turn,
    wholeness,
)
from app.recall.paths import Entry, Mention, Path, best_of, rarity
from app.recall.question import Corpus, inverse_frequency
from app.recall.source import Frequencies, Name, Source

BEAM = 8
# Facts fetched for one name, and names looked up for one fact and in one step.
MOST_MENTIONS = 24
MOST_NAMES_OF_A_FACT = 7
MOST_NAMES = 64
_KEPT_OF_A_STEP = 40

# A name in the question counts like two words: a chain that starts elsewhere must make up for it.
_WORTH_OF_A_NAME = 2.0
# Names of the question that are not this close to the strongest one start no chain.
_NEARLY_AS_STRONG = 0.6
# Names less likely and rare than this are not looked up, and links below this quality are not followed.
_WEAKEST_NAME = 0.4
_WEAKEST_LINK = 0.2
# What a link loses whose name the question uses itself, or is not written like one where others are.
_LOST_IF_ASKED = 0.6
_PLAIN_AMONG_NAMES = 0.6
# From how many facts on it means something that a name ends nearly all of them.
_TELLING = 4
# Taken for the number of facts that hold a name where nobody counts: for its rarity, and for what may be fetched.
_UNKNOWN = 2
_UNTOLD = 1 << 30
_NEARLY_ALL = 0.8


@dataclass(frozen=True, slots=True)
class Chain:
    """Facts that lead from a name in the question to the last one of them. The score is 1 at most."""

    facts: tuple[UUID, ...]
    score: float


_Ways = list[tuple[Path, list[Entry]]]
_Entered = list[tuple[Mention, Place]]


@dataclass(frozen=True, slots=True)
class _Likely:
    """A name that may lead on from a fact, where it stands there, and how likely it is the one, 0 to 1."""

    words: Tokens
    span: Span
    likelihood: float


async def follow(
    question: str,
    hops: int,
    corpus: Corpus,
    source: Source,
    vocabulary: Vocabulary,
    frequencies: Frequencies | None = None,
) -> list[Chain]:
    """The best chain to each fact that can be reached in at most `hops` steps, best first.

    `corpus` knows the terms of the question. `frequencies` tells in how many facts other terms occur: with it, a
    step looks up a third of the names and fetches a third of the facts. Nothing comes back where no name of the
    question is known. Raises what the source, the frequencies and the embedder of the vocabulary raise.
    """
    search = _Search(question, corpus, source, vocabulary, frequencies)
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

    def __init__(
        self, question: str, corpus: Corpus, source: Source, vocabulary: Vocabulary, frequencies: Frequencies | None
    ) -> None:
        self._text = question
        self._question = read(question)
        self._content = [at for at, token in enumerate(self._question) if token.content]
        self._whole = sum(map(_worth, self._question))
        self._corpus = corpus
        self._source = source
        self._vocabulary = vocabulary
        self._frequencies = frequencies
        self._held_by: dict[str, int] = {}
        self._lexicon = Lexicon.empty()

    async def starts(self) -> _Ways:
        """The facts that hold the strongest names of the question."""
        strengths = {span: self._strength(span) for span in names_in(self._question)}
        spans = sorted((span for span in strengths if strengths[span] > 0), key=lambda span: (-strengths[span], span))
        words = {span: self._question[span.start : span.end] for span in spans[:MOST_NAMES]}
        held = await self._entered((name, self._text) for name in words.values())
        found = {span: held[keys_of(name)] for span, name in words.items()}
        strongest = max((strengths[span] for span in found if found[span]), default=0.0)
        chosen = [span for span in found if found[span] and strengths[span] >= _NEARLY_AS_STRONG * strongest]
        vectors = await self._vocabulary.vectors([self._question[at].spoken for at in self._content])
        return [(self._beginning(span, vectors), entries) for span, entries in self._longest_only(chosen, found)]

    def _longest_only(
        self, spans: Sequence[Span], found: Mapping[Span, _Entered]
    ) -> Iterator[tuple[Span, list[Entry]]]:
        """Each fact by the longest of the overlapping names that it holds."""
        taken: dict[UUID, Span] = {}
        for span in sorted(spans, key=lambda span: (span.start - span.end, span)):
            whole = wholeness(self._question, span)
            entries = []
            for fact, place in found[span]:
                longest = taken.setdefault(fact.id, span)
                if longest == span or not longest.holds(span):
                    entries.append(Entry(fact, place.span, whole * place.wholeness))
            yield span, entries

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
        return Path(described, named, self._whole, described.unused())

    async def _entered(self, names: Iterable[tuple[Tokens, str]]) -> dict[tuple[Key, ...], _Entered]:
        """By its keys, the facts that hold each name, word after word. The second of each pair is what is near."""
        wanted: dict[tuple[Key, ...], Name] = {}
        for words, near in names:
            terms = terms_of(words)
            wanted.setdefault(keys_of(words), Name(terms, near if self._may_be_many(terms) else None))
        if not wanted:
            return {}
        mentions = await self._source.mentioning(list(wanted.values()), MOST_MENTIONS)
        placed = (
            [(fact, place_of(keys, fact.content)) for fact in facts]
            for keys, facts in zip(wanted, mentions, strict=True)
        )
        return {
            keys: [(fact, place) for fact, place in pairs if place] for keys, pairs in zip(wanted, placed, strict=True)
        }

    def _may_be_many(self, terms: Sequence[str]) -> bool:
        """Whether more facts may hold all the terms than are fetched."""
        counted = (self._held_by.get(term, self._corpus.frequencies.get(term, _UNTOLD)) for term in terms)
        return min(counted, default=0) > MOST_MENTIONS

    async def judged(self, ways: _Ways) -> list[Path]:
        """The paths that are one step longer."""
        entered = {(entry.fact.id, entry.span): entry for _, entries in ways for entry in entries}
        rests = [rest_of(read(entry.fact.content), entry.span) for entry in entered.values()]
        if not rests:
            return []
        words = [self._question[at] for at in self._content] + [token for rest in rests for token in rest]
        self._lexicon = await Lexicon.of(words, self._vocabulary)
        summed = Rests.of(rests, self._lexicon)
        rows = {key: row for row, key in enumerate(entered)}
        described = dict.fromkeys(path.described for path, _ in ways)
        gains = {around: around.weigh(summed, self._whole) for around in described}
        longer: list[Path] = []
        for path, entries in ways:
            chosen = [rows[entry.fact.id, entry.span] for entry in entries]
            longer += path.along(entries, gains[path.described][chosen]) if entries else []
        return longer

    async def onward(self, paths: Sequence[Path]) -> _Ways:
        """The facts that share a name with the last one of each path."""
        described = dict.fromkeys(path.described for path in paths)
        sameness: dict[Described, list[float]] = {
            around: around.sameness(self._lexicon).tolist() for around in described
        }
        beyond = [(path, self._names_beyond(path, sameness[path.described])) for path in paths]
        if self._frequencies:
            terms = {term for _, names in beyond for name in names for term in terms_of(name.words)}
            await self._count(self._frequencies, terms - self._held_by.keys())
        likely = [(path, self._likeliest(names)) for path, names in beyond]
        wanted = [(name.words, _nearness(name.words, path)) for path, names in likely for name in names]
        held = await self._entered(wanted[:MOST_NAMES])
        return [way for path, names in likely for way in self._ways_on(path, names, held)]

    async def _count(self, frequencies: Frequencies, terms: Set[str]) -> None:
        if terms:
            counted = await frequencies(sorted(terms))
            self._held_by.update((term, counted.get(term, 0)) for term in terms)

    def _names_beyond(self, path: Path, sameness: Sequence[float]) -> list[_Likely]:
        """The names in the last fact of a path besides the one that led there."""
        tokens = read(path.facts[-1].content)
        among_names = any(token.named for token in rest_of(tokens, path.entry))
        names = []
        for span in names_in(tokens, path.entry):
            words = tokens[span.start : span.end]
            likelihood = wholeness(tokens, span) * self._openness(words, sameness)
            if among_names and not words[0].cased:
                likelihood *= _PLAIN_AMONG_NAMES
            if likelihood >= _WEAKEST_LINK:
                names.append(_Likely(words, span, likelihood))
        return names

    def _likeliest(self, names: Sequence[_Likely]) -> list[_Likely]:
        """Those of the names that are worth a look, longest first: other facts hold them, but not too many."""
        held = ((name, self._held(name.words)) for name in names)
        likely = [(name.likelihood * rarity(facts, self._corpus.facts), name) for name, facts in held if facts > 1]
        likely = [(worth, name) for worth, name in likely if worth >= _WEAKEST_NAME]
        likely.sort(key=lambda pair: -pair[0])
        shared = [name for _, name in likely[:MOST_NAMES_OF_A_FACT]]
        return sorted(shared, key=lambda name: (-len(name.words), name.span))

    def _held(self, words: Tokens) -> int:
        """How many facts hold all the words, at most."""
        if not self._frequencies:
            return _UNKNOWN
        return min(self._held_by[term] for term in terms_of(words))

    def _openness(self, words: Tokens, sameness: Sequence[float]) -> float:
        """Less than 1 for words that the question uses: it leaves out the names that its answer goes over."""
        columns = self._lexicon.columns([token for token in words if token.content])
        return 1.0 - _LOST_IF_ASKED * math.fsum(sameness[column] for column in columns) / len(columns)

    def _ways_on(self, path: Path, names: Sequence[_Likely], held: Mapping[tuple[Key, ...], _Entered]) -> _Ways:
        taken = {fact.id for fact in path.facts}
        ways: _Ways = []
        for name in names:
            entered = held.get(keys_of(name.words), [])
            # Where not all were fetched that hold the name, how many are is known from its words only.
            count = len(entered) if len(entered) < MOST_MENTIONS / 2 else max(len(entered), self._held(name.words))
            quality = name.likelihood * rarity(count, self._corpus.facts)
            if quality < _WEAKEST_LINK:
                continue
            leaving, always_last = place_at(read(path.facts[-1].content), name.span), _is_always_last(entered)
            entries = []
            for fact, place in entered:
                part = quality * place.wholeness
                if part < _WEAKEST_LINK or fact.id in taken:
                    continue
                part *= turn(leaving, place, always_last=always_last)
                if part >= _WEAKEST_LINK:
                    entries.append(Entry(fact, place.span, part))
            taken.update(entry.fact.id for entry in entries)
            ways.append((path, entries))
        return ways


def _worth(token: Token) -> float:
    if not token.content:
        return 0.0
    return _WORTH_OF_A_NAME if token.named else 1.0


def _nearness(words: Tokens, path: Path) -> str:
    return " ".join(token.surface for token in [*path.described.remaining(path.table), *words])


def _is_always_last(entered: _Entered) -> bool:
    last = sum(place.last for _, place in entered)
    return len(entered) >= _TELLING and last >= _NEARLY_ALL * len(entered)
