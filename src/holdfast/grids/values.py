"""Values of estimators, of any type, rounded up without loss to what a grid can compare.

A grid asks of a value x only which of its points are ≥ x. If the points are floats, x may be
replaced by the smallest float ≥ x; if they are integers, by the smallest integer ≥ x. Both
replacements are computed exactly here, so that no comparison is ever made after a rounding that
could change it: 2**53 + 1 is above the point 2.0**53.

Nothing here raises, whatever the values are: an exception would depend on the data (theory §2).
What is not a real number is a failure, NaN as a float and the low end as an integer.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.grids.exact import plain

__all__ = ["as_numbers", "floats_up", "integers_up"]

_NUMERIC = "biuf"
_EXACT = 2.0**53  # an integer that gives a float below this one gives it exactly
_INT64_END = 2.0**63


def _objects(values: object) -> NDArray[np.object_]:
    """The elements themselves, as numpy found them or, where it cannot, one per item."""
    try:
        return np.asarray(values, dtype=object)
    except ValueError:  # a list of arrays whose shapes do not agree
        items = list(values) if isinstance(values, list | tuple) else [values]
        array = np.empty(len(items), dtype=object)
        for position, item in enumerate(items):
            array[position] = item
        return array


def _at_least_double(array: NDArray[Any]) -> NDArray[Any]:
    """Small floats in a type that can be compared with large ones; exact."""
    return array.astype(np.promote_types(array.dtype, np.float64), copy=False)


def as_numbers(values: object) -> NDArray[Any]:
    """An array of booleans, integers or floats; of objects where one of those types would round.

    >>> as_numbers([1, 2.5]).dtype, as_numbers([2**53 + 1, 2.5]).dtype, as_numbers([1, None]).dtype
    (dtype('float64'), dtype('O'), dtype('O'))
    """
    if isinstance(values, np.ndarray):
        array = np.asarray(values)
        return array if array.dtype.kind in _NUMERIC else array.astype(object)
    try:
        array = np.asarray(values)
    except (OverflowError, TypeError, ValueError):
        return _objects(values)
    if array.dtype.kind not in _NUMERIC:
        return _objects(values)  # ["a", 1.5] has become text
    if array.dtype.kind == "f" and bool(np.any(np.abs(_at_least_double(array)) >= _EXACT)):
        return _objects(values)  # an integer among floats may have been rounded
    return array


def _float_up(value: object) -> float:
    """The smallest float ≥ value; NaN for a failure."""
    number = plain(value)
    if number is None or isinstance(number, float):
        return math.nan if number is None else number
    try:
        nearest = number.numerator / number.denominator  # correctly rounded
    except OverflowError:
        return math.inf if number > 0 else -sys.float_info.max
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < number else nearest


def floats_up(values: object) -> NDArray[np.float64]:
    """The smallest float64 ≥ each value; NaN for failures.

    >>> floats_up([0.5, None, 2**53 + 1]).tolist()
    [0.5, nan, 9007199254740994.0]
    """
    array = as_numbers(values)
    if array.dtype.kind == "O":
        return np.array([_float_up(x) for x in array.flat], np.float64).reshape(array.shape)
    if array.dtype.kind == "b" or array.dtype.itemsize < 8 or array.dtype == np.float64:
        return array.astype(np.float64, copy=False)  # exact
    with np.errstate(over="ignore"):  # a longdouble beyond every float becomes infinite
        nearest: NDArray[np.float64] = array.astype(np.float64)
    if array.dtype.kind == "f":
        rounded_down = nearest.astype(array.dtype) < array
    else:  # compare as integers; 2.0**63 (2.0**64 if unsigned) is none, and is never too low
        end = _INT64_END * (2 if array.dtype.kind == "u" else 1)
        inside = nearest < end
        rounded_down = inside & (np.where(inside, nearest, 0).astype(array.dtype) < array)
    return np.where(rounded_down, np.nextafter(nearest, np.inf), nearest)


def _integer_up(value: object, low: int, high: int) -> int:
    number = plain(value)
    if number is None or number != number:
        return low
    if not low < number < high:
        return low if number <= low else high
    return math.ceil(number)


def integers_up(values: object, low: int, high: int) -> NDArray[np.int64]:
    """The smallest integer ≥ each value, clamped to [low, high] within int64; low for failures.

    >>> integers_up([2**60 + 1, 0.5, None, 1e300], 0, 2**61).tolist()
    [1152921504606846977, 1, 0, 2305843009213693952]
    """
    array = as_numbers(values)
    kind = array.dtype.kind
    if kind == "O":
        ups = [_integer_up(x, low, high) for x in array.flat]
        return np.array(ups, np.int64).reshape(array.shape)
    if kind == "f":
        ceilings = np.ceil(_at_least_double(array))
        fits = (ceilings >= -_INT64_END) & (ceilings < _INT64_END)  # False for NaN
        whole = np.where(fits, ceilings, 0).astype(np.int64)
        outside = np.where(ceilings > 0, high, low)
        return np.where(fits, np.clip(whole, low, high), outside)
    if kind == "u":  # never negative; what int64 cannot hold is above every int64
        array = np.minimum(array, np.uint64(2**63 - 1))
    return np.clip(array.astype(np.int64), low, high)
