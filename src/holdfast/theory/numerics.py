"""Sums and differences that cancel, written so that they do not.

Prices and divergences of neighbouring coins are tiny numbers made from numbers near 1: as their
formulas stand, a float keeps few digits of them. These keep about thirteen.
"""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = [
    "ROUNDING",
    "entropy_gap",
    "exp_beyond_linear",
    "log_co_ratio",
    "log_ratio",
    "moment_excess",
    "round_down",
    "round_up",
]

# Relative: by this much a bound is moved towards safety. It covers what one evaluation loses, at
# most about 1e-13 (tested against 50-digit arithmetic), and is far too little to change a plan.
ROUNDING = 1e-12

# Floats, for a float is divided faster by one than by a whole number.
_FALLING = tuple(float(n) for n in range(16, 2, -1))
_RISING = tuple((float(n), float(n - 1)) for n in range(2, 18))


def exp_beyond_linear(u: float) -> float:
    """eᵘ − 1 − u ≥ 0, without cancellation near 0."""
    if abs(u) > 0.5:
        return math.expm1(u) - u
    if abs(u) < 1e-3:  # most of a coin's steps; what is left out is below 1e-14 of it
        return u * u / 2 * (1 + u / 3 * (1 + u / 4 * (1 + u / 5)))
    total = 1.0
    for n in _FALLING:
        total = 1.0 + total * u / n
    return total * u * u / 2


def entropy_gap(x: float) -> float:
    """x eˣ − eˣ + 1 ≥ 0, without cancellation near 0: Σ_{n≥2} xⁿ / (n (n−2)!)."""
    if abs(x) > 0.5:
        return x * math.exp(x) - math.expm1(x)
    if abs(x) < 1e-3:
        return x * x * (1 / 2 + x * (1 / 3 + x * (1 / 8 + x * (1 / 30 + x / 144))))
    total = 0.0
    power = x * x
    for n, before in _RISING:
        total += power / n
        power *= x / before
        if -1e-17 * total < power < 1e-17 * total:  # no further term changes a bit of it
            break
    return total


def moment_excess(s: float, x: float) -> float:
    """e^((s+1)x) − 1 − (s+1)(eˣ − 1) ≥ 0."""
    return math.exp(x) * exp_beyond_linear(s * x) + s * entropy_gap(x)


def log_ratio(p: float, q: float) -> float:
    """ln(p/q); the difference of near-equal floats is exact, their quotient is not."""
    gap = (p - q) / q
    return math.log1p(gap) if abs(gap) < 0.5 else math.log(p) - math.log(q)


def log_co_ratio(p: float, q: float) -> float:
    """ln((1−p)/(1−q)), accurate for tiny p and q."""
    gap = (q - p) / (1 - q)
    return math.log1p(gap) if abs(gap) < 0.5 else math.log1p(-p) - math.log1p(-q)


def round_up(x: Fraction) -> float:
    """The least float that is at least x."""
    nearest = float(x)
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def round_down(x: Fraction) -> float:
    """The greatest float that is at most x."""
    nearest = float(x)
    return nearest if Fraction(nearest) <= x else math.nextafter(nearest, -math.inf)
