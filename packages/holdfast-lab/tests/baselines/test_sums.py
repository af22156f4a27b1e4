from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast_lab.baselines.noise import CELLS, ROUNDING_ERROR, as_mean, bounded_sum, clipped

ANYTHING = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(10**400), 10**400),
    st.none(),
    st.text(max_size=3),
    st.booleans(),
)


@given(st.lists(ANYTHING, min_size=1, max_size=20))
def test_nothing_in_a_list_raises_and_each_item_counts_at_most_once(values: list[object]) -> None:
    total = bounded_sum(values, len(values))
    assert 0 <= total <= CELLS * len(values)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), ANYTHING, st.data())
def test_one_row_moves_the_sum_by_at_most_its_cells(
    values: list[float], new: object, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(values) - 1))
    changed: list[object] = [*values[:place], new, *values[place + 1 :]]
    assert abs(bounded_sum(values, len(values)) - bounded_sum(changed, len(values))) <= CELLS


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_mean_is_right_up_to_the_rounding_of_values(values: list[float]) -> None:
    mean = as_mean(bounded_sum(values, len(values)), len(values))
    assert abs(mean - math.fsum(values) / len(values)) <= ROUNDING_ERROR + 1e-15


def test_failures_count_as_the_lowest() -> None:
    assert clipped(np.array([math.nan, -math.inf, math.inf]), 2.0, 3.0).tolist() == [2.0, 2.0, 3.0]


@pytest.mark.parametrize("values", [[], [[0.5, 0.5]], 0.5, np.zeros((2, 2))], ids=str)
def test_only_the_shape_can_be_wrong(values: object) -> None:
    with pytest.raises(InvalidInput, match="values") as error:
        bounded_sum(values, 2)
    assert "0.5" not in str(error.value)  # no value is shown
