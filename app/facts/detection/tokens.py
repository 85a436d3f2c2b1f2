"""Statements as tokens: words, names, amounts, times and dates, each with the key that it is compared by."""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

import snowballstemmer  # type: ignore[import-untyped]  # The package ships no type information.

from app.facts.detection import lexicon, units
from app.facts.detection.verbs import VERB_FORMS

#: Tokens read of one statement. What stands behind them is kept and found by recall, but not compared.
MAX_TOKENS = 200

_FINAL = " \t\r\n.!?…;,:。！？；，、．।؟۔"
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0dff\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"
_LETTER = rf"[\w{_MARKS}]"
_IDEOGRAPHS = "[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
_IDEOGRAPH = re.compile(_IDEOGRAPHS)
_BETWEEN_IDEOGRAPHS = re.compile(rf"(?<={_IDEOGRAPHS}) +| +(?={_IDEOGRAPHS})")
_PIECE = re.compile(
    rf"""
    (?P<money>[$€£¥]\s?\d+(?:,\d{{3}})*(?:\.\d+)?(?:k|bn)?)(?![\w]) |
    (?P<clock>\d{{1,2}}:\d{{2}}(?::\d{{2}})?(?:\s?[ap]m\b)?|\d{{1,2}}\s?[ap]m\b) |
    (?P<iso>\d{{4}}-\d{{2}}-\d{{2}})\b |
    (?P<ordinal>\d+(?:st|nd|rd|th))\b |
    (?P<version>v?\d+(?:\.\d+){{2,}}(?:-\w+)*|v\d+(?:\.\d+)*)\b |
    (?P<number>\d+(?:,\d{{3}})*(?:\.\d+)?)(?P<unit>%|°[CF]?|km/h|[a-zµμ]{{1,4}}|[KMGTP]i?B|kWh?|[MG]?Hz|[KMG]W|V|W)?
        (?![\w+\#]|-\w) |
    (?P<word>\.?{_LETTER}+(?:[.'@/&+\-]{_LETTER}+)*(?:\+\+|\#)?) |
    (?P<comma>,|\(|\)) |
    (?P<colon>:(?=\s)|->|=>|→|=) |
    (?P<end>[;!?]+|\.+(?=[\s"')]|$)|\s[–—]|\s--?(?=\s)|\n) |
    (?P<sign>[%°&]|[\u2190-\u2bff\U0001f000-\U0001faff])
    """,
    re.VERBOSE,
)
_CAMEL = re.compile(r"[a-z][A-Z]|[\d_]")
_NOT_PAST = frozenset("hundred sacred naked wicked rugged watershed kindred".split())
_STEMMER = snowballstemmer.stemmer("english")


class Token(NamedTuple):
    """One thing said: `key` is compared, `start:end` is where it stands in the (NFKC) text."""

    key: str
    low: str
    kind: str
    start: int
    end: int
    base: str = ""
    form: str = ""
    det: str = ""
    comma: bool = False
    size: tuple[float, str] = (0.0, "")


class Piece(NamedTuple):
    """A stretch of text before it is read: `group` names the alternative that it matched."""

    text: str
    group: str
    start: int
    end: int
    unit: str = ""


def normalise(text: str) -> str:
    """The identity of a text: NFKC, case folded, white space folded, final punctuation off. Idempotent."""
    for _ in range(4):
        folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(_FINAL)
        if folded == text:
            break
        text = folded
    return text


def readable(text: str) -> str:
    """The text that token positions refer to: NFKC, straight apostrophes, ideographs set apart."""
    text = unicodedata.normalize("NFKC", text).replace("’", "'").replace("。", ". ")
    return _IDEOGRAPH.sub(r" \g<0> ", text)


def joined(words: str) -> str:
    """Words of a readable text as they were written: ideographs back together."""
    return _BETWEEN_IDEOGRAPHS.sub("", words)


def pieces(text: str) -> list[Piece]:
    """The first `MAX_TOKENS` pieces of a readable text, in order."""
    found: list[Piece] = []
    for match in _PIECE.finditer(text):
        group = match.lastgroup or ""
        unit = match["unit"] or ""
        found.append(Piece(match[0], "number" if group == "unit" else group, match.start(), match.end(), unit))
        if len(found) >= MAX_TOKENS:
            break
    return found


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The English stem of a lower-case word; a word of another script or with digits is its own stem."""
    if not word.isascii() or len(word) < 3 or not word.isalpha():
        return word
    return str(_STEMMER.stemWord(word))


def is_name(surface: str, *, first: bool) -> bool:
    """A capitalised word inside a sentence, or an identifier (digits, underscores, inner capitals) anywhere."""
    return bool(_CAMEL.search(surface)) or (not first and surface[:1].isupper())


@lru_cache(maxsize=65536)
def read_word(surface: str, *, first: bool) -> tuple[str, str, str, str, str]:
    """`(key, lower case, kind, verb base, verb form)` of a word."""
    low = surface.casefold()
    if is_name(surface, first=first):
        return stem(low), low, "name", "", ""
    if low in lexicon.BE:
        return "be", low, "word", "be", "past" if low in lexicon.PAST_BE else low
    if low in lexicon.HAVE:
        return "have", low, "word", "have", "past" if low == "had" else "s"
    verb = VERB_FORMS.get(low)
    if verb is not None:
        return verb.base, low, "word", verb.base, verb.form
    if low.endswith("ed") and not low.endswith("eed") and len(low) > 4 and low.isascii() and low not in _NOT_PAST:
        # A verb that the lexicon does not have: its past or participle.
        return stem(low), low, "word", stem(low), "ed"
    return stem(low), low, "word", "", ""


def word_token(piece: Piece, det: str, *, first: bool, comma: bool) -> Token:
    key, low, kind, base, form = read_word(piece.text, first=first)
    return Token(key, low, kind, piece.start, piece.end, base, form, det, comma)


def amount_token(piece: Piece, number: float, unit: str, end: int, *, comma: bool) -> Token:
    """An amount with its unit: compared by its size in the dimension's own measure."""
    dimension, factor = units.UNITS[unit]
    return Token(
        f"{dimension}~{number * factor:.10g}", unit, "amount", piece.start, end, comma=comma, size=(number, dimension)
    )


def number_token(piece: Piece, written: str, number: float, end: int, *, comma: bool) -> Token:
    """A bare number is compared as written, so that "3.1" and "3.10" stay apart."""
    return Token(f"#{written}", written, "number", piece.start, end, comma=comma, size=(number, ""))


def clock_token(piece: Piece, *, comma: bool) -> Token:
    """A time of day, compared as minutes and seconds after midnight."""
    text = piece.text.lower().replace(" ", "")
    afternoon, morning = text.endswith("pm"), text.endswith("am")
    hour, _, rest = text.rstrip("apm").partition(":")
    clock = (int(hour) % 12 + 12 * afternoon) if afternoon or morning else int(hour)
    return Token(f"clock~{clock}:{rest or '00'}", text, "clock", piece.start, piece.end, comma=comma)
