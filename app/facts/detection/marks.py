"""Words that say how a clause is meant: that it denies, ends, adds to or continues what it says."""

from app.facts.detection import lexicon
from app.facts.detection.tokens import Token

_MARKED = (
    lexicon.NEGATIONS
    | lexicon.DO
    | lexicon.ADDITIVE
    | lexicon.CONTINUING
    | lexicon.FILLERS
    | {"no", "any", "anymore", "as", "in", "unable", "used"}
)
_PHASES = lexicon.STOPPING | {"continue", "remain", "stay"}


class Marks:
    """Takes the words of negation, addition and continuation out of the tokens and counts them."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.kept: list[Token] = []
        self.negations = 0
        self.ended = self.additive = self.still = False

    def read(self) -> list[Token]:
        """The tokens that are left."""
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
