"""A question as recall asks it: its terms, what each is worth, and which of them fetch candidates."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.analyzer import MAX_QUERY_TERMS, Word, is_stop_word, quoted

# BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), with the usual constants.
K1 = 1.2
B = 0.75
# How many terms of a long question are looked up; the rarest of them are asked for.
MOST_LOOKED_UP = 256
# How many facts the fetching terms may hold together; the facts that they miss hold only words common here.
MOST_FETCHED = 500
# Facts that an arm of recall brings at most. It must not depend on how many are asked for, or a short list would not
# be the beginning of a long one.
DEPTH = 100


@dataclass(frozen=True, slots=True)
class Corpus:
    """What the readable scopes hold: facts, words, and in how many facts each term of a query occurs.

    `everywhere` is about how many facts the indexes hold that a search of these scopes goes through.
    """

    facts: int
    words: int
    frequencies: Mapping[str, int]
    everywhere: int = 0

    @property
    def average_length(self) -> float:
        return max(self.words / self.facts, 1.0) if self.facts else 1.0


@dataclass(frozen=True, slots=True)
class AskedWord:
    """A word of the question, its terms as places in the question's terms."""

    parts: tuple[int, ...]
    wholes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """`weights` are the inverse document frequencies of `terms`, in the same order.

    `fetching` are the terms by which live facts are fetched, rarest first; `fetching_alone` are at least as many,
    for where no vectors bring facts besides. By `echoing` retired ones are: a word that no live fact uses any more
    is the best of them. `names` are the places of the terms that name one thing exactly.
    """

    terms: tuple[str, ...]
    weights: tuple[float, ...]
    words: tuple[AskedWord, ...]
    names: tuple[int, ...]
    fetching: tuple[str, ...]
    fetching_alone: tuple[str, ...]
    echoing: tuple[str, ...]
    average_length: float


def terms_to_look_up(words: Sequence[Word]) -> list[str]:
    """The distinct terms of the words, whose frequencies must be known before the question can be asked."""
    return list(dict.fromkeys(term for word in words for term in word.wholes + word.parts))[:MOST_LOOKED_UP]


def says_nothing(words: Sequence[Word]) -> bool:
    """Whether they are stop words alone (or none): their vector is near to everything and means nothing."""
    return all(is_stop_word(word) for word in words)


def question(words: Sequence[Word], corpus: Corpus) -> Question:
    """Weigh the words of a query by what the corpus holds."""
    looked_up = terms_to_look_up(words)
    rarest_first = sorted(looked_up, key=lambda term: corpus.frequencies.get(term, 0))
    held = [term for term in rarest_first if corpus.frequencies.get(term)]
    missing = [term for term in rarest_first if not corpus.frequencies.get(term)]
    kept = frozenset((held + missing)[:MAX_QUERY_TERMS])
    terms = tuple(term for term in looked_up if term in kept)
    place = {term: at for at, term in enumerate(terms)}
    return Question(
        terms=terms,
        weights=tuple(inverse_frequency(corpus.frequencies.get(term, 0), corpus.facts) for term in terms),
        words=tuple(_placed(word, place) for word in words if kept.issuperset(word.parts)),
        names=tuple(dict.fromkeys(place[name] for word in words for name in word.identifiers if name in place)),
        fetching=_within_budget(held, corpus),
        fetching_alone=_within_budget(held, corpus, at_least=DEPTH),
        echoing=_within_budget(missing + held, corpus),
        average_length=corpus.average_length,
    )


def _placed(word: Word, place: Mapping[str, int]) -> AskedWord:
    return AskedWord(
        parts=tuple(place[part] for part in word.parts),
        wholes=tuple(place[whole] for whole in word.wholes if whole in place),
    )


def inverse_frequency(frequency: int, facts: int) -> float:
    """Robertson and Spärck Jones' weight, kept positive: ln(1 + (N - n + 0.5) / (n + 0.5))."""
    return math.log1p((max(facts - frequency, 0) + 0.5) / (frequency + 0.5))


def any_of(terms: Iterable[str]) -> str:
    """The text of a `tsquery` that any one of the terms satisfies."""
    return " | ".join(quoted(term) for term in terms)


def _within_budget(rarest_first: Sequence[str], corpus: Corpus, at_least: int = 1) -> tuple[str, ...]:
    """As many of the terms as the budget allows, and in any case so many that they hold `at_least` facts."""
    chosen: list[str] = []
    fetched = 0
    for term in rarest_first[:MAX_QUERY_TERMS]:
        held = corpus.frequencies.get(term, 0)
        if chosen and fetched >= at_least and fetched + held > MOST_FETCHED:
            break
        fetched += held
        chosen.append(term)
    return tuple(chosen)
