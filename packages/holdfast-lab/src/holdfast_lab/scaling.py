"""Heavy-tailed laws, and the laws of estimators on blocks of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import HoldfastError, InvalidInput
from holdfast.grids import Grid
from holdfast.grids import grid as make_grid
from holdfast.mechanisms.exponential import exponential_median
from holdfast.randomness import Entropy
from holdfast.theory.paper import (
    adaptive_iqr,
    adaptive_simple,
    adaptive_tails,
    exponential_median_epsilon,
)
from holdfast.theory.sizing import Promise, best_exponential, best_gaussian
from holdfast_lab.attacks.targets import (
    Estimates,
    GivenBlocks,
    Intervals,
    JointPlan,
    MemoryHoldout,
    SimpleEstimates,
    confidence_of,
    joint_plan,
    split_blocks,
    steepest,
)
from holdfast_lab.experiments.base import Cell, Row

FloatArray = NDArray[np.float64]

ESTIMATORS = ("median", "trimmed", "mean")
_TRIM = 0.1
_FRESH = 4_000  # blocks drawn for a law without a formula
_VALUES = 2 * 10**7  # but no more values than these
_SEED = 20_170


@dataclass(frozen=True)
class Law:
    """A law given by its quantiles. `mean` is infinite where it is, NaN where there is none."""

    name: str
    index: float  # of the tail: P[X > x] falls like x^−index
    centre: float  # where a symmetric law is; NaN for others

    @property
    def mean(self) -> float:
        """Its mean."""
        if not math.isnan(self.centre):
            return math.nan
        return self.index / (self.index - 1) if self.index > 1 else math.inf

    @property
    def median(self) -> float:
        """Its median."""
        return float(self.quantiles(np.array([0.5]))[0])

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """Values below which so much of the law lies: rows, from uniform numbers."""
        if not math.isnan(self.centre):
            return np.asarray(self.centre + np.tan(math.pi * (shares - 0.5)))
        return np.asarray((1 - shares) ** (-1 / self.index))

    def below(self, value: float) -> float:
        """How much of the law lies at or below a value."""
        if not math.isnan(self.centre):
            return 0.5 + math.atan(value - self.centre) / math.pi
        return 0.0 if value < 1 else float(1 - value**-self.index)

    def grid(self, points: int) -> Grid:
        """Possible answers: a wide range, in equal steps or in equal ratios."""
        if not math.isnan(self.centre):
            return make_grid(-20, 20, points=points)
        return make_grid(1, 10**6, points=points, scale="log")


def law_named(name: str) -> Law:
    """A Cauchy law about 3, or a Pareto law on [1, ∞) with the index in its name.

    >>> law_named("pareto 1.5").mean, round(law_named("pareto 1.5").median, 4)
    (3.0, 1.5874)
    >>> law_named("cauchy").median, law_named("pareto 0.8").mean
    (3.0, inf)
    """
    kind, _, index = name.partition(" ")
    if kind == "cauchy":
        return Law(name, 1.0, 3.0)
    if kind == "pareto":
        return Law(name, float(index), math.nan)
    raise InvalidInput("law", name, "'cauchy', or 'pareto' and its index")


def estimate(name: str, blocks: FloatArray) -> FloatArray:
    """The estimator's value on every line.

    >>> lines = np.array([[1.0, 2.0, 3.0, 4.0, 90.0, 5.0, 6.0, 7.0, 8.0, 9.0, 0.0]])
    >>> [float(estimate(name, lines)[0]) for name in ESTIMATORS]
    [5.0, 5.0, 12.27...]
    """
    size = blocks.shape[-1]
    if name == "mean":
        return np.asarray(blocks.mean(axis=-1))
    if name == "median":
        return np.asarray(np.median(blocks, axis=-1))
    cut = int(_TRIM * size)
    ordered = np.partition(blocks, (cut, size - 1 - cut), axis=-1)
    return np.asarray(ordered[..., cut : size - cut].mean(axis=-1))


@dataclass(frozen=True, eq=False)
class BlockLaw:
    """The law of an estimator on fresh blocks of so many values.

    Exact for the median of an odd number of values, and for means of Cauchy laws. Otherwise
    `fresh` holds its value on fresh blocks, in rising order.
    """

    law: Law
    estimator: str
    size: int
    fresh: FloatArray | None

    @property
    def median(self) -> float:
        """Its median; by symmetry, or for an odd number of values, that of the law itself."""
        if self.fresh is None or not math.isnan(self.law.centre):
            return self.law.median
        return float(np.median(self.fresh))

    def below(self, value: float) -> float:
        """How much of it lies at or below a value."""
        if self.fresh is not None:
            return float(np.searchsorted(self.fresh, value, side="right") / self.fresh.size)
        if self.estimator == "mean":
            return self.law.below(value)  # the mean of Cauchy laws is the same Cauchy law
        from scipy.special import betainc

        half = (self.size + 1) // 2
        return float(betainc(half, half, self.law.below(value)))


@cache
def block_law(law: Law, estimator: str, size: int) -> BlockLaw:
    """The law of an estimator; drawn once for each number of values."""
    exact = estimator == "median" and size % 2 == 1
    stable = estimator == "mean" and not math.isnan(law.centre)
    if exact or stable:
        return BlockLaw(law, estimator, size, None)
    chance = np.random.Generator(np.random.Philox(_SEED))
    blocks = max(100, min(_FRESH, _VALUES // size))
    pieces = [
        estimate(estimator, law.quantiles(chance.random((min(200, blocks - at), size))))
        for at in range(0, blocks, 200)
    ]
    return BlockLaw(law, estimator, size, np.sort(np.concatenate(pieces)))


# The blocks that each method needs for the same promise; no alternatives, nothing twice.
#
# holdfast      looks with the steepest coin
# split         fresh blocks for every question
# gaussian      noisy binary search, Gaussian counts           } the paper's mechanisms under
# exponential   exponential-mechanism median for each question } our analysis
# paper         the exponential mechanism with the paper's constants (thm `adaptive-iqr`), for
#               other tails than 1/4 re-derived from its theorems and optimised


def equal_tails(queries: int, grid: int, tail: float, confidence: float = 0.95) -> Promise:
    """Every answer in qi(tail, 1 − tail), all at once."""
    return Promise(queries, grid, tail, tail, confidence)


def blocks_by(method: str, promise: Promise) -> int | None:
    """The blocks by which a method keeps the promise; None where no number is certified.

    >>> promise = equal_tails(queries=100, grid=32, tail=0.25)
    >>> [blocks_by(method, promise) for method in ("split", "paper")]
    [4300, 228705]
    """
    if method not in _SIZES:
        raise InvalidInput("method", method, f"one of {', '.join(_SIZES)}")
    try:
        return _SIZES[method](promise)
    except HoldfastError:  # outside of what its theorems, or our tables, cover
        return None


def blocks_rows(cell: Cell, grid: int) -> list[Row]:
    """The blocks of a cell's method on so many points, as a row; none if nothing is certified."""
    promise = equal_tails(cell["queries"], grid, cell["tail"], cell["confidence"])
    blocks = blocks_by(cell["method"], promise)
    return [] if blocks is None else [{"blocks": blocks}]


