"""Turns text into the terms that the words arm of recall searches and weighs."""

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import snowballstemmer  # type: ignore[import-untyped]  # The package ships no type information.

MAX_TERM_LENGTH = 64
MAX_QUERY_TERMS = 64

# Postgres refuses a tsvector above 1,048,575 bytes; each lexeme costs its UTF-8 length and a few bytes more.
_MAX_VECTOR_BYTES = 900_000
_LEXEME_OVERHEAD = 8
# A chunk longer than this is a whole sentence in a script without spaces, and not worth a place in the cache.
_MAX_CACHED_CHUNK = 64
# Hashes and base64 change between letters and digits all the time; their pieces say nothing.
_MAX_CASE_PIECES = 4

# Only words that carry nothing in a question. Polarity words, digits and single letters are never here.
_STOP_WORDS = """
    the of to in on at for with by from and or as is are was were be been being am do does did has have
    had will would shall should can could may might it its this that these those there me my we our you
    your he him his she her they them their what who whom whose which when where why how
"""
# The article and the pronoun; the single letter in "Team A" is a name.
_STOP_CHUNKS = ("a", "i", "I")

# What an English contraction of "not" leaves behind when the "n't" is cut off.
_CONTRACTED = {"ca": "can", "wo": "will", "sha": "shall", "ai": "be"}
_ALIKE = dict.fromkeys("\u2018\u2019\u02bc\u2032", "'") | dict.fromkeys("\u2010\u2011\u2212", "-")
_ALIKE |= {"\u2044": "/", "\u200b": " "}
_FOLDS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h"})

# Scripts without spaces between words: Han, kana, Hangul and Bopomofo, then Thai, Lao, Burmese and Khmer.
_IDEOGRAPHS = (
    "\u1100-\u11ff\u3005-\u3007\u3041-\u30ff\u3105-\u318f\u31a0-\u31ff\u3400-\u9fff\ua960-\ua97f\uac00-\ud7ff"
    "\uf900-\ufaff\U00020000-\U000323af"
)
_UNSPACED = re.compile(f"([{_IDEOGRAPHS}]+|[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff]+)")
_IDEOGRAPH = re.compile(f"[{_IDEOGRAPHS}]")

