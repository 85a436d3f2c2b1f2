"""What a comparison of two statements finds."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["value", "unit", "polarity", "reversal", "partial", "reassertion"]


@dataclass(frozen=True, slots=True)
class Finding:
    """How a new statement stands against a held one.

    `retires` says whether the new statement may retire the held one where rules may; otherwise it is a conflict to
    show. `removed` and `added` are the differing parts, in the words of the held and of the new statement. `rule` is
    the name and the version of the rule that found it.
    """

    kind: Kind
    retires: bool
    detail: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    rule: str


def conflict(kind: Kind, detail: str, removed: tuple[str, ...], added: tuple[str, ...], rule: str) -> Finding:
    """A finding that retires nothing."""
    return Finding(kind, retires=False, detail=detail, removed=removed, added=added, rule=rule)
