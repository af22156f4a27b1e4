"""Checks of arguments: each returns the value in its plain type or raises `InvalidInput`."""

from __future__ import annotations

import math
import numbers
from fractions import Fraction
from typing import Any, SupportsFloat, cast

from holdfast.errors import InvalidInput

__all__ = ["real_number", "whole_number"]


def whole_number(parameter: str, value: object, low: int, high: int, *, hint: str = "") -> int:
    """An integer in [low, high]; integral floats such as 1e6 are welcome, booleans are not.

    >>> whole_number("queries", 1e3, 1, 10**9)
    1000
    """
    if type(value) is int and low <= value <= high:
        return value  # nearly always, and every question asks a dozen times
    allowed = f"a whole number from {low:,} to {high:,}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidInput(parameter, value, allowed, hint)
    number = cast(Any, value)  # compared as it is: a float would round a large integer
    if not low <= number <= high or number != math.floor(number):  # NaN fails the first test
        raise InvalidInput(parameter, value, allowed, hint)
    return int(number)


def real_number(
    parameter: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
    hint: str = "",
) -> float:
    """A finite float between the limits, either of which may be excluded.

    >>> real_number("confidence", 0.95, 0, 1, open_low=True, open_high=True)
    0.95
    """
    if type(value) is float and low < value < high and math.isfinite(value):
        return value  # nearly always, and searches for plans ask a million times
    left, right = ("(" if open_low else "["), (")" if open_high else "]")
    bounded = math.isfinite(low) or math.isfinite(high)
    allowed = f"a number in {left}{low:g}, {high:g}{right}" if bounded else "a finite number"
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, Fraction)):
        raise InvalidInput(parameter, value, allowed, hint)
    try:
        result = float(cast(SupportsFloat, value))
    except OverflowError:  # an integer or fraction beyond every float
        raise InvalidInput(parameter, value, allowed, hint) from None
    below = result <= low if open_low else result < low
    above = result >= high if open_high else result > high
    if not math.isfinite(result) or below or above:
        raise InvalidInput(parameter, value, allowed, hint)
    return result
