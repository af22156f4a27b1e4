"""Means: exact sums, bars that hold and narrow, filters without a bar."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from holdfast.errors import Exhausted, InvalidInput
from holdfast.grids import grid
from holdfast.mechanisms.looks import weighted_count
from holdfast.planning.joint import JointPlan, joint_plan
from holdfast.planning.requests import DirectMeans, MedianMeans
from holdfast.protocols.budget import Budget
from holdfast.protocols.means import DirectMean, MedianMean, direct_bar, mean_of, median_bar
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, BlockArray, unit_terms
from holdfast.randomness import SeededEntropy
from holdfast.theory.bars import mean_bar


@pytest.fixture(scope="module")
def median_plan() -> JointPlan:
    return joint_plan(MedianMeans(queries=40, grid=101, tail=1e-3))


@pytest.fixture(scope="module")
def direct_plan() -> JointPlan:
    return joint_plan(DirectMeans(queries=40, half_width=0.15))


def median(plan: JointPlan, rows: np.ndarray, seed: int = 1) -> MedianMean:
    return MedianMean(Budget(plan), BlockArray(rows, plan.blocks), SeededEntropy(seed))


def direct(plan: JointPlan, rows: np.ndarray, seed: int = 1) -> DirectMean:
    return DirectMean(Budget(plan), BlockArray(rows, plan.blocks), SeededEntropy(seed))


def itself(rows: np.ndarray) -> np.ndarray:
    return rows


def test_the_plan_says_which_way(median_plan: JointPlan, direct_plan: JointPlan) -> None:
    small = BlockArray(np.zeros(direct_plan.blocks), direct_plan.blocks)
    assert isinstance(mean_of(Budget(direct_plan), small), DirectMean)
    large = BlockArray(np.zeros(median_plan.blocks), median_plan.blocks)
    assert isinstance(mean_of(Budget(median_plan), large), MedianMean)


@pytest.mark.parametrize("truth", [0.0, 0.01, 0.1, 0.37, 0.5, 0.83, 0.99, 1.0])
def test_the_bar_of_block_means_holds_the_mean(median_plan: JointPlan, truth: float) -> None:
    rows = (np.random.default_rng(5).uniform(size=median_plan.blocks * 400) < truth).astype(float)
    answer = median(median_plan, rows).ask(itself)
    assert answer.low is not None
    assert answer.high is not None
    assert answer.low <= truth <= answer.high
    assert answer.high - answer.low < 0.3


def test_the_bar_narrows_towards_the_ends(median_plan: JointPlan, direct_plan: JointPlan) -> None:
    def width(truth: float, *, block_means: bool) -> float:
        rng = np.random.default_rng(3)
        if block_means:
            rows = (rng.uniform(size=median_plan.blocks * 400) < truth).astype(float)
            answer = median(median_plan, rows).ask(itself)
        else:
            rows = (rng.uniform(size=direct_plan.blocks) < truth).astype(float)
            answer = direct(direct_plan, rows).ask(itself)
        assert answer.low is not None
        assert answer.high is not None
        return answer.high - answer.low

    for block_means in (True, False):
        widths = [width(truth, block_means=block_means) for truth in (0.005, 0.15, 0.5)]
        assert widths == sorted(widths)
        assert widths[0] < 0.7 * widths[-1]


def test_the_bar_is_chernoffs_and_allows_for_all_rounding(median_plan: JointPlan) -> None:
    rows = np.full(median_plan.blocks * 50, 0.3)
    answer = median(median_plan, rows).ask(itself, grid=grid(0, 1, step=0.1))
    part = median_plan.parts[0]
    low, high = mean_bar(0.2, 0.3, 50, 1e-3, 1e-3)
    assert low is not None
    assert high is not None
    assert part.name == "mean"
    assert answer.value in (0.3, 0.4)  # 0.3 rounds to a little more or less in parts of 2⁻¹⁶
    if answer.value == 0.3:
        assert answer.low == pytest.approx(low - 0.5 / WEIGHT_SCALE)
        assert answer.high == pytest.approx(high + 0.5 / WEIGHT_SCALE)


def test_block_means_are_compared_as_whole_numbers(median_plan: JointPlan) -> None:
    """The float 1/3 is less than a third: a block's mean of a third lies above it, not on it."""
    rows = np.tile([1.0, 0.0, 0.0], median_plan.blocks * 10)
    assert Fraction(1 / 3) < Fraction(1, 3)
    below, above = 1 / 3, math.nextafter(1 / 3, 1)
    assert median(median_plan, rows).ask(itself, grid=grid([0, below, 1])).value == 1
    assert median(median_plan, rows).ask(itself, grid=grid([0, above, 1])).value == above