def _paper(promise: Promise) -> int:
    asked = promise.queries, promise.grid_size, promise.failure
    if promise.tail_low == promise.tail_high == 0.25:
        return adaptive_iqr(*asked)
    return adaptive_tails(*asked, promise.tail_low, promise.tail_high).blocks


_SIZES: dict[str, Callable[[Promise], int]] = {
    "holdfast": lambda promise: steepest(promise).size.blocks,
    "split": split_blocks,
    "gaussian": lambda promise: best_gaussian(promise).size.blocks,
    "exponential": lambda promise: best_exponential(promise).size.blocks,
    "paper": _paper,
}


# Who may be asked for the location of heavy-tailed values: two of ours, two that use means.


@dataclass(frozen=True)
class Located:
    """An answer, what was asked for, and whether the claim is true (None if there was none)."""

    value: float
    wanted: float
    true: bool | None
    width: float = math.nan
    rank: float = math.nan


Ask = Callable[[FloatArray], Located]  # of a table: a line for each row, a column for each feature


@cache
def planned(request: Any, confidence: float, blocks: int | None = None) -> JointPlan:
    """A plan, made once."""
    return joint_plan(request, confidence=confidence, blocks=blocks)


def _queries(cell: Cell) -> int:
    return int(cell["features"]) + 4


