"""Counts around the median that cost no pass over the values: a sorted stretch of them.

Sorting a million values takes twenty passes. A sample shows where the middle is; what lies there,
a few per cent, is cut out in three passes and sorted. The sample only says where to cut: every
count is exact, inside the stretch by bisection, outside by a pass over all values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import Grid
from holdfast.mechanisms.counts import Counts

__all__ = ["Ranks"]

_SAMPLE = 2**15  # a few times more and its own sort would cost a pass
_LONGEST = 1 / 16  # of all values: a longer stretch takes more time than the passes it saves
_DEVIATIONS = 4.5  # by which the sample's median may be off before the stretch misses the median


class Ranks(Counts):
    """`Counts` with a sorted stretch that reaches some ranks below and above the median.

    There is none where it would be too long, or where the whole middle is `tied`: projected onto
    one point of the grid or two.

    >>> from holdfast.grids import grid
    >>> ranks = Ranks(np.arange(1000.0), grid(0, 1000, step=1), reach=10)
    >>> ranks.at_most(499), ranks.near([0, 500]).tolist()
    (500, [0, 500])
    """

    __slots__ = ("_base", "_edges", "_sample", "_stretch", "tied")

    def __init__(self, values: object, grid: Grid, reach: float) -> None:
        super().__init__(values, grid)
        step = max(1, self.blocks // _SAMPLE)
        # Every step-th: no entropy is spent on it, and a periodic input costs time, not truth.
        self._sample = _ordered(self.array[::step])
        self._stretch, self._base = self._sample, 0  # all there is
        self._edges: tuple[Any, Any] | None = None
        self.tied = False
        if step > 1:
            self._cut(min(reach, self.blocks) / step)

    def _cut(self, reach: float) -> None:
        """Take out and sort the elements strictly between two elements of the sample."""
        half = self._sample.size // 2
        margin = math.ceil(reach + _DEVIATIONS * math.sqrt(half / 2))
        self._stretch, self._edges = self._sample[:0], (self._sample[0], self._sample[0])
        if margin > _LONGEST * half:
            return
        low, high = self._sample[half - margin], self._sample[half + margin]
        ends = self.indices(np.array([low, high], self.array.dtype))
        if ends[1] - ends[0] > 1:
            self._base = self.blocks - self.above(low)
            inside = np.logical_and(self._above, self.array < high, out=self._above)
            self._stretch, self._edges = np.sort(self.array[inside]), (low, high)
        self.tied = self._stretch.size == 0

    def at_most(self, index: int) -> int:
        """How many values are projected onto the point at this index or a lower one."""
        if index < 0 or index >= self.grid.size - 1:
            return 0 if index < 0 else self.blocks
        limit = self.threshold(index)
        if limit is None:
            return 0
        # With low ≤ limit < high: #{x ≤ limit} = #{x ≤ low} + #{low < x ≤ limit}, where NaN, the
        # lowest of all, is in the first term.
        if self._edges is None or self._edges[0] <= limit < self._edges[1]:
            return self._base + int(np.searchsorted(self._stretch, limit, side="right"))
        return self.blocks - self.above(limit)

    def free(self, rank: int) -> bool:
        """Whether counts near this rank cost no pass over the values."""
        return self._base <= rank < self._base + self._stretch.size

    def beside(self, index: int) -> tuple[int, int]:
        """About the nearest grid indices below and above this one that have values."""
        places = [
            0 if limit is None else int(np.searchsorted(self._sample, limit, side="right"))
            for limit in (self.threshold(max(index - 1, 0)), self.threshold(index))
        ]
        pair = self._sample[[max(places[0] - 1, 0), min(places[1], self._sample.size - 1)]]
        low, high = self.indices(pair).tolist()
        return low, high

    def near(self, ranks: Sequence[int]) -> NDArray[np.int64]:
        """The grid indices of the values at these ranks: exact where `free`, else about."""
        found = [
            self._stretch[rank - self._base]
            if self.free(rank)
            else self._sample[rank * self._sample.size // self.blocks]
            for rank in ranks
        ]
        return self.indices(np.array(found, self.array.dtype))


def _ordered(elements: NDArray[Any]) -> NDArray[Any]:
    """Sorted, with −∞ for NaN: it is projected onto the same point, and it can be compared."""
    result = np.sort(elements)
    if result.dtype.kind == "f":
        missing = int(np.count_nonzero(np.isnan(result)))
        if missing:  # numpy sorts NaN last
            result = np.roll(result, missing)
            result[:missing] = -np.inf
    return result
