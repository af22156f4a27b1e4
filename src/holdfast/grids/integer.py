"""Whole numbers, exact to the last digit where floats are not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids.base import MOST_POINTS, Grid, Json
from holdfast.grids.exact import exact, written_integer
from holdfast.grids.values import integers_up

__all__ = ["INT64", "IntegerGrid", "whole"]

INT64 = (-(2**63), 2**63 - 1)
_WORD = 2**64


def whole(parameter: str, value: object, low: int, high: int) -> int:
    """A whole number in [low, high] of any type or size, in particular beyond 2**53."""
    number = exact(parameter, value, binary=True)
    if number.denominator != 1 or not low <= number <= high:
        raise InvalidInput(parameter, value, f"a whole number from {low:,} to {high:,}")
    return int(number)


class IntegerGrid(Grid):
    """The whole numbers from low to high, or every step-th of them; any that int64 holds.

    >>> IntegerGrid(0, 100)
    grid(0, 100, scale='integer')
    >>> IntegerGrid(0, 100, 5).project([-3, 7.5, 10, 2**70]).tolist()
    [0, 10, 10, 100]
    """

    __slots__ = ("_first", "_last", "_step")
    _first: int
    _last: int
    _step: int

    def __init__(self, low: object, high: object, step: object = 1) -> None:
        first = whole("low", low, *INT64)
        last = whole("high", high, *INT64)
        by = whole("step", step, 1, _WORD - 1)
        if last < first:
            raise InvalidInput("high", high, f"at least low, {first:,}")
        steps, rest = divmod(last - first, by)
        if rest:
            hint = f"The nearest are {last - rest} and {last - rest + by}."
            wanted = f"low plus a whole number of steps ({first} + i × {by})"
            raise InvalidInput("high", high, wanted, hint)
        if steps >= MOST_POINTS:
            raise InvalidInput("high", high, f"below low + 2**62 steps, {first + MOST_POINTS * by}")
        by = by if steps else 1
        self._set(_first=first, _last=last, _step=by, _size=steps + 1, _key=(first, last, by))

    @property
    def step(self) -> int:
        """The distance between neighbouring points."""
        return self._step

    def _point(self, index: int) -> int:
        return self._first + index * self._step

    # high − low may be 2**64 − 1. Arithmetic on uint64 is modulo 2**64, without a warning, so
    # what must lie in [0, 2**64), or in the range of int64, comes out right.

    def _points(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        offsets = indices.astype(np.uint64) * np.array(self._step, np.uint64)
        return (offsets + np.array(self._first % _WORD, np.uint64)).astype(np.int64)

    def _ceiling(self, values: object) -> NDArray[np.int64]:
        wholes = integers_up(values, self._first, self._last)
        offsets = wholes.astype(np.uint64) - np.array(self._first % _WORD, np.uint64)
        steps, rest = np.divmod(offsets, np.array(self._step, np.uint64))
        return (steps + (rest > 0)).astype(np.int64)

    def describe(self) -> str:
        """One line for people: `101 whole numbers from 0 to 100`."""
        if self._size == 1:
            return f"{self._count('whole number')}, {self._first}"
        step = f", step {self._step}" if self._step > 1 else ""
        return f"{self._count('whole number')} from {self._first} to {self._last}{step}"

    def to_json(self) -> Json:
        """`{"scale": "integer", "low": 0, "high": 100, "step": 1}`; text beyond 2**53."""
        ends = {"low": self._first, "high": self._last, "step": self._step}
        return {"scale": "integer"} | {name: written_integer(value) for name, value in ends.items()}

    def __repr__(self) -> str:
        step = f", step={self._step}" if self._step > 1 else ""
        return f"grid({self._first}, {self._last}{step}, scale='integer')"
