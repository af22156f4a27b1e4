"""Grids whose points are floats computed when asked for, and the exact search among them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from holdfast.grids.base import Grid
from holdfast.grids.values import floats_up

__all__ = ["ComputedGrid", "locate"]

_Indices = NDArray[np.int64]
_Floats = NDArray[np.float64]
_SLACK = 2.0**-20  # a position this little above an index is that index, but for rounding


def locate(
    points: Callable[[_Indices], _Floats], top: int, guess: _Indices, values: _Floats
) -> _Indices:
    """The smallest index i with points(i) ≥ value, for points(0) < value ≤ points(top).

    Starts from a guess in [1, top] and looks at nothing but points: it finds a pair of indices
    with points(below) < value ≤ points(above), moving away from the guess in doubling steps
    where it must, and halves the distance until they are neighbours. So a poor guess costs time,
    never correctness.
    """
    above, below = guess.copy(), guess - 1
    low = np.flatnonzero(points(above) < values)
    high = np.flatnonzero(points(below) >= values)  # the points increase: never the same ones
    width = 1
    while low.size:
        below[low] = above[low]
        above[low] += np.minimum(width, top - above[low])
        low = low[points(above[low]) < values[low]]
        width *= 2
    width = 1
    while high.size:
        above[high] = below[high]
        below[high] -= np.minimum(width, below[high])
        high = high[points(below[high]) >= values[high]]
        width *= 2
    wide = np.flatnonzero(above - below > 1)
    while wide.size:
        middle = below[wide] + (above[wide] - below[wide]) // 2
        less = points(middle) < values[wide]
        below[wide[less]] = middle[less]
        above[wide[~less]] = middle[~less]
        wide = wide[above[wide] - below[wide] > 1]
    return above


class ComputedGrid(Grid):
    """A grid of floats that has a formula for its points and, roughly, for its indices."""

    __slots__ = ("_ends",)
    _ends: tuple[float, float]

    @abstractmethod
    def _point(self, index: int) -> float: ...

    @abstractmethod
    def _position(self, values: _Floats) -> _Floats:
        """About where values between the end points lie, in indices; need not be exact."""

    @property
    def low(self) -> float:
        """The lowest point."""
        return self._ends[0]

    @property
    def high(self) -> float:
        """The highest point."""
        return self._ends[1]

    def _points(self, indices: _Indices) -> _Floats:
        # Exact arithmetic is slow, but a grid has few points or the indices are few: once each.
        unique, where = np.unique(indices.ravel(), return_inverse=True)
        points = np.array([self._point(int(index)) for index in unique], np.float64)
        return points[where].reshape(indices.shape)

    def _ceiling(self, values: object) -> _Indices:
        floats = floats_up(values)
        flat, top = floats.ravel(), self._size - 1
        indices = np.where(flat > self.high, np.int64(top), np.int64(0))  # NaN compares False
        inside = np.flatnonzero((flat > self.low) & (flat <= self.high))
        if inside.size:
            found = flat[inside]
            position = np.ceil(self._position(found) - _SLACK)
            # Clip before the cast, as floats, and after it: float(top) may be above top.
            guess = np.clip(position, 1.0, float(top)).astype(np.int64)
            indices[inside] = locate(self._points, top, np.minimum(guess, top), found)
        return indices.reshape(floats.shape)
