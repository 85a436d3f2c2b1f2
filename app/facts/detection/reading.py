"""From pieces to tokens: numbers with their units, dates with their months, contractions with their parts."""

from collections.abc import Iterator

from app.facts.detection import lexicon, units
from app.facts.detection.tokens import (
    Piece,
    Token,
    amount_token,
    clock_token,
    number_token,
    word_token,
)

_WITH_IS = frozenset("it that there here he she what who where how this".split())
_SUFFIXES = (("'re", "are"), ("'ve", "have"), ("'ll", "will"), ("'m", "am"))
_NEGATED = {"won't": "will", "can't": "can", "shan't": "shall", "ain't": "is", "cannot": "can"}
_UNPOINTED = {
    f"{verb}nt": verb for verb in "do does did is are was were ca could should would has have had must".split()
} | {"cant": "can"}


#: Words that the reader does more with than look them up.
_SPECIAL = (
    lexicon.ARTICLES
    | units.WEEKDAYS.keys()
    | units.MONTHS.keys()
    | units.FREQUENCIES.keys()
    | units.NUMBER_WORDS.keys()
    | units.TENS.keys()
    | units.TIMES_WORDS.keys()
    | units.ORDINAL_WORDS.keys()
    | {"each", "every", "noon", "midnight", "dozen", "hundred", "thousand", "million"}
)


def _parts(piece: Piece) -> tuple[str, ...]:
    """The words of a contraction, or the possessor and its mark; empty for an ordinary word."""
    low = piece.text.lower()
    if "'" not in low and low != "cannot" and low not in _UNPOINTED:
        return ()
    if low in _NEGATED:
        return (_NEGATED[low], "not")
    if low in _UNPOINTED:
        return (_UNPOINTED[low], "not")
    if low.endswith("n't"):
        return (low[:-3], "not")
    if low.endswith("'s"):
        return (piece.text[:-2], "is" if low[:-2] in _WITH_IS else "'s")
    for suffix, word in _SUFFIXES:
        if low.endswith(suffix):
            return (piece.text[: -len(suffix)], word)
    return ()


def expand(found: list[Piece]) -> list[Piece]:
    """Contractions taken apart: "doesn't" -> does not, "Lena's" -> Lena 's."""
    out: list[Piece] = []
    for piece in found:
        parts = _parts(piece) if piece.group == "word" and len(piece.text) > 3 else ()
        if not parts:
            out.append(piece)
            continue
        out.extend(piece._replace(text=part) for part in parts)
    return out


