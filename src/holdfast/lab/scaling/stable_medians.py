"""Who answers the paper's examples: its algorithm, or Holdfast's looks, each on its own blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import Grid
from holdfast.lab.scaling.given import GivenBlocks
from holdfast.mechanisms.exponential import exponential_median
from holdfast.planning.joint import JointPlan, joint_plan
from holdfast.planning.requests import Estimates, SimpleEstimates
from holdfast.protocols.budget import Budget
from holdfast.protocols.searches import Estimate, Simple
from holdfast.randomness import Entropy
from holdfast.theory.paper import adaptive_iqr, adaptive_simple, exponential_median_epsilon

__all__ = ["StableMedians", "interquartile", "tiny_tail"]

_TINY = 1e-9  # Holdfast's tail where the paper's theorem has its own


@dataclass(frozen=True)
class StableMedians:
    """So many blocks; the tail that answers keep to; the answer to one value per block."""

    blocks: int
    tail: float
    answer: Callable[[NDArray[np.float64]], float]


@cache
def _planned(request: Estimates | SimpleEstimates, confidence: float) -> JointPlan:
    return joint_plan(request, confidence=confidence)


def _mechanism(grid: Grid, epsilon: float, entropy: Entropy) -> Callable[[object], float]:
    return lambda values: float(grid.point(exponential_median(values, grid, epsilon, entropy)))


def interquartile(
    sized_by: str, queries: int, grid: Grid, confidence: float, units: int, entropy: Entropy
) -> StableMedians:
    """Every answer in qi(1/4, 3/4): thm `adaptive-iqr`, or looks."""
    if sized_by == "paper":
        half = (1 - confidence) / 2  # its proof ends with 1 − 2β
        blocks = adaptive_iqr(queries, grid.size, 1 - confidence)
        epsilon = exponential_median_epsilon(blocks, grid.size, half / queries, 0.25)
        return StableMedians(blocks, 0.25, _mechanism(grid, epsilon, entropy))
    plan = _planned(Estimates(queries, grid.size, 0.25, 0.25), confidence)
    looks = Estimate(Budget(plan), GivenBlocks(plan.blocks, units), entropy)
    return StableMedians(plan.blocks, 0.25, lambda values: float(looks.ask(values, grid).value))


def tiny_tail(
    sized_by: str, queries: int, grid: Grid, confidence: float, units: int, entropy: Entropy
) -> StableMedians:
    """Every answer in qi(ρ, 1 − ρ) for a tiny ρ: thm `adaptive-simple-general`, or looks."""
    if sized_by == "paper":
        size = adaptive_simple(queries, grid.size, 1 - confidence)
        share = (1 - confidence) / (2 * queries)
        epsilon = exponential_median_epsilon(size.blocks, grid.size, share, 1.0)
        return StableMedians(size.blocks, size.tail, _mechanism(grid, epsilon, entropy))
    plan = _planned(SimpleEstimates(queries, grid.size, _TINY), confidence)
    looks = Simple(Budget(plan), GivenBlocks(plan.blocks, units), entropy)
    return StableMedians(plan.blocks, _TINY, lambda values: float(looks.ask(values, grid).value))
