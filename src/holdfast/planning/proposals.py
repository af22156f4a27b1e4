"""Proposals: a plan for one protocol, with what the same promise costs by other means.

Every proposal names its protocol, its size, what it predicts of its answers (a width, an accuracy),
and the alternatives: the paper's printed constants first, then the other protocols.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import cast

from holdfast.errors import HoldfastError, Infeasible, InvalidInput, real_number, whole_number
from holdfast.planning.joint import joint_from, joint_plan, rounds_plan
from holdfast.planning.plan import Alternative
from holdfast.planning.solve import plan
from holdfast.protocols.guesses import Guesses, VerdictPart, refuse_empty
from holdfast.protocols.means import DirectMeans
from holdfast.protocols.plans import JointPlan, Request, SetPlan
from holdfast.protocols.searches import AmplifiedEstimates, Estimates, Intervals, SimpleEstimates
from holdfast.protocols.shapes import BoundedMean, Shape
from holdfast.protocols.split import split_plan
from holdfast.protocols.weights import WeightedEstimates
from holdfast.theory.bars import units_for_half_width
from holdfast.theory.paper import adaptive_iqr, adaptive_simple, sv

__all__ = [
    "Proposal",
    "blocks_of",
    "inside",
    "narrowest_interval",
    "propose_amplified",
    "propose_correct",
    "propose_estimate",
    "propose_interval",
    "propose_mean",
    "propose_rounds",
    "propose_simple",
    "propose_split",
    "propose_verify",
    "propose_weights",
    "smallest_interval",
]


# What a proposal is: a certified plan, what it predicts, and what else would do.


@dataclass(frozen=True)
class Proposal:
    """A certified plan for a protocol, what it predicts, and what else would do."""

    protocol: str
    method: str
    blocks: int
    promise: str
    plan: SetPlan
    predicted: Mapping[str, float] = field(default_factory=dict)
    alternatives: tuple[Alternative, ...] = ()
    counted_in: str = "blocks"  # what the alternatives count

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text, as `holdfast plan --protocol … --json` prints them."""
        counted = [a for a in self.alternatives if a.blocks is not None]
        uncounted = [a for a in self.alternatives if a.blocks is None]
        return {
            "protocol": self.protocol,
            "method": self.method,
            "blocks": self.blocks,
            **self.predicted,
            "promise": self.promise,
            "alternatives": [{"method": a.method, self.counted_in: a.blocks} for a in counted],
            "uncounted": [{"method": a.method, "note": a.note} for a in uncounted],
            "plan": self.plan.kept(),
        }

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)


def blocks_of(request: Request, *, confidence: float) -> int | None:
    """The blocks of a request planned alone, or None if it cannot be."""
    try:
        return joint_plan(request, confidence=confidence).blocks
    except HoldfastError:
        return None


def inside(queries: int, tail: float, confidence: float) -> str:
    """The promise of answers, in words."""
    return (
        f"every answer lies in qi({tail:g}, {1 - tail:g}) of its estimator on fresh data, all "
        f"{queries:,} at once with probability at least {confidence:g}"
    )


# Proposals for protocols with guesses: verify, correct, rounds.


def propose_verify(
    queries: int,
    refusals: int,
    tail_low: float = 0.05,
    tail_high: float = 0.25,
    confidence: float = 0.95,
    *,
    sides: int = 2,
) -> Proposal:
    """Guesses confirmed or refused: by looks at two prices or at a flat one."""
    refuse_empty(tail_low, tail_high if sides == 1 else None)
    request = Guesses(queries, refusals, tail_low, tail_high, sides)
    made = joint_plan(request, confidence=confidence)
    part = cast(VerdictPart, made.part("verify"))
    prices, flat = part.prices(made.order), part.no_price == part.yes_price
    predicted = {
        "queries": queries,
        "refusals": refusals,
        "tail_low": tail_low,
        "tail_high": tail_high,
        "no_price": prices.no,
        "yes_price": prices.yes,
    }
    searches = blocks_of(Estimates(queries, 32, tail_low, tail_low), confidence=confidence)
    others = (
        Alternative("paper", _paper_verification(request, confidence)),
        Alternative("estimate", searches, "a search for every question, tails at tail_low"),
    )
    promise = (
        f"tails of at least {tail_high:g} are confirmed, one of at most {tail_low:g} is refused, "
        f"for all {queries:,} guesses at once with probability at least {confidence:g}; exhausted "
        f"after {refusals:,} refusals"
    )
    method = "flat price" if flat else "two prices"
    return Proposal("verify", method, made.blocks, promise, made, predicted, others)


