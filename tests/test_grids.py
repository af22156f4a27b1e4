"""Grids: every fast path against brute force with rational arithmetic."""

from __future__ import annotations

import bisect
import copy
import datetime
import json
import math
import pickle
import sys
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, Context, Decimal, Inexact, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids import (
    ExplicitGrid,
    Grid,
    IntegerGrid,
    LinearGrid,
    LogarithmicGrid,
    grid,
    parse_grid,
)

INF, NAN = math.inf, math.nan
LARGEST, SMALLEST = sys.float_info.max, math.ulp(0.0)

# Small enough to write out.
SMALL: list[Grid] = [
    grid(0, 1, step=0.02),
    grid(0, 1, step=0.1),
    grid(-1, 1, points=4),  # thirds
    grid(0.1234567890123456, 7.7, points=52),  # numerators beyond 2**53
    grid(-300, 300, step=5),
    grid(0, 5e-322, step=5e-324),  # subnormal
    grid(-1.5e308, 1.5e308, step=1e307),
    grid(2.0**52, 2.0**52 + 40, step=1),
    grid(1e16, 1e16 + 64, step=2),
    grid(3, 3, step=1),
    grid(0.001, 1000, points=61, scale="log"),
    grid(1e-307, 1e308, points=100, scale="log"),
    grid(1, 1 + 2.0**-46, points=30, scale="log"),
    grid(1000, 1001, points=2, scale="log"),
    grid(5, 5, points=1, scale="log"),
    grid(-3, 100, scale="integer"),
    grid(-(2**63), -(2**63) + 50, scale="integer"),
    grid(2**63 - 51, 2**63 - 1, scale="integer"),
    grid(2**53 - 10, 2**53 + 10, scale="integer"),
    grid(-(2**63), 2**63 - 1, step=(2**64 - 1) // 15, scale="integer"),
    grid([1, 2, 5, 10]),
    grid([-0.5, 0, 0.25, 1e300]),
    grid([2**53, 2**53 + 1, 2**63 - 1]),
    grid([7]),
]
LARGE: list[Grid] = [
    grid(0, 1, step=1e-9),
    grid(0, 0.1, step=1e-16),
    grid(-1, 1, step=Fraction(1, 2**53)),
    grid(0, 2**53, step=1),
    grid(-1e300, 1e300, step=1e285),
    grid(0.1, 7.7, points=10**15),
    grid(1e-3, 1e3, points=10**6, scale="log"),
    grid(2.5e-308, 1.7e308, points=2**62, scale="log"),
    grid(1, 2, points=2**51, scale="log"),
    grid(-(2**61), 2**61 - 1, scale="integer"),
    grid(-(2**63), 2**63 - 1, step=5, scale="integer"),
    grid(0, 2**62 - 1, scale="integer"),
]
EVERY = SMALL + LARGE


def name(g: Grid) -> str:
    return repr(g)[:60]


def exact(value: Any) -> Fraction:
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def brute_ceiling(points: list[Fraction], value: Any) -> int:
    """The definition, with fractions: the smallest point ≥ value, the highest if none is."""
    if value is None or value != value:
        return 0
    if value in (INF, -INF):
        return len(points) - 1 if value > 0 else 0
    return min(bisect.bisect_left(points, exact(value)), len(points) - 1)


def around(point: float) -> Iterator[float | Fraction]:
    """A point and what is next to it: one ulp, one integer, a hair off."""
    yield point
    yield Fraction(point) + Fraction(1, 10**40)
    yield Fraction(point) - Fraction(1, 10**40)
    if isinstance(point, int):
        yield from (point - 1, point + 1)
    as_float = float(point)
    yield from (as_float, math.nextafter(as_float, INF), math.nextafter(as_float, -INF))


def some_indices(g: Grid) -> list[int]:
    """Both ends, the middle, powers of two, and a few hundred at random."""
    top = g.size - 1
    wanted = {0, 1, 2, top - 2, top - 1, top, top // 2, top // 3}
    wanted |= {2**k for k in range(62)} | {top - 2**k for k in range(62)}
    random = np.random.default_rng(g.size % 2**32).integers(0, g.size, 200)
    return sorted({i for i in wanted if 0 <= i <= top} | {int(i) for i in random})


def made_or_refused(make: Callable[[], Grid], parameter: str) -> Grid | None:
    """The grid, or None where it is refused for the parameter."""
    try:
        return make()
    except InvalidInput as refusal:
        if refusal.parameter != parameter:
            raise
        return None


# Points.


@pytest.mark.parametrize("g", EVERY, ids=name)
def test_points_increase_ends_are_points_and_many_at_once_are_the_same(g: Grid) -> None:
    indices = some_indices(g)
    points = [g.point(i) for i in indices]
    neighbours = [(g.point(i), g.point(i + 1)) for i in indices if i + 1 < g.size]
    assert all(a < b for a, b in [*pairwise(points), *neighbours])
    assert (points[0], points[-1]) == (g.low, g.high)
    together = g.points(np.array(indices))
    assert together.dtype == (np.int64 if isinstance(g.low, int) else np.float64)
    assert together.tolist() == points
    assert {type(p) for p in points} in ({int}, {float})
    assert g.points(np.array(indices[:1], np.uint64)).tolist() == [g.low]
    assert g.points(0) == g.low
    assert g.points([]).shape == (0,)
    assert g.points([[0], [g.size - 1]]).tolist() == [[g.low], [g.high]]


decimals = st.decimals(-(10**6), 10**6, places=4, allow_nan=False)
steps = st.decimals("0.0001", 1000, places=4)


@given(low=decimals, step=steps, count=st.integers(0, 300))
def test_linear_points_are_the_floats_of_exact_decimals(
    low: Decimal, step: Decimal, count: int
) -> None:
    g = grid(float(low), float(low + count * step), step=float(step))
    expected = [float(Fraction(low) + i * Fraction(step)) for i in range(count + 1)]
    assert g.size == count + 1
    assert g.points(np.arange(g.size)).tolist() == expected
    assert [g.point(i) for i in range(g.size)] == expected


@given(low=st.floats(-1e9, 1e9), length=st.floats(1e-3, 1e9), points=st.integers(2, 200))
def test_linear_grids_by_number_of_points(low: float, length: float, points: int) -> None:
    start, end = Fraction(repr(low)), Fraction(repr(low + length))
    expected = [float(start + i * (end - start) / (points - 1)) for i in range(points)]
    assert grid(low, low + length, points=points).points(np.arange(points)).tolist() == expected


@pytest.mark.parametrize("g", [g for g in EVERY if isinstance(g, LogarithmicGrid)], ids=name)
def test_logarithmic_points_are_correctly_rounded(g: LogarithmicGrid) -> None:
    arguments = g.to_json()
    with mpmath.workdps(120):
        low, high = (mpmath.mpf(str(arguments[end])) for end in ("low", "high"))
        for i in some_indices(g)[:150]:
            power = mpmath.power(high / low, mpmath.mpf(i) / max(g.size - 1, 1))
            assert g.point(i) == float(low * power)


def test_the_decimal_context_of_the_caller_does_not_matter() -> None:
    expected = grid(1, 2, points=1000, scale="log").points(range(1000))
    with localcontext(Context(prec=3, rounding=ROUND_CEILING, traps=[Inexact])):
        g = grid(1, 2, points=1000, scale="log")
        assert g.points(range(1000)).tolist() == expected.tolist()
        assert grid("0", Decimal("1"), step="0.0001").point(1) == 0.0001
        assert g.ceiling([Decimal("1.00000001")]).tolist() == [1]


@given(
    low=st.one_of(st.floats(-1e20, 1e20), st.floats(-1e-310, 1e-310), st.sampled_from([0.0, 1.0])),
    ulps=st.fractions(Fraction(1, 4), 4, max_denominator=8),
    count=st.integers(1, 60),
    half=st.booleans(),
)
def test_an_accepted_step_near_the_resolution_keeps_points_apart(
    low: float, ulps: Fraction, count: int, half: bool
) -> None:
    u = Fraction(math.ulp(low))
    start = Fraction(low) + (u / 2 if half else 0)
    step = ulps * u
    assume(step >= SMALLEST)
    end = start + count * step
    assume(all(x == 0 or abs(x) >= SMALLEST for x in (start, end)))
    points = [float(start + i * step) for i in range(count + 1)]
    g = made_or_refused(lambda: LinearGrid(start, end, step), "step")
    if g is None:
        assert step <= 2 * math.ulp(max(map(abs, points)))  # nothing is refused without need
    else:
        assert g.points(np.arange(g.size)).tolist() == points
        assert len(set(points)) == len(points)


@given(
    low=st.floats(1e-300, 1e300),
    length=st.integers(1, 200),
    points=st.integers(2, 100),
)
def test_an_accepted_ratio_near_the_resolution_keeps_points_apart(
    low: float, length: int, points: int
) -> None:
    high = low
    for _ in range(length):
        high = math.nextafter(high, INF)
    g = made_or_refused(lambda: grid(low, high, points=points, scale="log"), "points")
    if g is None:
        assert points > 2
        assert (high / low) ** (1 / (points - 1)) - 1 < 2.0**-51
    else:
        assert bool(np.all(np.diff(g.points(np.arange(points))) > 0))


# The projection.


@pytest.mark.parametrize("g", SMALL, ids=name)
def test_ceiling_is_brute_force_around_every_point(g: Grid) -> None:
    points = [Fraction(g.point(i)) for i in range(g.size)]
    values = [value for i in range(g.size) for value in around(g.point(i))]
    values += [g.point(i) / 2 + g.point(i + 1) / 2 for i in range(g.size - 1)]
    values += [0, 0.0, -0.0, 1, True, INF, -INF, NAN, LARGEST, -LARGEST, SMALLEST, -SMALLEST]
    values += [2**62, -(2**62), 2**63, 2**64, 10**400, -(10**400)]
    expected = [brute_ceiling(points, value) for value in values]
    together = np.empty(len(values), dtype=object)
    together[:] = values
    assert g.ceiling(together).tolist() == expected
    assert g.ceiling(values).tolist() == expected
    for kind in (float, int):
        chosen = [(v, e) for v, e in zip(values, expected, strict=True) if type(v) is kind]
        array = np.array([v for v, _ in chosen if kind is float or -(2**63) <= v < 2**63])
        wanted = [e for v, e in chosen if kind is float or -(2**63) <= v < 2**63]
        assert array.dtype == (np.float64 if kind is float else np.int64)
        assert g.ceiling(array).tolist() == wanted
        assert g.project(array).tolist() == [g.point(i) for i in wanted]


@pytest.mark.parametrize("g", LARGE, ids=name)
def test_ceiling_of_a_large_grid_is_the_smallest_point_that_is_at_least_the_value(g: Grid) -> None:
    values = [value for i in some_indices(g)[::3] for value in around(g.point(i))]
    for value, i in zip(values, g.ceiling(values).tolist(), strict=True):
        assert i == g.size - 1 or exact(value) <= Fraction(g.point(i))
        assert i == 0 or Fraction(g.point(i - 1)) < exact(value)
    floats = np.array([float(value) for value in values])
    for value, i in zip(floats.tolist(), g.ceiling(floats).tolist(), strict=True):
        assert i == g.size - 1 or Fraction(value) <= Fraction(g.point(i))
        assert i == 0 or Fraction(g.point(i - 1)) < Fraction(value)


def test_the_test_values_would_catch_a_ceiling_by_division() -> None:
    g = grid(0, 1, step=0.02)
    values = g.points(np.arange(51))
    naive = np.ceil(values / 0.02).astype(int)
    assert (naive != np.arange(51)).any()
    rounded = np.rint(np.nextafter(values, 2) / 0.02).astype(int)
    assert (rounded[:-1] != np.arange(1, 51)).any()


def test_integers_beyond_the_floats_are_exact() -> None:
    g = IntegerGrid(-(2**61), 2**61 - 1)
    assert (g.size, g.looks) == (2**62, 62)
    for value in (2**53 + 1, 2**60 + 1, -(2**60) - 1, 2**61 - 1, -(2**61)):
        for given_as in (value, [value], np.array([value]), np.int64(value), Decimal(value)):
            assert g.project(given_as).tolist() in (value, [value])
        assert g.point(g.index(value)) == value
    assert g.project([2.0**60, 2.0**60 + 256, 0.5, -0.5]).tolist() == [2**60, 2**60 + 256, 1, 0]
    assert g.project(np.array([2**64 - 1, 5], np.uint64)).tolist() == [2**61 - 1, 5]
    assert g.project([2**60 + 1, 0.25]).tolist() == [2**60 + 1, 1]  # numpy would round the first


def test_integers_are_compared_exactly_with_floats_too() -> None:
    points = [2.0**53, 2.0**53 + 2]
    for g in (grid(*points, step=2), grid([0.5, *points])):
        i = g.index(2.0**53)
        for dtype in (np.int64, np.uint64, object):
            values = np.array([2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1], dtype)
            assert g.ceiling(values).tolist() == [i, i, i + 1, i + 1, i + 1]
    g = grid([-(2.0**63), 0.5, 2.0**63, 2.0**64])
    assert g.ceiling(np.array([2**63 - 1, -(2**63), -(2**63) + 1])).tolist() == [2, 0, 1]
    assert g.ceiling(np.array([2**64 - 1, 2**63, 2**63 + 1], np.uint64)).tolist() == [3, 2, 3]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_every_float_type_is_compared_exactly(dtype: type) -> None:
    value: NDArray[Any] = np.array([0.1], dtype)
    low, high = grid(0, 1, step=0.1), grid(0, 10, scale="integer")
    assert low.ceiling(value) == (1 if Fraction(*value[0].as_integer_ratio()) <= 0.1 else 2)
    hair = np.array([np.nextafter(dtype(2), dtype(3)), np.nextafter(dtype(2), dtype(1))])
    assert high.ceiling(hair).tolist() == [3, 2]
    assert grid([1.5, 2, 2.5]).ceiling(hair).tolist() == [2, 1]
    assert grid([1.5, 2, 2.5]).ceiling(list(hair)).tolist() == [2, 1]
    special: NDArray[Any] = np.array([NAN, INF, -INF], dtype)
    for g in (low, high, grid([1.5, 2.0])):
        assert g.ceiling(special).tolist() == [0, g.size - 1, 0]
        assert g.ceiling(list(special)).tolist() == [0, g.size - 1, 0]


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int16, np.uint32, np.int32])
def test_small_integer_types_and_booleans(dtype: type) -> None:
    values: NDArray[Any] = np.array([0, 1, 1], dtype)
    for g in (grid(0, 1, step=0.5), grid([0, 0.5, 1]), grid(-1, 1, scale="integer")):
        assert g.project(values).tolist() == [0, 1, 1]
        assert g.project(values.tolist()).tolist() == [0, 1, 1]


