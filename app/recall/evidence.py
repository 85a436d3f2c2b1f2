"""How well the words of a question describe the steps of a chain, measured with static word vectors.

The words to the left and to the right of the name that a question starts from are read outwards: the innermost
ones describe the first step ("the [captain] of the Blue Heron"), the outermost ones the last. A *segment* is what
one step uses up: some words on each side, next to those used before. The best division of the question into
segments is found for all candidates at once by dynamic programming over (words used left, words used right).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from app.recall.naming import Token

Floats = NDArray[np.float64]
Embed = Callable[[Sequence[str]], Awaitable[NDArray[np.float32]]]

# Words of the question that are weighed on each side of its name, and in one segment: the rest hardly says more.
_MOST_ON_A_SIDE = 9
_MOST_IN_A_SEGMENT = 6
# A name in the rest of a fact is what the fact leads to rather than what it says.
_WEIGHT_OF_A_NAME = 0.5
# A step that its words describe less than so well costs this much of the difference.
_PLAUSIBLE = 0.15
_COST_OF_IMPLAUSIBLE = 0.3
# Likeness is raised to this power: between unrelated words it is near 0, and a third is a lot already.
_SHARPNESS = 0.7
_UNREACHED = -1e9
_MOST_KEPT = 20_000


class Vocabulary:
    """Unit vectors of words, embedded once and kept for the questions that follow."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._kept: dict[str, NDArray[np.float32]] = {}

    async def vectors(self, words: Sequence[str]) -> Floats:
        """One row a word, of length 1 (or 0). Raises what the embedder raises."""
        new = sorted({word for word in words if word not in self._kept})
        known = {word: self._kept[word] for word in words if word in self._kept}
        if new:
            known.update(zip(new, await self._embed(new), strict=True))
            if len(self._kept) + len(new) > _MOST_KEPT:
                self._kept.clear()
            self._kept.update((word, known[word]) for word in new)
        if not words:
            return np.zeros((0, 0))
        return np.array([known[word] for word in words], np.float64)


class Lexicon:
    """The distinct words of some texts, with their vectors."""

    def __init__(self, tokens: Sequence[Token], vectors: Floats) -> None:
        self.vectors = vectors
        self._places: dict[tuple[str, ...], list[int]] = {}
        self._place: dict[str, int] = {}
        for word, token in {token.spoken: token for token in tokens}.items():
            self._places.setdefault(token.key, []).append(len(self._place))
            self._place[word] = len(self._place)

    @classmethod
    def empty(cls) -> "Lexicon":
        """No words at all."""
        return cls([], np.zeros((0, 0)))

    @classmethod
    async def of(cls, tokens: Sequence[Token], vocabulary: Vocabulary) -> "Lexicon":
        """The lexicon of these words."""
        words = dict.fromkeys(token.spoken for token in tokens)
        return cls(tokens, await vocabulary.vectors(list(words)))

    def columns(self, tokens: Sequence[Token]) -> list[int]:
        """The place of each word."""
        return [self._place[token.spoken] for token in tokens]

    def likeness(self, token: Token, vector: Floats) -> Floats:
        """How like a word all words are, 0 to 1: the cosine, and 1 for forms of the same word."""
        likeness = np.maximum(self.vectors @ vector, 0.0)
        likeness[self._places.get(token.key, [])] = 1.0
        return likeness


@dataclass(frozen=True, slots=True)
class Rests:
    """What some facts say besides the names by which they were found: a row for each.

    `sums` are the directions of their weighted mean word vectors; `columns` and `weights` are their words one
    after the other, those of fact i from `starts[i]`.
    """

    lexicon: Lexicon
    sums: Floats
    columns: NDArray[np.intp]
    weights: Floats
    starts: NDArray[np.intp]

    @classmethod
    def of(cls, rests: Sequence[Sequence[Token]], lexicon: Lexicon) -> "Rests":
        """A fact that says nothing else gets a row of zeros."""
        columns: list[int] = []
        weights: list[float] = []
        starts: list[int] = []
        sums = np.zeros((len(rests), lexicon.vectors.shape[1]))
        for row, rest in enumerate(rests):
            places = lexicon.columns(rest)
            worths = [_WEIGHT_OF_A_NAME if token.named else 1.0 for token in rest]
            sums[row] = np.array(worths) @ lexicon.vectors.take(places, axis=0) if rest else 0.0
            # The last place stands for no word at all, so that no row is empty.
            starts.append(len(columns))
            columns += [*places, len(lexicon.vectors)]
            weights += [*worths, 0.0]
        return cls(lexicon, _directions(sums), np.array(columns), np.array(weights), np.array(starts))

    def best(self, token: Token, vector: Floats) -> Floats:
        """For each fact, how like the word its likest word is."""
        likeness = np.append(self.lexicon.likeness(token, vector), 0.0)
        best: Floats = np.maximum.reduceat(likeness[self.columns] * self.weights, self.starts)
        return best


