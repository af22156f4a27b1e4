"""Interval: a low and a high quantile that enclose the estimator's median on fresh data.

Two searches, aimed at c and at m − c. For all questions at once: D[φ < v_low] < 1/2 and
D[φ > v_high] < 1/2, so that every median of φ lies in [v_low, v_high]; and both ends lie in
qi(tail, 1 − tail), φ projected onto the grid. No assumption about the estimator. Proof:
docs/explanation/theory/budget.md.
"""

from __future__ import annotations

from holdfast.grids import Grid
from holdfast.protocols.answers import Answer
from holdfast.protocols.asking import block_counts, checked_grid
from holdfast.protocols.estimate import Searching
from holdfast.protocols.promises import interval_promise

__all__ = ["Interval"]


class Interval(Searching):
    """Questions answered by an interval."""

    protocol = "interval"

    def ask(self, estimator: object, grid: Grid) -> Answer:
        """An interval that encloses the median of the estimator; `value` is its middle.

        Values are projected upwards: the low end is the lower edge of its grid cell. An end at an
        end of the grid is no bound, and None.
        """
        grid = checked_grid(grid)
        part, blocks = self.part, self.source.blocks
        looks = 2 * grid.looks
        price = looks * self._no
        held = self.budget.reserve(part, price, looks)
        values = block_counts(self.source, estimator, grid)
        mirror = 2 * blocks - part.twice_target
        first = self._search(values, grid.size, part.twice_target)
        last = self._search(values, grid.size, mirror)
        held.settle(price, looks)
        # Where all promises hold they are in order; where they are not, both ends are kept.
        first, last = min(first, last), max(first, last)
        low, high = grid.cell(first)[0], grid.cell(last)[1]
        return Answer(
            protocol=self.protocol,
            value=grid.point(first) / 2 + grid.point(last) / 2,
            low=low,
            high=high,
            tail_low=part.tail_low,
            tail_high=part.tail_low,
            confidence=self.budget.plan.confidence,
            promise=interval_promise(part.tail_low, self.source.units, low, high),
            price=float(price),
            budget_left=self.budget.left,
            at_grid_end=first == 0 or last == grid.size - 1,
            certified=self.certified,
            block_units=self.source.units,
        )
