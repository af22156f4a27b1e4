"""Grids that nobody named: wide enough, small enough, round, and never an error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.grids import Grid
from holdfast.holdout.public import finer_grid, grid_between, grid_from_values, no_grid

FLOATS = st.floats(-9e14, 9e14, allow_subnormal=True)


@given(st.lists(FLOATS, min_size=1, max_size=6), st.integers(2, 300))
def test_a_grid_covers_what_open_blocks_say(values: list[float], points: int) -> None:
    found = grid_from_values(np.array(values), points)
    assert found is not None
    assert 2 <= found.size <= points
    assert found.low <= min(values)
    assert found.high >= max(values)


@given(st.floats(-9e14, 9e14), st.integers(0, 330), st.integers(3, 300))
def test_values_close_together(value: float, exponent: int, points: int) -> None:
    spread = np.array([0.0, 1.0, 0.5]) * 10.0**-exponent
    found = grid_from_values(value + spread, points)
    assert found is not None
    assert found.size <= points
    assert found.low <= value <= found.high


def test_failures_say_nothing() -> None:
    assert grid_from_values(np.array([np.nan, np.inf, -np.inf, 1e16]), 32) is None
    found = grid_from_values(np.array([np.nan, 9.0, 10.0, 11.5, np.inf]), 32)
    assert repr(found) == "grid(6, 14.5, step=0.5)"


def test_one_value_gets_room_on_either_side() -> None:
    found = grid_from_values(np.array([50.0, 50.0]), 32)
    assert found is not None
    assert found.low < 40
    assert found.high > 60


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(0, 1e300), st.integers(1, 300))
def test_a_grid_between_bounds(low: float, width: float, points: int) -> None:
    high = low + width
    if not math.isfinite(high):
        return
    found = grid_between(low, high, points)
    assert (found.low, found.high) == (low, high)
    assert found.size <= max(2, points)


def step(found: Grid) -> float:
    return float(found.point(1) - found.point(0))


@given(
    st.floats(-1e9, 1e9), st.floats(1e-3, 1e9), st.lists(FLOATS, max_size=12), st.integers(2, 300)
)
def test_the_finer_grid_is_never_coarser_than_the_bounds(
    low: float, width: float, values: list[float], points: int
) -> None:
    wide = grid_between(low, low + width, points)
    found = finer_grid(low, low + width, np.array(values), points)
    assert 2 <= found.size <= points
    assert step(found) <= step(wide)
    if found != wide:
        assert len(values) >= 5
        # In round steps, so that an end may be less than a step beyond the bounds.
        assert float(found.low) > low - step(found) * 1.001
        assert float(found.high) < low + width + step(found) * 1.001
        inside = [each for each in values if low < each < low + width]
        assert all(found.low <= each <= found.high for each in inside)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([61.0, 62.5, 63.0, 61.5, 62.0], "grid(58.5, 65.5, step=0.5)"),
        ([61.0, 62.5, 63.0, 61.5], "grid(18, 102, step=4)"),  # too few
        ([61.0, 62.5, np.nan, 61.5, 63.0], "grid(18, 102, step=4)"),  # one of them has no value
        ([62.0] * 9, "grid(18, 102, step=4)"),  # they do not say how far others are
        ([19.0, 20.0, 21.0, 22.0, 23.0], "grid(18, 27.5, step=0.5)"),  # within the bounds
        ([190.0, 200.0, 210.0, 220.0, 230.0], "grid(18, 102, step=4)"),  # none is
        ([20.0, 45.0, 60.0, 80.0, 101.0], "grid(18, 102, step=4)"),  # no finer
    ],
)
def test_the_finer_of_bounds_and_open_part(values: list[float], expected: str) -> None:
    assert repr(finer_grid(18, 102, np.array(values), 22)) == expected
    assert repr(finer_grid(18, 102, None, 22)) == "grid(18, 102, step=4)"


def test_without_any_hint_the_error_says_what_to_do() -> None:
    error = no_grid()
    assert isinstance(error, InvalidInput)
    for word in ("declare ranges", "open part", "LOW:HIGH:STEP"):
        assert word in str(error)
    with pytest.raises(InvalidInput):
        raise error
