"""The points, as given."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids.base import Grid, Json, Number
from holdfast.grids.exact import exact, shown, written_integer
from holdfast.grids.values import floats_up, integers_up

__all__ = ["ExplicitGrid"]

_MOST = 2**20  # it holds its points, and its JSON does
_SHOWN = 8
_INT64 = range(-(2**63), 2**63)


def _numbers(values: Iterable[object]) -> list[int] | list[float]:
    """The points as integers if all of them are (1.0 is 1: JSON does not tell them apart).

    Fractions have no −0.0, so the grid has none.
    """
    fractions = [exact(f"values[{i}]", x, binary=True) for i, x in enumerate(values)]
    if all(x.denominator == 1 and int(x) in _INT64 for x in fractions):
        return [int(x) for x in fractions]
    for x in fractions:
        if x.denominator == 1 and float(x) != x:
            hint = "Beside fractions, only integers that floats can hold."
            raise InvalidInput("values", int(x), "floats, or whole numbers alone", hint)
    return [float(x) for x in fractions]


class ExplicitGrid(Grid):
    """The given numbers, which must increase.

    >>> ExplicitGrid([1, 2, 5, 10])
    grid([1, 2, 5, 10])
    >>> ExplicitGrid([1, 2, 5, 10]).project([0, 2, 2.1, 99, float("nan")]).tolist()
    [1, 2, 5, 10, 1]
    """

    __slots__ = ("_values",)
    _values: NDArray[Any]

    def __init__(self, values: Iterable[object]) -> None:
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InvalidInput("values", values, "a list of increasing numbers")
        given = list(islice(values, _MOST + 1))
        if not 1 <= len(given) <= _MOST:
            hint = "For more points use a grid with a step." if given else ""
            shorter = values if not given else f"{_MOST + 1:,} or more"
            raise InvalidInput("values", shorter, f"from 1 to {_MOST:,} numbers", hint)
        numbers = _numbers(given)
        for before, after in pairwise(numbers):
            if not before < after:
                pair = [before, after]
                raise InvalidInput("values", pair, "different and in increasing order")
        array = np.array(numbers, np.int64 if isinstance(numbers[0], int) else np.float64)
        array.flags.writeable = False
        self._set(_values=array, _size=len(numbers), _key=(array.dtype.kind, array.tobytes()))

    def _point(self, index: int) -> Number:
        point: Number = self._values[index].item()
        return point

    def _points(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        return np.asarray(self._values[indices])

    def _ceiling(self, values: object) -> NDArray[np.int64]:
        if self._values.dtype.kind == "i":
            wholes = integers_up(values, int(self._values[0]), int(self._values[-1]))
            return np.asarray(np.searchsorted(self._values, wholes))
        floats = floats_up(values)
        indices = np.minimum(np.searchsorted(self._values, floats), self._size - 1)
        return np.where(np.isnan(floats), 0, indices)

    def describe(self) -> str:
        """One line for people: `4 points: 1, 2, 5, 10`."""
        if self._size <= _SHOWN:
            return f"{self._count()}: " + ", ".join(
                shown(self._point(i)) for i in range(self._size)
            )
        return f"{self._count()} from {shown(self.low)} to {shown(self.high)}"

    def _written(self) -> list[int | float | str]:
        if self._values.dtype.kind == "i":
            return [written_integer(x) for x in self._values.tolist()]
        return list(self._values.tolist())

    def to_json(self) -> Json:
        """`{"scale": "explicit", "values": [1, 2, 5, 10]}`; text for integers beyond 2**53."""
        return {"scale": "explicit", "values": self._written()}

    def __repr__(self) -> str:
        return f"grid({self._values.tolist()!r})"
