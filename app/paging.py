"""Lists in pages: an opaque cursor that holds where the last page ended and which filters it was made for."""

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

from fastapi import Query
from pydantic import BaseModel, Field

from app.errors import CursorInvalid
from app.text import MalformedJson, read_json

MOST = 200
USUAL = 50

Key = datetime | UUID | str | int
Row = TypeVar("Row")
Item = TypeVar("Item")

Limit = Annotated[int, Query(ge=1, le=MOST, description="How many to return at most.")]
CursorParam = Annotated[
    str | None,
    Query(description="The `next_cursor` of the page before, to be sent with the same filters.", max_length=8000),
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Page(BaseModel, Generic[Item]):
    """One page of a list."""

    items: list[Item]
    next_cursor: str | None = Field(description="Send it as `cursor` to get the next page; null at the end.")


def page_of(
    rows: Sequence[Row],
    limit: int,
    *,
    key: Callable[[Row], Sequence[Key]],
    item: Callable[[Row], Item],
    filters: Mapping[str, object],
) -> Page[Item]:
    """The page that `limit + 1` fetched rows make: the row too many only tells that there is a next page."""
    shown = rows[:limit]
    following = encode_cursor(key(shown[-1]), filters) if len(rows) > limit else None
    return Page[Item](items=[item(row) for row in shown], next_cursor=following)


def encode_cursor(keys: Sequence[Key], filters: Mapping[str, object]) -> str:
    """The cursor for the rows after the one with these sort keys, in the list that these filters make.

    `filters` should name the list as well, so that no list takes another's cursor. Times must have an offset.
    """
    content = [_digest(filters), *map(_packed, keys)]
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def decode_cursor(cursor: str, kinds: Sequence[type[Key]], filters: Mapping[str, object]) -> tuple[Any, ...]:
    """The sort keys in a cursor, of the given kinds (`datetime`, `UUID`, `str`, `int`) in that order.

    Raises `CursorInvalid` for anything that `encode_cursor` did not make for these kinds and filters.
    """
    digest, packed = _opened(cursor)
    if digest != _digest(filters):
        raise CursorInvalid
    if len(packed) != len(kinds):
        raise _unreadable()
    return tuple(_unpacked(value, kind) for value, kind in zip(packed, kinds, strict=True))


def _opened(cursor: str) -> tuple[object, list[object]]:
    try:
        content = read_json(urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)))
    except (UnicodeEncodeError, binascii.Error, MalformedJson):
        raise _unreadable() from None
    if not isinstance(content, list) or not content:
        raise _unreadable()
    return content[0], content[1:]


def _packed(key: Key) -> str | int:
    match key:
        case datetime():
            return (key - _EPOCH) // _MICROSECOND
        case UUID():
            return key.hex
        case _:
            return key


def _unpacked(value: object, kind: type[Key]) -> Key:
    try:
        if kind is str and isinstance(value, str):
            return value
        if kind is UUID and isinstance(value, str):
            return UUID(hex=value)
        if kind is int and type(value) is int and abs(value) < 2**63:
            return value
        if kind is datetime and type(value) is int:
            return _EPOCH + timedelta(microseconds=value)
    except (ValueError, OverflowError):
        pass
    raise _unreadable()


def _unreadable() -> CursorInvalid:
    return CursorInvalid("The cursor cannot be read. Send `next_cursor` of the page before as it came.")


def _digest(filters: Mapping[str, object]) -> str:
    set_ones = {name: value for name, value in filters.items() if value is not None}
    return sha256(json.dumps(set_ones, default=str, sort_keys=True).encode()).hexdigest()[:16]
