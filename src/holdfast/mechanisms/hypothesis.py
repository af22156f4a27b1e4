"""The hypothesis of multiplicative weights: a public law h over a universe (theory §7).

Every element has a penalty d(z), a whole number of units of (ln 2)/2²⁰, and h(z) ∝ 2^(−d(z)/2²⁰).
An update at an answer v adds its rate, rounded up to whole units, to all elements with φ ≤ v, or to
all with φ ≥ v. A question with grid indices φ(z) takes one pass over the weights, its `Histogram`:
the mass of h at every grid point. The median of φ under h is read off the histogram.

**Rounding.** The penalties define h, exactly. The weights are h in whole numbers: they come from
the penalties by table, product and rounding to nearest, in one way on every machine, and their sum
is between 2⁵² and 2⁵³. So every sum of weights is an exact float, in whatever order it is added,
and the median depends on the penalties alone: not on the representation of the grid, the machine
or the questions of before that led to the same penalties. A share of the weights differs from that
of h by less than |Z|·2⁻⁵³ + 1e-15 ≤ 7.5e-9, for universes of up to 2²⁶ elements, and the bound on
the number of updates allows for 1e-8 (docs/explanation/theory/weights.md#rounding).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.arguments import real_number, whole_number
from holdfast.errors import InvalidInput
from holdfast.mechanisms.universe import check_size

__all__ = ["Histogram", "Hypothesis", "Median", "Side"]

Side = Literal["at most", "at least"]

_DENSE = 2**22  # grid points that are counted one by one, in the largest universes
_STRETCH = 2**14  # elements whose weights are computed at a time: they stay in the cache

_BITS = 20  # a unit is (ln 2)/2²⁰
_UNITS_OF_A_NAT: float = 1.4426950408889634 * 2**_BITS  # log₂(e)·2²⁰
_VANISHED = 1000  # halvings, after which every weight is 0


def _table(bits: int) -> NDArray[np.float64]:
    """2^(−i/2^bits) for i < 1024, by square roots of whole numbers: right to the last bit."""
    one, root = 2**160, 2**159
    for _ in range(bits):
        root = math.isqrt(root * one)
    powers, power = [], one
    for _ in range(1024):
        powers.append(power / one)
        power = power * root // one
    return np.array(powers)


_COARSE, _FINE = _table(_BITS - 10), _table(_BITS)
_HALVES = np.ldexp(1.0, -np.arange(_VANISHED + 1))


def _powers(units: NDArray[np.int64]) -> NDArray[np.float64]:
    """2^(−units/2²⁰) ± 3 units in the last place, but 2^(−1001) at least; the same everywhere."""
    part = units & (2**_BITS - 1)
    powers = _COARSE[part >> 10] * _FINE[part & 1023]
    return np.asarray(powers * _HALVES[np.minimum(units >> _BITS, _VANISHED)])


def _units(rate: float) -> int:
    """A rate in units, rounded up: one that is too high does the least harm."""
    nats: float = real_number("rate", rate, 0, 1e6, open_low=True)
    return math.ceil(nats * _UNITS_OF_A_NAT)


class Median(NamedTuple):
    """A grid index v with the shares of the weights at φ ≤ v and φ ≥ v, both at least 1/2."""

    guess: int
    at_most: float
    at_least: float


class Hypothesis:
    """A law over the elements 0 … size − 1 of a universe, uniform at first.

    `passes` counts every time that all weights, or all penalties, are gone through, `updates` the
    shrinkings.

    >>> h = Hypothesis(4)
    >>> h.median(np.array([0, 1, 2, 3]), size=4)
    Median(guess=1, at_most=0.5, at_least=0.75)
    >>> h.shrink(np.array([True, True, False, False]), rate=math.log(3))
    >>> h.masses.round(3).tolist(), h.median(np.array([0, 1, 2, 3]), size=4).guess
    ([0.125, 0.125, 0.375, 0.375], 2)
    """

    __slots__ = ("_penalties", "_version", "_weighed", "_weights", "passes", "size", "updates")

    def __init__(self, size: int) -> None:
        self.size = check_size(whole_number("size", size, 1, 2**62))
        # 2⁶³ units are 3·10¹¹ updates at the highest rate that a plan has.
        self._penalties = np.zeros(self.size, np.int64)
        self._weights = np.empty(self.size)
        self._version = 0  # of the penalties
        self._weighed = -1  # the version that the weights are of
        self.passes = 0
        self.updates = 0

    @property
    def masses(self) -> NDArray[np.float64]:
        """h(z) for every element; for show, since the last bits of this sum are the machine's."""
        self.passes += 2
        powers = _powers(self._penalties - np.min(self._penalties))
        return np.asarray(powers / np.sum(powers))

    def mass(self, mask: NDArray[np.bool_]) -> float:
        """h[ψ] for an indicator given as a mask."""
        return float(self._split(mask).masses[1])

    def median(self, indices: NDArray[Any], size: int) -> Median:
        """The median of a question under h, for the grid index of every element; one pass."""
        return self.histogram(indices, size).median()

    def histogram(self, indices: NDArray[Any], size: int) -> Histogram:
        """The masses at the points of a grid, for the grid index of every element.

        On a grid much larger than the universe only the points that occur are kept; they are found
        by sorting the indices. Keep the indices unchanged until the histogram is done with.
        """
        return Histogram(self, indices, size)

    def shrink(self, mask: NDArray[np.bool_], rate: float) -> None:
        """h(z) ∝ h(z)·e^(−rate·mask(z)); one pass, and three before the next question's."""
        self._split(mask).shrink(1, "at least", rate)

    def _split(self, mask: NDArray[np.bool_]) -> Histogram:
        if getattr(mask, "dtype", None) != np.bool_:
            raise InvalidInput("mask", mask, f"an array of {self.size:,} booleans")
        return Histogram(self, mask.astype(np.intp), 2)

    def _stretches(self) -> Iterator[slice]:
        """One pass, a stretch at a time."""
        self.passes += 1
        for start in range(0, self.size, _STRETCH):
            yield slice(start, start + _STRETCH)

    def _counted(self, codes: NDArray[np.intp], points: int) -> NDArray[np.float64]:
        """Σ of the weights at each point; exact, in any order. One pass, four after an update."""
        if self._weighed != self._version:
            self._weigh()
        self.passes += 1
        return np.asarray(np.bincount(codes, self._weights, points), np.float64)

    def _weigh(self) -> None:
        """The weights rint(M·2^(−d/2²⁰)), where d counts from the smallest penalty; three passes.

        M is such that their sum is between 2⁵² and 2⁵³. It comes from the sum of rougher weights,
        whole numbers as well, which is just as exact.
        """
        self.passes += 1
        smallest = int(np.min(self._penalties))
        rough, total = 2 ** (53 - (self.size - 1).bit_length()), 0
        for stretch in self._stretches():
            self._penalties[stretch] -= smallest
            powers = _powers(self._penalties[stretch])
            self._weights[stretch] = powers
            total += int(np.sum(np.rint(powers * rough)))
        # Python divides whole numbers with correct rounding.
        scale = (2**53 - self.size - 8) * rough / (total + self.size // 2 + 1)
        for stretch in self._stretches():
            self._weights[stretch] = np.rint(self._weights[stretch] * scale)
        self._weighed = self._version

    def _add(self, units: int, where: NDArray[np.bool_]) -> None:
        """d(z) += units where the mask says so; one pass."""
        self.passes += 1
        self.updates += 1
        self._version += 1
        np.add(self._penalties, units, out=self._penalties, where=where)


class Histogram:
    """The masses of a hypothesis at the grid points of one question, and its updates there.

    >>> h = Hypothesis(6)
    >>> histogram = h.histogram(np.array([0, 0, 1, 5, 7, 9]), size=10)
    >>> v, at_most, at_least = histogram.median()
    >>> v, round(at_most, 3), round(at_least, 3)
    (1, 0.5, 0.667)
    >>> histogram.shrink(v, "at most", rate=1.0)
    >>> histogram.shrink(histogram.median().guess, "at least", rate=0.5)
    >>> h.updates, h.masses.round(3).tolist()
    (2, [0.126, 0.126, 0.126, 0.207, 0.207, 0.207])
    """

    __slots__ = ("_codes", "_hypothesis", "_points", "_size", "_sums", "_version")

    def __init__(self, hypothesis: Hypothesis, indices: NDArray[Any], size: int) -> None:
        points = whole_number("size", size, 1, 2**62)
        array = np.asarray(indices)
        if array.dtype.kind not in "iu" or array.shape != (hypothesis.size,):
            allowed = f"an array of {hypothesis.size:,} grid indices"
            raise InvalidInput("indices", array, allowed)
        self._hypothesis = hypothesis
        self._points: NDArray[Any] | None = None  # the grid indices that occur; None: all
        self._codes = array.astype(np.intp, copy=False)
        if int(np.max(self._codes.view(np.uintp))) >= points:  # as such a negative one is large
            allowed = f"grid indices from 0 to {points - 1:,}"
            raise InvalidInput("indices", "an index outside of the grid", allowed)
        if points > min(_DENSE, max(2**16, 8 * hypothesis.size)):
            self._points, self._codes = np.unique(self._codes, return_inverse=True)
            points = self._points.size
        self._size = points
        self._version = -1

    def _cumulated(self) -> NDArray[np.float64]:
        """The weights up to each of the points: whole numbers, exactly."""
        if self._version != self._hypothesis._version:
            counted = self._hypothesis._counted(self._codes, self._size)
            self._sums = np.cumsum(counted)
            self._version = self._hypothesis._version
        return self._sums

    @property
    def points(self) -> NDArray[Any]:
        """The grid indices that the masses belong to, rising."""
        return np.arange(self._size) if self._points is None else self._points

    @property
    def masses(self) -> NDArray[np.float64]:
        """The mass of h at each of the `points`, after the updates so far."""
        sums = self._cumulated()
        return np.asarray(np.diff(sums, prepend=0.0) / sums[-1])

    def median(self) -> Median:
        """The smallest grid index v with half of the weights at φ ≤ v; then more are at φ ≥ v."""
        sums = self._cumulated()
        total = float(sums[-1])
        place = int(np.searchsorted(sums, total / 2))  # of equal sums the first: it has mass
        below = float(sums[place - 1]) if place else 0.0
        return Median(
            place if self._points is None else int(self._points[place]),
            float(sums[place]) / total,
            (total - below) / total,
        )

    def shrink(self, guess: int, side: Side, rate: float) -> None:
        """Multiply h by e^(−rate) where φ is at most, or at least, the grid point; one pass."""
        if side not in ("at most", "at least"):
            raise InvalidInput("side", side, "'at most' or 'at least'")
        units = _units(rate)
        place = whole_number("guess", guess, 0, 2**62)
        if self._points is not None:
            ends: Literal["left", "right"] = "right" if side == "at most" else "left"
            place = int(np.searchsorted(self._points, place, side=ends))
        elif side == "at most":
            place += 1
        self._hypothesis._add(
            units, self._codes < place if side == "at most" else self._codes >= place
        )
