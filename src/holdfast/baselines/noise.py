"""Noise on whole numbers, drawn exactly: discrete Laplace and discrete Gaussian.

The textbook adds real numbers. In floating point those give the data away by their lowest bits
(Mironov 2012), so the baselines add whole numbers to whole sums instead, with

    P[X = x] ∝ e^(−|x|/b)        discrete Laplace of scale b (Ghosh et al. 2009)
    P[X = x] ∝ e^(−x²/(2σ²))     discrete Gaussian of variance parameter σ² (Canonne, Kamath &
                                 Steinke 2020, below CKS)

For data that move a whole sum by at most Δ, the first is Δ/b-private and the second has
concentrated privacy Δ²/(2σ²) (CKS, Theorem 4), the same as the real-valued ones. Parameters are
exact fractions, coins are exact (`holdfast.mechanisms.exponential.flip_exponential`), and no float
takes part: each law is the stated one, not near it.
"""

from __future__ import annotations

import math
from fractions import Fraction

from holdfast.errors import InvalidInput
from holdfast.mechanisms.exponential import flip_exponential
from holdfast.randomness import Entropy, uniform_index

__all__ = ["discrete_gaussian", "discrete_laplace", "laplace_reach", "laplace_tail"]

_WHOLE = Fraction(1)
_LARGEST_INDEX = 2**62  # of uniform_index
_WORD_BITS = 64
_ROUND_UP = 1 + 2.0**-40  # covers a few roundings of exp and a quotient


def discrete_laplace(scale: Fraction, entropy: Entropy) -> int:
    """X with P[X = x] ∝ e^(−|x|/scale), exactly (CKS, Algorithm 2).

    *Proof.* Let scale = t/s. U is uniform on 0 … t−1 and kept with probability e^(−U/t), V counts
    coins e^(−1): U + tV = x has probability ∝ e^(−x/t) for every x ≥ 0. Of s neighbours each,
    Y = ⌊(U + tV)/s⌋ has P[Y = y] ∝ e^(−ys/t). With a fair sign, of which −0 is rejected, the
    law is two-sided and 0 is counted once. ∎

    >>> from holdfast.randomness import SeededEntropy
    >>> entropy = SeededEntropy(1)
    >>> [discrete_laplace(Fraction(5), entropy) for _ in range(8)]
    [-1, -10, 2, 6, 4, 0, -3, -2]
    """
    scale = _positive("scale", scale)
    parts = scale.numerator
    while True:
        low = _uniform(parts, entropy)
        if not flip_exponential(_WHOLE, Fraction(low, parts), entropy):
            continue
        high = 0
        while flip_exponential(_WHOLE, _WHOLE, entropy):
            high += 1
        size = (low + parts * high) // scale.denominator
        negative = uniform_index(2, entropy) == 1
        if not (negative and size == 0):
            return -size if negative else size


def discrete_gaussian(variance: Fraction, entropy: Entropy) -> int:
    """X with P[X = x] ∝ e^(−x²/(2·variance)), exactly (CKS, Algorithm 3).

    *Proof.* Y is discrete Laplace of scale t, any whole t ≥ 1, kept with probability
    e^(−(|Y| − σ²/t)²/(2σ²)) ≤ 1. The product of both is e^(−Y²/(2σ²)) times a constant, since
    (|y| − σ²/t)²/(2σ²) + |y|/t = y²/(2σ²) + σ²/(2t²). ∎ With t = ⌊σ⌋ + 1 few draws are rejected.

    Its variance is at most the parameter and P[X ≥ x] ≤ e^(−x²/(2σ²)), as for the Gaussian (CKS).

    >>> from holdfast.randomness import SeededEntropy
    >>> entropy = SeededEntropy(1)
    >>> [discrete_gaussian(Fraction(25), entropy) for _ in range(8)]
    [-4, -9, 2, -1, 5, 3, 6, 0]
    """
    variance = _positive("variance", variance)
    scale = math.isqrt(math.floor(variance)) + 1
    while True:
        drawn = discrete_laplace(Fraction(scale), entropy)
        exponent = (abs(drawn) - variance / scale) ** 2 / (2 * variance)
        if flip_exponential(_WHOLE, exponent, entropy):
            return drawn


def laplace_tail(scale: Fraction, at_least: int) -> float:
    """P[X ≥ x] = e^(−x/b) / (1 + e^(−1/b)) for x ≥ 1, rounded up.

    >>> round(laplace_tail(Fraction(5), 12), 6)
    0.04988
    """
    if at_least < 1:
        raise InvalidInput("at_least", at_least, "a whole number from 1")
    base = math.exp(-float(1 / scale))
    return math.exp(-float(at_least / scale)) / (1 + base) * _ROUND_UP


def laplace_reach(scale: Fraction, failure: float) -> int:
    """The smallest t ≥ 0 with P[X > t] ≤ failure by `laplace_tail`.

    >>> laplace_reach(Fraction(5), 0.05)
    11
    """
    reach = max(0, math.floor(-float(scale) * math.log(failure)))
    while laplace_tail(scale, reach + 1) > failure:
        reach += 1
    while reach > 0 and laplace_tail(scale, reach) <= failure:
        reach -= 1
    return reach


def _positive(parameter: str, value: Fraction) -> Fraction:
    if value <= 0:
        raise InvalidInput(parameter, value, "a positive fraction")
    return value


def _uniform(size: int, entropy: Entropy) -> int:
    """A number from 0 to size − 1, each with probability exactly 1/size, for any size."""
    if size <= _LARGEST_INDEX:
        return uniform_index(size, entropy)
    bits = (size - 1).bit_length()
    while True:
        number = 0
        for word in entropy.words(-(-bits // _WORD_BITS)):
            number = number << _WORD_BITS | int(word)
        number &= (1 << bits) - 1  # any fixed choice of fair bits is fair
        if number < size:
            return number
