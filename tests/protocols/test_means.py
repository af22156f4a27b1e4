"""Means: exact sums, bars that hold and narrow, filters without a bar."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from holdfast.errors import InvalidInput
from holdfast.grids import grid
from holdfast.planning.joint import joint_plan
from holdfast.protocols.answers import Answer
from holdfast.protocols.means import (
    DirectMean,
    DirectMeans,
    DirectPart,
    MedianMeans,
    direct_bar,
    median_bar,
)
from holdfast.protocols.memory import MemoryHoldout
from holdfast.protocols.plans import JointPlan
from holdfast.protocols.searches import SearchPart
from holdfast.protocols.source import UNIT, BlockArray, Bounds, unit_terms
from holdfast.randomness import SeededEntropy
from tests.protocols.worlds import Rows, fresh
from tests.reference.mechanisms import weighted_count


@cache
def median() -> JointPlan:
    return joint_plan(MedianMeans(queries=40, grid=101, tail=1e-3))


@cache
def direct() -> JointPlan:
    return joint_plan(DirectMeans(queries=40, half_width=0.15))


@cache
def exact() -> JointPlan:
    return joint_plan(DirectMeans(queries=10, half_width=0.2, exact=True))


def means(plan: JointPlan, rows: Rows, seed: int = 1) -> MemoryHoldout:
    return fresh(plan, BlockArray(rows, plan.blocks), SeededEntropy(seed))


def flips(plan: JointPlan, truth: float, seed: int = 5) -> Answer:
    """The share of ones among rows that are one with this probability."""
    size = plan.blocks * (400 if plan is median() else 1)
    rows = (np.random.default_rng(seed).uniform(size=size) < truth).astype(float)
    return means(plan, rows, seed).mean(itself)


def ends(answer: Answer) -> tuple[float, float]:
    assert answer.low is not None
    assert answer.high is not None
    return answer.low, answer.high


def count(plan: JointPlan, rows: Rows, term: Any, bounds: Bounds = UNIT) -> int:
    """What a direct search compares with its thresholds."""
    source, (part,) = BlockArray(rows, plan.blocks), plan.parts
    assert isinstance(part, DirectPart)
    protocol = DirectMean(plan, part, source.units, 0.95, certified=True)
    return protocol.count(source.sums(term, None, bounds))


def itself(rows: Rows) -> Rows:
    return rows


def fails(rows: Rows) -> object:
    raise ValueError(rows)


@pytest.mark.parametrize("truth", [0.0, 0.01, 0.02, 0.1, 0.3, 0.37, 0.5, 0.83, 0.9, 0.99, 1.0])
def test_the_bar_holds_the_mean(truth: float) -> None:
    for plan, widest in ((median(), 0.3), (direct(), 0.3)):
        for seed in (5,) if plan is median() else range(5):
            low, high = ends(flips(plan, truth, seed))
            assert low <= truth <= high
            assert high - low <= widest


def test_block_means_are_compared_as_whole_numbers() -> None:
    """The float 1/3 is less than a third: a block's mean of a third lies above it, not on it."""
    rows = np.tile([1.0, 0.0, 0.0], median().blocks * 10)
    assert Fraction(1 / 3) < Fraction(1, 3)
    below, above = 1 / 3, math.nextafter(1 / 3, 1)
    assert means(median(), rows).mean(itself, grid=grid([0, below, 1])).value == 1
    assert means(median(), rows).mean(itself, grid=grid([0, above, 1])).value == above


def test_under_a_filter_there_is_a_value_and_no_bar() -> None:
    rows = np.random.default_rng(2).uniform(size=(median().blocks * 300, 2))
    asked = means(median(), rows)
    answer = asked.mean(lambda r: r[:, 0] < 0.25, where=lambda r: r[:, 0] < 0.5)
    assert (answer.low, answer.high) == (None, None)
    assert abs(answer.value - 0.5) < 0.1
    none = asked.mean(lambda r: r[:, 0], where=lambda r: r[:, 0] > 2)
    assert (none.value, none.at_grid_end) == (0, True)  # blocks without a term count as lowest


def test_a_direct_search_refuses_a_filter_and_charges_nothing() -> None:
    asked = means(direct(), np.zeros(direct().blocks))
    with pytest.raises(InvalidInput, match="This plan's means are over all units"):
        asked.mean(itself, where=itself)
    assert asked.spent == 0


def test_the_direct_count_is_the_weighted_count_and_one_block_moves_it_by_one() -> None:
    rows = np.random.default_rng(1).beta(1, 3, size=direct().blocks)
    before = count(direct(), rows, itself)
    assert abs(before - weighted_count(rows)) <= 1
    three = np.repeat(rows, 3)
    assert count(direct(), three, itself) == before
    for number in (0.0, 1.0, math.nan, 7.0, -7.0):
        changed = three.copy()
        changed[3:6] = number
        assert abs(count(direct(), changed, itself) - before) <= 1


@pytest.mark.parametrize("bounds", [UNIT, (-5.0, 5.0)])
def test_failures_count_as_the_lowest_and_say_nothing(bounds: Bounds) -> None:
    rows = np.ones(direct().blocks)
    terms = (fails, lambda rows: "text", lambda rows: rows[:0], lambda rows: rows * math.nan)
    assert [count(direct(), rows, term, bounds) for term in terms] == [0] * 4
    assert means(direct(), rows).mean(fails, range=bounds).low == bounds[0]