def test_under_a_filter_there_is_a_value_and_no_bar(median_plan: JointPlan) -> None:
    rng = np.random.default_rng(2)
    rows = rng.uniform(size=(median_plan.blocks * 300, 2))
    means = median(median_plan, rows)
    answer = means.ask(lambda r: r[:, 0] < 0.25, where=lambda r: r[:, 0] < 0.5)
    assert answer.low is None
    assert answer.high is None
    assert abs(answer.value - 0.5) < 0.1


def test_blocks_without_a_term_count_as_lowest(median_plan: JointPlan) -> None:
    rows = np.ones(median_plan.blocks * 10)
    answer = median(median_plan, rows).ask(itself, where=lambda r: r > 2)
    assert answer.value == 0
    assert answer.at_grid_end


def test_a_direct_search_refuses_a_filter_and_charges_nothing(direct_plan: JointPlan) -> None:
    means = direct(direct_plan, np.zeros(direct_plan.blocks))
    with pytest.raises(InvalidInput, match="means of all units; got 'a filter'"):
        means.ask(itself, where=itself)
    assert means.budget.spent == 0


def test_the_direct_count_is_the_weighted_count(direct_plan: JointPlan) -> None:
    rows = np.random.default_rng(1).beta(1, 3, size=direct_plan.blocks)
    means = direct(direct_plan, rows)
    assert abs(means._count(itself) - weighted_count(rows)) <= 1
    larger = DirectMean(
        Budget(direct_plan), BlockArray(np.repeat(rows, 4), direct_plan.blocks), SeededEntropy(1)
    )
    assert larger._count(itself) == means._count(itself)


def test_one_block_moves_the_direct_count_by_at_most_one(direct_plan: JointPlan) -> None:
    rng = np.random.default_rng(4)
    rows = rng.uniform(size=direct_plan.blocks * 3)
    before = direct(direct_plan, rows)._count(itself)
    for value in (0.0, 1.0, math.nan, 7.0, -7.0):
        changed = rows.copy()
        changed[3:6] = value
        assert abs(direct(direct_plan, changed)._count(itself) - before) <= 1


def test_failures_count_as_zero_and_say_nothing(direct_plan: JointPlan) -> None:
    means = direct(direct_plan, np.ones(direct_plan.blocks))

    def fails(rows: np.ndarray) -> object:
        raise ValueError(rows)

    assert means._count(fails) == 0
    assert means._count(lambda rows: "text") == 0
    assert means._count(lambda rows: rows[:0]) == 0
    assert means._count(lambda rows: rows * math.nan) == 0
    assert means.ask(fails).low == 0


def test_an_exact_plan_wants_single_units_and_makes_weights_zero_or_one() -> None:
    plan = joint_plan(DirectMeans(queries=10, half_width=0.2, exact=True))
    with pytest.raises(InvalidInput, match="exact"):
        direct(plan, np.zeros(2 * plan.blocks))
    means = direct(plan, np.full(plan.blocks, 0.7))
    assert means._count(itself) == plan.blocks  # 0.7 is nearer to 1


def test_a_question_costs_one_look_and_the_last_is_refused(direct_plan: JointPlan) -> None:
    means = direct(direct_plan, np.zeros(direct_plan.blocks))
    part = direct_plan.parts[0]
    for _ in range(part.looks):
        answer = means.ask(itself)
        assert answer.price == part.prices(direct_plan.order).worst
    with pytest.raises(Exhausted, match="mean"):
        means.ask(itself)
    assert means.budget.spent <= direct_plan.budget * (1 + 1e-9)


