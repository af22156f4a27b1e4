"""`adaptive-iqr` for other tails, from the same three theorems, with their parameters optimised.

Promise: D[φ ≤ v] > a and D[φ ≥ v] > c for every answer (a = tail_low, c = tail_high; the paper has
a = c = 1/4). Take failure β′ = β/2 for each of two events.

1. `EM-med`, with its score recentred: max(#less − τm, #greater − (1−τ)m) still moves by at most 1
   and is ≤ 0 at the ⌈τm⌉-th smallest value. So an ε̃-private answer has S[φ ≤ v] > τ − w and
   S[φ ≥ v] > 1 − τ − w with w = 2 ln(kr/β′)/(ε̃m), for all k questions with probability 1 − β′.
2. `gen`, applied as in `gen-adapt` to the one indicator ψ that breaks the promise most: with
   probability 1 − β′, S[ψ] ≤ p + α + γ·2p(1−p) for p = D[ψ], whose MAD is 2p(1−p). Were p ≤ a, then
   S[ψ] ≤ A = α + max over p ≤ a of p + 2γp(1−p); likewise C for c. Reaching τ − w = A and
   1 − τ − w = C therefore keeps the promise; it means 2w = 1 − A − C and τ = A + w.
3. `composition`: ½ k ε̃² + ε̃ √(2k ln(1/δ)) ≤ ε.

`gen` asks ε = ½ ln(1+γ), δ = αβ′/16 and m ≥ 8/(εα)·ln(2k/β′); step 1 asks
m ≥ 4 ln(kr/β′)/(ε̃(1−A−C)). Both logarithms are convex in (α, γ), but for the small quadratic term
of composition, so nested golden sections find the smallest maximum. Any (α, γ) would be valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from holdfast.arguments import real_number, whole_number
from holdfast.errors import InvalidInput
from holdfast.theory.numerics import ROUNDING
from holdfast.theory.paper.generalization import indicator_deviation
from holdfast.theory.paper.privacy import step_epsilon

__all__ = ["TailSize", "adaptive_tails"]

_GOLDEN = (math.sqrt(5) - 1) / 2
_STEPS = 40  # each keeps 0.618 of the interval: the minimum is found to 5e-9 of it
_GAMMA_MAX = math.expm1(2.0)  # the appendix proves `gen` for ε < 1


class TailSize(NamedTuple):
    """Blocks, the quantile τ that is searched for, and the parameters that certify them."""

    blocks: int
    target: float
    alpha: float
    gamma: float
    epsilon: float
    delta: float
    query_epsilon: float


def adaptive_tails(
    queries: int, grid_size: int, failure: float, tail_low: float, tail_high: float
) -> TailSize:
    """Blocks for qi(tail_low, 1 − tail_high) by the paper's own theorems, constants optimised.

    >>> [adaptive_tails(1_000, 32, 0.05, tail, tail).blocks for tail in (0.25, 0.05, 0.01)]
    [248728, 30535, 12055]
    >>> adaptive_tails(1_000, 32, 0.05, 0.85, 0.05).blocks
    2865581
    """
    queries = whole_number("queries", queries, 1, 10**12)
    size = whole_number("grid_size", grid_size, 1, 2**62)
    half = real_number("failure", failure, 0, 1, open_low=True, open_high=True) / 2
    low = real_number("tail_low", tail_low, 0, 1, open_low=True, open_high=True)
    high = real_number("tail_high", tail_high, 0, 1, open_low=True, open_high=True)
    if low + high >= 1:
        hint = "The answer has to fit between the tails."
        raise InvalidInput("tails", (tail_low, tail_high), "two numbers with a sum below 1", hint)
    question = math.log(queries * size / half)
    union = math.log(2 * queries / half)

    def needed(alpha: float, gamma: float) -> float:
        room = 1 - 2 * alpha - _worst(low, gamma) - _worst(high, gamma)
        if room <= 0:
            return math.inf
        epsilon, _, step = stability(alpha, gamma)
        return max(4 * question / (step * room), 8 * union / (epsilon * alpha))

    def stability(alpha: float, gamma: float) -> tuple[float, float, float]:
        epsilon, delta = 0.5 * math.log1p(gamma) * (1 - ROUNDING), alpha * half / 16
        return epsilon, delta, step_epsilon(queries, epsilon, -math.log(delta))

    def best_alpha(gamma: float) -> float:
        room = 1 - _worst(low, gamma) - _worst(high, gamma)
        return _golden(lambda alpha: needed(alpha, gamma), max(room, 0.0) / 2)

    most = (1 - low - high) / (indicator_deviation(low) + indicator_deviation(high))
    gamma = _golden(lambda g: needed(best_alpha(g), g), min(most, _GAMMA_MAX))
    alpha = best_alpha(gamma)
    blocks = math.ceil(needed(alpha, gamma) * (1 + ROUNDING))
    target = (1 + _worst(low, gamma) - _worst(high, gamma)) / 2  # A + (1 − A − C)/2
    return TailSize(blocks, target, alpha, gamma, *stability(alpha, gamma))


def _worst(tail: float, gamma: float) -> float:
    """max over p ≤ tail of p + 2γp(1−p); the maximum is inside only for tails above 1/2."""
    top = (1 + 2 * gamma) / (4 * gamma)
    p = min(tail, top)
    return p + 2 * gamma * p * (1 - p)


def _golden(f: Callable[[float], float], high: float) -> float:
    """The minimum of a function with one valley on (0, high)."""
    low = 0.0
    one, two = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_one, at_two = f(one), f(two)
    for _ in range(_STEPS):
        if at_one <= at_two:
            high, two, at_two = two, one, at_one
            one = high - _GOLDEN * (high - low)
            at_one = f(one)
        else:
            low, one, at_one = one, two, at_two
            two = low + _GOLDEN * (high - low)
            at_two = f(two)
    return one if at_one <= at_two else two
