"""Logarithms of binomial tails and of counts, rounded up, for numbers far outside the floats."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from holdfast.theory.binomial import binomial_tail
from holdfast.theory.numerics import ROUNDING

__all__ = ["log_add", "log_binomial_tail", "log_products", "log_sum", "log_up"]

_SURE = 1e-280  # the incomplete beta function is right down to here
_ULP = 2.0**-52


def log_binomial_tail(trials: int, probability: float, at_least: int) -> float:
    """ln P[Bin(n, p) ≥ c], rounded up, however small it is.

    Below 10⁻²⁸⁰ it is bounded: from c on, each term is at most θ = (n−c)p/((c+1)(1−p)) times the
    one before, so the tail is at most P[Bin = c]/(1 − θ), and by Robbins (1955)

        P[Bin = c] ≤ √(n/(2πc(n−c)))·exp(−n·kl(c/n, p) + 1/(12n) − 1/(12c+1) − 1/(12(n−c)+1)).

    Chernoff's bound is exp(−n·kl(c/n, p)), some five nats more here.

    >>> log_binomial_tail(57, 0.25, 29), log_binomial_tail(24_059, 0.25, 12_030)
    (-10.64..., -3466.08...)
    """
    tail = binomial_tail(trials, probability, at_least)
    if tail > _SURE:
        return log_up(math.log(tail))
    n, p, c = trials, probability, at_least
    if c > n or p == 0:
        return -math.inf
    if c == n:
        return log_up(n * math.log(p))
    inside, outside = math.log(c / (n * p)), math.log((n - c) / (n * (1 - p)))
    # Each logarithm is of a number with three roundings, and so off by 1e-15 times 1 + itself.
    slack = 1e-15 * (c * (1 + abs(inside)) + (n - c) * (1 + abs(outside)))
    chernoff = slack - c * inside - (n - c) * outside
    stirling = 1 / (12 * n) - 1 / (12 * c + 1) - 1 / (12 * (n - c) + 1)
    first = 0.5 * math.log(n / (2 * math.pi * c * (n - c))) + stirling
    ratio = (n - c) * p / ((c + 1) * (1 - p))  # below 1: in a tail this small, c > np
    return log_up(chernoff + min(0.0, first - math.log1p(-ratio)))


def log_products(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """ln of 1, x₁, x₁x₂, …, rounded up.

    >>> np.exp(log_products(np.array([4.0, 3 / 2, 2 / 3]))).round(9).tolist()
    [1.0, 4.0, 6.0, 4.0]
    """
    logs = np.log(ratios)
    # One after the other: each sum is off by half a unit of its last place, each ratio by a few.
    slack = (len(logs) + 4) * _ULP * (float(np.abs(logs).sum()) + 4)
    return np.concatenate([[0.0], np.cumsum(logs) + slack])


def log_sum(logs: NDArray[np.float64]) -> float:
    """ln of the sum of the terms with these logarithms, rounded up; for up to a million terms."""
    largest = float(logs.max())
    with np.errstate(under="ignore"):
        total = float(np.exp(logs - largest).sum())
    return log_up(largest + math.log(total) + 1e-9)


def log_add(one: float, other: float) -> float:
    """ln(eˣ + eʸ), rounded up.

    >>> round(log_add(math.log(2), math.log(3)), 9) == round(math.log(5), 9)
    True
    >>> log_add(-math.inf, 1.0), log_add(-math.inf, -math.inf)
    (1.0, -inf)
    """
    low, high = sorted((one, other))
    return high if low == -math.inf else log_up(high + math.log1p(math.exp(low - high)))


def log_up(logarithm: float) -> float:
    """Moved towards safety, by more than a few operations lose."""
    return logarithm + ROUNDING * (1 + abs(logarithm)) if logarithm > -math.inf else logarithm