def _directions(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


class Described:
    """The words of a question around the name that it starts from, and all their segments."""

    def __init__(self, left: Sequence[Token], right: Sequence[Token], vectors: Floats) -> None:
        """`left` and `right` outwards, the vectors of the left ones first."""
        self.left, self.right = left[:_MOST_ON_A_SIDE], right[:_MOST_ON_A_SIDE]
        self.words = [*self.left, *self.right]
        self._vectors = np.concatenate([vectors[: len(self.left)], vectors[len(left) : len(left) + len(self.right)]])
        segments = np.array(list(_segments(len(self.left), len(self.right))))
        left_start, left_end, right_start, right_end = segments.T
        places = np.arange(len(self.words))
        right_places = places - len(self.left)
        self._holds = (
            (places >= left_start[:, None]) & (places < np.minimum(left_end, len(self.left))[:, None])
            | (right_places >= right_start[:, None]) & (right_places < right_end[:, None]) & (right_places >= 0)
        ).astype(np.float64)
        self._sizes = self._holds.sum(axis=1)
        self._sums = _directions(self._holds @ self._vectors)
        # Segments by the cell of the table in which they end, each cell's together.
        order = np.argsort(left_end * self._width + right_end, kind="stable")
        self._from = (left_start * self._width + right_start)[order]
        self._order = order
        ends = (left_end * self._width + right_end)[order]
        self._starts = np.searchsorted(ends, np.arange(self._cells))

    @property
    def _width(self) -> int:
        return len(self.right) + 1

    @property
    def _cells(self) -> int:
        return (len(self.left) + 1) * self._width

    def unused(self) -> Floats:
        """The table before the first step: nothing used, nothing gained."""
        table = np.full(self._cells, _UNREACHED)
        table[0] = 0.0
        return table

    def remaining(self, table: Floats) -> list[Token]:
        """The words that the best way through the table has not used."""
        used_left, used_right = divmod(int(np.argmax(table)), self._width)
        return [*self.left[used_left:], *self.right[used_right:]]

    def weigh(self, rests: Rests, price: float) -> Floats:
        """What each fact gains with each segment, in words described: (facts, segments).

        A word counts by its likest word in the fact and by the cosine of the whole segment with the whole
        rest, half each. `price` is what the whole question is worth, in words.
        """
        words = np.array([rests.best(token, row) for token, row in zip(self.words, self._vectors, strict=True)])
        words = words**_SHARPNESS
        by_word = words.reshape(len(self.words), len(rests.sums)).T @ self._holds.T
        by_whole = np.maximum(rests.sums @ self._sums.T, 0.0)
        described = 0.5 * by_word + 0.5 * by_whole**_SHARPNESS * self._sizes
        plausible = described / np.maximum(self._sizes, 1.0)
        gains: Floats = described + _COST_OF_IMPLAUSIBLE * price * np.minimum(plausible - _PLAUSIBLE, 0.0)
        return gains[:, self._order]

    def step(self, table: Floats, gains: Floats) -> Floats:
        """The tables after one more step, one for each row of gains."""
        ways = table[self._from] + gains
        reached = np.maximum.reduceat(ways, self._starts, axis=1).reshape(len(gains), -1, self._width)
        # A word may also stay undescribed.
        skipped = np.maximum.accumulate(np.maximum.accumulate(reached, axis=1), axis=2)
        return skipped.reshape(len(gains), -1)

    def sameness(self, lexicon: Lexicon) -> Floats:
        """For each word of the lexicon, how like it the likest word of the question is."""
        rows = [lexicon.likeness(token, row) for token, row in zip(self.words, self._vectors, strict=True)]
        return np.max(rows, axis=0) if rows else np.zeros(len(lexicon.vectors))


def _segments(left: int, right: int) -> list[tuple[int, int, int, int]]:
    on_left = combinations_with_replacement(range(left + 1), 2)
    on_right = list(combinations_with_replacement(range(right + 1), 2))
    return [(a, b, c, d) for (a, b), (c, d) in product(on_left, on_right) if b - a + d - c <= _MOST_IN_A_SEGMENT]