ONE_OF_EACH = [grid(1, 2, step=0.5), grid(1, 4, points=3, scale="log"), IntegerGrid(1, 3)]
ONE_OF_EACH += [grid([1, 2, 4]), grid([1, 1.5, 4])]


@pytest.mark.parametrize("g", ONE_OF_EACH, ids=name)
def test_failures_count_as_the_lowest_point(g: Grid) -> None:
    dates = [np.datetime64("2020-01-01"), np.timedelta64(3, "s"), datetime.date(2020, 1, 1)]
    failures = [None, NAN, Decimal("NaN"), Decimal("sNaN"), "3", b"3", 2j, object(), *dates]
    failures += [[3], np.array([3, 3]), {}, ValueError("secret")]
    array = np.empty(len(failures) + 1, dtype=object)
    array[:-1], array[-1] = failures, 3
    assert g.ceiling(array).tolist() == [0] * len(failures) + [g.ceiling(3)]
    assert g.ceiling([*failures, 3]).tolist() == [0] * len(failures) + [g.ceiling(3)]
    for failure in failures:
        assert not np.any(g.ceiling(failure)) or isinstance(failure, list | np.ndarray)
        assert g.ceiling([3, failure]).tolist() == [g.ceiling(3), 0]
        assert g.ceiling((failure,) * 5).tolist() == [0] * 5


