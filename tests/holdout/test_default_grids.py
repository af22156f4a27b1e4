"""Grids that nobody named: wide enough, small enough, round, and never an error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.holdout.default_grids import grid_between, grid_from_values, no_grid

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


def test_without_any_hint_the_error_says_what_to_do() -> None:
    error = no_grid()
    assert isinstance(error, InvalidInput)
    for word in ("declare ranges", "open part", "LOW:HIGH:STEP"):
        assert word in str(error)
    with pytest.raises(InvalidInput):
        raise error
