"""Counts of blocks: how many values are at most a grid point, and sums of weights as counts.

A count is an integer, computed without rounding, and one block moves it by at most 1 (theory §2).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids import Grid
from holdfast.grids.values import floats_up

__all__ = ["Counts", "weighted_count"]

_WEIGHT_BITS = 16
_COMPARED = {f"{kind}{size}" for kind in "iuf" for size in (1, 2, 4, 8)}  # compared as they are


class Counts:
    """#{i : φ(S_i) ≤ T[index]} for one value per block, one pass over the values each.

    Values above the grid count as its highest point, NaN and other failures as its lowest. An
    array of floats or integers is compared as it is, without a copy: in its own type x > T
    means x > t, where t is the largest number of that type that is ≤ T. Anything else is
    projected onto the grid first and compared by index.

    A list is refused only if it is empty: of its items, whatever is not one number is a failure.
    An array is refused for its shape, which must therefore not depend on the data: give the
    estimators' results as a list, not as `np.array(results)`, which is a table if all are pairs.

    >>> from holdfast.grids import grid
    >>> counts = Counts(np.array([0.05, 0.31, 0.32, 7.0, math.nan]), grid(0, 1, step=0.1))
    >>> [counts.at_most(i) for i in (0, 1, 3, 4, 10)]
    [1, 2, 2, 4, 5]
    """

    __slots__ = ("_above", "_projected", "array", "blocks", "grid")

    def __init__(self, values: object, grid: Grid) -> None:
        self.array: NDArray[Any]
        if type(values) is np.ndarray and values.dtype.str[1:] in _COMPARED:
            self.array, self._projected = values, False
        else:
            self.array, self._projected = grid.ceiling(values), True
        if self.array.ndim != 1 or self.array.size == 0:
            raise InvalidInput("values", self.array.shape, "a list with one value per block")
        self.grid = grid
        self.blocks: int = self.array.size
        self._above = np.empty(self.blocks, np.bool_)

    def at_most(self, index: int) -> int:
        """How many values are projected onto the point at this index or a lower one."""
        if index >= self.grid.size - 1:
            return self.blocks
        limit = self.threshold(index)
        return 0 if limit is None else self.blocks - self.above(limit)

    def above(self, limit: Any) -> int:
        """How many elements of the array are > limit; NaN is not."""
        return int(np.count_nonzero(np.greater(self.array, limit, out=self._above)))

    def threshold(self, index: int) -> Any:
        """The largest number of the array's type ≤ the grid point; None if all are greater."""
        if self._projected:
            return np.int64(index)
        point = self.grid.point(index)
        if self.array.dtype.kind == "f":
            return _float_down(point, self.array.dtype)
        limits = np.iinfo(self.array.dtype)
        below = min(math.floor(point), int(limits.max))
        return None if below < limits.min else self.array.dtype.type(below)

    def indices(self, elements: NDArray[Any]) -> NDArray[np.int64]:
        """The grid indices that elements of the array are projected onto."""
        return elements if self._projected else self.grid.ceiling(elements)


def _float_down(point: float, dtype: np.dtype[Any]) -> Any:
    """The largest number of a float type that is ≤ point.

    >>> int(_float_down(2**53 + 1, np.dtype(np.float64)))
    9007199254740992
    """
    with np.errstate(over="ignore"):  # the point may be infinite in a shorter type
        nearest = dtype.type(point)
        rounded_up = float(nearest) > point  # Python compares int and float exactly
        return np.nextafter(nearest, dtype.type(-np.inf)) if rounded_up else nearest


def weighted_count(weights: object) -> int:
    """⌊Σ w_i⌋, each weight in [0, 1] first rounded to the nearest multiple of 2⁻¹⁶ (theory §2).

    The sum is one of integers, exact whatever their order. Replacing one weight moves it by at
    most 2¹⁶, and so the result by at most 1. It is below Σ w_i by less than 1 + m·2⁻¹⁷ and above
    it by at most m·2⁻¹⁷, within the m·2⁻¹⁶ and one count that §2 charges to τ. A weight outside
    [0, 1] is clipped and a failure counts as 0: no exception depends on the data.

    >>> weighted_count([0.5, 0.25, 0.25, 0.999, math.nan])
    1
    """
    with np.errstate(all="ignore"):  # whatever the caller's settings are
        array = floats_up(weights)
    if array.ndim != 1:
        raise InvalidInput("weights", array.shape, "a list with one weight per block")
    inside = np.clip(np.where(np.isnan(array), 0.0, array), 0.0, 1.0)
    # Scaling by a power of two is exact: rint rounds once.
    units = np.rint(np.ldexp(inside, _WEIGHT_BITS)).astype(np.int64)
    return int(units.sum()) >> _WEIGHT_BITS
