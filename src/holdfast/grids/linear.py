"""Equal steps: low, low + step, low + 2 step, …, high."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids.base import MOST_POINTS, Json
from holdfast.grids.computed import ComputedGrid
from holdfast.grids.exact import exact, shown, written, written_integer

__all__ = ["LinearGrid"]

_EXACT_INTEGERS = 2**53  # integers up to here are floats
_ROUNDING = Fraction(1, 10**6)  # of a step: less is no intention


def _resolution(low: Fraction, high: Fraction) -> Fraction:
    """A distance u such that no two numbers of [low, high] more than u apart round alike.

    Let M be the larger end in size and f its float. The numbers that round to a float g with
    |g| < f lie within half a gap of it on both sides, and no gap between floats up to f is wider
    than the last, u. Those that round to f lie within u/2 below it and, where M > f, half of the
    gap above f besides: then u is that gap, the wider one.
    """
    largest = max(abs(low), abs(high))
    nearest = float(largest)
    if largest > nearest:
        return Fraction(math.ulp(nearest))
    return Fraction(nearest - math.nextafter(nearest, 0))


def _nearest(start: Fraction, by: Fraction, steps: Fraction) -> str:
    """What to do about a number of steps that is not whole."""
    if abs(steps - round(steps)) < _ROUNDING:  # a third, as a float
        return f"The step is rounded: give points={round(steps) + 1} instead."
    below = start + math.floor(steps) * by
    return f"The nearest are {shown(below)} and {shown(below + by)}."


class LinearGrid(ComputedGrid):
    """The numbers from low to high in equal steps; high is low plus a whole number of steps.

    A point is the float nearest to the exact decimal low + i·step: floats are read as they are
    written, so that point 3 of step 0.1 is 0.3, not 3 * 0.1 = 0.30000000000000004.

    >>> LinearGrid(0, 1, 0.02)
    grid(0, 1, step=0.02)
    >>> LinearGrid(0, 1, 0.1).point(3)
    0.3
    >>> LinearGrid(0, 1, 0.02).project([0.05, 0.06, 0.0600001, 7.0, None]).tolist()
    [0.06, 0.06, 0.08, 1.0, 0.0]
    """

    __slots__ = ("_first", "_json", "_scale", "_start", "_step", "_stride")
    _json: Json  # made when it is first asked for: a question is written down several times
    _start: Fraction
    _step: Fraction
    _first: int  # a point is (first + i·stride) / scale, all three integers
    _stride: int
    _scale: int

    def __init__(self, low: object, high: object, step: object) -> None:
        start, end, by = exact("low", low), exact("high", high), exact("step", step)
        if end < start:
            raise InvalidInput("high", high, f"at least low, {shown(start)}")
        if by <= 0:
            raise InvalidInput("step", step, "a number above 0")
        steps = (end - start) / by
        if steps >= MOST_POINTS:
            raise InvalidInput("step", step, "large enough for at most 2**62 points")
        if steps.denominator != 1:
            wanted = f"low plus a whole number of steps ({shown(start)} + i × {shown(by)})"
            raise InvalidInput("high", high, wanted, _nearest(start, by, steps))
        if steps == 0:
            by = Fraction(1)  # one grid, one way to write it
        else:
            self._refuse_equal_points(start, end, by, step)
        scale = math.lcm(start.denominator, by.denominator)
        self._set(
            _start=start,
            _step=by,
            _size=int(steps) + 1,
            _first=int(start * scale),
            _stride=int(by * scale),
            _scale=scale,
            _ends=(float(start), float(end)),
            _key=(start, end, int(steps)),
        )

    @staticmethod
    def _refuse_equal_points(start: Fraction, end: Fraction, by: Fraction, step: object) -> None:
        """Steps above the resolution u keep the points apart, by its definition.

        So do steps of u itself, but for one case: points half way between floats go to the even
        neighbour, two of them to the same.
        """
        u = _resolution(start, end)
        half_way = (start / u - Fraction(1, 2)).denominator == 1
        if by < u or (by == u and half_way):
            largest = max(abs(start), abs(end))
            hint = "Use larger steps, or measure from a nearer origin."
            wanted = f"above {float(u):.3g}, the distance between floats near {shown(largest)}"
            raise InvalidInput("step", step, wanted, hint)

    @property
    def step(self) -> float:
        """The distance between neighbouring points, as the nearest float."""
        return float(self._step)

    def _point(self, index: int) -> float:
        # Dividing two integers rounds correctly, whatever their size.
        return (self._first + index * self._stride) / self._scale

    def _points(self, indices: NDArray[np.int64]) -> NDArray[np.float64]:
        last = self._first + (self._size - 1) * self._stride
        if max(abs(self._first), abs(last), self._scale) > _EXACT_INTEGERS:
            return super()._points(indices)
        # Numerator and denominator are floats without rounding; IEEE division rounds once.
        return (self._first + indices * np.int64(self._stride)) / np.float64(self._scale)

    def _position(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        # Not (values - low) / step, which can overflow. The quotients are below 2**55.
        return values / self.step - float(self._start / self._step)

    def describe(self) -> str:
        """One line for people: `51 points from 0 to 1, step 0.02`."""
        if self._size == 1:
            return f"{self._count()}, {shown(self._start)}"
        ends = f"from {shown(self._start)} to {shown(self._end)}"
        return f"{self._count()} {ends}, step {shown(self._step)}"

    @property
    def _end(self) -> Fraction:
        return self._start + (self._size - 1) * self._step

    def _spacing(self) -> tuple[str, int | float | str]:
        """The step or, where it is no short decimal (thirds), the number of points."""
        step = written(self._step)
        return ("points", written_integer(self._size)) if isinstance(step, str) else ("step", step)

    def to_json(self) -> Json:
        """`{"scale": "linear", "low": 0, "high": 1, "step": 0.02}`."""
        if not hasattr(self, "_json"):
            name, value = self._spacing()
            low, high = written(self._start), written(self._end)
            self._set(_json={"scale": "linear", "low": low, "high": high, name: value})
        return dict(self._json)

    def __repr__(self) -> str:
        name, value = self._spacing()
        return f"grid({written(self._start)!r}, {written(self._end)!r}, {name}={value!r})"
