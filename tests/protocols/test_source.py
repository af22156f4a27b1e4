"""Sources: one value per block, whatever the estimator does, and nothing else of the data."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.grids import grid
from holdfast.protocols.base import block_floats, checked_grid
from holdfast.protocols.source import WEIGHT_SCALE, BlockArray
from tests.protocols.worlds import FAILURES, Rows, failures

LOWEST = -np.finfo(np.float64).max


@given(st.integers(1, 60), st.data())
def test_every_row_is_in_at_most_one_block(rows: int, data: st.DataObject) -> None:
    blocks = data.draw(st.integers(1, rows))
    source = BlockArray(np.arange(rows), blocks)
    seen = [row for block in source.values(lambda x: x.tolist()) for row in block]  # type: ignore[attr-defined]
    assert seen == list(range(blocks * source.units))
    assert rows - len(seen) < blocks


@given(st.integers(1, 12), st.data())
def test_a_part_is_those_blocks_alone(blocks: int, data: st.DataObject) -> None:
    source = BlockArray(np.arange(3 * blocks), blocks)
    stop = data.draw(st.integers(1, blocks))
    start = data.draw(st.integers(0, stop - 1))
    part = source.part(start, stop)
    assert (part.blocks, part.units) == (stop - start, 3)
    assert part.values(list) == source.values(list)[start:stop]


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (2, 2), (3, 1), (-1, 2), (0, 5), (0.5, 2)])
def test_parts_that_are_none_are_refused(start: Any, stop: Any) -> None:
    with pytest.raises(InvalidInput):
        BlockArray(np.arange(8), 4).part(start, stop)


@pytest.mark.parametrize("blocks", [0, -1, 9, 2.5, True, "2", None, math.nan])
def test_numbers_of_blocks_are_checked(blocks: Any) -> None:
    with pytest.raises(InvalidInput, match="blocks"):
        BlockArray(np.arange(8), blocks)


def test_a_single_number_has_no_rows() -> None:
    with pytest.raises(InvalidInput, match="rows"):
        BlockArray(np.array(3.0), 1)


# Estimators may do what they like.


def overwrite(rows: Rows) -> float:
    before = float(rows.sum())
    rows[:] = -1000
    return before


def test_an_estimator_may_write_into_its_argument() -> None:
    rows = np.arange(12.0)
    source = BlockArray(rows, blocks=3)
    first, second = source.values(overwrite), source.values(overwrite)
    assert first == second == [6.0, 22.0, 38.0]
    assert rows.tolist() == list(range(12))
    assert source.sums(overwrite).tolist() == [0, 0, 0]
    assert rows.tolist() == list(range(12))


def test_an_estimator_may_write_into_objects_too() -> None:
    rows = np.empty(4, object)
    for i in range(4):
        rows[i] = [i]
    source = BlockArray(rows, blocks=2)

    def append(block: Rows) -> int:
        block[0].append(1)
        return len(block[0])

    assert source.values(append) == source.values(append)


POINTS = grid(0, 1, points=5)


@failures
def test_a_failure_is_the_lowest_value_and_no_exception(kind: str) -> None:
    source = BlockArray(np.linspace(0.01, 0.99, 6), 6)
    assert (block_floats(source.values(FAILURES[kind]), 6) == LOWEST).all()
    assert POINTS.ceiling(source.values(FAILURES[kind])).tolist() == [0] * 6
    assert source.sums(FAILURES[kind]).tolist() == [0] * 6 or kind == "a list"


@failures
def test_failures_of_some_blocks_leave_the_others(kind: str) -> None:
    source = BlockArray(np.arange(6.0), 6)

    def sometimes(rows: Rows) -> object:
        return FAILURES[kind](rows) if rows[0] % 2 else 0.6

    assert POINTS.ceiling(source.values(sometimes)).tolist() == [3, 0, 3, 0, 3, 0]
    assert (block_floats(source.values(sometimes), 6) == LOWEST).tolist() == [False, True] * 3


@pytest.mark.parametrize(
    "estimator", [None, 5, "mean", [np.mean]], ids=["none", "number", "text", "list"]
)
def test_what_cannot_be_called_fails_on_every_block(estimator: Any) -> None:
    assert BlockArray(np.arange(3.0), 3).values(estimator) == [None] * 3


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.floats(),
            st.integers(),
            st.fractions(),
            st.decimals(),
            st.text(),
            st.lists(st.floats(), max_size=2),
            st.booleans(),
            st.complex_numbers(),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_any_values_become_one_float_and_one_index_each(values: list[object]) -> None:
    source = BlockArray(np.arange(len(values)), len(values))

    def estimator(rows: Rows) -> object:
        return values[int(rows[0])]

    found = source.values(estimator)
    floats, indices = block_floats(found, len(values)), POINTS.ceiling(found)
    assert floats.shape == indices.shape == (len(values),)
    assert floats.dtype == np.float64
    for value, number, index in zip(values, floats, indices, strict=True):
        if isinstance(value, int | float | Fraction) and value == value:
            assert number >= value or number == -LOWEST  # infinity is the largest number
            assert index == 0 or POINTS.point(int(index) - 1) < value
        elif not isinstance(value, Decimal):
            assert number == LOWEST
            assert index == 0


# Sums.


def test_sums_count_in_parts_of_a_65536th() -> None:
    source = BlockArray(np.array([0.0, 1.0, 0.5, 0.25, 1 / 3, 1e-9]), blocks=3)
    third = math.floor(WEIGHT_SCALE / 3 + 0.5)
    assert source.sums(lambda rows: rows).tolist() == [65536, 49152, third]


def test_terms_are_clipped_and_failures_are_nothing() -> None:
    source = BlockArray(np.array([2.0, -1.0, math.nan, math.inf, -math.inf, 0.5]), blocks=2)
    assert source.sums(lambda rows: rows).tolist() == [65536, 65536 + 32768]
    assert source.sums(lambda rows: rows[:2]).tolist() == [0, 0]  # not one for each unit
    assert source.sums(lambda rows: rows.reshape(1, -1)).tolist() == [0, 0]
    assert source.sums(lambda rows: [1, None, "x"]).tolist() == [65536, 65536]
    assert source.sums(lambda rows: 1.0).tolist() == [0, 0]
    assert source.terms(lambda rows: rows).tolist() == [65536, 0, 0, 65536, 0, 32768]
    assert source.terms(lambda rows: rows[:2]).tolist() == [0] * 6


def test_terms_add_up_to_sums_and_are_of_the_same_units() -> None:
    source = BlockArray(np.arange(11.0), blocks=3)  # and two that are left out
    some, bounds = (lambda rows: rows % 2 == 0), (-2.0, 8.0)
    terms = source.terms(lambda rows: rows, some, bounds)
    assert terms.dtype == np.int64
    every = source.terms(lambda rows: rows, None, bounds)
    kept = source.terms(None, some, bounds)
    assert kept.tolist() == [65536, 0] * 4 + [65536]
    assert terms.tolist() == np.where(kept > 0, every, 0).tolist()
    sums = source.sums(lambda rows: rows, some, bounds)
    assert terms.reshape(3, 3).sum(axis=1).tolist() == sums.tolist()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_a_sum_is_within_half_a_part_a_term_and_exact(terms: list[float]) -> None:
    source = BlockArray(np.array(terms), blocks=1)
    found = int(source.sums(lambda rows: rows)[0])
    assert found == sum(math.floor(Fraction(x) * WEIGHT_SCALE + Fraction(1, 2)) for x in terms)
    assert abs(found - WEIGHT_SCALE * math.fsum(terms)) <= len(terms) / 2 + 1e-6


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12), st.floats(0, 1))
def test_one_unit_moves_a_sum_by_at_most_one(terms: list[float], other: float) -> None:
    one, two = np.array(terms), np.array([other, *terms[1:]])
    sums = [int(BlockArray(x, 1).sums(lambda rows: rows)[0]) for x in (one, two)]
    assert abs(sums[0] - sums[1]) <= WEIGHT_SCALE


@pytest.mark.parametrize("wrong", [None, 5, (0, 1), [0, 1], "0:1:0.1", np.arange(3)], ids=str)
def test_a_grid_is_a_grid(wrong: object) -> None:
    with pytest.raises(InvalidInput, match=r"holdfast\.grid"):
        checked_grid(wrong)
    assert checked_grid(POINTS) is POINTS
