"""Means: a bounded function's mean, with an error bar that narrows with the mean (thm `intro-sq`).

Terms are scaled from their range to [0, 1] and counted in whole parts of 2⁻¹⁶: nothing is rounded
before the coin. The answer is in the term's own units again, its bar rounded outwards. Two ways:

MedianMean   the stable median of the block means lies in qi(tail, 1 − tail), and Chernoff's bound
             makes of that the bar {μ : t·kl(v, μ) ≤ ln(1/tail)}, widened by what grid and terms
             are rounded: few large blocks
DirectMean   a search over the sum of all blocks, one look's price a question: many small blocks,
             down to one row each (docs/explanation/theory/means.md)

The plan says which. Under a filter a block's mean is a ratio with a random number of terms: the
median of block means is then certified as a quantile, without a bar (`low` and `high` are None),
and the direct search is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.grids import Grid
from holdfast.grids import grid as make_grid
from holdfast.mechanisms.looks import look
from holdfast.protocols.answers import Answer, direct_promise, mean_promise, number
from holdfast.protocols.base import (
    Drawn,
    Lesson,
    Paid,
    Question,
    Reserve,
    Steps,
    Sums,
    index_in,
    one_per_block,
)
from holdfast.protocols.plans import (
    Charge,
    JointPlan,
    Left,
    LookPart,
    Request,
    SetPlan,
    Setting,
    Use,
    VerdictPrices,
    Wanted,
    bar_words,
)
from holdfast.protocols.searches import (
    Estimates,
    LookProtocol,
    SearchPart,
    SearchProtocol,
    SearchRequest,
    stored_flat_coin,
    stored_flat_price,
)
from holdfast.protocols.shapes import BoundedMean
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds
from holdfast.randomness import Entropy
from holdfast.theory.coins import Coin, reach_of
from holdfast.theory.divergence import RenyiCurve
from holdfast.theory.means import (
    DirectBars,
    best_direct,
    direct_bars,
    level_tail,
    narrowest_direct,
    search_profile,
    separated,
)
from holdfast.theory.numerics import round_down, round_up
from holdfast.theory.privacy import question_divergence
from holdfast.theory.sizing import BLOCKS_MAX, QUERIES_MAX
from holdfast.theory.transfer import FailureClass

__all__ = [
    "DirectMean",
    "DirectMeans",
    "DirectPart",
    "MedianMean",
    "MedianMeans",
    "checked_bounds",
    "direct_bar",
    "median_bar",
    "range_grid",
    "score_plan",
]

_SCALING = Fraction(1, 2**50)  # what a scaled term may be off by: see `unit_terms`
_TERM_ROUNDING = Fraction(1, 2 * WEIGHT_SCALE) + _SCALING
_END_MAX = 1e300  # of a range: beyond, a bar's edges overflow
_COUNT_MAX = 2**62  # beyond every sum of a block


@dataclass(frozen=True)
class MedianMeans(SearchRequest):
    """Means of a bounded function: the stable median of the blocks' means, with the kl bar."""

    protocol: ClassVar[str] = "mean"

    queries: int
    grid: int = 64
    tail: float = 0.01
    name: str = ""

    def __post_init__(self) -> None:
        _ = self.searches  # checks all of it

    @property
    def searches(self) -> Estimates:
        return Estimates(self.queries, self.grid, self.tail, self.tail)

    def _rename(self, part: SearchPart) -> SearchPart:
        return replace(part, name=self.key, protocol=self.protocol)


