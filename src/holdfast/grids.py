"""Grids: the finite, sorted sets of possible answers (theory §1).

    LinearGrid        equal steps             grid(0, 1, step=0.02)
    LogarithmicGrid   equal ratios            grid(0.001, 1000, points=61, scale="log")
    IntegerGrid       whole numbers           grid(0, 100, scale="integer")
    ExplicitGrid      the points, as given    grid([1, 2, 5, 10])

A grid is immutable and never holds its points (an explicit one does), so that 2**62 of them are
no trouble. A value is projected onto the smallest point that is at least as large; whatever is
not a number counts as the lowest point (theory §2). Every comparison is exact.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput, whole_number

__all__ = [
    "ExplicitGrid",
    "Grid",
    "IntegerGrid",
    "Json",
    "LinearGrid",
    "LogarithmicGrid",
    "Number",
    "exact",
    "floats_up",
    "grid",
    "locate",
    "parse_grid",
    "plain",
    "shown",
    "whole",
    "written",
]


# Numbers without rounding: what was written, read exactly, and shown so that it reads back.


_LARGEST = Fraction(sys.float_info.max)
_SMALLEST = Fraction(math.ulp(0.0))
_EXACT_INTEGERS = 2**53  # beyond, floats (and the numbers of JavaScript) skip some
_LONGEST_TEXT = 100
_MOST_DIGITS = 400  # decimal exponents beyond are larger, or smaller, than every float


def _decimal(value: Decimal) -> float | Fraction:
    """Its exact value; too large or too small for any float, one of that kind (1e999999999)."""
    if not value.is_finite():
        return math.nan if value.is_nan() else float(value)
    if value and abs(value.adjusted()) > _MOST_DIGITS:
        sign = -1 if value < 0 else 1
        return sign * (math.inf if value.adjusted() > 0 else Fraction(1, 10**_MOST_DIGITS))
    return Fraction(value)


def plain(value: object) -> int | float | Fraction | None:
    """The same number in a plain type, without rounding; None for what is not a real number.

    Never raises: a value whose own methods do is not a number.

    >>> plain(np.int64(2**60 + 1)), plain(Decimal("0.1")), plain(None), plain("1")
    (1152921504606846977, Fraction(1, 10), None, None)
    """
    try:
        return _plain(value)
    except Exception:  # what it says may hold data (theory §2)
        return None


def _plain(value: object) -> int | float | Fraction | None:
    """Exactly an int, a float or a Fraction: of a subclass, only the number is kept."""
    result: int | float | Fraction | None = None
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.timedelta64):  # numpy calls it an integer
        pass
    elif isinstance(value, int | np.integer | np.bool_):
        result = int(value)
    elif isinstance(value, float | np.float32 | np.float16):
        result = float(value)
    elif isinstance(value, np.floating):  # longdouble
        result = Fraction(*value.as_integer_ratio()) if np.isfinite(value) else float(value)
    elif isinstance(value, Decimal):
        result = _decimal(Decimal(value))
    elif isinstance(value, Fraction):
        result = Fraction(int(value.numerator), int(value.denominator))
    return result


def _from_text(text: str) -> int | float | Fraction | None:
    """The number that a text such as `0.1`, `1e-3` or `1/3` stands for; None if it is none."""
    if len(text) > _LONGEST_TEXT:
        return None
    try:
        parts = [_decimal(Decimal(part.strip())) for part in text.split("/")]
    except InvalidOperation:
        return None
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2 and all(isinstance(part, Fraction) for part in parts) and parts[1]:
        return Fraction(parts[0]) / Fraction(parts[1])
    return None


def exact(parameter: str, value: object, *, binary: bool = False) -> Fraction:
    """The exact value of a finite number, or of a text that holds one, else `InvalidInput`.

    A float is read as the shortest decimal that gives it, which is what was typed; with `binary`
    as the dyadic fraction that it is.

    >>> exact("step", 0.02), exact("step", "1/3")
    (Fraction(1, 50), Fraction(1, 3))
    >>> exact("step", 0.02, binary=True)
    Fraction(5764607523034235, 288230376151711744)
    """
    number = _from_text(value) if isinstance(value, str) else plain(value)
    real = number is not None and not isinstance(value, bool | np.bool_)
    if number is None or not real or not -_LARGEST <= number <= _LARGEST:  # NaN fails too
        raise InvalidInput(parameter, value, "a finite number")
    if number != 0 and -_SMALLEST < number < _SMALLEST:
        raise InvalidInput(parameter, value, f"0 or at least {math.ulp(0.0)} in size")
    if isinstance(number, float) and not binary:
        return Fraction(repr(number))
    return Fraction(number)


def written(value: Fraction) -> int | float | str:
    """The simplest of int, float and text that `exact` reads back as the same number.

    >>> written(Fraction(1, 50)), written(Fraction(3)), written(Fraction(1, 3))
    (0.02, 3, '1/3')
    """
    if value.denominator == 1 and abs(value) <= _EXACT_INTEGERS:
        return int(value)
    nearest = float(value)
    return nearest if Fraction(repr(nearest)) == value else str(value)


def written_integer(value: int) -> int | str:
    """The integer, or its text where other readers of JSON would round it.

    >>> written_integer(2**53), written_integer(2**53 + 1)
    (9007199254740992, '9007199254740993')
    """
    return value if abs(value) <= _EXACT_INTEGERS else str(value)


def shown(value: float | Fraction) -> str:
    """A number for people: 0.02, 3, 1e+20, and about 0.333333 where no short decimal is exact.

    >>> shown(Fraction(1, 50)), shown(3.0), shown(2**61), shown(Fraction(1, 3))
    ('0.02', '3', '2305843009213693952', 'about 0.333333')
    """
    if isinstance(value, float):
        value = Fraction(repr(value))
    text = str(written(Fraction(value)))
    return f"about {float(value):.6g}" if "/" in text else text


# What every grid can do. A grid is a value: immutable, comparable, hashable, one line of JSON.


Number = int | float
Json = dict[str, Any]

MOST_POINTS = 2**62  # so that every index, and the sum of two, is a 64-bit integer


class Grid(ABC):
    """A finite set of numbers in increasing order: the possible answers to a question.

    Points are counted from 0. Make one with `grid`, or with the class of its kind.
    """

    __slots__ = ("_key", "size")
    _key: Hashable
    size: int
    """The number of points r, from 1 to 2**62."""

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
        return grid_from_json(data)

    # What follows for every kind.

    @property
    def low(self) -> Number:
        """The lowest point."""
        return self._point(0)

    @property
    def high(self) -> Number:
        """The highest point."""
        return self._point(self.size - 1)

    @property
    def looks(self) -> int:
        """The looks that a search of this grid takes: ⌈log2 r⌉ (theory §3, `median2sq`)."""
        return (self.size - 1).bit_length()

    def point(self, index: int) -> Number:
        """The point at an index, a float or, on a grid of integers, an int."""
        if type(index) is not int or not 0 <= index < self.size:
            index = whole_number("index", index, 0, self.size - 1)
        return self._point(index)

    def points(self, indices: object) -> NDArray[Any]:
        """The points at many indices: float64 or, on a grid of integers, int64."""
        array = np.asarray(indices)
        if array.size == 0:
            array = array.astype(np.int64)
        wrong = array.dtype.kind not in "iu" or bool(np.any((array < 0) | (array >= self.size)))
        if wrong:
            raise InvalidInput("indices", indices, f"whole numbers from 0 to {self.size - 1:,}")
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
        point, index = self.point(index), int(index)  # any whole number, as of NumPy
        lower = None if index == 0 else self._point(index - 1)
        return lower, None if index == self.size - 1 else point

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
        return f"{self.size:,} {noun}" + ("" if self.size == 1 else "s")


# Values of estimators, of any type, rounded up without loss to what a grid can compare.
#
# A grid asks of a value x only which of its points are ≥ x. If the points are floats, x may be
# replaced by the smallest float ≥ x; if they are integers, by the smallest integer ≥ x. Both
# replacements are computed exactly here, so that no comparison is ever made after a rounding that
# could change it: 2**53 + 1 is above the point 2.0**53.
#
# Nothing here raises, whatever the values are, nor does the shape of a list depend on its items:
# an exception, here or for a wrong shape, would depend on the data (theory §2). What is not one
# real number, or raises when read, is a failure, NaN as a float and the low end as an integer.
# Only what is no `Exception` passes, such as KeyboardInterrupt.


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


# Grids whose points are floats computed when asked for, and the exact search among them.


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
        flat, top = floats.ravel(), self.size - 1
        indices = np.where(flat > self.high, np.int64(top), np.int64(0))  # NaN compares False
        inside = np.flatnonzero((flat > self.low) & (flat <= self.high))
        if inside.size:
            found = flat[inside]
            position = np.ceil(self._position(found) - _SLACK)
            # Clip before the cast, as floats, and after it: float(top) may be above top.
            guess = np.clip(position, 1.0, float(top)).astype(np.int64)
            indices[inside] = locate(self._points, top, np.minimum(guess, top), found)
        return indices.reshape(floats.shape)


# The points, as given.


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
        self._set(_values=array, size=len(numbers), _key=(array.dtype.kind, array.tobytes()))

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
        indices = np.minimum(np.searchsorted(self._values, floats), self.size - 1)
        return np.where(np.isnan(floats), 0, indices)

    def describe(self) -> str:
        """One line for people: `4 points: 1, 2, 5, 10`."""
        if self.size <= _SHOWN:
            return f"{self._count()}: " + ", ".join(shown(self._point(i)) for i in range(self.size))
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


# Whole numbers, exact to the last digit where floats are not.


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

    __slots__ = ("_first", "_last", "step")
    _first: int
    _last: int
    step: int
    """The distance between neighbouring points."""

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
        self._set(_first=first, _last=last, step=by, size=steps + 1, _key=(first, last, by))

    def _point(self, index: int) -> int:
        return self._first + index * self.step

    # high − low may be 2**64 − 1. Arithmetic on uint64 is modulo 2**64, without a warning, so
    # what must lie in [0, 2**64), or in the range of int64, comes out right.

    def _points(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        offsets = indices.astype(np.uint64) * np.array(self.step, np.uint64)
        return (offsets + np.array(self._first % _WORD, np.uint64)).astype(np.int64)

    def _ceiling(self, values: object) -> NDArray[np.int64]:
        wholes = integers_up(values, self._first, self._last)
        offsets = wholes.astype(np.uint64) - np.array(self._first % _WORD, np.uint64)
        steps, rest = np.divmod(offsets, np.array(self.step, np.uint64))
        return (steps + (rest > 0)).astype(np.int64)

    def describe(self) -> str:
        """One line for people: `101 whole numbers from 0 to 100`."""
        if self.size == 1:
            return f"{self._count('whole number')}, {self._first}"
        step = f", step {self.step}" if self.step > 1 else ""
        return f"{self._count('whole number')} from {self._first} to {self._last}{step}"

    def to_json(self) -> Json:
        """`{"scale": "integer", "low": 0, "high": 100, "step": 1}`; text beyond 2**53."""
        ends = {"low": self._first, "high": self._last, "step": self.step}
        return {"scale": "integer"} | {name: written_integer(value) for name, value in ends.items()}

    def __repr__(self) -> str:
        step = f", step={self.step}" if self.step > 1 else ""
        return f"grid({self._first}, {self._last}{step}, scale='integer')"


# Equal steps: low, low + step, low + 2 step, …, high.


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

    __slots__ = ("_end", "_first", "_json", "_scale", "_start", "_step", "_stride", "step")
    step: float
    """The distance between neighbouring points, as the nearest float."""
    _json: Json  # a question is written down several times
    _start: Fraction
    _end: Fraction
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
        json: Json = {"scale": "linear", "low": written(start), "high": written(end)}
        apart = written(by)
        if isinstance(apart, str):  # no short decimal, as a third
            json["points"] = written_integer(int(steps) + 1)
        else:
            json["step"] = apart
        self._set(
            _json=json,
            _start=start,
            _end=end,
            _step=by,
            step=float(by),
            size=int(steps) + 1,
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

    def _point(self, index: int) -> float:
        # Dividing two integers rounds correctly, whatever their size.
        return (self._first + index * self._stride) / self._scale

    def _points(self, indices: NDArray[np.int64]) -> NDArray[np.float64]:
        last = self._first + (self.size - 1) * self._stride
        if max(abs(self._first), abs(last), self._scale) > _EXACT_INTEGERS:
            return super()._points(indices)
        # Numerator and denominator are floats without rounding; IEEE division rounds once.
        return (self._first + indices * np.int64(self._stride)) / np.float64(self._scale)

    def _position(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        # Not (values - low) / step, which can overflow. The quotients are below 2**55.
        return values / self.step - float(self._start / self._step)

    def describe(self) -> str:
        """One line for people: `51 points from 0 to 1, step 0.02`."""
        if self.size == 1:
            return f"{self._count()}, {shown(self._start)}"
        ends = f"from {shown(self._start)} to {shown(self._end)}"
        return f"{self._count()} {ends}, step {shown(self._step)}"

    def to_json(self) -> Json:
        """`{"scale": "linear", "low": 0, "high": 1, "step": 0.02}`."""
        return dict(self._json)

    def __repr__(self) -> str:
        _, low, high, spacing = self._json.values()
        return f"grid({low!r}, {high!r}, {list(self._json)[-1]}={spacing!r})"


# Equal ratios: low, low·q, low·q², …, high.


# All arithmetic is this context's, none the caller's.
_DIGITS = Context(100, ROUND_HALF_EVEN, -999999, 999999, clamp=0, traps=[InvalidOperation])
# 1 + 2^-52, and a little for the last of the 100 digits: so much apart, points are different.
_SMALLEST_RATIO = _DIGITS.add(Decimal(1 + 2.0**-52), Decimal("1e-40"))


def _logarithmic_decimal(value: Fraction) -> Decimal:
    return _DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))


class LogarithmicGrid(ComputedGrid):
    """The given number of points from low to high, each the same multiple of the one before.

    Point i is the float nearest to low·q^i with q = (high/low)^(1/(points−1)), computed in
    decimals: 100 digits, of which a power up to 2**62 leaves 80. The result is the same on every
    machine, which the logarithms of a C library do not promise.

    Neighbouring points differ: if x and qx, q − 1 > 2^-52, both rounded to f in [2^e, 2^(e+1)),
    they would be no more than the gap 2^(e−52) apart if f > 2^e, and 3/4 of it if f = 2^e (the
    gap below a power of two is half as wide); yet x ≥ 2^e, or x ≥ 2^e·(1 − 2^-54), puts them
    (q − 1)·x apart, which is more.

    >>> LogarithmicGrid(0.001, 1000, 7)
    grid(0.001, 1000, points=7, scale='log')
    >>> LogarithmicGrid(0.001, 1000, 7).project([0, 0.002, 10, 11]).tolist()
    [0.001, 0.01, 10.0, 100.0]
    """

    __slots__ = ("_base", "_end", "_ratio", "_start")
    _start: Fraction
    _end: Fraction
    _base: Decimal
    _ratio: Decimal

    def __init__(self, low: object, high: object, points: object) -> None:
        start, end = exact("low", low), exact("high", high)
        if start < sys.float_info.min:
            allowed = f"at least {sys.float_info.min:.3g} on a logarithmic grid"
            raise InvalidInput("low", low, allowed)
        if end < start:
            raise InvalidInput("high", high, f"at least low, {shown(start)}")
        size = whole("points", points, 1, MOST_POINTS)
        if (size == 1) != (start == end):
            wanted = "1, since low and high are equal" if start == end else "at least 2"
            raise InvalidInput("points", points, wanted)
        ratio = Decimal(1)
        if size > 1:
            logarithm = _DIGITS.ln(_logarithmic_decimal(end / start))
            ratio = _DIGITS.exp(_DIGITS.divide(logarithm, Decimal(size - 1)))
            self._refuse_equal_points(start, end, ratio, size)
        self._set(
            _start=start,
            _end=end,
            _base=_logarithmic_decimal(start),
            _ratio=ratio,
            size=size,
            _ends=(float(start), float(end)),
            _key=(start, end, size),
        )

    @staticmethod
    def _refuse_equal_points(start: Fraction, end: Fraction, ratio: Decimal, size: int) -> None:
        if float(start) == float(end):
            raise InvalidInput("high", written(end), f"a float above low, {shown(start)}")
        if ratio < _SMALLEST_RATIO and size != 2:  # two points: the ends, just compared
            steps = _DIGITS.divide(
                _DIGITS.ln(_logarithmic_decimal(end / start)), _DIGITS.ln(_SMALLEST_RATIO)
            )
            hint = "More would not be different floats."
            raise InvalidInput("points", size, f"at most {max(int(steps) + 1, 2):,}", hint)

    @property
    def ratio(self) -> float:
        """The quotient of neighbouring points, as the nearest float."""
        return float(self._ratio)

    def _point(self, index: int) -> float:
        if index in (0, self.size - 1):
            return self._ends[index > 0]
        power = _DIGITS.power(self._ratio, index)
        return float(_DIGITS.multiply(self._base, power))

    def _position(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        if math.isinf(self.high / self.low):
            logarithms = np.log(values) - math.log(self.low)
        else:  # more digits for a narrow grid
            logarithms = np.log1p((values - self.low) / self.low)
        return np.asarray(logarithms / float(_DIGITS.ln(self._ratio)))

    def describe(self) -> str:
        """One line for people: `7 points from 0.001 to 1000, each 10 times the one before`."""
        if self.size == 1:
            return f"{self._count()}, {shown(self._start)}"
        ends = f"from {shown(self._start)} to {shown(self._end)}"
        return f"{self._count()} {ends}, each {self.ratio:.6g} times the one before"

    def to_json(self) -> Json:
        """`{"scale": "log", "low": 0.001, "high": 1000, "points": 7}`."""
        low, high = written(self._start), written(self._end)
        return {"scale": "log", "low": low, "high": high, "points": written_integer(self.size)}

    def __repr__(self) -> str:
        low, high = written(self._start), written(self._end)
        return f"grid({low!r}, {high!r}, points={self.size}, scale='log')"


# From arguments, from text and from JSON to a grid.


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
