"""Quantile intervals against their definition, by brute force over small multisets."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.theory.bars import (
    grid_interval,
    in_quantile_interval,
    is_approximate_median,
    is_interior_point,
    median_levels,
    quantile_interval,
)

LEVELS = sorted({Fraction(i, n) for n in range(1, 6) for i in range(n + 1)})
PAIRS = [(a, b) for a in LEVELS for b in LEVELS if a < b]
MULTISETS = [
    values
    for size in range(1, 5)
    for values in itertools.combinations_with_replacement(range(4), size)
]
HALVES = [Fraction(i, 2) for i in range(-1, 8)]


class Points:
    """The little that `grid_interval` needs of a grid."""

    def __init__(self, *points: float) -> None:
        self.points = points
        self.size = len(points)

    def point(self, index: int) -> float:
        return self.points[index]


def by_definition(v: Fraction | float, values: tuple[int, ...], a: Fraction, b: Fraction) -> bool:
    at_most = Fraction(sum(y <= v for y in values), len(values))
    below = Fraction(sum(y < v for y in values), len(values))
    return at_most > a and below < b


def test_membership_is_the_definition() -> None:
    for values in MULTISETS:
        for a, b in PAIRS:
            for v in HALVES:
                expected = by_definition(v, values, a, b)
                assert in_quantile_interval(v, values, a, b) is expected


def test_the_interval_is_closed_and_its_ends_are_values() -> None:
    for values in MULTISETS:
        for a, b in PAIRS:
            low, high = quantile_interval(values, a, b)
            assert low in values
            assert high in values
            for v in HALVES:
                assert by_definition(v, values, a, b) is (low <= v <= high)


def test_weights_are_repetitions() -> None:
    for values in MULTISETS:
        distinct = sorted(set(values))
        counts = [values.count(v) for v in distinct]
        shares = [Fraction(c, len(values)) for c in counts]
        for a, b in PAIRS:
            expected = quantile_interval(values, a, b)
            assert quantile_interval(distinct, a, b, weights=counts) == expected
            assert quantile_interval(distinct[::-1], a, b, weights=shares[::-1]) == expected
            for v in HALVES:
                inside = in_quantile_interval(v, distinct, a, b, weights=np.array(counts))
                assert inside is by_definition(v, values, a, b)


def test_values_without_weight_do_not_exist() -> None:
    assert quantile_interval([0, 1, 2], 0, 1, weights=[0, 1, 0]) == (1, 1)


def test_the_grid_points_inside() -> None:
    grid = Points(-0.5, 0.5, 1, 2.5, 9)
    for values in MULTISETS:
        for a, b in PAIRS:
            inside = [i for i, p in enumerate(grid.points) if by_definition(p, values, a, b)]
            expected = (inside[0], inside[-1]) if inside else None
            assert grid_interval(grid, values, a, b) == expected


def test_projection_upwards_turns_the_promise_into_the_cell() -> None:
    # What bars.py rests on: v = T[i] is in qi(a, b) of the projected values just when
    # D[φ ≤ T[i]] > a (or i is the top) and D[φ > T[i−1]] > 1 − b (or i is the bottom).
    grid = (Fraction(1, 2), Fraction(1), Fraction(5, 2))
    for values in MULTISETS:
        projected = [next((p for p in grid if p >= y), grid[-1]) for y in values]
        for (a, b), i in itertools.product(PAIRS, range(3)):
            share = Fraction(1, len(values))
            below = i == 2 or sum(y <= grid[i] for y in values) * share > a
            above = i == 0 or sum(y > grid[i - 1] for y in values) * share > 1 - b
            assert in_quantile_interval(grid[i], projected, a, b) is (below and above)


def test_a_float_level_is_the_number_it_stores() -> None:
    values = range(1, 11)
    assert in_quantile_interval(3, list(values), 0.3, 1)  # the float is a little below 3/10
    assert not in_quantile_interval(3, list(values), Fraction(3, 10), 1)


def test_comparisons_are_exact_across_types() -> None:
    third = np.array([0.1], dtype=np.float32)  # 0.1000000015
    assert not in_quantile_interval(0.1, third, 0, 1)
    assert in_quantile_interval(float(third[0]), third, 0, 1)
    big = np.array([2**53 + 1])
    assert not in_quantile_interval(float(2**53), big, 0, 1)
    assert in_quantile_interval(2**53 + 1, big, 0, 1)
    assert in_quantile_interval(np.int64(2**53 + 1), big, 0, 1)
    assert not in_quantile_interval(2**53 + 1, [float(2**53)], 0, 1)
    assert in_quantile_interval(1, np.array([True, False]), 0, 1)
    assert in_quantile_interval(np.float64(0.5), [Fraction(1, 2)], 0, 1)


def test_infinite_values_have_a_rank() -> None:
    values = [-np.inf, 0.0, np.inf]
    assert quantile_interval(values, 0, 1) == (-np.inf, np.inf)
    assert in_quantile_interval(np.inf, values, 0.5, 1)


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: in_quantile_interval(0, [float("nan")], 0, 1), "values"),
        (lambda: in_quantile_interval(float("nan"), [0], 0, 1), "v"),
        (lambda: in_quantile_interval(0, [], 0, 1), "values"),
        (lambda: in_quantile_interval(0, [0], 0.5, 0.5), "levels"),
        (lambda: in_quantile_interval(0, [0], -0.1, 0.5), "levels"),
        (lambda: in_quantile_interval(0, [0], 0.5, 1.1), "levels"),
        (lambda: in_quantile_interval(0, [0], 0.0, float("inf")), "b"),
        (lambda: in_quantile_interval(0, [0], 0, 1, weights=[1, 2]), "weights"),
        (lambda: in_quantile_interval(0, [0], 0, 1, weights=[0]), "weights"),
        (lambda: in_quantile_interval(0, [0, 1], 0, 1, weights=[2, -1]), "weights"),
        (lambda: in_quantile_interval(0, [0], 0, 1, weights=np.array([0.5])), "weights"),
        (lambda: median_levels(0), "alpha"),
        (lambda: median_levels(Fraction(9, 8)), "alpha"),
    ],
)
def test_what_has_no_meaning_is_refused(call: object, parameter: str) -> None:
    assert callable(call)
    with pytest.raises(InvalidInput) as caught:
        call()
    assert caught.value.parameter == parameter


def test_an_interior_point_is_a_1_approximate_median() -> None:
    for values in MULTISETS:
        for v in HALVES:
            assert is_interior_point(v, values) is (min(values) <= v <= max(values))


@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=30),
    st.integers(-6, 6),
    st.fractions(min_value=Fraction(1, 50), max_value=1, max_denominator=50),
    st.fractions(min_value=Fraction(1, 50), max_value=1, max_denominator=50),
)
def test_a_wider_tolerance_keeps_every_median(
    values: list[int], v: int, one: Fraction, two: Fraction
) -> None:
    narrow, wide = sorted((one, two))
    if is_approximate_median(v, values, narrow):
        assert is_approximate_median(v, values, wide)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30))
def test_the_true_median_is_an_approximate_one_however_strict(values: list[int]) -> None:
    median = sorted(values)[(len(values) - 1) // 2]
    assert is_approximate_median(median, values, Fraction(1, 10**9))