def test_whole_arrays_of_something_else_are_failures_too() -> None:
    g = grid(0, 1, step=0.5)
    for values in (["a", "b"], np.array(["1", "2"]), np.array([1j, 2j]), np.array([b"x"] * 2)):
        assert g.ceiling(values).tolist() == [0, 0]
    for kind in ("datetime64[D]", "datetime64[ns]", "m8[D]", "m8[ns]", "i4,f8"):
        assert g.ceiling(np.ones(2, "i8").astype(kind)).tolist() == [0, 0]
    assert g.ceiling(["a", 0.5]).tolist() == [0, 1]  # numpy makes text of both


def test_masked_entries_are_failures() -> None:
    masked = np.ma.MaskedArray([0.5, 1.0, 7.0], mask=[False, True, False])
    for g in (grid(0, 1, step=0.5), grid([0, 0.5, 1]), grid(0, 2, scale="integer")):
        assert g.ceiling(masked).tolist() == [1, 0, 2]
        for kind in (np.float32, np.longdouble, np.int64, np.uint8, bool, object):
            ones = np.ma.MaskedArray(np.ones(3, kind), mask=[True, False, True])
            assert g.ceiling(ones).tolist() == [0, g.ceiling(1), 0]
        assert g.ceiling(np.ma.MaskedArray([1, 1])).tolist() == [g.ceiling(1)] * 2
        hidden = np.ma.MaskedArray(1.0, mask=True)
        assert g.ceiling([np.ma.masked, hidden, 1.0]).tolist() == [0, 0, g.ceiling(1)]
        assert g.ceiling(np.ma.masked) == g.ceiling(hidden) == 0
    fields = np.ma.MaskedArray(np.zeros(2, "i4,f8"), mask=[(True, False)] * 2)
    assert grid(0, 1, step=0.5).ceiling(fields).tolist() == [0, 0]


