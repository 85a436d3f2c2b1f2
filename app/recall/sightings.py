"""What the arms of recall saw of a store, column by column, as one statement packs it.

A *sighting* is one text that an arm found: a current fact, or a retired one that stands for the head of its chain.
A question meets a hundred and more of them and shows a few, so they come as one block of bytes and are weighed as
arrays; nothing is made of a single one until it is shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import Any, Self
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.void]

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_ID = "S16"
# `record_send` writes how many columns follow, in four bytes, and before each its type and its length, in four each.
_BEFORE_A_COLUMN = 8
# A label's weight over the sum of 1/n², as `ts_rank` gives it for a word at one position, times this is its count.
_OCCURRENCES_PER_RANK = 6 * 1.6449340668482264


class Held(IntEnum):
    """How a text was found.

    `WORDED` and `NEAR` are current facts, `ECHO` stands for a retired fact and names its head, `FORGOTTEN` is a
    retired fact that nothing stands for; `SCHEDULED` and `EXPIRED` hold not yet or no longer.
    """

    WORDED = 1
    NEAR = 2
    ECHO = 3
    FORGOTTEN = 4
    SCHEDULED = 5
    EXPIRED = 6


# The columns in their order, each in the binary form that Postgres gives its type. Where no fact was retired,
# `echo_id` is all zeros; without a vector `cosine` is not a number.
COLUMNS: Mapping[str, str] = {
    "held": ">i2",
    "term_length": ">i4",
    "cosine": ">f8",
    "id": _ID,
    "echo_id": _ID,
    "observed_at": ">i8",
    "recorded_at": ">i8",
    "retired_at": ">i8",
}


@lru_cache(maxsize=64)
def layout(terms: int) -> np.dtype[np.void]:
    """The form of a row: the columns, then one rank for each term of the question."""
    rank = np.dtype([("before", f"V{_BEFORE_A_COLUMN}"), ("rank", ">f4")])
    fields: list[Any] = [("columns", ">i4")]
    for name, form in COLUMNS.items():
        fields += [(f"before_{name}", f"V{_BEFORE_A_COLUMN}"), (name, form)]
    return np.dtype([*fields, ("ranks", rank, (terms,))])


def microseconds(moment: datetime) -> int:
    """A moment as the rows tell it."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


@dataclass(frozen=True, eq=False)
class Sightings:
    """The texts that were found for a question, one entry of each array for each.

    `scopes` and `subjects` stand beside the rows where the order of scopes matters, and are empty elsewhere.
    `yields_to` tells, by id, which facts answer the same subject better: newer ones, or those of a more trusted source.
    """

    rows: Rows
    scopes: Sequence[str]
    subjects: Sequence[str | None]
    yields_to: Mapping[bytes, frozenset[bytes]]

    @classmethod
    def unpacked(
        cls,
        packed: bytes | None,
        yielding: bytes | None,
        scopes: Sequence[str] | None,
        subjects: Sequence[str | None] | None,
        *,
        terms: int,
    ) -> Self:
        """From what the statement brings; `yielding` holds pairs of ids, the weaker fact's and the better one's."""
        yields_to: dict[bytes, frozenset[bytes]] = {}
        pairs = np.frombuffer(yielding or b"", _ID).tolist()
        for weaker, better in zip(pairs[::2], pairs[1::2], strict=True):
            yields_to[weaker] = yields_to.get(weaker, frozenset()) | {better}
        rows = np.frombuffer(packed or b"", layout(terms))
        # A null would make its row shorter, and everything behind it would be read at the wrong place.
        if (rows["columns"] != len(COLUMNS) + terms).any():
            raise ValueError("a row of the candidates holds a null")
        return cls(rows, scopes or (), subjects or (), yields_to)

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, places: Sequence[int]) -> Self:
        """Those in these places."""
        scopes = [self.scopes[place] for place in places] if self.scopes else ()
        subjects = [self.subjects[place] for place in places] if self.subjects else ()
        # Rows are copied whole far faster than column by column.
        whole = self.rows.view(f"V{self.rows.itemsize}")[np.array(places, np.intp)]
        return type(self)(whole.view(self.rows.dtype), scopes, subjects, self.yields_to)

    def each_once(self) -> Self:
        """Without those that a second arm brought again."""
        keys = zip(self.ids, self.rows["echo_id"].tolist(), strict=True) if self.has_echoes else self.ids
        places = list({key: place for place, key in enumerate(keys)}.values())
        return self if len(places) == len(self) else self.at(places)

    @cached_property
    def held(self) -> NDArray[np.intp]:
        """A `Held` for each."""
        return self.rows["held"].astype(np.intp)

    @cached_property
    def ids(self) -> list[bytes]:
        """The facts: the one found, or the head that a retired one stands for. Only good to be compared."""
        ids: list[bytes] = self.rows["id"].tolist()
        return ids

    @cached_property
    def is_echo(self) -> Bools:
        """Whether the text is a retired fact's that stands for its head, or for nothing."""
        echo: Bools = (self.held == Held.ECHO) | (self.held == Held.FORGOTTEN)
        return echo

    @cached_property
    def has_echoes(self) -> bool:
        return bool(self.is_echo.any())

    @property
    def lengths(self) -> Floats:
        """In words."""
        return self.rows["term_length"].astype(np.float64)

    @property
    def cosine(self) -> Floats:
        return self.rows["cosine"].astype(np.float64)

    def moments(self, name: str) -> NDArray[np.int64]:
        """Microseconds since 2000 of a column of times."""
        return self.rows[name].astype(np.int64)

    def occurrences(self, terms: int) -> Floats:
        """How often the first so many terms occur in each, as far as weight labels tell: 0, 1, 2, 3.5 or 6."""
        ranks = self.rows["ranks"]["rank"][:, :terms].astype(np.float64)
        occurrences: Floats = (ranks * _OCCURRENCES_PER_RANK).round(1)
        return occurrences

    def echo_id(self, place: int) -> UUID | None:
        """The retired fact whose text this is, if it is one's."""
        return uuid_of(bytes(self.rows["echo_id"][place])) if self.has_echoes and self.is_echo[place] else None


def uuid_of(written: bytes) -> UUID:
    """An id of a row, of which numpy takes the zeros at its end for padding."""
    return UUID(bytes=written.ljust(16, b"\0"))
