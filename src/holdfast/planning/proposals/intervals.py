"""Proposals for intervals: at a given tail, for the fewest rows, or as narrow as rows allow."""

from __future__ import annotations

import math
from collections.abc import Callable

from holdfast.errors import HoldfastError, Infeasible, real_number, whole_number
from holdfast.planning.alternatives import Alternative
from holdfast.planning.joint_search import joint_plan
from holdfast.planning.proposals.base import Proposal
from holdfast.planning.requests.searches import Estimates, Intervals
from holdfast.planning.shapes import BoundedMean, Shape

__all__ = ["narrowest_interval", "propose_interval", "smallest_interval"]

_TAILS = (-20.0, math.log(0.35))  # of ln tail
_GOLDEN = (math.sqrt(5) - 1) / 2


def propose_interval(
    queries: int,
    grid: int = 32,
    tail: float = 0.05,
    confidence: float = 0.95,
    *,
    shape: Shape | None = None,
    block_size: int | None = None,
) -> Proposal:
    """An interval for every question; with a shape and a block size, its predicted width."""
    made = joint_plan(Intervals(queries, grid, tail), confidence=confidence)
    predicted: dict[str, float] = {"tail": tail, "grid": grid, "quantile_width": 1 - 2 * tail}
    if shape is not None and block_size is not None:
        cell = 0.0 if shape.span is None else shape.span / (grid - 1)
        # Either end may lie a cell beyond its quantile.
        predicted["width"] = 2 * (shape.error(block_size, tail) + cell)
        predicted["block_size"], predicted["rows"] = block_size, block_size * made.blocks
    estimate = joint_plan(Estimates(queries, grid, tail, tail), confidence=confidence)
    promise = (
        f"every interval encloses its estimator's median, its ends in qi({tail:g}, {1 - tail:g}), "
        f"all {queries:,} at once with probability at least {confidence:g}"
    )
    others = (
        Alternative("paper", None, "the paper has no intervals"),
        Alternative("estimate", estimate.blocks, "answers in the same tails, without an interval"),
    )
    return Proposal("interval", "two searches", made.blocks, promise, made, predicted, others)


def narrowest_interval(
    queries: int,
    rows: int,
    grid: int = 64,
    confidence: float = 0.95,
    shape: Shape | None = None,
) -> Proposal:
    """Intervals whose predicted width is the smallest that so many rows give."""
    rows = whole_number("rows", rows, 1, 10**15)
    shape = BoundedMean() if shape is None else shape

    def width(log_tail: float) -> float:
        tail = math.exp(log_tail)
        try:
            blocks = joint_plan(Intervals(queries, grid, tail), confidence=confidence).blocks
        except HoldfastError:
            return math.inf
        return shape.error(rows // blocks, tail) if rows >= blocks else 1e9 + blocks

    tail = math.exp(_least(width, *_TAILS))
    blocks = joint_plan(Intervals(queries, grid, tail), confidence=confidence).blocks
    if rows < blocks:
        remedy = "Ask fewer questions, or bring more data."
        raise Infeasible("Not enough rows", f"{blocks:,} rows", f"there are {rows:,}", remedy)
    made = propose_interval(queries, grid, tail, confidence, shape=shape, block_size=rows // blocks)
    wide = made.predicted["width"]
    if shape.span is not None and wide >= shape.span:
        raise Infeasible(
            "The intervals would say nothing",
            f"a width below {shape.span:g}, all of the mean's range",
            f"with {rows:,} row(s) and {queries:,} question(s) it would be {wide:.4g}",
            "Ask fewer questions, bring more data, or give a tail: it is promised without a width.",
        )
    return made


def smallest_interval(
    queries: int,
    half_width: float,
    grid: int | None = None,
    confidence: float = 0.95,
    shape: Shape | None = None,
) -> Proposal:
    """Intervals of a predicted width of at most 2·half_width, with the fewest rows."""
    half_width = real_number("half_width", half_width, 0, open_low=True)
    shape = BoundedMean() if shape is None else shape
    span = shape.span
    points = grid if grid is not None else 64
    if grid is None and span is not None:
        points = max(16, 2 ** math.ceil(math.log2(10 * span / half_width + 1)))
    room = half_width - (0.0 if span is None else span / (points - 1))
    if room <= 0:
        needed = f"cells narrower than {2 * half_width:g}"
        remedy = "Use a finer grid, or ask for a wider interval."
        raise Infeasible("The grid is too coarse", needed, f"it has {points:,} points", remedy)

    def rows(log_tail: float) -> float:
        tail = math.exp(log_tail)
        try:
            made = joint_plan(Intervals(queries, points, tail), confidence=confidence)
            return float(made.blocks * shape.units(room, tail))
        except HoldfastError:
            return math.inf

    tail = math.exp(_least(rows, *_TAILS))
    units = shape.units(room, tail)
    return propose_interval(queries, points, tail, confidence, shape=shape, block_size=units)


def _least(score: Callable[[float], float], low: float, high: float) -> float:
    """Golden-section search to about a tenth of a unit of ln tail."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = score(left), score(right)
    while high - low > 0.3:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = score(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = score(right)
    return left if at_left <= at_right else right
