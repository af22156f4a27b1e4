"""Both directions at once: the sharpest transfer that Rényi stability gives us.

Let K = e^((a−1)R) − 1 and

    φ(x) = ½·(xᵃ − 1 − a(x−1)) + ½·(x¹⁻ᵃ − 1 + (a−1)(x−1)) ≥ 0,

convex, 0 at 1. Two laws whose divergences are at most R both ways have E[φ(ratio)] ≤ K. By
Fenchel's inequality, for any slopes ν < 0 < ν + λ with  ρ·φ*(ν+λ) + (1−ρ)·φ*(ν) ≤ 0,

    E[1(bad)·S[ψ]] ≤ (K − ν·P[bad])/λ        whenever D[ψ] ≤ ρ on bad.

`F(ρ·F(β))` of `holdfast.theory.transfer` takes the worst case of either direction by itself; they
do not occur together. Slopes are written as φ′(eᵘ): then φ*(φ′(x)) = x·φ′(x) − φ(x), and

    φ′(eᵘ)     = ½·(a·(e^((a−1)u) − 1) − (a−1)·(e^(−au) − 1))  =: slope(u),
    φ*(φ′(eᵘ)) = ½·((a−1)·(e^(au) − 1) − a·(e^((1−a)u) − 1))   =: conjugate(u),

sums of terms of one sign; and slope(−u) = −conjugate(u), so that positive u are enough.
Proof: docs/explanation/theory/transfer.md, both directions at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from holdfast.arguments import real_number
from holdfast.theory.numerics import ROUNDING
from holdfast.theory.renyi import ORDER_MAX

__all__ = ["conjugate", "paired_mass", "paired_tail"]

_LARGEST = 600.0  # exponents of e that stay far from overflow
_TINY = 1e-280  # a slope that stays far from underflow
_GOLDEN = (math.sqrt(5) - 1) / 2


def conjugate(order: float, slope: float) -> float:
    """φ*(s) = sup over x > 0 of s·x − φ(x), rounded up; inf where it does not fit a float.

    >>> conjugate(2, 0.0), round(conjugate(2, 1.0), 6), round(conjugate(2, -1.0), 6)
    (0.0, 1.311184, -0.805359)
    """
    a = real_number("order", order, 1, ORDER_MAX, open_low=True)
    if -_TINY < slope <= 0:
        return 0.0
    if slope < 0:
        return -_slope(a, _root(_conjugate, -slope, a)) * (1 - 10 * ROUNDING)
    u = _root(_slope, max(slope, _TINY), a)
    return math.inf if a * u >= _LARGEST else _conjugate(a, u) * (1 + 10 * ROUNDING)


def paired_mass(order: float, budget: float, tail: float, failure: float) -> float:
    """The most that E[1(bad)·S[ψ]] can be when P[bad] = failure and D[ψ] ≤ tail, rounded up.

    min over ν of (K − ν·β)/λ, λ the largest that the condition allows. Any ν gives a true bound,
    so the search for the best need not be exact. At most β itself.

    >>> paired_mass(25, 0.1335, 0.25, 0.05) / 0.05
    0.369...
    """
    a, rent, tail, failure = _checked(order, budget, tail, failure)
    odds = (1 - tail) / tail

    def share(log_step: float) -> float:
        below = math.exp(log_step) / a  # ν = −conjugate(below), φ*(ν) = −slope(below)
        # A little less than the root: the condition must hold, not nearly hold.
        above = _root(_conjugate, odds * _slope(a, below), a) * (1 - 10 * ROUNDING)
        return (rent + _conjugate(a, below)) / (_slope(a, above) + _conjugate(a, below))

    best = _least(share, -12.0, math.log(_LARGEST / 2))
    return min(1.0, best * (1 + 10 * ROUNDING)) * failure


def paired_tail(order: float, budget: float, share: float, failure: float) -> float:
    """The largest tail with paired_mass < share·failure, rounded down; 0 if there is none.

    >>> tail = paired_tail(25, 0.1335, 0.3693, 0.05)
    >>> round(tail, 4), paired_mass(25, 0.1335, tail, 0.05) < 0.3693 * 0.05
    (0.2501, True)
    """
    a, rent, share, failure = _checked(order, budget, share, failure)

    def minus_tail(log_step: float) -> float:
        below = math.exp(log_step) / a
        low = -_conjugate(a, below)
        wanted = low + (rent - low) / (share * (1 - 1e-5))  # room for the search of paired_mass
        if wanted <= 0 or math.isinf(wanted):
            return 0.0
        above = _root(_slope, wanted, a)
        if a * above >= _LARGEST:  # beyond what floats can say
            return 0.0
        ratio = _slope(a, below) / _conjugate(a, above)
        return -ratio / (1 + ratio)

    best = -_least(minus_tail, -12.0, math.log(_LARGEST / 2))
    return max(0.0, best * (1 - 1e-9))


def _checked(
    order: float, budget: float, inside: float, failure: float
) -> tuple[float, float, float, float]:
    """Order, K/β, and the two probabilities. A K beyond all floats proves nothing: infinity."""
    a = real_number("order", order, 1, ORDER_MAX, open_low=True)
    budget = real_number("budget", budget, 0)
    inside = real_number("tail", inside, 0, 1, open_low=True, open_high=True)
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    exponent = (a - 1) * budget
    rent = math.inf if exponent > _LARGEST else math.expm1(exponent) / failure * (1 + ROUNDING)
    return a, rent, inside, failure


def _slope(a: float, u: float) -> float:
    """φ′(eᵘ)."""
    return 0.5 * (a * math.expm1((a - 1) * u) - (a - 1) * math.expm1(-a * u))


def _conjugate(a: float, u: float) -> float:
    """φ*(φ′(eᵘ))."""
    return 0.5 * ((a - 1) * math.expm1(a * u) - a * math.expm1((1 - a) * u))


def _root(function: Callable[[float, float], float], value: float, a: float) -> float:
    """The u > 0 at which `_slope` or `_conjugate` has this value; at most 600/a."""
    low, high = 0.0, _LARGEST / a
    if function(a, high) <= value:
        return high
    # Either is front·(e^(fast·u) − 1) − back·(e^(slow·u) − 1), with the same rise.
    fast, slow, front, back = a - 1, -a, 0.5 * a, 0.5 * (a - 1)
    if function is _conjugate:
        fast, slow, front, back = a, 1 - a, back, front
    # Right near 0, where both terms are alike; short by ln 2/fast where the first is alone.
    u, goal = min(math.log1p(0.5 * value / front) / fast, high), math.log(value)
    for _ in range(200):
        up, down = math.expm1(fast * u), math.expm1(slow * u)
        at = front * up - back * down
        over = math.log(at) - goal
        low, high = (low, u) if over > 0 else (u, high)
        # Newton's method on the logarithm, nearly a straight line far out.
        step = u - over * at / (0.5 * a * (a - 1) * (up + down + 2))
        if abs(step - u) <= 1e-9 * u:  # what is left is of the order of its square
            return step
        u = step if low < step < high else 0.5 * (low + high)
    return u


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """The least value that a coarse scan and a golden-section search find; flat there, to 1e-6.

    The argument is the logarithm of a step. A step above 10 has to be met itself: exponentials of
    it are added up.
    """
    points = [low + (high - low) * i / 12 for i in range(13)]
    values = [function(x) for x in points]
    place = min(range(13), key=values.__getitem__)
    low, high = points[max(0, place - 1)], points[min(12, place + 1)]
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    turns = 0
    while turns < 16 or (high - low) * math.exp(high) > 0.0135:
        turns += 1
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return min(at_left, at_right, values[place])
