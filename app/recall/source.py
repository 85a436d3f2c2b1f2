"""What a search over chains of facts asks of the store."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.recall.paths import Mention

# Tells in how many facts terms occur; a term that occurs in none may be absent.
Frequencies = Callable[[Sequence[str]], Awaitable[Mapping[str, int]]]


@dataclass(frozen=True, slots=True)
class Name:
    """What the facts of a step must hold: all the `terms`. Where too many do, those nearest to `near` count.

    Without `near`, no more facts hold the terms than a step fetches.
    """

    terms: tuple[str, ...]
    near: str | None


class Source(Protocol):
    """Where the current facts are."""

    async def mentioning(self, names: Sequence[Name], limit: int) -> Sequence[Sequence[Mention]]:
        """For each name, at most `limit` facts that hold all its terms, in any order."""
