"""Who may be asked for the location of heavy-tailed values: two of ours, two that use means."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from holdfast.lab.experiments.base import Cell
from holdfast.lab.scaling.given import GivenBlocks
from holdfast.lab.scaling.laws import BlockLaw, Law, block_law, estimate
from holdfast.planning.joint import JointPlan, joint_plan
from holdfast.planning.requests import Estimates, Intervals
from holdfast.protocols.budget import Budget
from holdfast.protocols.searches import Estimate, Interval

__all__ = ["LOCATORS", "Ask", "Located"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Located:
    """An answer, what was asked for, and whether the claim is true (None if there was none)."""

    value: float
    wanted: float
    true: bool | None
    width: float = math.nan
    rank: float = math.nan


Ask = Callable[[FloatArray], Located]  # of a table: a line for each row, a column for each feature


def _queries(cell: Cell) -> int:
    return int(cell["features"]) + 4


@cache
def _planned(request: Estimates | Intervals, confidence: float) -> JointPlan:
    return joint_plan(request, confidence=confidence)


def _cut(table: FloatArray, blocks: int) -> FloatArray:
    """A line for each block, an odd number of rows in each; all its values, of all features."""
    units = _odd(len(table) // blocks)
    return table[: blocks * units].reshape(blocks, units * table.shape[1])


def _odd(units: int) -> int:
    return units - 1 + units % 2


def _estimates(cell: Cell, law: Law, estimator: str) -> Ask:
    tail = cell["tail"]
    plan = _planned(Estimates(_queries(cell), cell["points"], tail, tail), cell["confidence"])
    units = _odd(cell["rows"] // plan.blocks)
    protocol = Estimate(Budget(plan), GivenBlocks(plan.blocks, units), cell.entropy())
    grid = law.grid(cell["points"])

    def ask(table: FloatArray) -> Located:
        blocks = _cut(table, plan.blocks)
        value = float(protocol.ask(estimate(estimator, blocks), grid).value)
        here = block_law(law, estimator, blocks.shape[1])
        # The promise is about the value projected upwards: the answer stands for its cell.
        lower = grid.cell(int(grid.ceiling([value])[0]))[0]
        up_to, beyond = here.below(value), 1 - (0.0 if lower is None else here.below(lower))
        rank = up_to if up_to < 0.5 else 1 - beyond if beyond < 0.5 else 0.5
        return Located(value, _wanted(law, estimator, here), min(up_to, beyond) > tail, rank=rank)

    return ask


def _intervals(cell: Cell, law: Law, estimator: str) -> Ask:
    request = Intervals(_queries(cell), cell["points"], cell["tail"])
    plan = _planned(request, cell["confidence"])
    units = _odd(cell["rows"] // plan.blocks)
    protocol = Interval(Budget(plan), GivenBlocks(plan.blocks, units), cell.entropy())
    grid = law.grid(cell["points"])

    def ask(table: FloatArray) -> Located:
        blocks = _cut(table, plan.blocks)
        answer = protocol.ask(estimate(estimator, blocks), grid)
        here = block_law(law, estimator, blocks.shape[1])
        low = -math.inf if answer.low is None else answer.low
        high = math.inf if answer.high is None else answer.high
        inside = low <= here.median <= high
        return Located(float(answer.value), _wanted(law, estimator, here), inside, high - low)

    return ask


def _naive(cell: Cell, law: Law, estimator: str) -> Ask:
    """The estimator on all rows; a mean claims its standard errors, a median claims nothing."""
    from scipy.special import ndtri

    errors = float(ndtri(1 - _failure(cell) / (2 * _queries(cell))))
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
    share = _failure(cell) / (4 * queries)
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


def _failure(cell: Cell) -> float:
    return float(1 - Fraction(repr(cell["confidence"])))
