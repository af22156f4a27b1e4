"""Estimate: any estimator, answered by a search (thm `adaptive-iqr`, `intro-iqr`, `intro-var`).

Every question has its own grid and pays ⌈log₂ r⌉ looks, more than planned if its grid is larger.
The promise, for all answers at once: D[φ ≤ v] > tail_low and D[φ ≥ v] > tail_high.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import Grid
from holdfast.mechanisms.looks import Counts, search_counts
from holdfast.planning.parts.searches import SearchPart
from holdfast.planning.shapes import Shape
from holdfast.protocols.answers import Answer
from holdfast.protocols.asking import Asking, block_counts, checked_grid, checked_shape
from holdfast.protocols.budget import Reservation
from holdfast.protocols.promises import Cell, search_promise

__all__ = ["Estimate", "Projected", "Searching"]

Projected = Counts | NDArray[np.int64]
"""The blocks' values as a search sees them: counted as they are, or as indices of the grid."""


class Searching(Asking[SearchPart]):
    """Searches with the part's coin: what estimates, intervals and their kin have in common."""

    part_type = SearchPart

    def _search(self, blocks: Projected, size: int, twice_target: int) -> int:
        coin = self.part.coin(self.budget.plan.order)

        def at_most(index: int) -> int:
            if isinstance(blocks, Counts):
                return blocks.at_most(index)
            return int(np.count_nonzero(blocks <= index))

        with np.errstate(all="ignore"):  # whatever the caller's settings are
            return search_counts(at_most, size, twice_target, coin, self.entropy)


class Estimate(Searching):
    """Questions answered by a search.

    >>> from holdfast.grids import grid
    >>> from holdfast.planning.requests.searches import Estimates
    >>> from holdfast.planning.joint_search import joint_plan
    >>> from holdfast.protocols.source import BlockArray
    >>> from holdfast.protocols.budget import Budget
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = joint_plan(Estimates(20, grid=51, tail_low=0.05, tail_high=0.05))
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> estimates = Estimate(Budget(plan), BlockArray(rows, plan.blocks), SeededEntropy(1))
    >>> answer = estimates.ask(np.mean, grid(0, 1, step=0.02))
    >>> answer.value, answer.tail, answer.certified  # a seed is foreseeable: no certificate
    (0.4, 0.05, False)
    """

    protocol = "estimate"

    def ask(self, estimator: object, grid: Grid, *, shape: Shape | None = None) -> Answer:
        """The estimator's value. With a shape that is known to hold, its mean's error bar too.

        A bar needs an estimator that cannot fail on a block, and a fixed number of terms.
        """
        checked_shape(shape)
        return self.draw(self.reserve(grid), estimator, grid, shape=shape)

    def reserve(self, grid: Grid) -> Reservation:
        """Hold what a question on this grid costs, or raise `Exhausted`."""
        looks = checked_grid(grid).looks
        return self.budget.reserve(self.part, looks * self._no, looks)

    def draw(
        self, held: Reservation, estimator: object, grid: Grid, *, shape: Shape | None = None
    ) -> Answer:
        """Answer a question whose price is held."""
        held.pays_for(self.budget, self.part, checked_grid(grid).looks)
        blocks = self._projected(estimator, grid)
        index = self._search(blocks, grid.size, self.part.twice_target)
        held.settle(held.price, held.looks)
        low, high = None, None
        tails = self._tails()
        if shape is not None:
            low, high = shape.bar(grid.cell(index), self._units(), *tails)
        return Answer(
            protocol=self.protocol,
            value=grid.point(index),
            low=low,
            high=high,
            tail_low=tails[0],
            tail_high=tails[1],
            confidence=self.budget.plan.confidence,
            promise=self._promise(grid.cell(index), has_bar=low is not None or high is not None),
            price=float(held.price),
            budget_left=self.budget.left,
            at_grid_end=index in (0, grid.size - 1),
            certified=self.certified,
            block_units=self._units(),
        )

    def _projected(self, estimator: object, grid: Grid) -> Projected:
        return block_counts(self.source, estimator, grid)

    def _tails(self) -> tuple[float, float]:
        return self.part.tail_low, self.part.tail_high

    def _units(self) -> int:
        return self.source.units

    def _promise(self, cell: Cell, *, has_bar: bool) -> str:
        return search_promise(*self._tails(), self._units(), cell, has_bar=has_bar)
