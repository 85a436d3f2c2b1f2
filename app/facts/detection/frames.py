"""A statement as clauses: what each is about, its main verb, whether it denies, adds, continues or asks."""

from dataclasses import dataclass
from functools import lru_cache

from app.facts.detection import lexicon
from app.facts.detection.reading import read, split_clauses
from app.facts.detection.tokens import MAX_TOKENS, Token, joined, pieces, readable, stem
from app.facts.detection.verbs import NOUN_LIKE


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


def is_aux(token: Token) -> bool:
    """A form of be or have, or a modal: a verb wherever it stands. German "am" is none."""
    return token.key in {"be", "have"} or (token.low in lexicon.MODALS and token.kind == "word")


def _base_form_fits(before: Token | None) -> bool:
    if before is None:
        return False
    plural = before.low.endswith("s") and before.kind in {"word", "name"}
    return plural or before.low in lexicon.PRONOUNS | lexicon.MODALS | {"to", "people", "children", "men", "women"}


def _s_form_fits(before: Token | None, token: Token, after: Token | None) -> bool:
    if before is None or before.low in lexicon.PREPOSITIONS or token.det or before.kind == "number":
        return False
    if after is None or not (after.form or is_aux(after)):
        return True
    # "Release notes go out", "service orders depends on": the later form is the verb.
    return after.form not in {"base", "s"} and not is_aux(after) and token.base not in NOUN_LIKE


def is_verb(tokens: list[Token] | tuple[Token, ...], index: int) -> bool:
    """Whether the token can be a verb where it stands; "the runs" and "of orders" are nouns."""
    token = tokens[index]
    if is_aux(token):
        return True
    if not token.form or token.det:
        return False
    before = tokens[index - 1] if index else None
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    match token.form:
        case "base":
            return _base_form_fits(before) and not (after is not None and is_aux(after))
        case "s":
            return _s_form_fits(before, token, after)
        case "ing":
            return before is not None and before.key == "be"
        case _:
            # Between two words of one noun phrase a participle is an adjective: "the old deprecated importer".
            return not (index and tokens[index - 1].det and after is not None and after.form and token.form == "ed")


def main_verb(tokens: list[Token]) -> int:
    """The index of the first verb that is not inside a relative clause of the subject; -1 if there is none."""
    skip = False
    index = 0
    while index < len(tokens):
        if index and tokens[index].low in lexicon.RELATIVES and tokens[index].kind == "word":
            skip = True
        elif is_verb(tokens, index) or (skip and tokens[index].form not in {"", "base"}):
            if not skip:
                return index
            skip = False
            while index + 1 < len(tokens) and is_verb(tokens, index + 1) and not is_aux(tokens[index + 1]):
                index += 1
        index += 1
    return _by_ending(tokens)


def _by_ending(tokens: list[Token]) -> int:
    """A verb that the lexicon does not have: "-s" or "-ed" before a preposition, a number or a name."""
    for index in range(1, len(tokens) - 1):
        token, after = tokens[index], tokens[index + 1]
        opens = after.low in lexicon.PREPOSITIONS or after.kind not in {"word", "colon"} or bool(after.det)
        if token.kind == "word" and not token.det and opens and token.low.endswith(("s", "ed")) and len(token.low) > 3:
            return index
    return 0 if len(tokens) > 1 and tokens[0].form in {"base", "s"} and tokens[0].low != "die" else -1


_MARKED = (
    lexicon.NEGATIONS
    | lexicon.DO
    | lexicon.ADDITIVE
    | lexicon.CONTINUING
    | lexicon.FILLERS
    | {"no", "any", "anymore", "as", "in", "unable", "used"}
)
_PHASES = lexicon.STOPPING | {"continue", "remain", "stay"}