class MedianMean(SearchProtocol):
    """Questions about means of bounded functions, answered by the median of block means.

    >>> from holdfast.planning.joint import joint_plan
    >>> from holdfast.protocols import BlockArray, MemoryHoldout
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = joint_plan(MedianMeans(queries=100, grid=101, tail=0.001))
    >>> rows = np.random.default_rng(1).uniform(size=plan.blocks * 1000)
    >>> holdout = MemoryHoldout(plan, BlockArray(rows, plan.blocks), SeededEntropy(1))
    >>> answer = holdout.mean(lambda rows: rows < 0.1)
    >>> answer.value, round(answer.low, 3), round(answer.high, 3)
    (0.11, 0.068, 0.15)
    >>> holdout.mean(lambda rows: rows < 0.1, where=lambda rows: rows < 0.2).low is None
    True
    """

    verb = "mean"
    of = ("mean", "estimate", "simple")
    says = "mean"
    method = "median of block means"
    mixes: ClassVar = {"mean": Wanted(lambda _mix, k, *_: MedianMeans(k), own=False)}
    optional_grid = True

    def grid(self, question: Question) -> Grid:
        """The question's grid or, if it has none, the planned number of points over the range."""
        return question.grid or range_grid(self.part, question.bounds)

    def admit(self, question: Question) -> None:
        self.grid(question)  # a range may have too few floats for it

    def ask(self, question: Question, entropy: Entropy, _lessons: Sequence[Lesson]) -> Steps:
        """The search over #{i : total_i ≤ T·count_i}; a block without a term counts as lowest."""
        (worst,) = self.worst(question)
        yield Reserve(worst)
        points, bounds = self.grid(question), question.bounds
        total = one_per_block((yield Sums(bounds)), self.plan.blocks)
        count = np.full(self.plan.blocks, self.units * WEIGHT_SCALE, np.int64)
        if "where" in question.about:
            count = one_per_block((yield Sums(count=True)), self.plan.blocks)
        sizes, inverse = np.unique(count, return_inverse=True)
        low, span = Fraction(bounds[0]), Fraction(bounds[1]) - Fraction(bounds[0])

        def at_most(index: int) -> int:
            limit = (Fraction(points.point(index)) - low) / span
            exact = [int(limit * int(size) // 1) for size in sizes]
            most = np.array([min(max(x, -1), _COUNT_MAX) for x in exact], np.int64)
            return int(np.count_nonzero(total <= most[inverse]))

        return {"index": self._search(at_most, points.size, self.part.twice_target, entropy)}

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Answer:
        assert drawn is not None
        points, bounds = self.grid(question), question.bounds
        index = index_in(points, drawn["index"])
        ends: tuple[float | None, float | None] = (None, None)
        if "where" not in question.about:
            ends = median_bar(self.part, points, index, self.units, bounds)
        tails = self.part.tail_low, self.part.tail_high
        promise = mean_promise(
            *(*tails, self.units, points.cell(index), bounds),
            cut=question.range is not None,
            filtered="where" in question.about,
            failures=question.failures,
        )
        at_end = index in (0, points.size - 1)
        return self._answer(
            question, points.point(index), ends, tails, promise, paid, at_grid_end=at_end
        )


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


@dataclass(frozen=True)
class DirectPart(LookPart):
    """Means by a search over the sum of all blocks' weights (docs/explanation/theory/means.md).

    Thresholds are `apart` half counts apart, so far that one look at most of a question is near
    enough to its threshold to tell anything: a question costs one look. `looks` counts questions.
    """

    kind: ClassVar[str] = "direct"

    name: str
    protocol: str
    queries: int
    half_width: float
    apart: int
    slope: float
    failure: float
    look_price: float
    floor: float
    exact: bool
    looks: int

    def preview(self, plan: SetPlan, _units: int) -> tuple[float | None, str]:
        bars = self.bars(plan.order, float(plan.limit), plan.blocks)
        return bar_words(bars.half_width)

    def words(self) -> tuple[str, str]:
        bar = f"The mean lies within the error bar, at most ± {number(self.half_width)} wide."
        return f"{self.queries:,} questions about means", bar

    def divergences(
        self, plan: JointPlan, order: float, noes: int, yeses: int
    ) -> tuple[float, float]:
        del noes, yeses
        told = question_divergence(self.coin(plan.order), order)
        return told, told

    def targets(self, blocks: int) -> tuple[int, ...]:
        """Twice the thresholds, placed evenly about the middle."""
        count = max(1, blocks // self.apart)
        return tuple(blocks + self.apart * j for j in range(1 - count, count, 2))

    def coin(self, order: float) -> Coin:
        """The coin of every look."""
        return stored_flat_coin(order, self.look_price, self.floor)

    def prices(self, order: float) -> VerdictPrices:
        price = stored_flat_price(order, self.look_price, self.floor)
        return VerdictPrices(price, price)

    def planned(self, order: float) -> float:
        return self.queries * self.prices(order).worst

    def left(self, order: float, rest: Fraction, use: Use) -> Left:
        bought = min(self.looks - use.looks, rest // Fraction(self.prices(order).worst))
        return Left(bought, bought)

    def shares(self, _: int, /) -> tuple[float, ...]:
        return (self.failure,)

    def classes(self, _order: float, _blocks: int) -> tuple[FailureClass, ...]:
        return ()  # one class with a level of its own for every threshold: see `bars`

    def bars(self, order: float, budget: float, blocks: int) -> DirectBars:
        """The ends of every cell's bar, all at the part's own slope."""
        return _bars(self, order, budget, blocks, self.slope)

    def at_best_slope(self, order: float, budget: float, blocks: int) -> DirectPart:
        """The same part with the slope that makes its bars narrowest."""
        return replace(self, slope=_bars(self, order, budget, blocks, None).slope)

    def sound(self, order: float, budget: float, blocks: int) -> bool:
        if self.apart < 1 or not 1 <= self.queries <= self.looks:
            return False
        # One slope proves all bars together (corollary 4): a plan without one proves none.
        if not 0 < self.slope < math.inf:
            return False
        if not separated(self.coin(order), self.targets(blocks)):
            return False
        return self.bars(order, budget, blocks).half_width <= self.half_width


@lru_cache(maxsize=32)
def _bars(
    part: DirectPart, order: float, budget: float, blocks: int, slope: float | None
) -> DirectBars:
    targets, curve = part.targets(blocks), RenyiCurve(order, budget)
    profile = search_profile(part.coin(order), part.looks, len(targets).bit_length())
    return direct_bars(curve, profile, blocks, targets, part.failure, exact=part.exact, slope=slope)


@dataclass(frozen=True)
class DirectMeans(Request):
    """Means of functions of a block with values in [0, 1], all within ± half_width at once.

    `exact`: the values are 0 or 1. Otherwise they are rounded to parts of 2⁻¹⁶, which costs a
    little.
    """

    protocol: ClassVar[str] = "mean"

    queries: int
    half_width: float = 0.1
    exact: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        whole_number("queries", self.queries, 1, QUERIES_MAX)
        real_number("half_width", self.half_width, 0, 0.5, open_low=True, open_high=True)

    @property
    def width(self) -> float:
        return 2 * self.half_width

    def starts(self) -> tuple[tuple[float, ...], ...]:
        return ((math.log(0.1 * self.half_width), math.log(1e-3 * self.half_width**2)),)

    def settings_start(self, failure: float) -> tuple[float, float]:
        squared = 2 * math.log(2 / failure)
        return 0.9 * squared / self.half_width, 0.45 * self.half_width

    def rough_blocks(self, setting: Setting, own: Sequence[float]) -> float:
        share = math.exp(min(max(own[0], -60.0), 9.0))
        price = (setting.order - 1) * setting.own / self.queries
        questions = self.queries * setting.limit / setting.own
        floor = self._floor(setting, own)
        length = 2 * reach_of(setting.order, price, price, 1 / floor)
        slipped = reach_of(setting.order, price, price, questions / setting.failure)
        rent = math.expm1((setting.order - 1) * setting.limit) / setting.failure
        far = floor * questions / setting.failure

        def half_width(log_blocks: float) -> float:
            blocks = math.exp(log_blocks)
            short = slipped / blocks + math.log2(2 + blocks / length) * far
            toll = rent + rent / share * short
            return length / blocks / 2 + 0.5 - level_tail(setting.order, rent / share, toll, 0.5)

        return _crossing(half_width, self.half_width)

    def _floor(self, setting: Setting, own: Sequence[float]) -> float:
        relative = math.exp(min(max(own[1], -60.0), math.log(0.1)))
        return relative * setting.failure / self.queries

    def part(
        self, setting: Setting, own: Sequence[float], blocks: int, limit: float | None = None
    ) -> DirectPart | None:
        part = DirectPart(
            name=self.key,
            protocol=self.protocol,
            queries=self.queries,
            half_width=self.half_width,
            apart=1,
            slope=1.0,  # any: the best is found once the blocks are known
            failure=setting.failure,
            look_price=setting.own / self.queries,
            floor=self._floor(setting, own),
            exact=self.exact,
            looks=self.queries,
        )
        if limit is None:
            return part
        looks = max(self.queries, math.floor(limit / part.prices(setting.order).worst))
        apart = part.coin(setting.order).halfsteps.size - 1
        part = replace(part, looks=looks, apart=apart)
        if blocks <= apart:
            return None
        return part.at_best_slope(setting.order, limit, blocks)


def _crossing(falling: object, level: float) -> float:
    """The blocks at which a falling function of their logarithm reaches the level."""
    from scipy.optimize import brentq

    assert callable(falling)
    low, high = 0.0, math.log(BLOCKS_MAX)
    if falling(high) > level:
        return math.inf
    return math.exp(float(brentq(lambda x: falling(x) - level, low, high, xtol=1e-7)))


class DirectMean(LookProtocol[DirectPart]):
    """Questions about means of bounded functions, answered by a search over their sum.

    >>> from holdfast.planning.joint import joint_plan
    >>> from holdfast.protocols import BlockArray, MemoryHoldout
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = joint_plan(DirectMeans(queries=100, half_width=0.1), blocks=10_500)
    >>> rows = np.random.default_rng(1).uniform(size=plan.blocks)
    >>> holdout = MemoryHoldout(plan, BlockArray(rows, plan.blocks), SeededEntropy(1))
    >>> answer = holdout.mean(lambda rows: rows < 0.3)
    >>> answer.low < 0.3 < answer.high, answer.high - answer.low <= 0.2
    (True, True)
    """

    verb = "mean"
    of = ("mean",)
    part_type = DirectPart
    says = "mean"
    method = "direct search"
    on_grid = False

    def admit(self, question: Question) -> None:
        if "where" in question.about:
            hint = (
                "This plan's means are over all units. Ask for the mean of the term and the filter "
                "together (both true), ask for the mean of the filter, and divide; or seal data "
                "under a plan for medians of block means (--protocols mean)."
            )
            shown = question.about["where"]
            raise InvalidInput("where", shown, "left out with this plan", hint)
        if self.part.exact and self.units != 1:
            hint = "A mean over several units is not 0 or 1: plan with exact=False."
            raise InvalidInput("units", self.units, "1 for an exact plan", hint)

    def worst(self, _question: Question) -> tuple[Charge, ...]:
        return (Charge(self.part.name, self.no, 1),)

    def ask(self, question: Question, entropy: Entropy, _lessons: Sequence[Lesson]) -> Steps:
        (worst,) = self.worst(question)
        yield Reserve(worst)
        count = self.count(one_per_block((yield Sums(question.bounds)), self.plan.blocks))
        # The cell of the count: every look compares the same count with another threshold.
        targets, coin = self.part.targets(self.plan.blocks), self.part.coin(self.plan.order)
        low, high = 0, len(targets)
        while low < high:
            middle = (low + high) // 2
            if look(2 * count - targets[middle], coin, entropy):
                low = middle + 1
            else:
                high = middle
        return {"cell": low}

    def count(self, sums: Any) -> int:
        """⌊Σ weights⌋: one block moves it by at most 1. In an exact plan a weight is 0 or 1."""
        if self.part.exact:
            return int(np.count_nonzero(2 * sums >= WEIGHT_SCALE))
        return int(sums.sum()) // (self.units * WEIGHT_SCALE)

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Answer:
        """`value` is the bar's middle."""
        assert drawn is not None
        plan, cell, bounds = self.plan, drawn["cell"], question.bounds
        bars = self.part.bars(plan.order, plan.budget, plan.blocks)
        if type(cell) is not int or not 0 <= cell < len(bars.low):
            raise ValueError(f"no cell of {len(bars.low):,}: {cell!r}")
        value, low, high = direct_bar(bars.low[cell], bars.high[cell], bounds)
        promise = direct_promise(
            bounds,
            cut=question.range is not None,
            exact=self.part.exact,
            failures=question.failures,
        )
        at_end = cell in (0, len(bars.low) - 1)
        return self._answer(
            question, value, (low, high), (0.0, 0.0), promise, paid, at_grid_end=at_end
        )


_WANTED = 0.25  # the half-width that a refusal says the rows for


def score_plan(queries: int, rows: int, confidence: float = 0.95) -> JointPlan:
    """So many means of terms between 0 and 1, such as accuracies, by a search over their sum.

    Every row is a block, and every row is used. The half-width is about the smallest that so many
    rows allow. Where even the bars of the lowest and the highest answer overlap no two answers
    could exclude each other, whatever the data: such a plan says nothing, and is refused.

    >>> plan = score_plan(20, 2_000)
    >>> plan.blocks, round(plan.part("mean").half_width, 2)
    (2000, 0.16)
    """
    queries = whole_number("queries", queries, 1, QUERIES_MAX)
    rows = whole_number("rows", rows, 1, BLOCKS_MAX)
    plan = _narrowest(queries, rows, confidence)
    (part,) = plan.parts
    assert isinstance(part, DirectPart)
    bars = part.bars(plan.order, plan.budget, plan.blocks)
    if bars.high[0] < bars.low[-1]:
        return plan
    wanted = best_direct(queries, _WANTED, confidence, exact=False).blocks
    raise Infeasible(
        "The bars would say nothing",
        "a lowest and a highest answer that exclude each other",
        f"with {rows:,} row(s) and {queries:,} question(s) their bars would be "
        f"[0, {bars.high[0]:.3f}] and [{bars.low[-1]:.3f}, 1]",
        f"Ask fewer questions, or seal more rows: about {wanted:,} give bars of ±{_WANTED:g}.",
    )


def _narrowest(queries: int, rows: int, confidence: float) -> JointPlan:
    """The plan of `narrowest_direct`, on one budget of its own."""
    made = narrowest_direct(queries, rows, confidence, exact=False)
    part = DirectPart(
        name="mean",
        protocol="mean",
        queries=queries,
        half_width=0.5,
        apart=made.coin.halfsteps.size - 1,
        slope=1.0,
        # The share is added up without rounding, and 0.05 is stored as a little more than 1/20.
        failure=math.nextafter(float(1 - Fraction(repr(float(confidence)))), 0.0),
        look_price=made.price,
        floor=made.floor,
        exact=made.exact,
        looks=queries,
    )
    limit = part.planned(made.order) * (1 + 1e-12)
    part = part.at_best_slope(made.order, limit, rows)
    part = replace(part, half_width=part.bars(made.order, limit, rows).half_width)
    return JointPlan(rows, made.order, limit, confidence, (part,))
