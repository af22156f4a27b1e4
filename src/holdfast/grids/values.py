"""Values of estimators, of any type, rounded up without loss to what a grid can compare.

A grid asks of a value x only which of its points are ≥ x. If the points are floats, x may be
replaced by the smallest float ≥ x; if they are integers, by the smallest integer ≥ x. Both
replacements are computed exactly here, so that no comparison is ever made after a rounding that
could change it: 2**53 + 1 is above the point 2.0**53.

Nothing here raises, whatever the values are, nor does the shape of a list depend on its items: an
exception, here or for a wrong shape, would depend on the data (theory §2). What is not one real
number, or raises when read, is a failure, NaN as a float and the low end as an integer. Only what
is no `Exception` passes, such as KeyboardInterrupt.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.grids.exact import plain

__all__ = ["as_numbers", "floats_up", "integers_up"]

_NUMERIC = "biuf"
_KNOWN = {bool, int, float, *(np.dtype(code).type for code in "?bhilqBHILQefdg")}
_EXACT = 2.0**53  # an integer that gives a float below this one gives it exactly
_INT64_END = 2.0**63


def _objects(items: Iterable[object]) -> NDArray[np.object_]:
    """Each item as the plain number that it is, None for a failure: nothing else is touched."""
    numbers = [plain(item) for item in items]
    array = np.empty(len(numbers), dtype=object)
    array[:] = numbers
    return array


def _rounded(array: NDArray[Any]) -> bool:
    """Whether numpy may have rounded a number of a list: an integer among floats."""
    return array.dtype.kind == "f" and bool(np.any(np.abs(_at_least_double(array)) >= _EXACT))


def _from_items(items: list[object]) -> NDArray[Any]:
    """One number per item, whatever the items are: the shape is the length.

    numpy reads the list only if every item is a single number of a known type. Of five pairs it
    would make a table, and it would call an `__array__`, which may raise.
    """
    with suppress(Exception):  # a class may refuse to be hashed; 10**400 is no float
        if _KNOWN.issuperset(map(type, items)):
            array = np.asarray(items)
            if array.dtype.kind in _NUMERIC and not _rounded(array):
                return array
    return _objects(items)


def _from_array(values: NDArray[Any]) -> NDArray[Any]:
    """The array; None where its type is no number, and a failure where it is masked."""
    array = np.asarray(values)
    if array.dtype.kind == "O":
        array = _objects(array.flat).reshape(array.shape)
    elif array.dtype.kind not in _NUMERIC:
        return np.full(array.shape, None)
    if isinstance(values, np.ma.MaskedArray):
        failure: Any = math.nan if array.dtype.kind == "f" else None
        array = np.where(np.ma.getmaskarray(values), failure, array)
    return array


def _at_least_double(array: NDArray[Any]) -> NDArray[Any]:
    """Small floats in a type that can be compared with large ones; exact."""
    return array.astype(np.promote_types(array.dtype, np.float64), copy=False)


def as_numbers(values: object) -> NDArray[Any]:
    """An array of booleans, integers or floats; where those would round, of plain numbers or None.

    A list (a tuple, any sequence) gives one number per item, and what is not one number is a
    failure: its shape is its length, whatever the items are. An array keeps its shape.

    >>> as_numbers([1, 2.5]).dtype, as_numbers([2**53 + 1, 2.5]).dtype, as_numbers([1, None]).dtype
    (dtype('float64'), dtype('O'), dtype('O'))
    >>> as_numbers([[1, 2], [3, 4]])
    array([None, None], dtype=object)
    """
    with suppress(Exception):
        if isinstance(values, np.ndarray):
            return _from_array(values)
        if isinstance(values, Sequence) and not isinstance(values, str | bytes):
            return _from_items(list(values))
        array = np.asarray(values)  # a column of a data frame, perhaps
        if array.ndim > 0:
            return _from_array(array)
    return _objects([values]).reshape(())


def _float_up(number: float | Fraction | None) -> float:
    """The smallest float ≥ number; NaN for a failure."""
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


def _integer_up(number: float | Fraction | None, low: int, high: int) -> int:
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