@pytest.mark.parametrize("truth", [0.02, 0.3, 0.5, 0.9])
def test_the_direct_bar_holds_the_mean(direct_plan: JointPlan, truth: float) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows = (rng.uniform(size=direct_plan.blocks) < truth).astype(float)
        answer = direct(direct_plan, rows, seed).ask(itself)
        assert answer.low is not None
        assert answer.high is not None
        assert answer.low <= truth <= answer.high
        assert (answer.high - answer.low) / 2 <= 0.15


def test_any_sequence_of_terms_will_do(direct_plan: JointPlan) -> None:
    means = direct(direct_plan, np.ones(direct_plan.blocks))
    assert means._count(tuple) == direct_plan.blocks
    assert means._count(iter) == direct_plan.blocks
    assert "failure counts as 0" in means.ask(tuple).promise


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
    median_plan: JointPlan, bounds: tuple[float, float], index: int
) -> None:
    """On sixteenths of ranges that are powers of two wide: they scale without rounding."""
    scale = 2.0 ** round(math.log2(max(1e-3, min(1e3, bounds[1] - bounds[0]))))
    shift = float(np.clip(np.round(bounds[0]), -1000, 1000))
    near = (shift, shift + scale)
    points, unit = grid(*near, points=17), grid(0, 1, points=17)
    (part,) = median_plan.parts
    low, high = median_bar(part, points, index, 50, near)  # type: ignore[arg-type]
    plain = median_bar(part, unit, index, 50, UNIT)  # type: ignore[arg-type]
    ulps = 4 * math.ulp(max(abs(near[0]), abs(near[1])))
    assert low == pytest.approx(near[0] + scale * plain[0], abs=ulps + 1e-14 * scale)
    assert high == pytest.approx(near[0] + scale * plain[1], abs=ulps + 1e-14 * scale)
    assert near[0] <= low <= points.point(index) <= high <= near[1]


@pytest.mark.parametrize("way", [median, direct])
def test_a_term_in_another_range_is_answered_in_its_own_units(
    way: object, median_plan: JointPlan, direct_plan: JointPlan
) -> None:
    plan, units = (median_plan, 200) if way is median else (direct_plan, 1)
    rows = np.random.default_rng(7).normal(size=plan.blocks * units)
    assert callable(way)
    answer = way(plan, rows).ask(itself, range=(-8, 8))
    unit = way(plan, (np.clip(rows, -8, 8) + 8) / 16).ask(itself, cut=False)
    assert answer.low < 0 < answer.high
    for name in ("value", "low", "high"):
        assert getattr(answer, name) == pytest.approx(16 * getattr(unit, name) - 8, abs=1e-9)
    assert "of the term cut to [-8, 8]" in answer.promise
    assert "a failure counts as -8" in answer.promise
    assert "cut" not in unit.promise
    assert "of the term cut to [0, 1]" in way(plan, rows).ask(itself).promise


def test_failures_count_as_the_lowest_of_the_range(direct_plan: JointPlan) -> None:
    means = direct(direct_plan, np.full(direct_plan.blocks, math.nan))
    assert means._count(itself, (-5.0, 5.0)) == 0
    assert means._count(lambda rows: rows[:0], (-5.0, 5.0)) == 0
    answer = means.ask(itself, range=(-5, 5))
    assert answer.low == -5


def test_an_exact_plan_counts_the_ends_of_the_range() -> None:
    plan = joint_plan(DirectMeans(queries=10, half_width=0.2, exact=True))
    means = direct(plan, np.full(plan.blocks, 0.7))
    assert means._count(itself, (0.0, 4.0)) == 0  # 0.7 is nearer to 0
    promise = means.ask(itself, range=(0, 4)).promise
    assert "and counts as 0 below the middle, as 4 from it on" in promise


@pytest.mark.parametrize("wrong", [(1, 0), (0, 0), (0, math.inf), (-1e301, 0), (1,), None, "01"])
def test_a_range_that_is_none_is_refused_and_costs_nothing(
    wrong: object, median_plan: JointPlan, direct_plan: JointPlan
) -> None:
    for means in (
        median(median_plan, np.zeros(median_plan.blocks)),
        direct(direct_plan, np.zeros(direct_plan.blocks)),
    ):
        with pytest.raises(InvalidInput, match="range"):
            means.ask(itself, range=wrong)  # type: ignore[arg-type]
        assert means.budget.spent == 0