def propose_correct(
    queries: int,
    refusals: int,
    grid: int = 32,
    tail_low: float = 0.05,
    tail_high: float = 0.25,
    confidence: float = 0.95,
) -> Proposal:
    """Guesses from open data, confirmed or corrected by looks on one budget."""
    refuse_empty(tail_low, None)
    guesses = Guesses(queries, refusals, tail_low, tail_high)
    corrections = Estimates(refusals, grid, tail_low, tail_low)
    made = joint_plan(guesses, corrections, confidence=confidence)
    predicted = {"queries": queries, "refusals": refusals, "tail": tail_low, "grid": grid}
    promise = inside(queries, tail_low, confidence)
    searches = blocks_of(Estimates(queries, grid, tail_low, tail_low), confidence=confidence)
    others = (
        Alternative("paper", _paper_verification(guesses, confidence), "verification alone"),
        Alternative("estimate", searches),
    )
    return Proposal("correct", "one budget", made.blocks, promise, made, predicted, others)


def propose_rounds(
    queries: int,
    rounds: int,
    tail_low: float = 0.05,
    tail_high: float = 0.25,
    confidence: float = 0.95,
) -> Proposal:
    """Estimation sets used exactly until verification fails."""
    made = rounds_plan(queries, rounds, tail_low, tail_high, confidence)
    predicted = {
        "queries": queries,
        "rounds": made.sets,
        "tail": tail_low,
        "tail_high": tail_high,
        "set_blocks": made.set_blocks,
        "verification_blocks": made.verification.blocks,
    }
    guesses = Guesses(queries, rounds, tail_low, tail_high)
    searches = blocks_of(Estimates(queries, 32, tail_low, tail_low), confidence=confidence)
    others = (
        Alternative("paper", _paper_verification(guesses, confidence), "verification alone"),
        Alternative("estimate", searches),
    )
    promise = inside(queries, tail_low, confidence)
    return Proposal("rounds", "two prices", made.blocks, promise, made, predicted, others)


def _paper_verification(request: Guesses, confidence: float) -> int | None:
    """Thm `sv` with its printed constants: ρ = tail_high, α = tail_high − tail_low."""
    alpha = request.tail_high - request.tail_low
    try:
        size = sv(request.queries, request.refusals, request.tail_high, alpha, 1 - confidence)
    except (InvalidInput, Infeasible):
        return None
    return size.blocks


# Proposals for intervals: at a given tail, for the fewest rows, or as narrow as rows allow.


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


# The plan for means: the fewest rows that give every mean the wanted half-width.
#
# Two ways, and the cheaper one is taken: the median of block means with the kl bar (few large
# blocks), and the direct search over the sum (rows as blocks). Fresh rows for every question are a
# third, for very few questions.


def propose_mean(queries: int, half_width: float = 0.1, confidence: float = 0.95) -> Proposal:
    """Means of functions with values in [0, 1], each within `half_width`, with the fewest rows.

    >>> made = propose_mean(100, half_width=0.1)
    >>> made.method, made.predicted["rows"] < 29_204
    ('direct search', True)
    """
    half_width = real_number("half_width", half_width, 0, 0.5, open_low=True, open_high=True)
    core = plan(queries=queries, error=half_width, confidence=confidence)
    assert core.block_size is not None
    direct = joint_plan(DirectMeans(queries, half_width), confidence=confidence)
    split = split_plan(queries, *_split_tails(queries, confidence), confidence)
    ways: dict[str, tuple[SetPlan, int]] = {
        "direct search": (direct, 1),
        "median of block means": (joint_from(core, "mean"), core.block_size),
        "split": (split, units_for_half_width(half_width, split.tail_low)),
    }
    rows = {method: made.blocks * units for method, (made, units) in ways.items()}
    method = min(rows, key=rows.__getitem__)
    made, units = ways[method]
    predicted = {"rows": rows[method], "block_size": units, "half_width": half_width}
    others = (
        Alternative("paper", _paper_rows(queries, core.grid, half_width, confidence)),
        *(Alternative(name, count) for name, count in rows.items()),
    )
    promise = (
        f"every mean lies within {half_width:g} of the middle of its bar, all {queries:,} at once "
        f"with probability at least {confidence:g}"
    )
    return Proposal("mean", method, made.blocks, promise, made, predicted, others, "rows")