def _odd(units: int) -> int:
    return units - 1 + units % 2


def _by_blocks(
    request: Any, verb: str, cell: Cell, law: Law, estimator: str
) -> Callable[[FloatArray], tuple[Any, BlockLaw, Grid]]:
    """Answers about all values of a block, of all features; an odd number of rows in each."""
    plan = planned(request, cell["confidence"])
    source = GivenBlocks(plan.blocks, _odd(cell["rows"] // plan.blocks))
    asked = getattr(MemoryHoldout(plan, source, cell.entropy()), verb)
    grid = law.grid(cell["points"])

    def ask(table: FloatArray) -> tuple[Any, BlockLaw, Grid]:
        units = _odd(len(table) // plan.blocks)
        blocks = table[: plan.blocks * units].reshape(plan.blocks, units * table.shape[1])
        here = block_law(law, estimator, blocks.shape[1])
        return asked(estimate(estimator, blocks), grid), here, grid

    return ask


def _estimates(cell: Cell, law: Law, estimator: str) -> Ask:
    tail = cell["tail"]
    request = Estimates(_queries(cell), cell["points"], tail, tail)
    asking = _by_blocks(request, "ask", cell, law, estimator)

    def ask(table: FloatArray) -> Located:
        answer, here, grid = asking(table)
        value = float(answer.value)
        # The promise is about the value projected upwards: the answer stands for its cell.
        lower = grid.cell(int(grid.ceiling([value])[0]))[0]
        up_to, beyond = here.below(value), 1 - (0.0 if lower is None else here.below(lower))
        rank = up_to if up_to < 0.5 else 1 - beyond if beyond < 0.5 else 0.5
        return Located(value, _wanted(law, estimator, here), min(up_to, beyond) > tail, rank=rank)

    return ask


def _intervals(cell: Cell, law: Law, estimator: str) -> Ask:
    request = Intervals(_queries(cell), cell["points"], cell["tail"])
    asking = _by_blocks(request, "interval", cell, law, estimator)

    def ask(table: FloatArray) -> Located:
        answer, here, _ = asking(table)
        low = -math.inf if answer.low is None else answer.low
        high = math.inf if answer.high is None else answer.high
        inside = low <= here.median <= high
        return Located(float(answer.value), _wanted(law, estimator, here), inside, high - low)

    return ask


def _naive(cell: Cell, law: Law, estimator: str) -> Ask:
    """The estimator on all rows; a mean claims its standard errors, a median claims nothing."""
    from scipy.special import ndtri

    errors = float(ndtri(1 - failure_of(cell) / (2 * _queries(cell))))
    wanted = law.median if estimator == "median" else _location(law)

    def ask(table: FloatArray) -> Located:
        if estimator == "median":
            return Located(float(np.median(table)), wanted, None)
        each = table.mean(axis=1)
        value, half = float(each.mean()), errors * float(each.std()) / math.sqrt(len(each))
        return _claimed(value, half, wanted)

    return ask


def _clipped(cell: Cell, law: Law, limit: str) -> Ask:
    """The mean of values clipped at a limit, with Gaussian noise: k answers of privacy 1/(2k)."""
    from scipy.special import ndtri

    queries, rows, chance = _queries(cell), cell["rows"], cell.chance()
    high = float(limit)
    low = -high if not math.isnan(law.centre) else 1.0
    share = failure_of(cell) / (4 * queries)
    sigma = (high - low) / rows * math.sqrt(queries)
    sampling = (high - low) * math.sqrt(-math.log(share) / (2 * rows))
    half = sigma * float(ndtri(1 - share)) + sampling

    def ask(table: FloatArray) -> Located:
        mean = float(np.clip(table, low, high).mean())
        return _claimed(mean + sigma * float(chance.standard_normal()), half, _location(law))

    return ask


LOCATORS: dict[str, Callable[[Cell, Law, str], Ask]] = {
    "estimate": _estimates,
    "interval": _intervals,
    "naive": _naive,
    "clipped": _clipped,
}


def _claimed(value: float, half: float, wanted: float) -> Located:
    return Located(value, wanted, abs(value - wanted) <= half, 2 * half)


def _location(law: Law) -> float:
    """What a mean is asked for: the mean, or the centre of a law that has none."""
    return law.mean if math.isnan(law.centre) else law.centre


def _wanted(law: Law, estimator: str, here: BlockLaw) -> float:
    if estimator == "mean":
        return _location(law)
    return law.median if estimator == "median" else here.median


def failure_of(cell: Cell) -> float:
    """1 − the cell's confidence, as it is written."""
    return confidence_of(cell["confidence"])


# Who answers the paper's examples: its algorithm, or Holdfast's looks, each on its own blocks.


_TINY = 1e-9  # Holdfast's tail where the paper's theorem has its own


@dataclass(frozen=True)
class StableMedians:
    """So many blocks; the tail that answers keep to; the answer to one value per block."""

    blocks: int
    tail: float
    answer: Callable[[NDArray[np.float64]], float]


def _exponential(
    blocks: int, tail: float, grid: Grid, epsilon: float, entropy: Entropy
) -> StableMedians:
    return StableMedians(
        blocks,
        tail,
        lambda values: float(grid.point(exponential_median(values, grid, epsilon, entropy))),
    )


def _looks(
    request: Any, grid: Grid, confidence: float, units: int, entropy: Entropy
) -> StableMedians:
    plan = planned(request, confidence)
    holdout = MemoryHoldout(plan, GivenBlocks(plan.blocks, units), entropy)
    tail = plan.parts[0].tail_low  # type: ignore[attr-defined]
    return StableMedians(plan.blocks, tail, lambda values: float(holdout.ask(values, grid).value))


def interquartile(
    sized_by: str, queries: int, grid: Grid, confidence: float, units: int, entropy: Entropy
) -> StableMedians:
    """Every answer in qi(1/4, 3/4): thm `adaptive-iqr`, or looks."""
    if sized_by == "paper":
        half = (1 - confidence) / 2  # its proof ends with 1 − 2β
        blocks = adaptive_iqr(queries, grid.size, 1 - confidence)
        epsilon = exponential_median_epsilon(blocks, grid.size, half / queries, 0.25)
        return _exponential(blocks, 0.25, grid, epsilon, entropy)
    request = Estimates(queries, grid.size, 0.25, 0.25)
    return _looks(request, grid, confidence, units, entropy)


def tiny_tail(
    sized_by: str, queries: int, grid: Grid, confidence: float, units: int, entropy: Entropy
) -> StableMedians:
    """Every answer in qi(ρ, 1 − ρ) for a tiny ρ: thm `adaptive-simple-general`, or looks."""
    if sized_by == "paper":
        size = adaptive_simple(queries, grid.size, 1 - confidence)
        share = (1 - confidence) / (2 * queries)
        epsilon = exponential_median_epsilon(size.blocks, grid.size, share, 1.0)
        return _exponential(size.blocks, size.tail, grid, epsilon, entropy)
    request = SimpleEstimates(queries, grid.size, _TINY)
    return _looks(request, grid, confidence, units, entropy)
