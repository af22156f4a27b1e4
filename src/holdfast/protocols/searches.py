"""Estimate: any estimator, answered by a search (thm `adaptive-iqr`, `intro-iqr`, `intro-var`).

Every question has its own grid and pays ⌈log₂ r⌉ looks, more than planned if its grid is larger.
The promise, for all answers at once: D[φ ≤ v] > tail_low and D[φ ≥ v] > tail_high.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted, real_number
from holdfast.grids import Grid
from holdfast.mechanisms.looks import Counts, search_counts
from holdfast.planning.parts import SearchPart
from holdfast.planning.shapes import Shape
from holdfast.protocols.answers import (
    Answer,
    Cell,
    Verdict,
    interval_promise,
    near_promise,
    search_promise,
)
from holdfast.protocols.base import (
    Asking,
    block_counts,
    block_floats,
    block_indices,
    checked_grid,
    checked_shape,
)
from holdfast.protocols.budget import Reservation

__all__ = [
    "Amplified",
    "Estimate",
    "Interval",
    "Near",
    "Projected",
    "Searching",
    "Simple",
]

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
    >>> from holdfast.planning.requests import Estimates
    >>> from holdfast.planning.joint import joint_plan
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


# Simple generalization (thm `gen-simp`, `adaptive-simple-general`): few blocks, tiny tails.
#
# An estimator that is well concentrated on a block has a narrow qi(ρ, 1 − ρ) even for a tiny ρ,
# and
# for a tiny ρ an interior point of the sample is enough: a few dozen blocks.
#
# Simple      the search of an estimate, planned for such a tail
# Amplified   two steps for any estimator: the exact median of ℓ sub-blocks is well concentrated
#             (lem `amp-med`), and the stable median of the blocks does the rest


class Simple(Estimate):
    """Questions about well-concentrated estimators."""

    protocol = "simple"

    @property
    def outside(self) -> float:
        """A bound on the chance that any answer is no interior point of the blocks' values.

        An answer outside takes a look that errs by the whole distance from 0 (or m) to the target.
        """
        blocks, twice = self.budget.plan.blocks, self.part.twice_target
        distance = np.array([min(twice, 2 * blocks - twice)])
        error = self.part.coin(self.budget.plan.order).error(distance)
        return min(1.0, float(error[0]) * self.part.looks)


class Amplified(Estimate):
    """Questions about the estimator on a sub-block; the source's blocks are the sub-blocks.

    ℓ sub-blocks that follow each other make one block, and its value is their exact median.
    """

    protocol = "amplified"

    def _blocks(self) -> int:
        return self.budget.plan.blocks * self.part.subblocks

    def _projected(self, estimator: object, grid: Grid) -> Projected:
        each = block_indices(self.source, estimator, grid)
        groups = each.reshape(self.budget.plan.blocks, self.part.subblocks)
        middle = self.part.subblocks // 2
        return np.asarray(np.partition(groups, middle, axis=1)[:, middle])

    def _tails(self) -> tuple[float, float]:
        return self.part.subblock_tail, self.part.subblock_tail


# Interval: a low and a high quantile that enclose the estimator's median on fresh data.
#
# Two searches, aimed at c and at m − c. For all questions at once: D[φ < v_low] < 1/2 and
# D[φ > v_high] < 1/2, so that every median of φ lies in [v_low, v_high]; and both ends lie in
# qi(tail, 1 − tail), φ projected onto the grid. No assumption about the estimator. Proof:
# docs/explanation/theory/budget.md.


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


# Near: is the answer within a tolerance of this guess? For plans without guesses of their own.
#
# A guess g with tolerance d is a question on three points: below g − d, from there to g + d,
# above.
# Two looks of the plan's own searches answer it, with the promise of every search:
#
#     stands    fresh blocks give at most g + d with more than tail_low, at least g − d with
#     tail_high
#     refused   they lie beyond it, on one side, with more than that side's tail; not told is which
#
# So a guess that stands is compatible. One that is refused may be, too: of a right guess with a
# narrow tolerance most blocks lie beyond it. Nothing certified speaks against it, and the verdict
# is
# that nobody can tell. A plan made for guesses (`holdfast.protocols.guesses`) can tell, refuses
# fewer
# that are right, needs no tolerance, and charges a guess that stands less.


_POINTS, _LOOKS = 3, 2


class Near(Searching):
    """Guesses that stand or are refused within a tolerance.

    >>> from holdfast.planning.requests import Estimates

    >>> from holdfast.planning.joint import joint_plan
    >>> from holdfast.protocols.source import BlockArray
    >>> from holdfast.protocols.budget import Budget
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = joint_plan(Estimates(20, grid=51, tail_low=0.05, tail_high=0.05))
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> near = Near(Budget(plan), BlockArray(rows, plan.blocks), SeededEntropy(1), name="estimate")
    >>> [near.ask(np.mean, guess, tolerance=0.05).verdict for guess in (0.4, 0.5, 0.3)]
    ['compatible', 'cannot tell', 'cannot tell']
    """

    protocol = "verify"
    served_by = ("estimate", "simple")

    def ask(self, estimator: object, guess: float, *, tolerance: float = 0.0) -> Verdict:
        """The verdict on a guess. Exhaustion is a verdict too, free and final."""
        guess = real_number("guess", guess)
        tolerance = real_number("tolerance", tolerance, 0)
        price = _LOOKS * self._no
        try:
            held = self.budget.reserve(self.part, price, _LOOKS)
        except Exhausted:
            return self._verdict(None, guess, tolerance, 0.0)
        values = block_floats(self.source, estimator)
        low, high = (math.nextafter(guess + sign * tolerance, sign * math.inf) for sign in (-1, 1))
        if not tolerance:
            low = high = guess
        indices = (values >= low).astype(np.int64) + (values > high)
        found = self._search(indices, _POINTS, self.part.twice_target)
        held.settle(price, _LOOKS)
        return self._verdict(found != 1, guess, tolerance, float(price))

    def _verdict(
        self, refused: bool | None, guess: float, tolerance: float, price: float
    ) -> Verdict:
        part, units = self.part, self.source.units
        tails = part.tail_low, part.tail_high
        return Verdict(
            protocol=self.protocol,
            guess=guess,
            claim="equals",
            tolerance=tolerance,
            refused=refused,
            tail_low=tails[0],
            tail_high=tails[1],
            confidence=self.budget.plan.confidence,
            promise=near_promise(refused, guess, tolerance, *tails, units),
            price=price,
            budget_left=self.budget.left,
            refusals_left=None,
            certified=self.certified,
            block_units=units,
        )
