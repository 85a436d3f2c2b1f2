"""Ways through the facts that answer a question, what they are worth, and which of them are the best."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

import numpy as np

from app.recall.evidence import Described, Floats
from app.recall.naming import Span
from app.recall.question import inverse_frequency

# What all that the links lack costs, and what the choices cost that were made on the way, each over the root
# of the length; and what one more step costs.
_COST_OF_LINKS = 0.15
_COST_OF_CHOICE = 0.04
_COST_OF_A_STEP = 0.01
# A question spends about so many words on each step; each step more or fewer costs a little.
_WORDS_OF_A_STEP = 1.8
_COST_OF_LENGTH = 0.05
# Facts that explain the question so nearly as well, in shares of a word, leave a choice.
_AS_WELL = 0.03


# A name is rare enough when the logarithm of its frequency is two thirds of the way down. In a handful of facts no
# name is rare, and that says nothing.
_RARE_ENOUGH = 1.5
_TELLING_STORE = 200
_MOST_COMPARED = 150
_NOWHERE = Span(0, 0)


class Mention(NamedTuple):
    """A current fact that holds a name."""

    id: UUID
    content: str
    recorded_at: datetime


class Entry(NamedTuple):
    """A fact that is entered by the name at `span`, and how good the link is, 0 to 1."""

    fact: Mention
    span: Span
    quality: float


# It is not frozen, since a search makes hundreds and freezing triples what each costs.
@dataclass(slots=True, eq=False)
class Path:
    """Facts from the name in the question on, the last one entered by the name at `entry`.

    `named` is what the name is worth that it starts from and `whole` what the question is, in words. `table` says
    what was used of the question, `lack` what the links lack, and `choice` by how many facts each step could have
    gone (the sum of the logarithms).
    """

    described: Described
    named: float
    whole: float
    table: Floats
    facts: tuple[Mention, ...] = ()
    entry: Span = _NOWHERE
    lack: float = 0.0
    choice: float = 0.0
    score: float = 0.0

    def along(self, entries: Sequence[Entry], gains: Floats) -> "list[Path]":
        """The paths that go on with each of the entries, which gain so much with each segment."""
        tables = self.described.step(self.table, gains)
        used = tables.max(axis=1)
        as_well = used - _AS_WELL * max(1, len(self.described.words))
        choices = self.choice + np.log((used[None, :] >= as_well[:, None]).sum(axis=1))
        lacks = self.lack + 1.0 - np.array([entry.quality for entry in entries])
        scores = self._scores(used, lacks, choices)
        return [
            Path(
                described=self.described,
                named=self.named,
                whole=self.whole,
                table=table,
                facts=(*self.facts, entry.fact),
                entry=entry.span,
                lack=lack,
                choice=choice,
                score=score,
            )
            for entry, table, lack, choice, score in zip(
                entries, tables, lacks.tolist(), choices.tolist(), scores, strict=True
            )
        ]

    def _scores(self, used: Floats, lacks: Floats, choices: Floats) -> list[float]:
        """The shares of the question that are explained, less what is doubtful about it."""
        steps = len(self.facts) + 1
        explained = (self.named + used) / self.whole
        doubts = (_COST_OF_LINKS * lacks + _COST_OF_CHOICE * choices) / math.sqrt(steps)
        unusual = abs(steps - len(self.described.words) / _WORDS_OF_A_STEP)
        # Sums of floats depend on their order in the last digits, and a source gives none.
        scores = np.round(explained - doubts - _COST_OF_A_STEP * steps - _COST_OF_LENGTH * unusual, 9)
        ordered: list[float] = scores.tolist()
        return ordered


def rarity(facts: int, store: int) -> float:
    """How well a name that so many facts hold tells things apart, 0 to 1."""
    store = max(store, _TELLING_STORE)
    return min(1.0, _RARE_ENOUGH * inverse_frequency(facts, store) / math.log1p(store)) if facts else 0.0


def best_of(paths: Sequence[Path], by: Callable[[Path], Hashable]) -> list[Path]:
    """The best path of each kind, best first; where two are as good, the shorter, then that of the newest fact.

    Of very many paths the worst are left out.
    """
    if len(paths) > _MOST_COMPARED:
        least = sorted((path.score for path in paths), reverse=True)[_MOST_COMPARED]
        paths = [path for path in paths if path.score >= least]
    best: dict[Hashable, Path] = {}
    for _, path in sorted(((_order(path), path) for path in paths), key=itemgetter(0)):
        best.setdefault(by(path), path)
    return list(best.values())


def _order(path: Path) -> tuple[float, int, float, tuple[UUID, ...], Span]:
    ids = tuple(fact.id for fact in path.facts)
    return (-path.score, len(ids), -path.facts[-1].recorded_at.timestamp(), ids, path.entry)