@pytest.mark.parametrize("g", ONE_OF_EACH, ids=name)
def test_the_shape_of_a_list_is_its_length(g: Grid) -> None:
    """Else five pairs would be a table, and refused, where four and a number are answered."""
    for item in (np.full(2, 3.0), [3, 3], (3.0,), np.full((2, 2), 3), [[3]], [], np.ones(0), "33"):
        for values in ([item] * 5, (item,) * 5, deque([item] * 5)):
            assert g.ceiling(values).tolist() == [0] * 5
        column = np.empty(5, dtype=object)
        for i in range(5):
            column[i] = item
        assert g.ceiling(column).tolist() == [0] * 5
        assert g.ceiling([item] * 4 + [3]).tolist() == [0] * 4 + [g.ceiling(3)]
    assert g.ceiling([]).shape == (0,)
    assert g.ceiling(range(1, 4)).tolist() == g.ceiling(np.arange(1, 4)).tolist()


# Values that raise when they are read, and would tell what they have seen.

SECRET = "SECRET-4711"


def tell(*_: object) -> Any:
    raise RuntimeError(SECRET)


class Unhashable(type):
    __hash__ = tell


HOSTILE: list[Any] = [
    type("Array", (), {"__array__": tell})(),
    type("Interface", (), {"__array_interface__": property(tell)})(),
    type("Sequence", (), {"__len__": tell, "__getitem__": tell})(),
    type("Float", (float,), {"__float__": tell})(3),
    type("Int", (int,), {"__int__": tell, "__index__": tell, "__trunc__": tell})(3),
    type("Numpy", (np.float64,), {"__float__": tell})(3),
    type("Long", (np.longdouble,), {"as_integer_ratio": tell})(3),
    type("Ratio", (Fraction,), {"numerator": property(tell)})(3),
    type("Lost", (object,), {"__class__": property(tell)})(),
    Unhashable("Meta", (), {"__eq__": tell, "__hash__": None})(),
    type("Pair", (list,), {"__len__": tell, "__iter__": tell, "__getitem__": tell})([3, 3]),
]


@pytest.mark.parametrize("hostile", range(len(HOSTILE)))  # pytest would read the values
def test_a_value_that_raises_is_a_failure_and_tells_nothing(hostile: int) -> None:
    value = HOSTILE[hostile]
    column = np.empty(3, dtype=object)
    for i, item in enumerate((3, value, 3)):
        column[i] = item
    for g in ONE_OF_EACH:
        for values in ([3, value, 3], [3.0, value, 3.0], (3, value, 3), column, [3, [value], 3]):
            assert g.ceiling(values).tolist() == [g.ceiling(3), 0, g.ceiling(3)]
        assert g.ceiling(value) == 0
        assert g.ceiling([value] * 2).tolist() == [0, 0]
        assert not g.contains(value)