class _Assembler:
    """Takes the words of negation, addition and continuation out of the tokens and counts them."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.kept: list[Token] = []
        self.negations = 0
        self.ended = self.additive = self.still = False

    def run(self) -> list[Token]:
        index = 0
        while index < len(self.tokens):
            index += self._take(index)
        return self.kept

    def _low(self, index: int) -> str:
        return self.tokens[index].low if index < len(self.tokens) else ""

    def _take(self, index: int) -> int:
        """Reads one token or phrase; the number of tokens it covers."""
        token = self.tokens[index]
        low = token.low
        if token.kind != "word":
            self.kept.append(token)
            return 1
        if low not in _MARKED and token.base not in _PHASES:
            self._keep(index)
            return 1
        following = self._low(index + 1)
        phrase = self._phrase(index, low, following)
        if phrase:
            return phrase
        if low in lexicon.NEGATIONS:
            return self._negate(token)
        if low in lexicon.DO and following in {"not", "never"}:
            return 1
        if low in lexicon.ADDITIVE:
            self.additive = True
        elif low in lexicon.CONTINUING:
            self.still = True
        elif low not in lexicon.FILLERS:
            self._keep(index)
        return 1

    def _phrase(self, index: int, low: str, following: str) -> int:
        if low == "no" and following in {"longer", "more"}:
            self.ended = True
            return 2
        if (low == "any" and following in {"more", "longer"}) or low == "anymore":
            self.ended = self.negations > 0
            return 1 if low == "anymore" else 2
        if low == "as" and following == "well" and self._low(index + 2) != "as":
            self.additive = True
            return 2
        if low == "in" and following == "addition":
            self.additive = True
            return 3 if self._low(index + 2) == "to" else 2
        if low == "unable" and following == "to":
            self.negations += 1
            return 2
        if low == "used" and following == "to" and not (self.kept and self.kept[-1].key == "be"):
            self.ended = True
            return 2
        return self._ceasing(index)

    def _ceasing(self, index: int) -> int:
        """ "stopped running", "continues to run": the second verb is the one that the statement is about."""
        token = self.tokens[index]
        after = self.tokens[index + 1] if index + 1 < len(self.tokens) else None
        if after is None:
            return 0
        if token.base in lexicon.STOPPING and after.form == "ing":
            self._drop_perfect()
            self.ended = True
            self.kept.append(after._replace(form="s"))
            return 2
        if token.base in {"continue", "remain"} and (after.low == "to" or after.form == "ing"):
            self.still = True
            return 2 if after.low == "to" else 1
        if token.base in {"remain", "stay"} and token.form and self.kept:
            self.still = True
            self.kept.append(token._replace(key="be", base="be", form="is"))
            return 1
        return 0

    def _negate(self, token: Token) -> int:
        self.negations += 1
        if token.low == "without":
            self.kept.append(token._replace(key="with", low="with"))
        elif token.low == "nobody":
            self.kept.append(token._replace(key="anybody"))
        return 1

    def _drop_perfect(self) -> None:
        if self.kept and self.kept[-1].key == "have":
            self.kept.pop()

    def _keep(self, index: int) -> None:
        token = self.tokens[index]
        after = self.tokens[index + 1] if index + 1 < len(self.tokens) else None
        if token.low == "am" and not (self.kept and self.kept[-1].low == "i"):
            token = token._replace(key="am", base="", form="")
        if token.low in lexicon.EVERYBODY:
            token = token._replace(key="anybody")
        if token.base == "get" and after is not None and after.form in {"ed", "participle"}:
            token = token._replace(key="be", base="be", form="is")
        if token.low in {"been", "being"}:
            self._drop_perfect()
        elif token.form in {"ed", "participle", "past"} and token.key != "be" and self.kept:
            # The perfect of a verb is compared as its past: "has moved" and "moved".
            self._drop_perfect()
        if token.key == "be" and after is not None and after.form == "ing" and token.low != "been":
            return
        if token.form == "ing" and index and self.tokens[index - 1].key == "be":
            token = token._replace(form="s")
        self.kept.append(token)


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
    assembler = _Assembler(tokens)
    kept = assembler.run()
    verb = main_verb(kept)
    if verb > 0 and kept[verb].key == "be" and any(token.low in lexicon.RELATIVES for token in kept[:1]):
        question = question or kept[0].low in {"who", "which", "where"}
    return Clause(
        text,
        tuple(kept),
        tuple(token.key for token in kept),
        verb,
        assembler.negations,
        assembler.ended,
        assembler.additive,
        assembler.still,
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
