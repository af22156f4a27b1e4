"""Mean: a bounded function's mean, with an error bar that narrows with the mean (thm `intro-sq`).

Terms are scaled from their range to [0, 1] and counted in whole parts of 2⁻¹⁶: nothing is rounded
before the coin. The answer is in the term's own units again, its bar rounded outwards. Two ways:

MedianMean   the stable median of the block means lies in qi(tail, 1 − tail), and Chernoff's bound
             makes of that the bar {μ : t·kl(v, μ) ≤ ln(1/tail)}, widened by what grid and terms
             are rounded: few large blocks
DirectMean   a search over the sum of all blocks, one look's price a question: many small blocks,
             down to one row each (docs/explanation/theory/means.md)

The plan says which; `mean_of` opens it. Under a filter a block's mean is a ratio with a random
number of terms: the median of block means is then certified as a quantile, without a bar (`low` and
`high` are None), and the direct search is refused.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput, real_number
from holdfast.grids import Grid
from holdfast.grids import grid as make_grid
from holdfast.mechanisms.looks import look, search_counts
from holdfast.planning.parts import DirectPart, SearchPart
from holdfast.planning.shapes import BoundedMean
from holdfast.protocols.answers import Answer, direct_promise, mean_promise
from holdfast.protocols.base import Asking, checked_grid
from holdfast.protocols.budget import Budget
from holdfast.protocols.searches import Searching
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds, Source
from holdfast.randomness import Entropy
from holdfast.theory.numerics import round_down, round_up

__all__ = [
    "DirectMean",
    "MedianMean",
    "checked_bounds",
    "direct_bar",
    "mean_of",
    "median_bar",
    "range_grid",
]

_SCALING = Fraction(1, 2**50)  # what a scaled term may be off by: see `unit_terms`
_TERM_ROUNDING = Fraction(1, 2 * WEIGHT_SCALE) + _SCALING
_END_MAX = 1e300  # of a range: beyond, a bar's edges overflow
_COUNT_MAX = 2**62  # beyond every sum of a block


class MedianMean(Searching):
    """Questions about means of bounded functions, answered by the median of block means.

    >>> from holdfast.planning.requests import MedianMeans

    >>> from holdfast.planning.joint import joint_plan
    >>> from holdfast.protocols.source import BlockArray
    >>> from holdfast.protocols.budget import Budget
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = joint_plan(MedianMeans(queries=100, grid=101, tail=0.001))
    >>> rows = np.random.default_rng(1).uniform(size=plan.blocks * 1000)
    >>> means = MedianMean(Budget(plan), BlockArray(rows, plan.blocks), SeededEntropy(1))
    >>> answer = means.ask(lambda rows: rows < 0.1)
    >>> answer.value, round(answer.low, 3), round(answer.high, 3)
    (0.11, 0.068, 0.15)
    >>> means.ask(lambda rows: rows < 0.1, where=lambda rows: rows < 0.2).low is None
    True
    """

    protocol = "mean"
    served_by = ("estimate", "simple")

    def ask(
        self,
        function: object,
        *,
        where: object = None,
        grid: Grid | None = None,
        range: Bounds = UNIT,  # noqa: A002 – what everybody calls it
        cut: bool = True,
        failures: str = "",
    ) -> Answer:
        """The mean of a function of one unit with values in a range, perhaps over some units only.

        What leaves the range is cut, and the promise says so; with `cut=False` it is known that
        nothing can. The grid is, if not given, the planned number of points over the range.
        `failures` says what the source counts a failure as, if not as the lowest value.
        """
        bounds = checked_bounds(range)
        points = range_grid(self.part, bounds) if grid is None else checked_grid(grid)
        price = points.looks * self._no
        held = self.budget.reserve(self.part, price, points.looks)
        total = self.source.sums(function, where, bounds)
        count = np.full(self.source.blocks, self.source.units * WEIGHT_SCALE, np.int64)
        if where is not None:
            count = self.source.sums(None, where)
        index = self._search_means(total, count, points, bounds)
        held.settle(price, points.looks)
        low, high = None, None
        if where is None:
            low, high = median_bar(self.part, points, index, self.source.units, bounds)
        tails = self.part.tail_low, self.part.tail_high
        return Answer(
            protocol=self.protocol,
            value=points.point(index),
            low=low,
            high=high,
            tail_low=tails[0],
            tail_high=tails[1],
            confidence=self.budget.plan.confidence,
            promise=mean_promise(
                *(*tails, self.source.units, points.cell(index), bounds),
                cut=cut,
                filtered=where is not None,
                failures=failures,
            ),
            price=float(price),
            budget_left=self.budget.left,
            at_grid_end=index in (0, points.size - 1),
            certified=self.certified,
            block_units=self.source.units,
            method="median of block means",
        )

    def _search_means(
        self, total: NDArray[np.int64], count: NDArray[np.int64], points: Grid, bounds: Bounds
    ) -> int:
        """The search over #{i : total_i ≤ T·count_i}; a block without a term counts as lowest."""
        sizes, inverse = np.unique(count, return_inverse=True)
        low, span = Fraction(bounds[0]), Fraction(bounds[1]) - Fraction(bounds[0])

        def at_most(index: int) -> int:
            limit = (Fraction(points.point(index)) - low) / span
            exact = [int(limit * int(size) // 1) for size in sizes]
            most = np.array([min(max(x, -1), _COUNT_MAX) for x in exact], np.int64)
            return int(np.count_nonzero(total <= most[inverse]))

        coin, target = self.part.coin(self.budget.plan.order), self.part.twice_target
        return search_counts(at_most, points.size, target, coin, self.entropy)


def median_bar(
    part: SearchPart, points: Grid, index: int, units: int, bounds: Bounds
) -> tuple[float, float]:
    """Bounds on the mean, where a point is the median of the means of blocks of so many units."""
    low, high = BoundedMean(*bounds).bar(points.cell(index), units, part.tail_low, part.tail_high)
    assert low is not None  # the range bounds what the grid does not
    assert high is not None
    rounding = _TERM_ROUNDING * (Fraction(bounds[1]) - Fraction(bounds[0]))
    below, above = round_down(Fraction(low) - rounding), round_up(Fraction(high) + rounding)
    return max(bounds[0], below), min(bounds[1], above)


def direct_bar(low: float, high: float, bounds: Bounds) -> tuple[float, float, float]:
    """The middle and the ends of a bar in [0, 1], in the term's own units, rounded outwards.

    >>> middle, low, high = direct_bar(0.25, 0.5, (-1.0, 1.0))
    >>> middle, -0.5 - 1e-14 < low < -0.5, 0.0 < high < 1e-14
    (-0.25, True, True)
    """
    if bounds == UNIT:  # nothing was scaled
        return (low + high) / 2, low, high
    base, span = Fraction(bounds[0]), Fraction(bounds[1]) - Fraction(bounds[0])
    ends = Fraction(low), Fraction(high)
    below = max(base, base + span * (ends[0] - _SCALING))
    above = min(base + span, base + span * (ends[1] + _SCALING))
    return float(base + span * sum(ends) / 2), round_down(below), round_up(above)


def range_grid(part: SearchPart, bounds: Bounds) -> Grid:
    """The grid of a question that has none: the planned number of points over the range."""
    return make_grid(*bounds, points=part.grid)


def checked_bounds(given: Any) -> Bounds:
    """The two ends of a range, as floats; 0 and −0 are the same end.

    >>> checked_bounds([-1, 1])
    (-1.0, 1.0)
    """
    allowed = "two numbers, (low, high) with low < high"
    try:
        low, high = given
    except (TypeError, ValueError):
        raise InvalidInput("range", given, allowed) from None
    ends = [real_number("range", each, -_END_MAX, _END_MAX) + 0.0 for each in (low, high)]
    if not ends[0] < ends[1]:
        raise InvalidInput("range", given, allowed)
    return ends[0], ends[1]


class DirectMean(Asking[DirectPart]):
    """Questions about means of bounded functions, answered by a search over their sum.

    >>> from holdfast.planning.requests import DirectMeans

    >>> from holdfast.planning.joint import joint_plan
    >>> from holdfast.protocols.source import BlockArray
    >>> from holdfast.protocols.budget import Budget
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = joint_plan(DirectMeans(queries=100, half_width=0.1), blocks=10_500)
    >>> rows = np.random.default_rng(1).uniform(size=plan.blocks)
    >>> means = DirectMean(Budget(plan), BlockArray(rows, plan.blocks), SeededEntropy(1))
    >>> answer = means.ask(lambda rows: rows < 0.3)
    >>> answer.low < 0.3 < answer.high, answer.high - answer.low <= 0.2
    (True, True)
    """

    part_type = DirectPart
    protocol = "mean"

    def ask(
        self,
        function: object,
        *,
        where: object = None,
        range: Bounds = UNIT,  # noqa: A002 – what everybody calls it
        cut: bool = True,
        failures: str = "",
    ) -> Answer:
        """The mean of a function of one unit with values in a range; `value` is the bar's middle.

        What leaves the range is cut, and the promise says so; with `cut=False` it is known that
        nothing can.
        """
        bounds = checked_bounds(range)
        if where is not None:
            hint = "Ask for the mean of function and filter together, or plan for MedianMeans."
            raise InvalidInput("where", "a filter", "left out for means of all units", hint)
        plan, part = self.budget.plan, self.part
        held = self.budget.reserve(part, self._no, 1)
        cell = self._search(self._count(function, bounds))
        held.settle(held.price, 1)
        bars = part.bars(plan.order, plan.budget, plan.blocks)
        value, low, high = direct_bar(bars.low[cell], bars.high[cell], bounds)
        return Answer(
            protocol=self.protocol,
            value=value,
            low=low,
            high=high,
            tail_low=0.0,
            tail_high=0.0,
            confidence=plan.confidence,
            promise=direct_promise(bounds, cut=cut, exact=part.exact, failures=failures),
            price=float(held.price),
            budget_left=self.budget.left,
            at_grid_end=cell in (0, len(bars.low) - 1),
            certified=self.certified,
            block_units=self.source.units,
            method="direct search",
        )

    def _blocks(self) -> int:
        if self.part.exact and self.source.units != 1:
            hint = "A mean over several units is not 0 or 1: plan with exact=False."
            raise InvalidInput("units", self.source.units, "1 for an exact plan", hint)
        return super()._blocks()

    def _count(self, function: object, bounds: Bounds = UNIT) -> int:
        """⌊Σ weights⌋: one block moves it by at most 1. In an exact plan a weight is 0 or 1."""
        sums = self.source.sums(function, None, bounds)
        if self.part.exact:
            return int(np.count_nonzero(2 * sums >= WEIGHT_SCALE))
        return int(sums.sum()) // (self.source.units * WEIGHT_SCALE)

    def _search(self, count: int) -> int:
        """The cell of the count: every look compares the same count with another threshold."""
        targets = self.part.targets(self.budget.plan.blocks)
        coin = self.part.coin(self.budget.plan.order)
        low, high = 0, len(targets)
        while low < high:
            middle = (low + high) // 2
            if look(2 * count - targets[middle], coin, self.entropy):
                low = middle + 1
            else:
                high = middle
        return low


def mean_of(
    budget: Budget, source: Source, entropy: Entropy | None = None, *, name: str = "mean"
) -> MedianMean | DirectMean:
    """The way that the plan's part for means has chosen."""
    if isinstance(budget.plan.part(name), DirectPart):
        return DirectMean(budget, source, entropy, name=name)
    return MedianMean(budget, source, entropy, name=name)
