"""Who holds the blocks of fair signs: the naive holdout, and the planned one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import Grid
from holdfast.mechanisms.looks import look, search
from holdfast.randomness import Entropy
from holdfast.theory.coins import Coin

__all__ = ["ExactMedian", "Looks", "Responder"]


class Responder(Protocol):
    """Whoever holds the blocks: answers with medians on a grid."""

    def low(self, twice_offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """On a grid of two points: is the median the low one? Offsets are twice C − m/2."""

    def chance_low(self, twice_offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        """How likely `low` says so."""

    def median(self, values: NDArray[np.int64], grid: Grid) -> int:
        """The index of the median on a grid."""


class ExactMedian:
    """The naive holdout: the exact (lower) median of the blocks, every time."""

    def low(self, twice_offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        return twice_offsets >= 0

    def chance_low(self, twice_offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.low(twice_offsets).astype(np.float64)

    def median(self, values: NDArray[np.int64], grid: Grid) -> int:
        return int(np.sort(grid.ceiling(values))[(values.size - 1) // 2])


@dataclass(frozen=True)
class Looks:
    """The planned holdout: every answer is made of looks with one coin (theory.md §2, §3)."""

    coin: Coin
    entropy: Entropy

    def low(self, twice_offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        return look(twice_offsets, self.coin, self.entropy)

    def chance_low(self, twice_offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        wrong = self.coin.error(np.abs(twice_offsets))
        return np.where(twice_offsets > 0, 1 - wrong, wrong)

    def median(self, values: NDArray[np.int64], grid: Grid) -> int:
        return search(values, grid, self.coin, self.entropy)
