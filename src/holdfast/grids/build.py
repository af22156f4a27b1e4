"""From arguments, from text and from JSON to a grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import cast

import numpy as np

from holdfast.errors import InvalidInput
from holdfast.grids.base import MOST_POINTS, Grid
from holdfast.grids.exact import exact
from holdfast.grids.explicit import ExplicitGrid
from holdfast.grids.integer import INT64, IntegerGrid, whole
from holdfast.grids.linear import LinearGrid
from holdfast.grids.logarithmic import LogarithmicGrid

__all__ = ["grid", "grid_from_json", "parse_grid"]

_SCALES = ("linear", "log", "integer")
_TEXT = "LOW:HIGH:STEP or a comma-separated list of increasing numbers"


def grid(
    low: object,
    high: object = None,
    *,
    step: object = None,
    points: object = None,
    scale: str = "linear",
) -> Grid:
    """The possible answers to a question: a range in equal steps or ratios, or a list of numbers.

    >>> grid(0, 1, step=0.02)
    grid(0, 1, step=0.02)
    >>> grid(0.001, 1000, points=61, scale="log").describe()
    '61 points from 0.001 to 1000, each 1.25893 times the one before'
    >>> grid(0, 100, scale="integer").looks
    7
    >>> grid([1, 2, 5, 10]).high
    10
    """
    if scale not in _SCALES:
        raise InvalidInput("scale", scale, "'linear', 'log' or 'integer'")
    if _is_list(low):
        for name, value in {"high": high, "step": step, "points": points}.items():
            if value is not None:
                raise InvalidInput(name, value, "left out where the points are listed")
        if scale != "linear":
            raise InvalidInput("scale", scale, "left out where the points are listed")
        return ExplicitGrid(cast(Iterable[object], low))
    if high is None:
        hint = "Or list the points: grid([1, 2, 5, 10])."
        raise InvalidInput("high", high, "a number", hint)
    if step is not None and points is not None:
        raise InvalidInput("points", points, "left out where step is given")
    return {"linear": _linear, "log": _logarithmic, "integer": _integer}[scale](
        low, high, step, points
    )


def _is_list(value: object) -> bool:
    single = isinstance(value, str | bytes) or (isinstance(value, np.ndarray) and value.ndim == 0)
    return isinstance(value, Iterable) and not single


def _steps(length: Fraction | int, points: object) -> int:
    """How many steps from low to high that number of points makes."""
    count = whole("points", points, 1, MOST_POINTS)
    if (count == 1) != (length == 0):
        wanted = "at least 2" if length else "1, since low and high are equal"
        raise InvalidInput("points", points, wanted)
    return count - 1


def _linear(low: object, high: object, step: object, points: object) -> Grid:
    if points is not None:
        length = exact("high", high) - exact("low", low)
        step = abs(length) / (_steps(length, points) or 1) or 1
    if step is None:
        raise InvalidInput("step", step, "a number above 0", "Or give points, how many there are.")
    return LinearGrid(low, high, step)


def _logarithmic(low: object, high: object, step: object, points: object) -> Grid:
    if step is not None:
        raise InvalidInput("step", step, "left out on a logarithmic grid", "Give points instead.")
    return LogarithmicGrid(low, high, points)


def _integer(low: object, high: object, step: object, points: object) -> Grid:
    if points is not None:
        length = whole("high", high, *INT64) - whole("low", low, *INT64)
        steps = _steps(length, points)
        if steps and length % steps:
            wanted = f"one more than a divisor of high − low, {length:,}"
            raise InvalidInput("points", points, wanted)
        step = abs(length) // (steps or 1) or 1
    return IntegerGrid(low, high, 1 if step is None else step)


def parse_grid(text: str) -> Grid:
    """The grid that a command line names: `LOW:HIGH:STEP`, or the points with commas between.

    >>> parse_grid("0:1:0.02") == grid(0, 1, step=0.02)
    True
    >>> parse_grid("1,2,5,10")
    grid([1, 2, 5, 10])
    >>> parse_grid("5:1:0.1")
    Traceback (most recent call last):
    ...
    holdfast.errors.InvalidInput: grid must be LOW:HIGH:STEP or a comma-separated list of
    increasing numbers; got '5:1:0.1'. Here high must be at least low, 5; got '1'.
    """
    if not isinstance(text, str):
        raise InvalidInput("grid", text, _TEXT)
    return _parsed(text)


@lru_cache(maxsize=256)  # analysts ask many questions on few grids; a grid cannot be changed
def _parsed(text: str) -> Grid:
    parts = [part.strip() for part in text.split(":")]
    try:
        if len(parts) == 3:
            return LinearGrid(*parts)
        if len(parts) == 1 and "," in text:
            return ExplicitGrid([part.strip() for part in text.split(",")])
    except InvalidInput as error:
        raise InvalidInput("grid", text, _TEXT, f"Here {error}") from None
    raise InvalidInput("grid", text, _TEXT)


_KEYS = {
    "linear": {"low", "high", "step", "points"},
    "log": {"low", "high", "points"},
    "integer": {"low", "high", "step", "points"},
    "explicit": {"values"},
}


def grid_from_json(data: Mapping[str, object]) -> Grid:
    """The inverse of `Grid.to_json`; also reads what people write, `grid`'s own arguments.

    >>> grid_from_json({"scale": "linear", "low": 0, "high": 1, "step": 0.02})
    grid(0, 1, step=0.02)
    """
    if not isinstance(data, Mapping):
        raise InvalidInput("grid", data, "a JSON object")
    arguments = dict(data)
    scale = arguments.pop("scale", "linear")
    if not isinstance(scale, str) or scale not in _KEYS:
        raise InvalidInput("scale", scale, f"one of {', '.join(_KEYS)}")
    for name in arguments:
        if name not in _KEYS[scale]:
            raise InvalidInput("grid", name, f"{scale} with keys {', '.join(sorted(_KEYS[scale]))}")
    if scale == "explicit":
        values = arguments.get("values")
        if not isinstance(values, list | tuple):
            raise InvalidInput("values", values, "a list of increasing numbers")
        return ExplicitGrid(values)
    low = arguments.pop("low", None)
    exact("low", low)  # no list: that has a scale of its own
    return grid(low, scale=scale, **arguments)
