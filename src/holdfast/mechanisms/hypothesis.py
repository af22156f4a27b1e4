"""The hypothesis of multiplicative weights: a public law h over a universe (theory §7).

It holds ln h for every element, and h itself beside it. A question with grid indices φ(z) takes one
pass over the weights, its `Histogram`: the mass of h at every grid point. The median of φ under h
is read off the histogram. So is the law after an update, for an update at an answer v multiplies
all weights with φ ≤ v (or all with φ ≥ v) by e^(−η), and so whole grid points: however often the
guesses at one question are refused, the weights are rewritten once, in three passes, by `commit`.

**Rounding.** What is stored defines h, exactly. A mass is a sum of floats; no sum here runs over
more than 2²² + 2¹⁷ terms one after the other, so that it is off by less than 1e-9. The median is
the first grid point where the sum reaches half of the total: exactly, h[φ ≤ v] and h[φ ≥ v] are
both at least 1/2 − 1e-9. The bound on the number of updates allows for ten times that, which also
covers the rounding of the logarithms (docs/explanation/theory/weights.md#rounding).
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.arguments import real_number, whole_number
from holdfast.errors import InvalidInput
from holdfast.mechanisms.universe import MEMORY_LIMIT, check_memory

__all__ = ["Histogram", "Hypothesis", "Median", "Side"]

Side = Literal["at most", "at least"]

_LARGEST = 2**30  # elements, for which the rounding is proved
_CHUNK = 2**22  # terms of one sum, one after the other
_STRETCH = 2**14  # grid points of one sum in the search for the median
_FAINT = 1e-150  # less mass than this after an update: count again from the logarithms

# A weight too small for a float is 0 beside its logarithm, whatever the caller's settings are.
_UNDERFLOW = np.errstate(under="ignore")


class Median(NamedTuple):
    """A grid index v with the masses h[φ ≤ v] and h[φ ≥ v], both at least 1/2 up to rounding."""

    guess: int
    at_most: float
    at_least: float


class Hypothesis:
    """A law over the elements 0 … size − 1 of a universe, uniform at first.

    `passes` counts every time that numpy goes through all the weights, `updates` the shrinkings.

    >>> h = Hypothesis(4)
    >>> h.median(np.array([0, 1, 2, 3]), size=4)
    Median(guess=1, at_most=0.5, at_least=0.75)
    >>> h.shrink(np.array([True, True, False, False]), rate=math.log(3))
    >>> h.masses.round(3).tolist(), h.median(np.array([0, 1, 2, 3]), size=4).guess
    ([0.125, 0.125, 0.375, 0.375], 2)
    """

    __slots__ = ("_logarithms", "_version", "_weights", "passes", "size", "updates")

    def __init__(self, size: int, *, memory_limit: int = MEMORY_LIMIT) -> None:
        self.size = check_memory(whole_number("size", size, 1, _LARGEST), memory_limit)
        self._logarithms = np.full(self.size, -math.log(self.size))
        self._weights = np.full(self.size, 1 / self.size)
        self._version = 0
        self.passes = 0
        self.updates = 0

    @property
    @_UNDERFLOW
    def masses(self) -> NDArray[np.float64]:
        """h(z) for every element; a copy."""
        self.passes += 2
        return np.asarray(self._weights / np.sum(self._weights))

    def mass(self, mask: NDArray[np.bool_]) -> float:
        """h[ψ] for an indicator given as a mask."""
        return float(self._split(mask).masses[1])

    def median(self, indices: NDArray[Any], size: int) -> Median:
        """The median of a question under h, for the grid index of every element; one pass."""
        return self.histogram(indices, size).median()

    def histogram(self, indices: NDArray[Any], size: int) -> Histogram:
        """The masses at the points of a grid, for the grid index of every element; one pass.

        On a grid much larger than the universe only the points that occur are kept; they are found
        by sorting the indices. Keep the indices unchanged until the histogram is done with.
        """
        return Histogram(self, indices, size)

    def shrink(self, mask: NDArray[np.bool_], rate: float) -> None:
        """h(z) ∝ h(z)·e^(−rate·mask(z)); four passes."""
        histogram = self._split(mask)
        histogram.shrink(1, "at least", rate)
        histogram.commit()

    def _split(self, mask: NDArray[np.bool_]) -> Histogram:
        if getattr(mask, "dtype", None) != np.bool_:
            raise InvalidInput("mask", mask, f"an array of {self.size:,} booleans")
        return Histogram(self, mask.astype(np.intp), 2)

    def _counted(self, codes: NDArray[np.intp], points: int) -> NDArray[np.float64]:
        """Σ of the weights at each point: np.bincount, in chunks that bound the rounding."""
        self.passes += 1
        total = np.zeros(points)
        for start in range(0, self.size, _CHUNK):
            stretch = slice(start, start + _CHUNK)
            try:
                part = np.bincount(codes[stretch], self._weights[stretch], points)
            except ValueError:  # a negative one
                raise _wrong_indices(points) from None
            if part.size > points:
                raise _wrong_indices(points)
            total += part
        return total

    def _take_off(self, penalties: NDArray[np.float64], codes: NDArray[np.intp]) -> None:
        """ln h(z) −= penalties[codes[z]], and h along with it; three passes."""
        self.passes += 3
        self._version += 1
        # The old weights are the buffer. The codes were checked; "raise" would copy.
        np.take(penalties, codes, out=self._weights, mode="clip")
        np.subtract(self._logarithms, self._weights, out=self._logarithms)
        self._exponentiate()

    def _lift(self) -> None:
        """Norm by the largest weight, where all of them may have vanished; three passes."""
        self.passes += 3
        np.subtract(self._logarithms, np.max(self._logarithms), out=self._logarithms)
        self._exponentiate()

    @_UNDERFLOW
    def _exponentiate(self) -> None:
        np.exp(self._logarithms, out=self._weights)


class Histogram:
    """The masses of a hypothesis at the grid points of one question, and its updates there.

    >>> h = Hypothesis(6)
    >>> histogram = h.histogram(np.array([0, 0, 1, 5, 7, 9]), size=10)
    >>> v, at_most, at_least = histogram.median()
    >>> v, round(at_most, 3), round(at_least, 3)
    (1, 0.5, 0.667)
    >>> histogram.shrink(v, "at most", rate=1.0)
    >>> histogram.shrink(histogram.median().guess, "at least", rate=0.5)
    >>> histogram.commit()
    >>> h.passes, h.updates, h.masses.round(3).tolist()
    (4, 2, [0.126, 0.126, 0.126, 0.207, 0.207, 0.207])
    """

    __slots__ = ("_base", "_codes", "_hypothesis", "_masses", "_penalties", "_points", "_version")

    def __init__(self, hypothesis: Hypothesis, indices: NDArray[Any], size: int) -> None:
        points = whole_number("size", size, 1, 2**62)
        array = np.asarray(indices)
        if array.dtype.kind not in "iu" or array.shape != (hypothesis.size,):
            allowed = f"an array of {hypothesis.size:,} grid indices"
            raise InvalidInput("indices", array, allowed)
        self._hypothesis = hypothesis
        self._points: NDArray[Any] | None = None  # the grid indices that occur; None: all
        self._codes = array.astype(np.intp, copy=False)
        if points > min(_CHUNK, max(2**16, 8 * hypothesis.size)):
            self._points, self._codes = np.unique(self._codes, return_inverse=True)
            if not 0 <= self._points[0] <= self._points[-1] < points:
                raise _wrong_indices(points)
            points = self._points.size
        self._penalties = np.zeros(points)
        self._count()

    def _count(self) -> None:
        self._base = self._hypothesis._counted(self._codes, self._penalties.size)
        self._masses = self._base
        self._version = self._hypothesis._version

    @property
    def points(self) -> NDArray[Any]:
        """The grid indices that the masses belong to, rising."""
        return np.arange(self._base.size) if self._points is None else self._points

    @property
    @_UNDERFLOW
    def masses(self) -> NDArray[np.float64]:
        """The mass of h at each of the `points`, after the updates so far."""
        return np.asarray(self._masses / np.sum(self._masses))

    def median(self) -> Median:
        """The smallest grid index v with h[φ ≤ v] ≥ 1/2; then h[φ ≥ v] > 1/2 (± 1e-9)."""
        self._check()
        masses = self._masses
        up_to = np.cumsum(np.add.reduceat(masses, np.arange(0, masses.size, _STRETCH)))
        total = float(up_to[-1])
        stretch = int(np.searchsorted(up_to, total / 2))
        first = stretch * _STRETCH
        start = float(up_to[stretch - 1]) if stretch else 0.0
        inside = start + np.cumsum(masses[first : first + _STRETCH])
        # The last one, if this sum, rounded otherwise, stays below what up_to said.
        place = min(int(np.searchsorted(inside, total / 2)), inside.size - 1)
        place = int(np.searchsorted(inside, inside[place]))  # of equal sums the first: it has mass
        below = float(inside[place - 1]) if place else start
        index = first + place
        return Median(
            index if self._points is None else int(self._points[index]),
            min(1.0, float(inside[place]) / total),
            min(1.0, (total - below) / total),
        )

    @_UNDERFLOW
    def shrink(self, guess: int, side: Side, rate: float) -> None:
        """Multiply h by e^(−rate) where φ is at most, or at least, the grid point; no pass."""
        self._check()
        if side not in ("at most", "at least"):
            raise InvalidInput("side", side, "'at most' or 'at least'")
        eta = real_number("rate", rate, 0, 1e6, open_low=True)
        place = whole_number("guess", guess, 0, 2**62)
        at_most = side == "at most"
        if self._points is not None:
            place = int(np.searchsorted(self._points, place, side="right" if at_most else "left"))
        elif at_most:
            place += 1
        self._penalties[slice(0, place) if at_most else slice(place, None)] += eta
        self._masses = self._base * np.exp(-self._penalties)
        self._hypothesis.updates += 1
        if np.sum(self._masses) < _FAINT * np.sum(self._base):
            # Weights that were too small for a float may be what is left.
            self._hypothesis._take_off(self._penalties, self._codes)
            self._hypothesis._lift()
            self._penalties[:] = 0
            self._count()

    @_UNDERFLOW
    def commit(self) -> None:
        """Write the updates into the hypothesis: three passes, none if there were no updates."""
        self._check()
        if np.any(self._penalties):
            norm = math.log(np.sum(self._masses))
            self._hypothesis._take_off(self._penalties + norm, self._codes)
            self._penalties[:] = 0
            self._base = self._masses = self._masses / math.exp(norm)
            self._version = self._hypothesis._version

    def _check(self) -> None:
        if self._version != self._hypothesis._version:
            hint = "Make a new one: the hypothesis was updated after this one was counted."
            raise InvalidInput("histogram", "one that is out of date", "up to date", hint)


def _wrong_indices(points: int) -> InvalidInput:
    allowed = f"grid indices from 0 to {points - 1:,}"
    return InvalidInput("indices", "an index outside of the grid", allowed)