def test_a_number_with_methods_of_its_own_is_read_by_its_type() -> None:
    ratio = type("Ratio", (Fraction,), {"__truediv__": tell, "__lt__": tell, "__ceil__": tell})
    digits = type("Digits", (Decimal,), {"is_finite": tell, "as_integer_ratio": tell})
    for g in ONE_OF_EACH:
        assert g.ceiling([ratio(3), digits(3)]).tolist() == [g.ceiling(3)] * 2


def test_floating_point_errors_are_not_passed_on() -> None:
    signalling = np.array([0x7FF0000000000001], np.uint64).view(np.float64)
    short = np.array([0x7F800001], np.uint32).view(np.float32)
    with np.errstate(all="raise"):
        for g in EVERY:
            for values in (signalling, short, list(signalling), list(short)):
                assert g.ceiling(values).tolist() == [0]
            g.ceiling(np.array([1e-320, -LARGEST, LARGEST]))


def test_an_interrupt_is_no_failure() -> None:
    def interrupt(*_: object) -> Any:
        raise KeyboardInterrupt

    slow = type("Slow", (float,), {"__float__": interrupt})(3)
    for values in ([1.0, slow], np.array([1.0, slow], dtype=object), slow):
        with pytest.raises(KeyboardInterrupt):
            grid(0, 1, step=0.5).ceiling(values)


numbers = st.one_of(st.integers(), st.floats(), st.decimals(), st.fractions(), st.complex_numbers())
others = st.one_of(st.none(), st.booleans(), st.text(max_size=3), st.binary(max_size=3), st.dates())
anything = st.recursive(
    st.one_of(numbers, others),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=8,
)


@given(anything, st.sampled_from(ONE_OF_EACH))
def test_nothing_makes_the_projection_raise(values: object, g: Grid) -> None:
    indices = g.ceiling(values)
    assert indices.dtype == np.int64
    assert bool(np.all((indices >= 0) & (indices < g.size)))
    assert not isinstance(values, list) or len(indices) == len(values)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0), (2, 3)])
def test_shapes_are_kept(shape: tuple[int, ...]) -> None:
    for g in EVERY:
        for values in (np.full(shape, 0.5), np.full(shape, 3), np.full(shape, None)):
            values.flags.writeable = False
            indices = g.ceiling(values)
            assert isinstance(indices, np.ndarray)
            assert indices.shape == shape
            assert indices.dtype == np.int64
            assert g.project(values).shape == shape


# Membership, cells, looks.


@pytest.mark.parametrize("g", EVERY, ids=name)
def test_membership_is_exact(g: Grid) -> None:
    members = [g.point(i) for i in some_indices(g)[::5]]
    for i, point in zip(some_indices(g)[::5], members, strict=True):
        for same in (point, np.asarray(point)[()], np.asarray(point), Fraction(point)):
            assert g.contains(same)
            assert g.index(same) == i
        for hair in (Fraction(1, 10**30), Fraction(-1, 10**30)):
            assert not g.contains(Fraction(point) + hair)
    above, below = math.nextafter(g.high, INF), math.nextafter(g.low, -INF)
    outside = (INF, -INF, NAN, None, "1", Fraction(g.high) + 1, Fraction(g.low) - 1)
    for value in (*outside, above if above > g.high else None, below if below < g.low else None):
        assert not g.contains(value)
        with pytest.raises(InvalidInput, match="value must be a point of the grid"):
            g.index(value)


def test_a_value_that_is_no_point_is_told_the_nearest() -> None:
    with pytest.raises(InvalidInput, match=r"got 0.30000000000000004. Near it: 0.3 and 0.4.$"):
        grid(0, 1, step=0.1).index(0.1 + 0.2)


@pytest.mark.parametrize("g", SMALL, ids=name)
def test_a_cell_holds_what_projects_onto_its_point(g: Grid) -> None:
    for i in range(g.size):
        lower, upper = g.cell(i)
        assert (lower is None) == (i == 0)
        assert (upper is None) == (i == g.size - 1)
        if lower is not None:
            assert g.ceiling(lower) == i - 1
            assert g.ceiling(Fraction(lower) + Fraction(1, 10**400)) == i
        assert g.ceiling(-INF if lower is None else g.point(i)) == i
        if upper is not None:
            assert upper == g.point(i)
            assert g.ceiling(upper) == i
            assert g.ceiling(Fraction(upper) + Fraction(1, 10**400)) == i + 1
        else:
            assert g.ceiling(INF) == i


@pytest.mark.parametrize("size", [*range(1, 70), 2**20, 2**20 + 1, 2**62 - 1, 2**62])
def test_looks_are_what_the_longest_search_takes(size: int) -> None:
    longest, left = 0, size  # the larger half of (lo + hi) // 2 is the left one
    while left > 1:
        longest, left = longest + 1, (left + 1) // 2
    assert IntegerGrid(0, size - 1).looks == longest


@pytest.mark.parametrize("wrong", [-1, 51, 0.5, NAN, None, "0", True])
def test_a_wrong_index_is_refused(wrong: int) -> None:
    g = grid(0, 1, step=0.02)
    for method in (g.point, g.cell):
        with pytest.raises(InvalidInput, match="index must be a whole number from 0 to 50"):
            method(wrong)
    with pytest.raises(InvalidInput, match="indices must be whole numbers from 0 to 50"):
        g.points([wrong])


# A grid is a value.