# After _SYMBOLS every character above ASCII is a letter, a mark or a symbol that stands alone.
_WORD = r"[0-9A-Za-z_\u0080-\U0010ffff]"
_COMPOUND = re.compile(
    rf"(?:(?<![^\s(\[\"'`=])(?:--?|\.)(?=[A-Za-z]))?{_WORD}+"
    rf"(?:(?:://|::|\+\+/|[./\\:@'&=+#~?%-]|(?<=[0-9]),(?=[0-9])){_WORD}+)*(?:\+\+|\#)?"
)
_LETTER = r"[^\W\d_]"
# From the loosest joint to the tightest: what is left after the last one is a plain word or a plain number.
_HYPHEN = re.compile(r"[-'+#]+")
_JOINTS = (
    re.compile(r"[/\\:@=&?,~%]+"),
    re.compile(r"\.+"),
    _HYPHEN,
    re.compile(r"_+"),
    re.compile(rf"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<={_LETTER})(?=[0-9])|(?<=[0-9])(?={_LETTER})"),
)
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+")
_INITIALS = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]")
_HYPHENATED = re.compile(rf"{_LETTER}+(?:[-']{_LETTER}+)+")
_VERSION = re.compile(r"v[0-9][0-9.]*[0-9a-z]*")
_SHORT_ENDING = re.compile(r"'(?:s|re|ve|ll|d|m)?$")
_ASCII_LETTERS = re.compile(r"[a-z]{3,}")
_LONG_NUMBER = re.compile(r"[0-9]{3,}")


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a text: distinct term → frequency, and the number of words, BM25's length."""

    counts: Mapping[str, int]
    length: int


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text. `parts` are its smallest pieces; each of `wholes` stands for all of them at once.

    `identifiers` are those of its terms that name one thing exactly: codes, versions, paths, names in code,
    numbers of three digits and more (in a query any behind a word). `index_only` terms are never asked for.
    """

    parts: tuple[str, ...]
    wholes: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    index_only: tuple[str, ...] = ()


class _Symbols(dict[int, str]):
    """Rewrites what is neither letter, mark nor ASCII, one code point at a time and only once each."""

    def __missing__(self, code: int) -> str:
        self[code] = replacement = _symbol(chr(code))
        return replacement


def _symbol(char: str) -> str:
    category = unicodedata.category(char)
    if char.isascii() or "\U0001f1e6" <= char <= "\U0001f1ff":  # Two regional indicators make one flag.
        return char
    if char in _ALIKE:
        return _ALIKE[char]
    if category in ("So", "Sc"):
        return f" {char} "
    if category in ("Me", "Cf") or "\ufe00" <= char <= "\ufe0f":
        return ""
    if category == "Nd":
        return str(unicodedata.digit(char))
    return char if category[0] in "LMN" else " "


_SYMBOLS = _Symbols()


def analyze(text: str) -> Terms:
    """The terms of a document. Stop words are among them: a question may be made of nothing else."""
    counts: dict[str, int] = {}
    length = 0
    for chunk in _chunks(text):
        for word in _words_of(chunk):
            length += len(word.parts)
            for term in word.parts + word.wholes + word.index_only:
                counts[term] = counts.get(term, 0) + 1
    return Terms(_within_limit(counts), length)


def query_words(text: str) -> tuple[Word, ...]:
    """The words of a query in order, each once, without stop words unless it holds nothing else."""
    chunks = _chunks(text)
    said = [word for chunk in chunks if chunk not in _STOP_CHUNKS for word in _words_of(chunk) if word.parts]
    telling = [_labelled(w, before) for before, w in zip([None, *said], said, strict=False) if not is_stop_word(w)]
    return tuple(dict.fromkeys(telling or (word for chunk in chunks for word in _words_of(chunk) if word.parts)))


def _labelled(word: Word, before: Word | None) -> Word:
    """A short number right behind a word that tells something names one of its kind: `bay 4`, not `the 4 bays`."""
    told = before is not None and before.parts[-1].isalpha() and not is_stop_word(before)
    return replace(word, identifiers=word.parts) if told and not word.wholes and word.parts[0].isdecimal() else word


def analyze_query(text: str, limit: int = MAX_QUERY_TERMS) -> tuple[str, ...]:
    """The distinct terms of a query in order of appearance, at most `limit`."""
    terms = dict.fromkeys(term for word in query_words(text) for term in word.wholes + word.parts)
    return tuple(terms)[:limit]


def is_stop_word(word: Word) -> bool:
    """Whether a word carries nothing in a question that also has other words."""
    return not word.wholes and _STOP_TERMS.issuperset(word.parts)


def tsvector_literal(terms: Terms) -> str:
    """Text that casts to `tsvector`: each term at one position, whose weight label carries the frequency.

    D stands for 1, C for 2, B for 3 and 4, A for 5 and more, so that `ts_rank` can tell them apart.
    """
    return " ".join(f"{quoted(term)}:1{_frequency_label(count)}" for term, count in terms.counts.items())


def quoted(term: str) -> str:
    """A term as a lexeme of a `tsvector` or `tsquery` literal, none of its characters read as syntax."""
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _frequency_label(count: int) -> str:
    if count >= 5:
        return "A"
    return ("", "C", "B", "B")[count - 1]


def _within_limit(counts: dict[str, int]) -> dict[str, int]:
    if len(counts) * (MAX_TERM_LENGTH * 4 + _LEXEME_OVERHEAD) <= _MAX_VECTOR_BYTES:
        return counts
    kept: dict[str, int] = {}
    room = _MAX_VECTOR_BYTES
    for term, count in counts.items():
        room -= len(term.encode()) + _LEXEME_OVERHEAD
        if room < 0:
            break
        kept[term] = count
    return kept


def _chunks(text: str) -> list[str]:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_SYMBOLS)
    return text.split()


def _words_of(chunk: str) -> tuple[Word, ...]:
    return _expand(chunk) if len(chunk) <= _MAX_CACHED_CHUNK else _expand.__wrapped__(chunk)


@lru_cache(maxsize=1 << 15)
def _expand(chunk: str) -> tuple[Word, ...]:
    """The words of a chunk, which holds no white space."""
    if chunk.isascii():
        return tuple(_compounds(chunk))
    pieces = _UNSPACED.split(chunk)
    return tuple(word for at, piece in enumerate(pieces) for word in (_bigrams(piece) if at % 2 else _compounds(piece)))


def _bigrams(run: str) -> Iterator[Word]:
    run = _cased(run)
    if len(run) == 1:
        yield Word((run,))
        return
    for at in range(len(run) - 1):
        yield Word((run[at : at + 2],), index_only=_single(run[at]))
    # The last character starts no pair, so its single term goes along with a word that has no other part.
    yield from (Word((), index_only=single) for single in [_single(run[-1])] if single)


def _single(char: str) -> tuple[str, ...]:
    return (char,) if _IDEOGRAPH.match(char) else ()


def _compounds(piece: str) -> Iterator[Word]:
    for found in _COMPOUND.findall(piece):
        yield _word(found)


def _word(compound: str) -> Word:
    if "'" in compound:
        compound = _SHORT_ENDING.sub("", compound)
    if negated := _negation(compound):
        return Word(negated)
    pieces, wholes, identifiers = [compound], dict[str, None](), list[str]()
    for joint in _JOINTS:
        for piece in pieces:
            if _pieces(joint, piece) != [piece]:
                forms = tuple(_forms_of_whole(piece))
                wholes.update(dict.fromkeys(forms))
                identifiers.extend(() if joint is _HYPHEN and _is_plain(piece) else forms)
        pieces = [split for piece in pieces for split in _pieces(joint, piece)]
    parts = tuple(_part(piece) for piece in pieces)
    wholes.update((accented, None) for piece in pieces for accented in _accented(piece))
    if len(parts) == 1 and _LONG_NUMBER.fullmatch(parts[0]):
        identifiers.extend(parts)
    return Word(parts, tuple(whole for whole in wholes if whole not in parts), tuple(identifiers))


def _is_plain(piece: str) -> bool:
    return _HYPHENATED.fullmatch(piece) is not None


def _negation(compound: str) -> tuple[str, ...]:
    lowered = compound.casefold()
    if lowered == "cannot":
        return ("can", "not")
    if lowered.endswith("n't") and len(lowered) > 3:
        verb = lowered[:-3]
        return (_part(_CONTRACTED.get(verb, verb)), "not")
    return ()


def _pieces(joint: re.Pattern[str], piece: str) -> list[str]:
    split = [part for part in joint.split(piece) if part]
    too_mixed = joint is _JOINTS[-1] and len(split) > _MAX_CASE_PIECES
    return [piece] if too_mixed and not _is_camel_case(piece) else split


def _is_camel_case(piece: str) -> bool:
    return piece.isalpha() and piece.isascii()


def _forms_of_whole(piece: str) -> Iterator[str]:
    """How a name that has joints is written as one term, so that its usual spellings meet."""
    whole = _cased(piece)
    if _THOUSANDS.fullmatch(piece):
        yield whole.replace(",", "")
    elif _HYPHENATED.fullmatch(piece):
        yield _shortened(whole.replace("-", "").replace("'", ""))
    else:
        yield _shortened(whole)
    if _INITIALS.fullmatch(piece):
        yield whole.replace(".", "")
    if _VERSION.fullmatch(whole):
        yield _shortened(whole[1:])


def _part(piece: str) -> str:
    folded = _folded(_cased(piece))
    return _stem(folded) if _ASCII_LETTERS.fullmatch(folded) else _shortened(folded)


def _accented(piece: str) -> Iterator[str]:
    cased = _cased(piece)
    if not cased.isascii() and cased != _folded(cased):
        yield _shortened(cased)


def _cased(piece: str) -> str:
    folded = piece.casefold()
    return folded if folded.isascii() else unicodedata.normalize("NFKC", folded)


def _folded(word: str) -> str:
    """Without accents: only marks of the general block go, since other scripts spell with theirs."""
    if word.isascii():
        return word
    bare = "".join(char for char in unicodedata.normalize("NFKD", word) if not "\u0300" <= char <= "\u036f")
    return unicodedata.normalize("NFKC", bare).translate(_FOLDS) or word


def _shortened(term: str) -> str:
    if len(term) <= MAX_TERM_LENGTH:
        return term
    digest = hashlib.blake2b(term.encode(), digest_size=8).hexdigest()
    return f"{term[: MAX_TERM_LENGTH - 17]}~{digest}"


@lru_cache(maxsize=1 << 15)
def _stem(word: str) -> str:
    # A stemmer object keeps the word it works on, so threads must not share one.
    stem: str = snowballstemmer.stemmer("english").stemWord(word)
    return _shortened(stem)


_STOP_TERMS = frozenset(_part(word) for word in _STOP_WORDS.split())