def _split_tails(queries: int, confidence: float) -> tuple[float, float]:
    """One fresh block a question is enough for tails of β/(2k): its mean itself is the answer."""
    beta = float(1 - Fraction(repr(float(confidence))))
    tail = beta / (2 * queries) * (1 - 1e-9)
    return tail, tail


def _paper_rows(queries: int, grid: int, half_width: float, confidence: float) -> int | None:
    """Thm `adaptive-iqr` and `intro-var`: within 2 sd ≤ 2·(1/2)/√t of the mean, at ρ = 1/4."""
    try:
        return adaptive_iqr(queries, grid, 1 - confidence) * math.ceil(1 / half_width**2)
    except InvalidInput:
        return None


# Proposals for protocols that search, or split: estimates and their kin.


def propose_estimate(
    queries: int, grid: int = 32, tail: float = 0.25, confidence: float = 0.95
) -> Proposal:
    """A search for every question."""
    made = joint_plan(Estimates(queries, grid, tail, tail), confidence=confidence)
    return Proposal("estimate", "search", made.blocks, inside(queries, tail, confidence), made)


def propose_split(queries: int, tail: float = 0.25, confidence: float = 0.95) -> Proposal:
    """Fresh blocks for every question."""
    made = split_plan(queries, tail, tail, confidence)
    return Proposal("split", "split", made.blocks, inside(queries, tail, confidence), made)


def propose_amplified(
    queries: int, grid: int = 32, tail: float = 0.25, confidence: float = 0.95
) -> Proposal:
    """Exact medians of sub-blocks, then a search; sized in sub-blocks, with the best number."""

    def at(subblocks: int) -> JointPlan:
        request = AmplifiedEstimates(queries, grid, tail, subblocks)
        return joint_plan(request, confidence=confidence)

    best, made = 3, at(3)
    for subblocks in (5, 7, 9, 11, 13, 15, 19, 23, 29, 35, 43, 53, 65):
        other = at(subblocks)
        if other.blocks * subblocks < made.blocks * best:
            best, made = subblocks, other
        elif other.blocks * subblocks > 1.2 * made.blocks * best:
            break
    predicted = {"subblocks": best, "whole_blocks": made.blocks}
    promise = inside(queries, tail, confidence)
    return Proposal("amplified", "search", made.blocks * best, promise, made, predicted)


def propose_simple(
    queries: int, grid: int = 32, tail: float = 1e-6, confidence: float = 0.95
) -> Proposal:
    """Interior points of a few blocks, for well-concentrated estimators."""
    made = joint_plan(SimpleEstimates(queries, grid, tail), confidence=confidence)
    promise = inside(queries, tail, confidence)
    try:
        paper = adaptive_simple(queries, grid, 1 - confidence)
        others = (Alternative("paper", paper.blocks, f"at its own tail, {paper.tail:.2g}"),)
    except InvalidInput:
        others = (Alternative("paper", None, "outside the range of its theorem"),)
    return Proposal("simple", "search", made.blocks, promise, made, {"tail": tail}, others)


# The proposal for very many questions.


def propose_weights(
    queries: int,
    universe: int,
    tail: float = 0.25,
    grid: int = 32,
    confidence: float = 0.95,
) -> Proposal:
    """A hypothesis over a finite universe, corrected by the sample."""
    request = WeightedEstimates(queries, universe, tail)
    made = joint_plan(request, confidence=confidence)
    part = made.parts[0]
    assert part.most_refusals is not None
    predicted = {"queries": queries, "universe": universe, "tail": tail}
    predicted["updates"] = part.most_refusals
    searches = blocks_of(Estimates(queries, grid, tail, tail), confidence=confidence)
    note = "`adaptive-general-mwu` states only an order of growth"
    others = (Alternative("paper", None, note), Alternative("estimate", searches))
    promise = inside(queries, tail, confidence)
    return Proposal("weights", "looks", made.blocks, promise, made, predicted, others)
