"""Searches: what they answer, with which chances, and what cannot hurt them.

What gives a yes or no and has no test here is run by tests/test_mutants.py: on the real code, which
passes, and on broken copies, which must not.
"""

from __future__ import annotations

import itertools
import math
import sys
import warnings
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.grids import grid
from holdfast.planning.joint import joint_plan
from holdfast.protocols.base import Protocol
from holdfast.protocols.plans import JointPlan
from holdfast.protocols.searches import (
    AmplifiedEstimates,
    Estimate,
    Estimates,
    Interval,
    SearchPart,
    Simple,
    SimpleEstimates,
)
from holdfast.protocols.shapes import BoundedMean, KnownSd
from holdfast.protocols.source import BlockArray
from holdfast.randomness import Entropy, SeededEntropy
from holdfast.theory.coins import Coin
from tests.holdout import plans
from tests.holdout.plans import BLOCKS, ESTIMATE, INTERVAL, mixed_plan
from tests.mechanisms.laws import Script
from tests.mutants.mechanisms import chance
from tests.protocols.worlds import (
    FAILURES,
    Rows,
    alone,
    failures,
    fresh,
    points,
    using,
    value,
)
from tests.theory.worlds import Population, Rules, Searches, atoms_for, most_broken

TARGET = INTERVAL.twice_target
TWO = grid([0.0, 1.0])


def split(below: int) -> list[float]:
    """So many blocks at 0, the others at 1."""
    return [0.0] * below + [1.0] * (BLOCKS - below)


# Estimates.