class Reader:
    """Reads the pieces of one clause in order, merging what belongs together."""

    def __init__(self, found: list[Piece]) -> None:
        self.found = found
        self.at = 0
        self.comma = False
        self.det = ""
        self.out: list[Token] = []

    def peek(self, ahead: int = 1) -> str:
        """The lower-case text of a piece further on; empty behind the end."""
        index = self.at + ahead
        return self.found[index].text.lower() if index < len(self.found) else ""

    def tokens(self) -> list[Token]:
        while self.at < len(self.found):
            piece = self.found[self.at]
            token = self._token(piece)
            self.at += 1
            if token is not None:
                self.out.append(token)
                self.comma, self.det = False, ""
        return self.out

    def _token(self, piece: Piece) -> Token | None:
        match piece.group:
            case "word":
                return self._word(piece)
            case "comma":
                self.comma = True
                return None
            case "colon":
                return Token(":", ":", "colon", piece.start, piece.end)
            case "clock":
                return clock_token(piece, comma=self.comma)
            case "iso":
                year, month, day = piece.text.split("-")
                return self._plain(piece, f"date~{int(month)}-{int(day)}-{year}", "date")
            case "ordinal":
                return self._ordinal(piece, int(piece.text[:-2]))
            case "version":
                return self._plain(piece, piece.text.lower().removeprefix("v"), "version")
            case "money":
                return self._money(piece)
            case "number":
                return self._number(piece)
            case _:
                return self._plain(piece, piece.text, "word")

    def _plain(self, piece: Piece, key: str, kind: str) -> Token:
        return Token(key, piece.text.lower(), kind, piece.start, piece.end, det=self.det, comma=self.comma)

    def _money(self, piece: Piece) -> Token:
        digits = piece.text[1:].strip().replace(",", "")
        factor = next((size for mark, size in units.MULTIPLIERS.items() if digits.endswith(mark)), 1.0)
        return self._amount(piece, float(digits.rstrip("kbn")) * factor, piece.text[0])

    def _number(self, piece: Piece) -> Token | None:
        unit = piece.unit
        written = (piece.text[: -len(unit)] if unit else piece.text).replace(",", "")
        number = float(written)
        known = unit.lower() if unit.lower() in units.UNITS else ""
        if unit in units.MULTIPLIERS:
            return self._quantity(piece, number * units.MULTIPLIERS[unit], "")
        if known:
            return self._amount(piece, number, known)
        if unit:
            return self._plain(piece, piece.text.lower(), "name")
        return self._quantity(piece, number, written)

    def _quantity(self, piece: Piece, number: float, written: str) -> Token:
        """A number, with the multipliers and the unit that follow it."""
        while (factor := units.MULTIPLIERS.get(self.peek())) is not None:
            number, written = number * factor, ""
            self.at += 1
        following = self.found[self.at + 1] if self.at + 1 < len(self.found) else None
        unit = self.peek()
        if unit == "°" and self.peek(2) in {"c", "f"}:
            self.at += 2
            return self._amount(piece, number, f"°{self.peek(0)}")
        if following is not None and unit in units.UNITS and self._is_unit(following, unit):
            self.at += 1
            return self._amount(piece, number, unit)
        if unit == "times":
            self.at += 1
            return Token(f"times~{number:g}", "times", "number", piece.start, self._end(), comma=self.comma,
                         size=(number, "times"))  # fmt: skip
        if unit in units.MONTHS and following is not None and following.text[:1].isupper():
            return self._ordinal(piece, int(number))
        return number_token(piece, written or f"{number:.10g}", number, self._end(), comma=self.comma)

    def _is_unit(self, following: Piece, unit: str) -> bool:
        """A single capital ("plan 9 D") is a name rather than a unit; "°C" and "30 V" are units."""
        return len(following.text) > 1 or following.text.islower() or unit in {"%", "°", "v", "w", "$", "€", "£"}

    def _end(self) -> int:
        return self.found[min(self.at, len(self.found) - 1)].end

    def _amount(self, piece: Piece, number: float, unit: str) -> Token:
        # "99 dollars" and "$99" are one token; "a minute" and "per minute" behind it are read as words.
        return amount_token(piece, number, unit, self._end(), comma=self.comma)

    def _ordinal(self, piece: Piece, number: int) -> Token:
        """An ordinal, with the month that follows it: "14th of June", "14 June 2026"."""
        ahead = 2 if self.peek() == "of" else 1
        month = units.MONTHS.get(self.peek(ahead))
        if month is None:
            return Token(f"ord~{number}", piece.text.lower(), "date", piece.start, piece.end, det=self.det,
                         comma=self.comma)  # fmt: skip
        self.at += ahead
        return self._date(piece, month, str(number))

    def _date(self, piece: Piece, month: int, day: str) -> Token:
        year = self.peek() if len(self.peek()) == 4 and self.peek().isdecimal() else ""
        if year:
            self.at += 1
        key = f"date~{month}-{day}" + (f"-{year}" if year else "")
        return Token(key, piece.text.lower(), "date", piece.start, self._end(), det=self.det, comma=self.comma)

    def _month(self, piece: Piece, low: str) -> Token:
        day = self.peek().removesuffix("st").removesuffix("nd").removesuffix("rd").removesuffix("th")
        if day.isdecimal() and len(day) < 3:
            self.at += 1
            return self._date(piece, units.MONTHS[low], str(int(day)))
        return self._date(piece, units.MONTHS[low], "")

    def _calendar(self, piece: Piece, low: str) -> Token | None:
        first = not self.out
        if low in units.WEEKDAYS and (len(low) > 3 or piece.text[0].isupper()):
            return self._plain(piece, f"day~{units.WEEKDAYS[low]}", "weekday")
        if low in units.MONTHS and piece.text[0].isupper() and not (first and not self.peek()[:1].isdecimal()):
            return self._month(piece, low)
        if low in units.FREQUENCIES:
            return self._plain(piece, f"freq~{units.FREQUENCIES[low]}", "freq")
        if low == "every" and self.peek() in units.PERIODS:
            self.at += 1
            token = self._plain(piece, f"freq~{self.peek(0)}", "freq")
            return token._replace(end=self._end())
        if low in {"noon", "midnight"}:
            return self._plain(piece, "clock~12:00" if low == "noon" else "clock~0:00", "clock")
        return None

    def _numeral(self, piece: Piece, low: str) -> Token | None:
        tens, _, digit = low.partition("-")
        if low in units.NUMBER_WORDS:
            return self._quantity(piece, float(units.NUMBER_WORDS[low]), "")
        if tens in units.TENS and (not digit or digit in units.NUMBER_WORDS):
            number = units.TENS[tens] + units.NUMBER_WORDS.get(digit, 0)
            if not digit and self.peek() in units.NUMBER_WORDS:
                self.at += 1
                number += units.NUMBER_WORDS[self.peek(0)]
            return self._quantity(piece, float(number), "")
        if low in {"dozen", "hundred", "thousand", "million"}:
            return self._quantity(piece, units.MULTIPLIERS[low], "")
        if low in units.TIMES_WORDS and self.peek() in {"a", "per", "every", "each", "daily"}:
            number = units.TIMES_WORDS[low]
            return self._plain(piece, f"times~{number}", "number")._replace(size=(float(number), "times"))
        if low in units.ORDINAL_WORDS and not (self.out and self.out[-1].low in {"per", "each", "every"}):
            return self._ordinal(piece, units.ORDINAL_WORDS[low])
        return None

    def _word(self, piece: Piece) -> Token | None:
        low = piece.text.lower()
        first = not self.out
        if low not in _SPECIAL and "-" not in low:
            return word_token(piece, self.det, first=first, comma=self.comma)
        if low in lexicon.ARTICLES and not (piece.text == "A" and not first and not self.comma):
            if low == "the" or not self._per():
                self.det = "the" if low == "the" else "a"
                return None
            return self._plain(piece, "per", "word")._replace(low="per")
        if low in {"each", "every"} and self._per():
            return self._plain(piece, "per", "word")._replace(low="per")
        token = self._calendar(piece, low) or self._numeral(piece, low) or self._measure(piece, low)
        return token or word_token(piece, self.det, first=first, comma=self.comma)

    def _measure(self, piece: Piece, low: str) -> Token | None:
        """An amount as an adjective: "90-day", "two-hour"."""
        number, _, unit = low.partition("-")
        size = float(number) if number.isascii() and number.isdecimal() else units.NUMBER_WORDS.get(number)
        return self._amount(piece, float(size), unit) if size is not None and unit in units.UNITS else None

    def _per(self) -> bool:
        """ "$99 a month", "three times a day": the article says "per"."""
        after_amount = bool(self.out) and (self.out[-1].kind in {"amount", "number"} or self._after_count())
        return after_amount and self.peek() in units.PERIODS

    def _after_count(self) -> bool:
        return len(self.out) > 1 and self.out[-2].kind == "number" and self.out[-1].kind == "word"


