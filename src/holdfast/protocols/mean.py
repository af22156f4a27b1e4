"""Mean: a bounded function's mean, with an error bar that narrows with the mean (thm `intro-sq`).

Terms in [0, 1] are counted in whole parts of 2⁻¹⁶, and a block's mean is compared with a grid point
as a whole number of parts: nothing is rounded before the coin. The stable median of the block
means lies in qi(tail, 1 − tail), and Chernoff's bound turns that into the bar
{μ : t·kl(v, μ) ≤ ln(1/tail)}, widened by the rounding of grid and terms.

Under a filter a block's mean is a ratio with a random number of terms: the value is certified as a
quantile, and there is no bar (`low` and `high` are None).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import Grid
from holdfast.grids import grid as make_grid
from holdfast.mechanisms import search_counts
from holdfast.planning.parts import SearchPart
from holdfast.planning.shapes import BoundedMean
from holdfast.protocols.answers import Answer
from holdfast.protocols.asking import checked_grid
from holdfast.protocols.estimate import Searching
from holdfast.protocols.source import WEIGHT_SCALE

__all__ = ["Mean"]

_TERM_ROUNDING = 0.5 / WEIGHT_SCALE


class Mean(Searching):
    """Questions about means of bounded functions, answered by the median of block means.

    >>> from holdfast.planning import MedianMeans, joint_plan
    >>> from holdfast.protocols import BlockArray, Budget
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = joint_plan(MedianMeans(queries=100, grid=101, tail=0.001))
    >>> rows = np.random.default_rng(1).uniform(size=plan.blocks * 1000)
    >>> means = Mean(Budget(plan), BlockArray(rows, plan.blocks), SeededEntropy(1))
    >>> answer = means.ask(lambda rows: rows < 0.1)
    >>> answer.value, round(answer.low, 3), round(answer.high, 3)
    (0.11, 0.068, 0.15)
    >>> means.ask(lambda rows: rows < 0.1, where=lambda rows: rows < 0.2).low is None
    True
    """

    protocol = "mean"

    def ask(self, function: object, *, where: object = None, grid: Grid | None = None) -> Answer:
        """The mean of a function of one unit with values in [0, 1], perhaps over some units only.

        The grid is, if not given, the planned number of points from 0 to 1.
        """
        points = _unit_grid(self.part) if grid is None else checked_grid(grid)
        price = points.looks * self._no
        held = self.budget.reserve(self.part, price, points.looks)
        total = self.source.sums(function, where)
        count = np.full(self.source.blocks, self.source.units * WEIGHT_SCALE, np.int64)
        if where is not None:
            count = self.source.sums(_one, where)
        index = self._search_means(total, count, points)
        held.settle(price, points.looks)
        low, high = None, None
        if where is None:
            low, high = self._bar(points, index)
        tails = self.part.tail_low, self.part.tail_high
        return Answer(
            protocol=self.protocol,
            value=points.point(index),
            low=low,
            high=high,
            tail_low=tails[0],
            tail_high=tails[1],
            confidence=self.budget.plan.confidence,
            promise=(
                "the mean on fresh data lies between low and high"
                if where is None
                else "fresh blocks have such means with more than tail on either side"
            ),
            price=float(price),
            budget_left=self.budget.left,
            at_grid_end=index in (0, points.size - 1),
            certified=self.certified,
            method="median of block means",
        )

    def _search_means(
        self, total: NDArray[np.int64], count: NDArray[np.int64], points: Grid
    ) -> int:
        """The search over #{i : total_i ≤ T·count_i}; a block without a term counts as lowest."""
        sizes, inverse = np.unique(count, return_inverse=True)

        def at_most(index: int) -> int:
            limit = Fraction(points.point(index))
            most = np.array([int(limit * int(size) // 1) for size in sizes], np.int64)
            return int(np.count_nonzero(total <= most[inverse]))

        coin, target = self.part.coin(self.budget.plan.order), self.part.twice_target
        return search_counts(at_most, points.size, target, coin, self.entropy)

    def _bar(self, points: Grid, index: int) -> tuple[float, float]:
        part, whole = self.part, BoundedMean(0.0, 1.0)
        cell = points.cell(index)
        low, high = whole.bar(cell, self.source.units, part.tail_low, part.tail_high)
        assert low is not None  # the range bounds what the grid does not
        assert high is not None
        return max(0.0, low - _TERM_ROUNDING), min(1.0, high + _TERM_ROUNDING)


def _unit_grid(part: SearchPart) -> Grid:
    return make_grid(0, 1, points=part.grid)


def _one(rows: NDArray[np.generic]) -> NDArray[np.float64]:
    return np.ones(len(rows))
