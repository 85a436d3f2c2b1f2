"""What a text, a time and a JSON value must be before anything keeps them."""

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

METADATA_BYTES = 16 * 1024
METADATA_DEPTH = 16
BODY_DEPTH = 64
# RFC 7493 (I-JSON): beyond this, clients that read numbers as doubles see another number.
LARGEST_INTEGER = 2**53 - 1
# A day inside what Python can hold, so that every offset can show the instant.
EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 12, 30, tzinfo=UTC)

_SURROGATE = re.compile("[\ud800-\udfff]")
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_NAIVE = re.compile(r"\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?)?", re.ASCII)
# Letters by category that nevertheless leave no mark: combining joiner, Hangul fillers, Khmer inherent vowels,
# the empty Braille pattern.
_MARKLESS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_MOST_FAULTS = 20


@dataclass(frozen=True, slots=True)
class Fault:
    """One place in a JSON value that cannot be kept: its JSON pointer, a code and a sentence."""

    pointer: str
    code: str
    detail: str


class MalformedJson(ValueError):
    """The text is not JSON (RFC 8259), or holds values that cannot be kept; `faults` says which."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = faults
        super().__init__(faults[0].detail)


_NUL = ("nul_character", "Must not hold the NUL character (U+0000).")
_LONE = ("lone_surrogate", "Must not hold half of a surrogate pair (U+D800 to U+DFFF).")
_NOT_FINITE = ("not_finite", "Must be a finite number that a double holds.")
_REPEATED = ("duplicate_key", "Must not be given twice in the same object.")


def _too_deep(depth: int) -> tuple[str, str]:
    return "too_deep", f"Must not be nested more than {depth} levels deep."


def _uncleanness(text: str) -> tuple[str, str] | None:
    if text.isascii():
        return _NUL if "\0" in text else None
    if "\0" in text:
        return _NUL
    return _LONE if _SURROGATE.search(text) else None


def is_blank(text: str) -> bool:
    """Whether nothing of the text would leave a mark: white space, control and format characters only."""
    return all(
        character.isspace()
        or character in _MARKLESS
        or unicodedata.category(character) in {"Cc", "Cf", "Zs", "Zl", "Zp"}
        or "\ufe00" <= character <= "\ufe0f"
        for character in text
    )


def _clean(value: object) -> object:
    # Before pydantic measures a string: it answers a lone surrogate with a code of its own.
    if isinstance(value, str) and (found := _uncleanness(value)):
        raise PydanticCustomError(*found)
    return value


def _not_blank(text: str) -> str:
    if is_blank(text):
        raise PydanticCustomError("blank", "Must hold at least one visible character.")
    return text


CleanStr = Annotated[str, BeforeValidator(_clean)]
"""A string that Postgres and UTF-8 can hold: no NUL, no lone surrogate."""

NonBlank = Annotated[str, BeforeValidator(_clean), Field(min_length=1), AfterValidator(_not_blank)]
"""A clean string with at least one visible character. Add an upper bound with `Field(max_length=…)`."""


def _offset_given(value: object) -> object:
    if isinstance(value, datetime):
        return value
    if isinstance(value, str) and _RFC_3339.fullmatch(value):
        return value
    if isinstance(value, str) and _NAIVE.fullmatch(value):
        raise PydanticCustomError(
            "offset_required",
            "Must say its offset from UTC, such as 2026-01-05T09:00:00Z or 2026-01-05T10:00:00+01:00.",
        )
    raise PydanticCustomError(
        "time_invalid",
        "Must be an RFC 3339 time such as 2026-01-05T09:00:00Z (in a URL, write the `+` of an offset as %2B).",
    )


def _in_utc(moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        raise PydanticCustomError("offset_required", "Must say its offset from UTC.")
    if not EARLIEST <= moment <= LATEST:
        raise PydanticCustomError(
            "time_out_of_range", "Must lie between 0001-01-02T00:00:00Z and 9999-12-30T00:00:00Z."
        )
    return moment.astimezone(UTC)


Instant = Annotated[datetime, BeforeValidator(_offset_given), AfterValidator(_in_utc)]
"""An RFC 3339 time with its offset, as UTC, within what Python and timestamptz both hold."""


def _keepable(metadata: dict[str, Any]) -> dict[str, Any]:
    for fault in faults(metadata, depth=METADATA_DEPTH, integers=LARGEST_INTEGER):
        raise PydanticCustomError(fault.code, "{detail}", {"detail": f"{fault.pointer}: {fault.detail}"})
    size = len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode())
    if size > METADATA_BYTES:
        raise PydanticCustomError(
            "metadata_too_large",
            "Must take at most {limit} bytes as JSON, not {size}.",
            {"limit": METADATA_BYTES, "size": size},
        )
    return metadata


Metadata = Annotated[dict[str, Any], AfterValidator(_keepable)]
"""A JSON object of at most 16 KiB that jsonb and JSON clients hold without loss."""


def faults(value: object, *, depth: int, integers: int | None = None) -> Iterator[Fault]:
    """Every place of a JSON value that cannot be kept.

    Refused are NUL and lone surrogates in keys and values, numbers that are not finite, integers beyond
    `integers` either way, objects that name a key twice, and more than `depth` levels. It walks with its own
    stack: a value deep enough to exhaust Python's must be refused and not crash.
    """
    if not isinstance(value, dict | list):
        if found := _fault_of(value, integers):
            yield Fault("", *found)
        return
    waiting: list[tuple[tuple[str | int, ...], dict[str, Any] | list[Any]]] = [((), value)]
    while waiting:
        path, holder = waiting.pop()
        if len(path) >= depth:
            yield Fault(pointer(path), *_too_deep(depth))
            continue
        if isinstance(holder, dict):
            yield from _faults_of_keys(path, holder)
        inside = []
        for key, child in holder.items() if isinstance(holder, dict) else enumerate(holder):
            if isinstance(child, dict | list):
                inside.append(((*path, key), child))
            elif found := _fault_of(child, integers):
                yield Fault(pointer((*path, key)), *found)
        waiting.extend(reversed(inside))


def _fault_of(item: object, integers: int | None) -> tuple[str, str] | None:
    if isinstance(item, str):
        return _uncleanness(item)
    if isinstance(item, float):
        return None if math.isfinite(item) else _NOT_FINITE
    if integers is not None and isinstance(item, int) and abs(item) > integers:
        return (
            "integer_out_of_range",
            f"Must be an integer between -{integers} and {integers}; send it as a string.",
        )
    return None


def _faults_of_keys(path: tuple[str | int, ...], item: dict[str, Any]) -> Iterator[Fault]:
    for key in item:
        if found := _uncleanness(key):
            yield Fault(pointer(path), found[0], f"A key of this object: {found[1]}")
    if isinstance(item, _Ambiguous):
        yield from (Fault(pointer((*path, key)), *_REPEATED) for key in item.repeated)


def pointer(path: Sequence[str | int]) -> str:
    """The path as a JSON pointer (RFC 6901), shortened and printable whatever its keys hold."""
    steps = (str(step)[:100].replace("~", "~0").replace("/", "~1") for step in path)
    return "".join(f"/{step}" for step in steps).encode("utf-8", "replace").decode().replace("\0", "�")


class _Ambiguous(dict[str, Any]):
    """An object whose text names a key more than once."""

    repeated: Sequence[str] = ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    ambiguous = _Ambiguous(members)
    ambiguous.repeated = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
    return ambiguous


def _integer(digits: str) -> int | float:
    # Python refuses to read very long integers with an error that names no place; infinity is found by the walk.
    return int(digits) if len(digits) <= 308 else math.inf


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)


def read_json(body: bytes) -> Any:
    """The value of a JSON text, strictly: UTF-8, every key once, numbers finite, text clean, at most 64 deep.

    `json.loads` alone lets NaN, repeated keys, NUL and lone surrogates through, and they fail later, elsewhere.
    Raises `MalformedJson`.
    """
    try:
        value = _decoder.decode(body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise _malformed("not_utf8", f"The body is not UTF-8: byte {error.start} cannot be read.") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _malformed("json_invalid", f"The body is not JSON: {error.msg} at {where}.") from None
    except RecursionError:
        raise MalformedJson([Fault("", *_too_deep(BODY_DEPTH))]) from None
    found = [fault for fault, _ in zip(faults(value, depth=BODY_DEPTH), range(_MOST_FAULTS), strict=False)]
    if found:
        raise MalformedJson(found)
    return value


def _malformed(code: str, detail: str) -> MalformedJson:
    return MalformedJson([Fault("", code, detail)])