@given(st.lists(st.integers(0, 9), min_size=BLOCKS, max_size=BLOCKS), st.integers(2, 12))
@settings(max_examples=25)
def test_without_errors_it_is_the_median_on_the_grid(values: list[int], size: int) -> None:
    rows = np.array(values, float)
    answer = fresh(data=rows).ask(value, grid(0, 9, points=size))
    projected = grid(0, 9, points=size).project(rows)
    assert answer.value == np.sort(projected)[BLOCKS // 2]  # a count on the target says No
    assert answer.at_grid_end == (answer.value in (0, 9))


def has_the_chances_of_its_coin(kind: type[Protocol[Any]] = Estimate) -> bool:
    """Every look of an estimate flips the planned coin at twice the count minus twice m/2."""
    coin = ESTIMATE.coin(mixed_plan().order)

    def first_look(below: int) -> Fraction:
        def lower(entropy: Entropy) -> bool:
            return fresh(data=split(below), entropy=entropy).ask(value, TWO).value == 0

        return chance(lower)

    with using(kind):
        return all(
            abs(first_look(below) - Fraction(coin.yes(2 * below - BLOCKS))) <= Fraction(1, 2**52)
            for below in (0, 150, 180, 196, 199, 200, 201, 207, 240, BLOCKS)
        )


def test_an_estimator_tosses_its_coins_once_a_question() -> None:
    """All looks of a question see one value of each block, however random the estimator is."""
    calls = itertools.count()
    fresh().ask(lambda _: float(next(calls)), points(8))
    assert points(8).looks == 3
    assert next(calls) == BLOCKS


def test_a_target_of_its_own_is_aimed_at() -> None:
    """Unequal tails: the count crosses the part's target, not m/2."""
    part = replace(INTERVAL, name="estimate", protocol="estimate", mirrored=False)
    plan = replace(alone("interval"), parts=(part,))
    assert plan.verify()
    answer = fresh(plan).ask(value, grid(0, 1, step=0.01))
    assert answer.value == pytest.approx(part.twice_target / (2 * BLOCKS), abs=0.01)
    assert (answer.tail_low, answer.tail_high, answer.tail) == (0.02, 0.5, 0.02)


def test_a_known_shape_gives_a_bar_around_the_cell() -> None:
    rows = np.repeat(np.tile([0.3, 0.5], BLOCKS // 2), 50)
    asked = fresh(data=BlockArray(rows, BLOCKS))
    answer = asked.ask(np.mean, grid(0, 1, step=0.05), shape=BoundedMean())
    cell = grid(0, 1, step=0.05).cell(round(answer.value / 0.05))
    assert (answer.low, answer.high) == BoundedMean().bar(cell, 50, 0.02, 0.02)
    assert answer.low < cell[0] < cell[1] < answer.high  # type: ignore[operator]
    assert "between low and high" in answer.promise
    end = fresh().ask(lambda rows: -1.0, points(8), shape=KnownSd(1.0))
    assert (end.low, end.at_grid_end) == (None, True)


@failures
def test_an_estimator_that_fails_is_the_lowest_point(kind: str) -> None:
    answer = fresh().ask(FAILURES[kind], points(8))
    assert (answer.value, answer.at_grid_end) == (0, True)
    interval = fresh().interval(FAILURES[kind], points(4))
    assert (interval.low, interval.value, interval.high) == (None, 0.0, 0.0)


@pytest.mark.parametrize(
    "estimator",
    [lambda rows: float(np.log(rows - 0.5).sum()), lambda rows: float(np.mean(rows[rows > 0.5]))],
    ids=["invalid", "empty"],
)
def test_no_warning_depends_on_the_data(estimator: Any) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fresh().ask(estimator, points(8))
    assert seen == []


def test_any_source_that_has_blocks_will_do() -> None:
    class Given:
        blocks, units = BLOCKS, 1

        def values(self, estimator: Any, /) -> object:
            return np.linspace(0, 1, BLOCKS) ** estimator

        def sums(self, function: Any, /, where: Any = None, bounds: Any = None) -> Any:
            raise NotImplementedError

        terms = sums

        def part(self, start: int, stop: int, /) -> Any:
            raise NotImplementedError

    asked = fresh(data=Given())
    assert [asked.verify(power, 0.5).refused for power in (1, 2, 40)] == [False, False, True]
    assert asked.ask(2, grid(0, 0.9, step=0.3)).value == 0.3


# Intervals: two searches, aimed at a count and at its mirror image.


@settings(max_examples=30)
@given(st.lists(st.integers(-2, 12), min_size=BLOCKS, max_size=BLOCKS), st.integers(2, 9))
def test_without_errors_it_encloses_the_median_of_the_sample(values: list[int], size: int) -> None:
    answer = fresh(data=[float(x) for x in values]).interval(value, grid(0, 10, points=size))
    ordered = sorted(values)
    assert answer.low is None or answer.low <= ordered[BLOCKS // 2 - 1]
    assert answer.high is None or ordered[BLOCKS // 2] <= answer.high
    assert answer.at_grid_end == (answer.low is None or answer.high is None)


@dataclass
class Says:
    """Stands in for the look: it says what it is told and remembers what it was asked."""

    verdicts: tuple[bool, ...]
    seen: list[tuple[int, Coin]] = field(default_factory=list)

    def __call__(self, twice_offset: int, coin: Coin, entropy: Entropy) -> bool:
        self.seen.append((twice_offset, coin))
        return self.verdicts[len(self.seen) - 1]


def aims_at_both(kind: type[Protocol[Any]] = Interval) -> bool:
    """Two points, two looks at the planned coin: the low end's at c, the high end's at m − c."""
    coin = INTERVAL.coin(mixed_plan().order)
    for below, verdicts in itertools.product(
        (0, 40, 54, 200, 346, BLOCKS), itertools.product((False, True), repeat=2)
    ):
        says = Says(verdicts)
        with pytest.MonkeyPatch.context() as patch, using(kind):
            patch.setattr(sys.modules["holdfast.mechanisms.looks"], "look", says)
            answer = fresh(data=split(below)).interval(value, TWO)
        offsets = [2 * below - TARGET, 2 * (below - BLOCKS) + TARGET]
        if says.seen != [(offset, coin) for offset in offsets]:
            return False
        if answer.value != (2 - sum(verdicts)) / 2:
            return False
    return True


def test_ends_that_cross_are_both_kept() -> None:
    """Only if a look errs: then the wider of the two readings is answered."""
    crossed = fresh(data=split(200), entropy=Script([0, 0])).interval(value, TWO)
    straight = fresh(data=split(200)).interval(value, TWO)
    for answer in (crossed, straight):
        assert (answer.low, answer.high, answer.value) == (None, None, 0.5)


@pytest.mark.parametrize(
    ("number", "size", "low", "high", "end"),
    [
        (-5.0, 5, None, 0.0, True),
        (5.0, 5, 0.75, None, True),
        (0.6, 5, 0.5, 0.75, False),
        (0.6, 1, None, None, True),
    ],
)
def test_an_end_of_the_grid_is_no_bound(
    number: float, size: int, low: float | None, high: float | None, end: bool
) -> None:
    answer = fresh(data=[number] * BLOCKS).interval(value, points(size))
    assert (answer.low, answer.high, answer.at_grid_end) == (low, high, end)


# The promise, exactly. A plan of 36 blocks and one question, certified at 0.3, as the planner makes
# it; the best question there is about populations of two and three atoms.


def test_a_tiny_plan_keeps_its_promise_whatever_is_asked() -> None:
    part = replace(
        INTERVAL,
        queries=1,
        grid=2,
        tail_low=1 / 64,
        twice_target=14,
        failure_low=0.1787,
        failure_high=0.5212,
        look_price=0.0477,
        floor=8e-8,
        looks=2,
    )
    plan = JointPlan(36, 5.36, 2 * part.prices(5.36).no, 0.3, (part,))
    assert plan.verify()
    assert fresh(plan).buys()["interval"].questions == 1
    price = part.prices(plan.order).no
    searches = Searches(part.coin(plan.order), price, 14, 1 / 64, 0.5, 2, mirrored=True)
    nearest = {"too low": 0.0, "too high": 0.0}
    half, rare = Fraction(1, 2), Fraction(1, 64)
    for atoms in itertools.chain(
        (atoms_for(half), atoms_for(rare), atoms_for(half - rare), atoms_for(Fraction(1, 3))),
        (atoms_for(rare, half), atoms_for(rare, half - rare)),
    ):
        world = Population(atoms, plan.blocks)
        actions = searches.actions(world)
        for name, share in (("too low", 0.1787), ("too high", 0.5212)):
            broken = most_broken(world, actions, Rules(plan.budget, 1, 0), name)
            assert broken < share
            nearest[name] = max(nearest[name], broken / share)
    assert nearest["too low"] > 0.05  # far from its share, but for a reason: one question is few
    assert nearest["too high"] > 0.01


# Near: guesses for plans that were made for none.

NUMBERS = st.floats(-1e300, 1e300)


def near(values: list[float] | Rows, guess: float, tolerance: float | None = None) -> str:
    return fresh(plans.estimates(), values).verify(value, guess, tolerance=tolerance).verdict


@given(NUMBERS, NUMBERS, st.one_of(st.just(0.0), st.floats(0, 1e300)))
def test_compatible_if_every_block_is_within_the_tolerance(
    number: float, guess: float, tolerance: float
) -> None:
    verdict = near([number] * BLOCKS, guess, tolerance)
    if abs(number - guess) <= tolerance * (1 - 1e-12):
        assert verdict == "compatible"
    if abs(number - guess) > tolerance + 1e-12 * (abs(guess) + tolerance):
        assert verdict == "cannot tell"


@pytest.mark.parametrize(
    ("guess", "tolerance", "compatible"),
    [
        *((0.5, None, True), (0.5, 0.0, True), (0.5, 0.25, True), (0.1, 0.4, True)),
        *((0.25, 0.25, True), (0.75, 0.25, True)),  # the ends belong to it, however rounded
        *((0.25, 0.2, False), (0.75, 0.2, False)),
        *((math.nextafter(0.5, 1), 0.0, False), (math.nextafter(0.5, 0), 0.0, False)),
    ],
)
def test_on_one_value(guess: float, tolerance: float | None, compatible: bool) -> None:
    assert (near([0.5] * BLOCKS, guess, tolerance) == "compatible") == compatible


def test_the_median_decides_and_failures_are_the_lowest_of_all() -> None:
    values = np.arange(BLOCKS) / BLOCKS
    guesses = [(0.5, 0.01), (0.4, 0.01), (0.6, 0.01), (0.4, 0.15)]
    said = [near(values, *each) == "compatible" for each in guesses]
    assert said == [True, False, False, True]
    for failed in (math.nan, -math.inf):
        assert near([failed] * BLOCKS, 0.0, 1e300) == "cannot tell"


def test_near_ends_free_and_final() -> None:
    asked = fresh(plans.estimates())
    for _ in range(9):  # 18 looks were planned
        assert asked.verify(value, 0.5, tolerance=0.1).verdict == "compatible"
    spent = asked.spent
    for _ in range(2):
        verdict = asked.verify(value, 0.5)
        assert (verdict.verdict, verdict.price, verdict.refusals_left) == ("exhausted", 0, None)
    assert asked.spent == spent
    with pytest.raises(InvalidInput, match="a part for guesses"):
        asked.verify(value, 0.5, claim="at least")


# Simple and amplified.


def normal(blocks: int, units: int = 25) -> BlockArray:
    return BlockArray(np.random.default_rng(1).normal(0.4, 0.2, size=blocks * units), blocks)


UNIT = grid(0, 1, step=0.05)


def test_simple_answers_are_interior_points() -> None:
    plan = joint_plan(SimpleEstimates(queries=50, grid=32, tail=1e-6))
    source, (part,) = normal(plan.blocks, units=100), plan.parts
    asked = fresh(plan, source, SeededEntropy(1))
    inside = UNIT.project(np.array([float(v) for v in source.values(np.mean)]))  # type: ignore[arg-type]
    assert plan.blocks < 100
    assert isinstance(part, SearchPart)
    assert Simple(plan, part, 100, 0.95, certified=True).outside < 1e-6
    for _ in range(50):
        assert inside.min() <= asked.ask(np.mean, UNIT).value <= inside.max()


def test_amplified_medians_promise_the_sub_blocks_tail() -> None:
    plan = joint_plan(AmplifiedEstimates(queries=20, grid=32, tail=0.25, subblocks=9))
    source = normal(plan.blocks * 9)
    answer = fresh(plan, source).ask(np.mean, UNIT)
    assert answer.tail == 0.25
    each = UNIT.ceiling(source.values(np.mean)).reshape(-1, 9)
    assert answer.value == UNIT.point(int(np.sort(np.median(each, axis=1))[plan.blocks // 2]))


def test_blocks_and_sub_blocks_do_not_share_a_budget() -> None:
    """One block of a split may lie in several blocks of another, and move a count by as many."""
    estimates = Estimates(2, grid=4, tail_low=0.05, tail_high=0.05)
    amplified = AmplifiedEstimates(2, grid=4, tail=0.25, subblocks=3)
    with pytest.raises(InvalidInput, match="one split of the data"):
        joint_plan(estimates, amplified)
    parts = joint_plan(estimates).parts + joint_plan(amplified).parts
    with pytest.raises(InvalidInput, match="one split of the data"):
        JointPlan(2000, 8.0, 1.0, 0.9, parts)
    # Several parts of the same sub-blocks have the same blocks.
    same = joint_plan(amplified, replace(amplified, name="more"))
    assert same.verify()
    assert same.subblocks == 3