def read(found: list[Piece]) -> list[Token]:
    """The tokens of one clause."""
    return Reader(expand(found)).tokens()


def split_clauses(found: list[Piece], text: str) -> Iterator[tuple[list[Piece], bool]]:
    """`(pieces, is a question)` of each clause: sentences, and what stands between semicolons or dashes."""
    clause: list[Piece] = []
    for index, piece in enumerate(found):
        if piece.group != "end" and not _opens_clause(found, index):
            clause.append(piece)
        elif piece.group == "end" and piece.text[0] == "." and _is_abbreviation(clause, text, piece.end):
            continue
        else:
            if clause:
                yield clause, "?" in piece.text
            clause = []
    if clause:
        yield clause, False


def _is_abbreviation(clause: list[Piece], text: str, end: int) -> bool:
    if not clause:
        return True
    rest = text[end : end + 8].lstrip(" \"')")
    last = clause[-1].text.lower()
    return bool(rest) and (rest[0].islower() or len(last) == 1 or last in lexicon.ABBREVIATIONS)


def _opens_clause(found: list[Piece], index: int) -> bool:
    """A comma before "but", "so" or "and we" starts a new clause."""
    if found[index].text != "," or index + 2 >= len(found):
        return False
    word = found[index + 1].text.lower()
    return word in {"but", "so"} or (word in {"and", "while"} and found[index + 2].text.lower() in _SUBJECTS)


_SUBJECTS = frozenset("we it they he she i you the this that now".split())
