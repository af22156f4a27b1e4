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
from inspect import get_annotations
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids import floats_up
from holdfast.mechanisms.exponential import flip_exponential
from holdfast.randomness import Entropy, uniform_index

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


# Exact sums of bounded values, and the whole numbers that noise is added to.
#
# A mean of n values in [0, 1] is a whole number of *cells* of size 2^-16/n: each value is rounded
# to a multiple of 2^-16 on its own, and the sum of whole numbers does not round. One row moves the
# sum by at most 2^16. Nothing about the values is ever raised or shown: what lies outside [0, 1] is
# moved to the nearer end and what is no number counts as 0.


FloatArray = NDArray[np.float64]

CELLS = 2**16
"""Whole numbers per value: a value of 1 adds this much to the sum."""

ROUNDING_ERROR = 2.0**-17
"""The most that rounding the values changes a mean, on the sample and in the population."""


def bounded_sum(values: object, rows: int) -> int:
    """Σ round(2^16 · v) over the values, each clipped to [0, 1]; `rows` of them.

    >>> bounded_sum([0.0, 0.5, 1.0, 7.0, float("nan")], rows=5) / CELLS
    2.5
    """
    return int(np.rint(clipped(values, 0.0, 1.0, rows) * CELLS).astype(np.int64).sum())


def clipped(values: object, low: float, high: float, size: int | None = None) -> FloatArray:
    """The values as floats in [low, high], `low` for what is no number; `size` of them, if given.

    Refused is only a wrong shape, which must not depend on the data: a list has as many values as
    items, whatever they are (`holdfast.grids`).

    >>> clipped([3, None, 10**400, "x"], -1.0, 5.0).tolist()
    [3.0, -1.0, 5.0, -1.0]
    """
    array = floats_up(values)
    if array.ndim != 1 or array.size == 0 or (size is not None and array.size != size):
        wanted = "a list of numbers" if size is None else f"a list of {size:,} numbers"
        raise InvalidInput("values", f"the shape {array.shape}", f"{wanted}, one each")
    return np.clip(np.nan_to_num(array, nan=low), low, high)


def as_mean(total: int, rows: int) -> float:
    """The float nearest to total / (rows · 2^16)."""
    return float(Fraction(total, rows * CELLS))


# What every answer of a baseline is: not certified, and with no way to become so.


class Uncertified:
    """Base of all answers in this folder: `certified` is False, always.

    It is a property without a setter: no argument, no assignment and no `dataclasses.replace`
    reaches it, and a subclass that redefines it is refused when it is defined. `statement` says
    in one sentence what the textbook proves and what nobody promises here.

    >>> class Answer(Uncertified):
    ...     statement = "an example"
    >>> Answer().certified
    False
    >>> Answer().certified = True
    Traceback (most recent call last):
    AttributeError: property 'certified' of 'Answer' object has no setter
    """

    __slots__ = ()

    statement: ClassVar[str] = "nothing is promised"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # An annotation alone would make a dataclass field, and with slots a new attribute.
        if "certified" in {*vars(cls), *get_annotations(cls)}:
            raise TypeError(f"{cls.__name__} redefines certified; no baseline can certify")

    @property
    def certified(self) -> Literal[False]:
        """False: Holdfast certifies no answer of a baseline."""
        return False
