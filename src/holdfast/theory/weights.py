"""How often multiplicative weights can be refused: at most ln|Z|/kl(s, 1/2) times, and fewer.

A hypothesis h over a finite universe Z starts uniform. A refused guess names an indicator ψ with
h[ψ] ≥ 1/2 although the sample has S[ψ] ≤ s < 1/2; the update shrinks h where ψ = 1,

    h'(z) = h(z)·e^(−ηψ(z)) / W,    W = 1 − h[ψ]·(1 − e^(−η)),

and KL(S‖h) falls by −η·S[ψ] − ln W. For h[ψ] ≥ p and S[ψ] ≤ s the best rate is
η = ln(p/(1−p)) − ln(s/(1−s)), and the fall is at least kl(s, p), the divergence of two coins. KL
starts at ln|Z| − H(S) and stays ≥ 0. Theorem `adaptive-general-mwu` of the paper and theory §7
use Hoeffding's lemma instead, 2·(1/2 − s)² ≤ kl(s, 1/2), and drop the entropy H(S).

The weights of h are whole numbers: the functions here take 1e-8 off every h[ψ], which covers all
rounding of `holdfast.mechanisms.hypothesis`. Proofs: docs/explanation/theory/weights.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

from holdfast.errors import Infeasible, real_number, whole_number
from holdfast.theory.numerics import ROUNDING, log_co_ratio, log_ratio

__all__ = [
    "HELD_SLACK",
    "HIGHEST_MASS",
    "LOWEST_MASS",
    "drop",
    "largest_mass",
    "learning_rate",
    "least_entropy",
    "most_updates",
    "multiset_count",
]

HELD_SLACK = 1e-8  # by which whole weights may overstate h[ψ]; it also pays for rounding the rate
LOWEST_MASS, HIGHEST_MASS = 1e-6, 0.495  # where that slack is proved to be enough
_MOST_HELD = 0.999  # more mass only helps, and the rate stays finite
_MOST_MULTISETS = 10**30


def learning_rate(mass: float, held: float = 0.5) -> float:
    """η = ln(p/(1−p)) − ln(s/(1−s)): the best rate for S[ψ] ≤ mass = s and h[ψ] ≥ held = p.

    At p = 1/2 that is ln((1−s)/s), a little more than the 4·(1/2 − s) of Hoeffding's lemma. The
    mass that h holds is public, so each update may use its own.

    >>> round(learning_rate(0.25), 6), round(learning_rate(0.25, held=0.8), 6)
    (1.098612, 2.484907)
    """
    s, p = _mass(mass), _held(held)
    return -log_ratio(s, p) + log_co_ratio(s, p)


def drop(mass: float, held: float = 0.5) -> float:
    """kl(s, p) = s·ln(s/p) + (1−s)·ln((1−s)/(1−p)): by how much an update lowers KL(S‖h).

    At least; with the rate above, for S[ψ] ≤ mass = s and h[ψ] ≥ held = p. Rounded down.

    >>> round(drop(0.25), 5), 2 * 0.25**2, round(drop(0.25, held=0.8), 5)
    (0.13081, 0.125, 0.70053)
    """
    s, p = _mass(mass), _held(held)
    return (s * log_ratio(s, p) + (1 - s) * log_co_ratio(s, p)) * (1 - ROUNDING)


def least_entropy(largest: float) -> float:
    """The smallest entropy of a law none of whose probabilities exceeds `largest`; rounded down.

    ⌊1/x⌋ points of probability x and one with the rest, since entropy is concave. It is ln n at
    x = 1/n, and never below ln(1/x).

    >>> round(least_entropy(0.25), 4), round(math.log(4), 4), round(least_entropy(0.3), 4)
    (1.3863, 1.3863, 1.3138)
    """
    x = real_number("largest", largest, 0, 1, open_low=True)
    whole = math.floor(1 / x)
    rest = max(0.0, 1 - whole * x)
    total = -whole * x * math.log(x) - (rest * math.log(rest) if rest > 0 else 0.0)
    # The float 1 − ⌊1/x⌋·x is off by an ulp of 1, and r·ln(1/r) is steep at 0.
    return max(0.0, total * (1 - ROUNDING) - 1e-14)


def most_updates(universe_size: int, mass: float, largest: float | None = None) -> int:
    """The largest number of refused guesses, whatever the data and the questions are.

    `mass` = s bounds every S[ψ] of a refused guess. With one fixed rate it need only bound their
    average, if `largest` = x bounds each. Then the number is at most

        max( (ln|Z| − least_entropy(x)) / kl(s, p),   ln|Z| / ln((1−s)/(1−p)) ),   p = 1/2 − 1e-8:

    if every S(z) ≤ x the sample has that entropy; if some S(z) > x, then no ψ contained z, and
    h(z) ≤ 1 grew by (1−s)/(1−p) each time. Rounded up before the floor.

    >>> most_updates(10**5, 0.25), math.floor(math.log(10**5) / (2 * 0.25**2))
    (77, 92)
    >>> most_updates(10**5, 0.25, largest=1.0), most_updates(10**5, 0.4), most_updates(10**5, 0.05)
    (88, 519, 17)
    """
    size = whole_number("universe_size", universe_size, 1, _MOST_MULTISETS)
    s = _mass(mass)
    x = s if largest is None else real_number("largest", largest, s, 1)
    logarithm = math.log(size)
    spread = (logarithm - least_entropy(x)) / drop(s)
    spike = logarithm / log_co_ratio(s, _held(0.5))
    return math.floor(max(0.0, spread, spike) * (1 + 10 * ROUNDING))


def largest_mass(universe_size: int, updates: int) -> float:
    """The largest mass s with `most_updates(universe_size, s)` ≤ updates; rounded down.

    >>> s = largest_mass(10**5, 77)
    >>> round(s, 4), most_updates(10**5, s), most_updates(10**5, s + 1e-9)
    (0.2509, 77, 78)
    """
    size = whole_number("universe_size", universe_size, 1, _MOST_MULTISETS)
    return _largest_mass(size, whole_number("updates", updates, 0, 10**18))


@lru_cache(maxsize=1024)  # searches for plans ask the same again and again
def _largest_mass(universe_size: int, wanted: int) -> float:
    low, high = LOWEST_MASS, HIGHEST_MASS
    if most_updates(universe_size, low) > wanted:
        raise Infeasible(
            f"{wanted:,} updates for a universe of {universe_size:,} elements",
            f"at least {most_updates(universe_size, low):,}",
            "a refused guess can lower the divergence by no more than ln 2",
            "Allow more updates, or take a smaller universe.",
        )
    if most_updates(universe_size, high) <= wanted:
        return high
    for _ in range(60):
        middle = (low + high) / 2
        if most_updates(universe_size, middle) <= wanted:
            low = middle
        else:
            high = middle
    return low


def multiset_count(points: int, block_size: int) -> int:
    """C(n + t − 1, t): the multisets of t units out of n possible ones, the |Z| of symmetric φ.

    >>> multiset_count(10, 5), multiset_count(2, 1000), 10**5  # against 10⁵ tuples
    (2002, 1001, 100000)
    """
    n = whole_number("points", points, 1, 10**12)
    t = whole_number("block_size", block_size, 1, 10**12)
    total, fewer = 1, min(t, n - 1)
    for i in range(1, fewer + 1):
        total = total * (max(t, n - 1) + i) // i  # C(max + i, i), at least twice the one before
        if total > _MOST_MULTISETS:
            raise Infeasible(
                f"All multisets of {t:,} units out of {n:,} points",
                f"more than {_MOST_MULTISETS:.0e} elements",
                "no machine holds a weight for each",
                "Take coarser points, smaller blocks, or a search for each question.",
            )
    return total


def _mass(mass: float) -> float:
    hint = "It bounds the share of blocks that a refused guess may have on its side."
    return real_number("mass", mass, LOWEST_MASS, HIGHEST_MASS, hint=hint)


def _held(held: float) -> float:
    """p: the mass that h certainly holds, and no more than is useful."""
    return min(real_number("held", held, 0.5, 1), _MOST_HELD) - HELD_SLACK
