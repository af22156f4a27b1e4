"""What an analyst may ask of blocks of fair signs, and who answers.

A batch of questions knows three things: the counts or values that it takes from the blocks, how
many looks it costs, and the population rank of every answer. Answers are indices into the grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import Grid, IntegerGrid
from holdfast.lab.population import FairBlocks, SignSum, central_rank
from holdfast.mechanisms import look, search
from holdfast.randomness import Entropy
from holdfast.theory.coin import Coin

__all__ = [
    "ExactMedian",
    "Extremes",
    "Looks",
    "Question",
    "Responder",
    "Score",
    "Signs",
    "score_grid",
]

_FINAL_POINTS = 1_024


class Responder(Protocol):
    """Whoever holds the blocks: answers with medians on a grid."""

    def low(self, twice_offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """On a grid of two points: is the median the low one? Offsets are twice C − m/2."""

    def median(self, values: NDArray[np.int64], grid: Grid) -> int:
        """The index of the median on a grid."""


class ExactMedian:
    """The naive holdout: the exact (lower) median of the blocks, every time."""

    def low(self, twice_offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        return twice_offsets >= 0

    def median(self, values: NDArray[np.int64], grid: Grid) -> int:
        return int(np.sort(grid.ceiling(values))[(values.size - 1) // 2])


@dataclass(frozen=True)
class Looks:
    """The planned holdout: every answer is made of looks with one coin (theory.md §2, §3)."""

    coin: Coin
    entropy: Entropy

    def low(self, twice_offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        return look(twice_offsets, self.coin, self.entropy)

    def median(self, values: NDArray[np.int64], grid: Grid) -> int:
        return search(values, grid, self.coin, self.entropy)


class Question(Protocol):
    """A batch of questions that are chosen together."""

    @property
    def looks(self) -> int:
        """What the batch costs."""

    def ask(self, blocks: FairBlocks, responder: Responder) -> NDArray[np.int64]:
        """The answers, as grid indices."""

    def ranks(self, answers: NDArray[np.int64]) -> NDArray[np.float64]:
        """The population rank of each answer."""


@dataclass(frozen=True)
class Signs:
    """For each of the first `count` signs: is its median −1 or +1? One look each.

    Both answers are right: in the population the signs are fair. But each leaks which way the
    majority of these blocks leans.
    """

    count: int

    @property
    def looks(self) -> int:
        return self.count

    def ask(self, blocks: FairBlocks, responder: Responder) -> NDArray[np.int64]:
        at_most_low = blocks.blocks - blocks.positive[: self.count]
        return np.where(responder.low(2 * at_most_low - blocks.blocks), 0, 1)

    def ranks(self, answers: NDArray[np.int64]) -> NDArray[np.float64]:
        return central_rank(answers / 2, (answers + 1) / 2)


def score_grid(terms: int) -> IntegerGrid:
    """1,024 whole numbers around 0, at least five standard deviations of the sum to each side.

    >>> score_grid(9_990)
    grid(-512, 511, scale='integer')
    """
    half = _FINAL_POINTS // 2
    step = -(-int(5 * np.ceil(np.sqrt(terms))) // half)
    return IntegerGrid(-half * step, (half - 1) * step, step)


@dataclass(frozen=True, eq=False)
class Score:
    """The median of Σ_j orientation_j·sign_j over the blocks, by a search of its grid."""

    orientation: NDArray[np.int64]

    @property
    def grid(self) -> IntegerGrid:
        """The possible answers."""
        return score_grid(self.orientation.size)

    @property
    def looks(self) -> int:
        return self.grid.looks

    def ask(self, blocks: FairBlocks, responder: Responder) -> NDArray[np.int64]:
        return np.array([responder.median(blocks.sums(self.orientation), self.grid)])

    def ranks(self, answers: NDArray[np.int64]) -> NDArray[np.float64]:
        # Values above the grid count as its highest point, those below as its lowest.
        law, grid = SignSum(self.orientation.size), self.grid
        values = grid.points(answers)
        below = np.where(answers == 0, 0.0, law.at_most(values - grid.step))
        up_to = np.where(answers == grid.size - 1, 1.0, law.at_most(values))
        return central_rank(below, up_to)


@dataclass(frozen=True, eq=False)
class Extremes:
    """Rare events, over and over: is the median of 1(score > threshold) 0, or 1? One look each.

    The l-th question leaves the l-th sign out of the score, so that no question is asked twice.
    The threshold is the smallest with population tail ≤ ρ: the answer 1 breaks the promise.
    """

    orientation: NDArray[np.int64]
    count: int
    tail: float

    @property
    def looks(self) -> int:
        return self.count

    @property
    def law(self) -> SignSum:
        """Of every score: one sign is left out."""
        return SignSum(self.orientation.size - 1)

    def above(self, blocks: FairBlocks) -> NDArray[np.int64]:
        """For each question, how many blocks score above the threshold."""
        sums, threshold = blocks.sums(self.orientation), self.law.rare(self.tail)
        # Leaving out one sign moves a sum by 1: only sums next to the threshold can cross it.
        close = (sums > threshold - 1) & (sums <= threshold + 1)
        left_out = self.orientation[: self.count] * blocks.signs(close, self.count)
        crossing = sums[close, np.newaxis] - left_out > threshold
        surely = np.count_nonzero(sums > threshold + 1)
        return surely + np.asarray(np.count_nonzero(crossing, axis=0), np.int64)

    def ask(self, blocks: FairBlocks, responder: Responder) -> NDArray[np.int64]:
        at_most_low = blocks.blocks - self.above(blocks)
        return np.where(responder.low(2 * at_most_low - blocks.blocks), 0, 1)

    def ranks(self, answers: NDArray[np.int64]) -> NDArray[np.float64]:
        common = 1.0 - float(self.law.above(self.law.rare(self.tail)))
        return central_rank(np.where(answers == 0, 0.0, common), np.where(answers == 0, common, 1))