def test_an_exact_plan_wants_single_units_and_makes_weights_zero_or_one() -> None:
    plan = exact()
    with pytest.raises(InvalidInput, match="exact"):
        means(plan, np.zeros(2 * plan.blocks)).mean(itself)
    rows = np.full(plan.blocks, 0.7)
    assert count(plan, rows, itself) == plan.blocks  # 0.7 is nearer to 1
    assert count(plan, rows, itself, (0.0, 4.0)) == 0  # and here to 0
    promise = means(plan, rows).mean(itself, range=(0, 4)).promise
    assert "and counts as 0 below the middle, as 4 from it on" in promise


def test_any_sequence_of_terms_will_do() -> None:
    rows = np.ones(direct().blocks)
    assert count(direct(), rows, tuple) == count(direct(), rows, iter) == direct().blocks
    assert "failure counts as 0" in means(direct(), rows).mean(tuple).promise


# Terms in other ranges.

ENDS = st.floats(-1e300, 1e300)
RANGES = st.tuples(ENDS, ENDS).filter(lambda pair: pair[0] < pair[1])
NUMBERS = arrays(np.float64, 12, elements=st.floats(allow_nan=True, allow_infinity=True))


def exactly(bounds: tuple[float, float], share: Fraction) -> Fraction:
    """low + (high − low)·share"""
    low, high = map(Fraction, bounds)
    return low + (high - low) * share


@given(bounds=RANGES, numbers=NUMBERS)
def test_a_term_is_cut_and_scaled_exactly_but_for_rounding(
    bounds: tuple[float, float], numbers: np.ndarray
) -> None:
    low, high = bounds
    found = unit_terms(numbers, bounds)
    cut = [low if math.isnan(x) else min(max(x, low), high) for x in numbers]
    for term, number in zip(found, cut, strict=True):
        share = (Fraction(number) - Fraction(low)) / (Fraction(high) - Fraction(low))
        assert 0 <= term <= 1
        assert abs(Fraction(float(term)) - share) < Fraction(1, 2**50)


@given(bounds=RANGES, numbers=NUMBERS)
def test_the_sum_is_that_of_the_cut_term(bounds: tuple[float, float], numbers: np.ndarray) -> None:
    """And that of the scaled term, which cannot leave [0, 1]."""
    low, high = bounds
    source = BlockArray(numbers, blocks=3)
    found = source.sums(itself, None, bounds).tolist()
    cut = np.array([low if math.isnan(x) else min(max(x, low), high) for x in numbers])
    assert found == BlockArray(cut, 3).sums(itself, None, bounds).tolist()
    assert found == BlockArray(unit_terms(numbers, bounds), 3).sums(itself).tolist()
    assert found == source.sums(lambda rows: [*rows], None, bounds).tolist()


@given(bounds=RANGES, ends=st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted))
def test_a_bar_is_scaled_back_exactly_and_rounded_outwards(
    bounds: tuple[float, float], ends: list[float]
) -> None:
    value, low, high = direct_bar(ends[0], ends[1], bounds)
    if bounds == UNIT:
        assert [low, high] == ends
        return
    slack = Fraction(1, 2**50)
    below = exactly(bounds, max(Fraction(0), Fraction(ends[0]) - slack))
    above = exactly(bounds, min(Fraction(1), Fraction(ends[1]) + slack))
    assert Fraction(low) <= below < Fraction(math.nextafter(low, math.inf))
    assert Fraction(math.nextafter(high, -math.inf)) < above <= Fraction(high)
    assert bounds[0] <= low <= value <= high <= bounds[1]
    middle = exactly(bounds, (Fraction(ends[0]) + Fraction(ends[1])) / 2)
    assert value == float(middle)


@given(bounds=RANGES, index=st.integers(0, 16))
def test_the_bar_of_a_median_is_that_of_the_scaled_cell(
    bounds: tuple[float, float], index: int
) -> None:
    """On sixteenths of ranges that are powers of two wide: they scale without rounding."""
    scale = 2.0 ** round(math.log2(max(1e-3, min(1e3, bounds[1] - bounds[0]))))
    shift = float(np.clip(np.round(bounds[0]), -1000, 1000))
    near = (shift, shift + scale)
    points, unit = grid(*near, points=17), grid(0, 1, points=17)
    (part,) = median().parts
    assert isinstance(part, SearchPart)
    low, high = median_bar(part, points, index, 50, near)
    plain = median_bar(part, unit, index, 50, UNIT)
    ulps = 4 * math.ulp(max(abs(near[0]), abs(near[1])))
    assert low == pytest.approx(near[0] + scale * plain[0], abs=ulps + 1e-14 * scale)
    assert high == pytest.approx(near[0] + scale * plain[1], abs=ulps + 1e-14 * scale)
    assert near[0] <= low <= points.point(index) <= high <= near[1]


@pytest.mark.parametrize("made", [median, direct])
def test_another_range_is_answered_in_its_own_units(
    made: Callable[[], JointPlan],
) -> None:
    plan = made()
    rows = np.random.default_rng(7).normal(size=plan.blocks * (200 if plan is median() else 1))
    answer = means(plan, rows).mean(itself, range=(-8, 8))
    unit = means(plan, (np.clip(rows, -8, 8) + 8) / 16).mean(itself, cut=False)
    low, high = ends(answer)
    assert low < 0 < high
    for name in ("value", "low", "high"):
        assert getattr(answer, name) == pytest.approx(16 * getattr(unit, name) - 8, abs=1e-9)
    assert "of the term cut to [-8, 8]" in answer.promise
    assert "a failure counts as -8" in answer.promise
    assert "cut" not in unit.promise
    assert "of the term cut to [0, 1]" in means(plan, rows).mean(itself).promise