@pytest.mark.parametrize("g", EVERY, ids=name)
def test_a_grid_comes_back_from_json_pickle_copy_and_its_own_repr(g: Grid) -> None:
    indices = some_indices(g)[::7]
    data: Any = as_javascript_reads(g.to_json())  # a reader that knows only floats
    assert Grid.from_json(data).points(indices).tolist() == g.points(indices).tolist()
    again = [
        Grid.from_json(json.loads(json.dumps(g.to_json(), allow_nan=False))),
        pickle.loads(pickle.dumps(g)),
        copy.copy(g),
        copy.deepcopy(g),
        eval(repr(g), {"grid": grid}),
    ]
    for other in again:
        assert type(other) is type(g)
        assert other == g
        assert hash(other) == hash(g)
        assert other.to_json() == g.to_json()
        assert other.points(indices).tolist() == g.points(indices).tolist()


def as_javascript_reads(value: object) -> object:
    """Every number becomes a float, and a whole one is written without its point."""
    if isinstance(value, dict):
        return {key: as_javascript_reads(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_javascript_reads(item) for item in value]
    if isinstance(value, int | float):
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < 1e21 else number
    return value


def test_different_grids_are_different() -> None:
    assert len(set(EVERY)) == len(EVERY)
    assert len({json.dumps(g.to_json()) for g in EVERY}) == len(EVERY)
    assert len({repr(g) for g in EVERY}) == len(EVERY)
    assert grid(0, 1, step=0.5) != grid([0, 0.5, 1])  # the same points, asked in another way
    assert grid(0, 1, step=0.5) != "grid(0, 1, step=0.5)"


@pytest.mark.parametrize(
    ("one", "same"),
    [
        (grid(0, 1, step=0.02), grid(0.0, np.float64(1), step=Decimal("0.02"))),
        (grid(0, 1, step=0.02), grid("0", "1.0", step="2e-2")),
        (grid(0, 1, step=0.02), grid(0, 1, points=51)),
        (grid(3, 3, step=0.02), grid(3, 3, points=1)),
        (grid(0, 100, scale="integer"), grid(0, 100, step=1, scale="integer")),
        (grid(0, 100, scale="integer"), grid(0.0, 100.0, points=101, scale="integer")),
        (grid(7, 7, step=5, scale="integer"), grid(7, 7, points=1, scale="integer")),
        (grid([1, 2, 5]), grid((1.0, 2.0, 5.0))),
        (grid([1, 2, 5]), grid(np.array([1, 2, 5]))),
        (grid([1, 2, 5]), grid(x for x in ("1", 2, Fraction(5)))),
        (grid([-0.0, 0.5]), grid([0.0, 0.5])),
        (grid(range(3)), ExplicitGrid([0, 1, 2])),
        (grid(1, 100, points=3, scale="log"), LogarithmicGrid(1.0, 100, 3)),
        (grid(1, 2, step=0.5), LinearGrid(1, 2, 0.5)),
    ],
)
def test_the_same_grid_written_otherwise_is_the_same_grid(one: Grid, same: Grid) -> None:
    assert one == same
    assert hash(one) == hash(same)
    assert one.to_json() == same.to_json()
    assert repr(one) == repr(same)


@pytest.mark.parametrize("g", ONE_OF_EACH, ids=name)
def test_a_grid_cannot_be_changed(g: Grid) -> None:
    for attribute in ("_size", "size", "extra", "_key"):
        with pytest.raises(AttributeError):
            setattr(g, attribute, 3)
    with pytest.raises(AttributeError):
        del g.size
    points = g.points([0, 1])
    points[0] = 99
    assert g.low == 1
    given_points = np.array([1.5, 2.5])
    listed = grid(given_points)
    given_points[0] = 9
    assert listed.low == 1.5


@pytest.mark.parametrize(
    ("g", "line"),
    [
        (grid(0, 1, step=0.02), "51 points from 0 to 1, step 0.02"),
        (grid(0, 1e6, step=0.5), "2,000,001 points from 0 to 1000000, step 0.5"),
        (grid(0, 1, points=4), "4 points from 0 to 1, step about 0.333333"),
        (grid(2.5, 2.5, step=1), "1 point, 2.5"),
        (
            grid(0.001, 1000, points=61, scale="log"),
            "61 points from 0.001 to 1000, each 1.25893 times the one before",
        ),
        (grid(2, 2, points=1, scale="log"), "1 point, 2"),
        (grid(0, 100, scale="integer"), "101 whole numbers from 0 to 100"),
        (grid(0, 100, step=5, scale="integer"), "21 whole numbers from 0 to 100, step 5"),
        (grid(7, 7, scale="integer"), "1 whole number, 7"),
        (grid([1, 2, 5.5]), "3 points: 1, 2, 5.5"),
        (grid([4]), "1 point: 4"),
        (grid([*range(20), 20.5]), "21 points from 0 to 20.5"),
    ],
)
def test_describe(g: Grid, line: str) -> None:
    assert g.describe() == line


# Refusals: the parameter, what is allowed, what was received, what to do.

Make = Callable[[], object]


@pytest.mark.parametrize(
    ("make", "parameter", "message"),
    [
        (
            lambda: grid(0, 1, step=0.3),
            "high",
            r"\(0 \+ i × 0.3\); got 1. The nearest are 0.9 and 1.2.",
        ),
        (lambda: grid(0, 1, step=3), "high", "The nearest are 0 and 3."),
        (lambda: grid(0, 1, step=1 / 3), "high", "rounded: give points=4 instead."),
        (lambda: grid(-1, 1, step=2.0**-3 / 3), "high", "rounded: give points=49 instead."),
        (lambda: grid(-5, 5, step=3, scale="integer"), "high", "The nearest are 4 and 7."),
        (lambda: grid(5, 1, step=1), "high", "at least low, 5; got 1"),
        (lambda: grid(5, 1, points=3), "high", "at least low, 5; got 1"),
        (lambda: grid(5, 1, scale="integer"), "high", "at least low, 5; got 1"),
        (lambda: grid(5, 1, points=3, scale="log"), "high", "at least low, 5; got 1"),
        (lambda: grid(0, 1, step=0), "step", "above 0; got 0"),
        (lambda: grid(0, 1, step=-0.1), "step", "above 0; got -0.1"),
        (lambda: grid(0, 1, step=NAN), "step", "a finite number; got nan"),
        (lambda: grid(0, INF, step=1), "high", "a finite number; got inf"),
        (lambda: grid("a", 1, step=1), "low", "a finite number; got 'a'"),
        (lambda: grid("1e999999999", 1, step=1), "low", "a finite number; got '1e999999999'"),
        (lambda: grid("1e-999999999", 1, step=1), "low", "0 or at least 5e-324 in size"),
        (lambda: grid(Decimal("1e-999"), 1, step=1), "low", "0 or at least 5e-324 in size"),
        (lambda: grid("1/0", 1, step=1), "low", "a finite number; got '1/0'"),
        (lambda: grid("1/2/3", 1, step=1), "low", "a finite number"),
        (lambda: grid("9" * 101, 1, step=1), "low", "a finite number"),
        (lambda: grid(True, 2, step=1), "low", "a finite number; got True"),
        (lambda: grid(None, 1, step=1), "low", "a finite number; got None"),
        (lambda: grid(10**400, 10**401, step=1), "low", "a finite number"),
        (lambda: grid(0, 1, step=1e-17), "step", "above 1.11e-16, the distance between floats"),
        (lambda: grid(0, 1e17, step=1), "step", "above 16, the distance between floats near 1e"),
        (lambda: grid("0.5", "9007199254740991.5", step=1), "step", "distance between floats"),
        (lambda: grid(0, 1e300, step=1), "step", r"large enough for at most 2\*\*62 points"),
        (lambda: grid(0, 1), "step", "a number above 0; got None. Or give points"),
        (lambda: grid(0, 1, step=1, points=2), "points", "left out where step is given"),
        (lambda: grid(0, 1, points=1), "points", "at least 2; got 1"),
        (lambda: grid(0, 1, points=0), "points", "a whole number from 1 to"),
        (lambda: grid(0, 1, points=2.5), "points", "a whole number from 1 to"),
        (lambda: grid(1, 1, points=2), "points", "1, since low and high are equal; got 2"),
        (lambda: grid(1, 1, points=2, scale="log"), "points", "1, since low and high are equal"),
        (lambda: grid(1, 2, points=1, scale="log"), "points", "at least 2; got 1"),
        (lambda: grid(1, 2, points=None, scale="log"), "points", "a finite number; got None"),
        (lambda: grid(0, 1, points=2, scale="log"), "low", "on a logarithmic grid; got 0"),
        (lambda: grid(-1, 1, points=2, scale="log"), "low", "on a logarithmic grid; got -1"),
        (lambda: grid(5e-324, 1, points=2, scale="log"), "low", "at least 2.23e-308"),
        (lambda: grid(1, 9, step=2, scale="log"), "step", "left out on a logarithmic grid"),
        (lambda: grid(1, 2, points=2**60, scale="log"), "points", "at most 3,121,657,"),
        (lambda: grid(1, "1.00000000000000000001", points=2, scale="log"), "high", "a float above"),
        (lambda: grid(0, 1.5, scale="integer"), "high", "a whole number from"),
        (lambda: grid(0, 2**63, scale="integer"), "high", "a whole number from"),
        (lambda: grid(0, 10**400, scale="integer"), "high", "a finite number"),
        (lambda: grid(0, 2**62, scale="integer"), "high", r"below low \+ 2\*\*62 steps"),
        (lambda: grid(0, 10, step=0.5, scale="integer"), "step", "a whole number from 1"),
        (lambda: grid(0, 10, step=0, scale="integer"), "step", "a whole number from 1"),
        (lambda: grid(0, 10, points=4, scale="integer"), "points", "a divisor of high − low, 10"),
        (lambda: grid(0, 1, step=1, scale="cubic"), "scale", "'linear', 'log' or 'integer'"),
        (lambda: grid(1), "high", r"a number; got None. Or list the points"),
        (lambda: grid([1, 2], 3), "high", "left out where the points are listed; got 3"),
        (lambda: grid([1, 2], step=3), "step", "left out where the points are listed"),
        (lambda: grid([1, 2], points=2), "points", "left out where the points are listed"),
        (lambda: grid([1, 2], scale="log"), "scale", "left out where the points are listed"),
        (lambda: grid([]), "values", r"from 1 to 1,048,576 numbers; got \[\]"),
        (lambda: grid(range(2**60)), "values", "from 1 to 1,048,576 numbers; got .* with a step"),
        (lambda: grid([1, 3, 2]), "values", r"increasing order; got \[3, 2\]"),
        (lambda: grid([1, 2, 2]), "values", r"different and in increasing order; got \[2, 2\]"),
        (lambda: grid(["0.1", 0.1]), "values", "different"),
        (lambda: grid([1, NAN]), "values[1]", "a finite number; got nan"),
        (lambda: grid([-INF, 1]), "values[0]", "a finite number; got -inf"),
        (lambda: grid([1, None]), "values[1]", "a finite number; got None"),
        (lambda: grid([[1, 2], [3, 4]]), "values[0]", "a finite number"),
        (lambda: grid([0.5, 2**53 + 1]), "values", "floats, or whole numbers alone; got 9007"),
        (lambda: ExplicitGrid("123"), "values", "a list of increasing numbers; got '123'"),
        (lambda: Grid.from_json({"scale": "cubic"}), "scale", "one of linear, log, integer, expl"),
        (lambda: Grid.from_json({"scale": []}), "scale", "one of linear"),
        (lambda: Grid.from_json({"low": 0, "up": 1}), "grid", "with keys high, low, points, step"),
        (lambda: Grid.from_json({"high": 1, "step": 1}), "low", "a finite number; got None"),
        (lambda: Grid.from_json({"low": [1, 2]}), "low", r"a finite number; got \[1, 2\]"),
        (lambda: Grid.from_json({"scale": "explicit"}), "values", "a list of increasing numbers"),
        (lambda: Grid.from_json([1, 2]), "grid", r"a JSON object; got \[1, 2\]"),  # type: ignore[arg-type]
    ],
)
def test_a_grid_that_cannot_be_is_refused_with_its_reason(
    make: Make, parameter: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message) as refusal:
        make()
    assert refusal.value.parameter == parameter


def test_the_largest_number_of_logarithmic_points_is_the_one_in_the_message() -> None:
    with pytest.raises(InvalidInput) as refusal:
        grid(1, 2, points=2**60, scale="log")
    most = int(refusal.value.allowed.removeprefix("at most ").replace(",", ""))
    assert grid(1, 2, points=most, scale="log").size == most
    with pytest.raises(InvalidInput):
        grid(1, 2, points=most + 1, scale="log")


# Text of the command line.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0:1:0.02", grid(0, 1, step=0.02)),
        (" -1 : 1 : 1e-3 ", grid(-1, 1, step=0.001)),
        ("0:1:1/3", grid(0, 1, points=4)),
        ("0:300:5", grid(0, 300, step=5)),
        ("1,2,5,10", grid([1, 2, 5, 10])),
        ("-1.5, 0, 1e3", grid([-1.5, 0, 1000])),
        ("0,9007199254740993", grid([0, 2**53 + 1])),
    ],
)
def test_text_names_a_grid(text: str, expected: Grid) -> None:
    assert parse_grid(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("5:1:0.1", " Here high must be at least low, 5; got '1'."),
        ("0:1:0.3", " The nearest are 0.9 and 1.2."),
        ("0:1:-1", " Here step must be a number above 0; got '-1'."),
        ("a:b:c", " Here low must be a finite number; got 'a'."),
        ("0:1:", " Here step must be a finite number; got ''."),
        ("1,2,", " Here values[2] must be a finite number; got ''."),
        ("3,2", "increasing order; got [3, 2]."),
        ("1,inf", "values[1] must be a finite number; got 'inf'."),
        ("", ""),
        ("32", ""),  # a number of points? a single point?
        ("0:1", ""),
        ("0:1:0.1:log", ""),
        ("0:1,2:3", "high must be a finite number; got '1,2'."),
    ],
)
def test_text_that_names_no_grid_is_told_what_does(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_grid(text)
    message = str(refusal.value)
    start = "grid must be LOW:HIGH:STEP or a comma-separated list of increasing numbers; got "
    assert message.startswith(f"{start}{text!r}.")
    assert message.endswith(reason or f"{text!r}.")


@given(st.text(alphabet="0123456789.,:-+e/ naif_", max_size=20))
def test_any_text_is_a_grid_or_refused(text: str) -> None:
    g = made_or_refused(lambda: parse_grid(text), "grid")
    assert g is None or Grid.from_json(g.to_json()) == g
    assert made_or_refused(lambda: parse_grid(5), "grid") is None  # type: ignore[arg-type]


# Cost.


def test_a_grid_of_any_size_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        for g in LARGE:
            Grid.from_json(g.to_json()).ceiling([0.1, 5])
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


FAST = [SMALL[0], LARGE[0], SMALL[3], SMALL[10], grid([0.1, 0.5, 0.9]), SMALL[15]]


@pytest.mark.parametrize("g", FAST, ids=name)
def test_values_are_projected_all_at_once(g: Grid) -> None:
    """A hundred thousand values take a few hundred calls: hardly any is looked at by itself."""
    values, calls = np.random.default_rng(0).uniform(g.low, g.high, 10**5), [0]

    def called(_frame: object, event: str, _argument: object) -> None:
        calls[0] += event in ("call", "c_call")

    g.ceiling(values[:10])  # what is remembered is computed here
    sys.setprofile(called)
    try:
        g.ceiling(values)
    finally:
        sys.setprofile(None)
    assert calls[0] < 1_000
