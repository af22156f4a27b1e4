"""Amplification by median (lem `amp-med`): the median of ℓ draws leaves the tails quickly.

Let X₁, …, X_ℓ be independent draws from D. The median is outside qi(ρ, 1 − ρ) only if half the
draws or more are in one of two sets of probability at most ρ each, {P[Y ≤ ·] ≤ ρ} and
{P[Y ≥ ·] ≤ ρ}. (True for every convention about the median of an even number.) Hence

    P[outside] ≤ 2·P[Bin(ℓ, ρ) ≥ ℓ/2] ≤ 2·exp(−2 (1/2 − ρ)² ℓ).

The first bound is reached for odd ℓ, by the three-valued law with masses ρ, 1 − 2ρ, ρ. The second,
Hoeffding's, is the paper's. Its exponent is ℓ/8 at ρ = 1/4 and ℓ/32 at ρ = 3/8, where the
removed proof of `intro-iqr` writes ℓ/8.
"""

from __future__ import annotations

import math

from holdfast.arguments import real_number, whole_number
from holdfast.theory.binomial import binomial_tail, smallest_whole
from holdfast.theory.numerics import ROUNDING

__all__ = [
    "hoeffding_failure",
    "hoeffding_samples",
    "median_failure",
    "median_samples",
]

_LIMIT = 10**12


def hoeffding_failure(samples: int, tail: float) -> float:
    """2·exp(−2 (1/2 − ρ)² ℓ), as printed in `amp-med`, rounded up and at most 1.

    >>> hoeffding_failure(80, 0.25)  # 2·exp(−10)
    9.07...e-05
    >>> math.isclose(hoeffding_failure(320, 0.375), 2 * math.exp(-10))
    True
    """
    samples, tail = _samples(samples), _tail(tail)
    return min(1.0, 2 * math.exp(-2 * (0.5 - tail) ** 2 * samples) * (1 + ROUNDING))


def hoeffding_samples(failure: float, tail: float) -> int:
    """The smallest ℓ with 2·exp(−2 (1/2 − ρ)² ℓ) ≤ failure, rounded up.

    >>> hoeffding_samples(0.001, 0.25), hoeffding_samples(0.001, 0.375)
    (61, 244)
    """
    failure, tail = _failure(failure), _tail(tail)
    return math.ceil(math.log(2 / failure) / (2 * (0.5 - tail) ** 2) * (1 + ROUNDING))


def median_failure(samples: int, tail: float) -> float:
    """2·P[Bin(ℓ, ρ) ≥ ℓ/2], rounded up and at most 1: the worst case itself when ℓ is odd.

    >>> median_failure(43, 0.25)
    0.00040...
    >>> median_failure(80, 0.25) < hoeffding_failure(80, 0.25) / 15
    True
    """
    samples, tail = _samples(samples), _tail(tail)
    return min(1.0, 2 * binomial_tail(samples, tail, (samples + 1) // 2))


def median_samples(failure: float, tail: float) -> int:
    """The smallest ℓ with 2·P[Bin(ℓ, ρ) ≥ ℓ/2] ≤ failure. It is always odd.

    An even number is never better than the odd one before it: the same count must be reached
    with one more draw.

    >>> median_samples(0.0005, 0.25), median_samples(0.0005, 0.01)
    (43, 5)
    """
    failure, tail = _failure(failure), _tail(tail)
    steps = smallest_whole(lambda n: median_failure(2 * n - 1, tail) <= failure, _LIMIT)
    return 2 * steps - 1


def _samples(samples: int) -> int:
    return whole_number("samples", samples, 1, 2 * _LIMIT)


def _tail(tail: float) -> float:
    return real_number("tail", tail, 0, 0.5, open_low=True, open_high=True)


def _failure(failure: float) -> float:
    return real_number("failure", failure, 0, 1, open_low=True, open_high=True)
