"""Choosing the tail: the best one for the rows at hand, or the largest one for given blocks.

The tail ρ trades two things: a larger one keeps answers nearer the middle of the estimator's
distribution, a smaller one needs fewer blocks and so leaves larger ones. Both searches move ρ
together with the coin's order and budget, so they cost no more than one plan; the plan made
with the tail they return is then sized, and certified, in full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from holdfast.errors import InvalidInput
from holdfast.theory.curves import RenyiCurve
from holdfast.theory.drafts import reach, rough_blocks, start_parameters, steepest_draft
from holdfast.theory.paired import paired_tail
from holdfast.theory.sizing import Promise, minimise

__all__ = ["TAIL_MAX", "TAIL_MIN", "best_tail", "largest_tail"]

TAIL_MIN, TAIL_MAX = 1e-12, 0.49
_STAGES = ((300, 0.5), (2500, 0.1))  # half steps of the thinned coin, spread of the first simplex
_NEVER = 1e6


def best_tail(promise: Promise, score: Callable[[float, float], float]) -> float:
    """The tail with the smallest score(blocks, tail), blocks being what that tail needs.

    The promise's own tails are ignored; both sides get the tail that is found.
    """

    def objective(x: Sequence[float], half_steps: int) -> float:
        tail = _tail(x[2])
        candidate = replace(promise, tail_low=tail, tail_high=tail)
        try:
            draft = steepest_draft(candidate)((math.exp(x[0]), math.exp(x[1])), half_steps)
            return score(rough_blocks(candidate, draft, 0.5, None), tail)
        except (InvalidInput, OverflowError):
            return _NEVER

    start = replace(promise, tail_low=0.05, tail_high=0.05)
    x: Sequence[float] = [*map(math.log, start_parameters(start)), math.log(0.05 / 0.45)]
    for half_steps, spread in _STAGES:
        x = minimise(partial(objective, half_steps=half_steps), x, spread)
    return _tail(x[2])


def largest_tail(promise: Promise, blocks: int) -> float | None:
    """The largest tail, on both sides, that `blocks` blocks can promise; None if there is none.

    At given order and budget the profile leaves a sample mass q = 1/2 − reach/m. Then F(ρ·F(β)) =
    q·β solves to ρ = F⁻¹(q·β)/F(β), and the paired theorem has its own inverse: the larger counts.
    """

    def shortfall(x: Sequence[float], half_steps: int) -> float:
        try:
            draft = steepest_draft(promise)((math.exp(x[0]), math.exp(x[1])), half_steps)
        except (InvalidInput, OverflowError):
            return _NEVER
        beta = promise.failure
        quantile = 0.5 - reach(draft, beta) / blocks
        if quantile <= 0:
            return -quantile
        one_direction = draft.curve.smallest(quantile * beta) / draft.curve.largest(beta)
        assert isinstance(draft.curve, RenyiCurve)
        both = paired_tail(draft.curve.order, draft.curve.budget, quantile, beta)
        return -max(one_direction, both)

    (rough, first), (fine, second) = _STAGES
    starts = [replace(promise, tail_low=t, tail_high=t) for t in (0.25, 0.05, 0.005)]
    found = [
        minimise(
            partial(shortfall, half_steps=rough), list(map(math.log, start_parameters(s))), first
        )
        for s in starts
    ]
    best = min(found, key=partial(shortfall, half_steps=rough))
    best = minimise(partial(shortfall, half_steps=fine), best, second)
    tail = -shortfall(best, fine)
    return min(tail, TAIL_MAX) if tail >= TAIL_MIN else None


def _tail(logit: float) -> float:
    """ρ in (0, 1/2) from an unbounded number."""
    half = 0.5 / (1 + math.exp(-min(max(logit, -40.0), 40.0)))
    return min(max(half, TAIL_MIN), TAIL_MAX)
