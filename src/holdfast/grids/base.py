"""What every grid can do. A grid is a value: immutable, comparable, hashable, one line of JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from holdfast.arguments import whole_number
from holdfast.errors import InvalidInput
from holdfast.grids.exact import plain, shown

__all__ = ["MOST_POINTS", "Grid", "Json", "Number"]

Number = int | float
Json = dict[str, Any]

MOST_POINTS = 2**62  # so that every index, and the sum of two, is a 64-bit integer


class Grid(ABC):
    """A finite set of numbers in increasing order: the possible answers to a question.

    Points are counted from 0. Make one with `grid`, or with the class of its kind.
    """

    __slots__ = ("_key", "_size")
    _key: Hashable
    _size: int

    # What a kind of grid says of itself.

    @abstractmethod
    def _point(self, index: int) -> Number:
        """The point at a valid index."""

    @abstractmethod
    def _points(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        """The points at valid indices."""

    @abstractmethod
    def _ceiling(self, values: object) -> NDArray[np.int64]:
        """`ceiling`."""

    @abstractmethod
    def describe(self) -> str:
        """One line for people."""

    @abstractmethod
    def to_json(self) -> Json:
        """The arguments that make this grid, as JSON has them; `from_json` reads them."""

    @abstractmethod
    def __repr__(self) -> str:
        """The call that makes this grid."""

    @staticmethod
    def from_json(data: Mapping[str, object]) -> Grid:
        """The grid, of whatever kind, that `to_json` wrote down."""
        from holdfast.grids.build import grid_from_json  # it knows every kind; they know only this

        return grid_from_json(data)

    # What follows for every kind.

    @property
    def size(self) -> int:
        """The number of points r, from 1 to 2**62."""
        return self._size

    @property
    def low(self) -> Number:
        """The lowest point."""
        return self._point(0)

    @property
    def high(self) -> Number:
        """The highest point."""
        return self._point(self._size - 1)

    @property
    def looks(self) -> int:
        """The looks that a search of this grid takes: ⌈log2 r⌉ (theory §3, `median2sq`)."""
        return (self._size - 1).bit_length()

    def point(self, index: int) -> Number:
        """The point at an index, a float or, on a grid of integers, an int."""
        return self._point(whole_number("index", index, 0, self._size - 1))

    def points(self, indices: object) -> NDArray[Any]:
        """The points at many indices: float64 or, on a grid of integers, int64."""
        array = np.asarray(indices)
        if array.size == 0:
            array = array.astype(np.int64)
        wrong = array.dtype.kind not in "iu" or bool(np.any((array < 0) | (array >= self._size)))
        if wrong:
            raise InvalidInput("indices", indices, f"whole numbers from 0 to {self._size - 1:,}")
        return self._points(array.astype(np.int64, copy=False))

    def ceiling(self, values: object) -> NDArray[np.int64]:
        """The index of each value's projection: the smallest point ≥ the value.

        Values above the grid go to its highest point, values below to its lowest. So does every
        failure: NaN, None, a masked entry, whatever is not a real number (theory §2). This never
        raises, for an exception would depend on the data. The result has the shape of an array,
        and of a list the length: an item of a list that is not one number is a failure.
        """
        with np.errstate(all="ignore"):  # the caller's settings may make a tiny number an error
            return np.asarray(self._ceiling(values), dtype=np.int64)

    def project(self, values: object) -> NDArray[Any]:
        """Each value's projection onto the grid, `points(ceiling(values))`."""
        return self._points(self.ceiling(values))

    def contains(self, value: object) -> bool:
        """Whether the value is a point of the grid, exactly."""
        number = plain(value)
        return number is not None and self._point(int(self.ceiling(number))) == number

    def index(self, value: object) -> int:
        """The index of a point; `InvalidInput`, with the nearest points, for any other value."""
        ceiling = int(self.ceiling(plain(value)))
        if self.contains(value):
            return ceiling
        near = sorted({max(ceiling - 1, 0), ceiling})
        points = " and ".join(shown(self._point(i)) for i in near)
        hint = f"Near it: {points}." if plain(value) is not None else ""
        raise InvalidInput("value", value, f"a point of the grid ({self.describe()})", hint)

    def cell(self, index: int) -> tuple[Number | None, Number | None]:
        """The edges of (previous point, point], the values that project onto a point (theory §8).

        An edge is None where there is no bound: below the lowest point, above the highest.
        """
        index = whole_number("index", index, 0, self._size - 1)
        lower = None if index == 0 else self._point(index - 1)
        upper = None if index == self._size - 1 else self._point(index)
        return lower, upper

    # A value object.

    def _set(self, **attributes: object) -> None:
        """For constructors only."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a grid cannot be changed: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a grid cannot be changed: {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Grid.from_json, (self.to_json(),)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grid):
            return NotImplemented
        return type(self) is type(other) and self._key == other._key

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key))

    def _count(self, noun: str = "point") -> str:
        """`1 point`, `51 points`, `1,000 points`."""
        return f"{self._size:,} {noun}" + ("" if self._size == 1 else "s")
