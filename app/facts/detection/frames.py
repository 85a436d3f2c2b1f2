"""A statement as clauses: what each is about, its main verb, whether it denies, adds, continues or asks."""

from dataclasses import dataclass
from functools import lru_cache

from app.facts.detection import lexicon
from app.facts.detection.marks import Marks
from app.facts.detection.predicates import main_verb
from app.facts.detection.reading import read, split_clauses
from app.facts.detection.tokens import MAX_TOKENS, Token, joined, pieces, readable, stem


@dataclass(frozen=True, slots=True)
class Clause:
    """`tokens` is the clause without articles, fillers and words of negation; `verb` is -1 if none was found."""

    text: str
    tokens: tuple[Token, ...]
    keys: tuple[str, ...]
    verb: int
    negations: int
    ended: bool
    additive: bool
    still: bool
    question: bool
    opposes: bool
    content: frozenset[str]

    @property
    def denies(self) -> bool:
        """Whether the clause as a whole denies what its tokens say."""
        return self.ended or self.negations % 2 == 1

    @property
    def subject(self) -> tuple[Token, ...]:
        """What stands before the main verb; empty without a verb."""
        return self.tokens[: max(self.verb, 0)]

    def words(self, start: int, end: int) -> str:
        """The words of the text from one token to another, as they stand there."""
        if start >= end:
            return ""
        words = " ".join(self.text[self.tokens[start].start : self.tokens[end - 1].end].split())
        return joined(words)


@dataclass(frozen=True, slots=True)
class Statement:
    clauses: tuple[Clause, ...]
    truncated: bool


def content_of(tokens: tuple[Token, ...] | list[Token]) -> frozenset[str]:
    """The words that a statement is about, with compounds in their parts."""
    found: set[str] = set()
    for token in tokens:
        if token.kind == "colon" or (token.kind == "word" and token.low in lexicon.STOP_WORDS):
            continue
        if "-" in token.low and token.kind in {"word", "name"}:
            found.update(content_key(part) for part in token.low.split("-") if part not in lexicon.STOP_WORDS)
        else:
            found.add(token.key)
    found.discard("")
    return frozenset(found)


@lru_cache(maxsize=16384)
def content_key(part: str) -> str:
    """The comparison key of a single lower-case word."""
    token = read(pieces(part))
    return token[0].key if len(token) == 1 else stem(part)


def _clause(text: str, tokens: list[Token], *, question: bool) -> Clause:
    marks = Marks(tokens)
    kept = marks.read()
    verb = main_verb(kept)
    if verb > 0 and kept[verb].key == "be" and any(token.low in lexicon.RELATIVES for token in kept[:1]):
        question = question or kept[0].low in {"who", "which", "where"}
    return Clause(
        text,
        tuple(kept),
        tuple(token.key for token in kept),
        verb,
        marks.negations,
        marks.ended,
        marks.additive,
        marks.still,
        question,
        any(token.base in lexicon.OPPOSITES or token.low in lexicon.BEARING for token in kept),
        content_of(kept),
    )


@lru_cache(maxsize=4096)
def parse(text: str) -> Statement:
    """A text as clauses. Never raises; reads at most `MAX_TOKENS` pieces."""
    text = readable(text[: MAX_TOKENS * 100])
    found = pieces(text)
    clauses = [
        _clause(text, tokens, question=question)
        for clause, question in split_clauses(found, text)
        if (tokens := read(clause))
    ]
    return Statement(tuple(clauses), len(found) >= MAX_TOKENS)
