"""Exact answers at run time: what is told, what is charged, what the best analyst gains."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import Exhausted, InvalidInput
from holdfast.grids import grid
from holdfast.protocols.exact import (
    exact_corrections,
    exact_estimates,
    exact_verdicts,
)
from holdfast.protocols.memory import MemoryHoldout
from holdfast.protocols.plans import SetPlan
from holdfast.protocols.source import BlockArray
from tests.protocols.worlds import fresh, value
from tests.theory.transcript_worlds import World, best_verdict

VERDICTS = exact_verdicts(20, 3)
CORRECTIONS = exact_corrections(20, 3, grid=8)
ESTIMATES = exact_estimates(4, grid=8)
POINTS = grid(0, 7, step=1)
MIDDLE = VERDICTS.blocks // 2


def ranked(plan: SetPlan) -> MemoryHoldout:
    """Blocks of one unit, with the values 0, 1, 2, … in some order."""
    rows = np.random.default_rng(7).permutation(plan.blocks).astype(float)
    return fresh(plan, BlockArray(rows, plan.blocks))


def left(asked: MemoryHoldout) -> tuple[int, int | None]:
    (found,) = asked.buys().values()
    return found.questions, found.refusals


# Verdicts.


def test_yes_if_both_sides_have_enough_blocks() -> None:
    plan = VERDICTS
    for guess in range(plan.blocks):  # at most it: guess + 1 blocks; at least: the others and one
        refused = min(guess + 1, plan.blocks - guess) < plan.least
        assert ranked(plan).verify(value, guess).refused == refused


def test_one_sided_guesses_ask_for_one_side() -> None:
    plan = exact_verdicts(20, 3, sides=1)
    for guess, claim in product(range(plan.blocks), ("at least", "at most")):
        count = guess + 1 if claim == "at most" else plan.blocks - guess
        found = ranked(plan).verify(value, guess, claim=claim)  # type: ignore[arg-type]
        assert found.refused == (count < plan.least)
    with pytest.raises(InvalidInput, match="one-sided"):
        ranked(plan).verify(value, 0)
    # A plan for two sides covers them too.
    assert ranked(VERDICTS).verify(value, 0, claim="at least").refused is False


def test_a_no_costs_one_refusal_and_a_yes_nothing() -> None:
    asked = ranked(VERDICTS)
    told = [asked.verify(value, guess) for guess in (MIDDLE, 0, MIDDLE, 0, 0, MIDDLE, 0)]
    assert [v.refused for v in told] == [False, True, False, True, True, None, None]
    assert [v.price for v in told] == [0, 1, 0, 1, 1, 0, 0]
    assert [v.budget_left for v in told] == [3, 2, 2, 1, 0, 0, 0]
    assert [v.refusals_left for v in told] == [3, 2, 2, 1, 0, 0, 0]
    assert left(asked) == (0, 0)


def test_the_planned_guesses_and_no_more() -> None:
    asked = ranked(VERDICTS)
    assert [asked.verify(value, MIDDLE).refused for _ in range(22)] == [False] * 20 + [None] * 2
    assert left(asked) == (0, 0)


def test_what_fails_on_a_block_is_its_lowest_value() -> None:
    def fails(rows: NDArray[Any]) -> float:
        raise ValueError(rows)

    asked = ranked(VERDICTS)
    assert asked.verify(fails, -1e300, claim="at most").verdict == "compatible"
    assert asked.verify(fails, -1e300, claim="at least").verdict == "not compatible"
    assert asked.verify(lambda rows: math.nan, 0.0).verdict == "not compatible"


def test_an_estimator_that_asks_does_not_hang() -> None:
    asked = ranked(VERDICTS)
    inner: list[bool | None] = []

    def asks(rows: NDArray[Any]) -> float:
        if not inner:
            inner.append(asked.verify(value, -1).refused)
        return float(rows[0])

    assert asked.verify(asks, MIDDLE).refused is False
    assert inner == [True]
    assert left(asked) == (18, 2)


# The promise, for the best analyst, with the real thing.


def test_the_best_analyst_against_the_real_verdicts() -> None:
    """All samples, all pairs of guesses, the second chosen by the first verdict."""
    plan = exact_verdicts(2, 2, 0.1, 0.9, confidence=0.8, sides=1)
    masses = tuple(Fraction(n, 10) for n in (1, 1, 8))
    world = World(masses, plan.blocks)
    guesses = [
        ([a in atoms for a in range(3)], sum((masses[a] for a in atoms), Fraction(0)))
        for atoms in ({0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2})
    ]

    def refused(asked: MemoryHoldout, members: list[bool]) -> bool:
        """The verdict on 'at least 1' for an indicator."""
        estimator = lambda rows: float(members[int(rows[0])])  # noqa: E731
        return bool(asked.verify(estimator, 1.0, claim="at least").refused)

    def failed(no: bool, mass: Fraction) -> bool:
        return not no if mass <= Fraction(1, 10) else no and 10 * mass >= 9

    worst = Fraction(0)
    for (one, one_mass), *second in product(guesses, repeat=3):
        chance = Fraction(0)
        for count, p in zip(world.samples, world.chances, strict=True):
            rows = np.repeat(np.arange(3.0), count)
            asked = fresh(plan, BlockArray(rows, plan.blocks))
            no = refused(asked, one)
            two, two_mass = second[no]
            if failed(no, one_mass) or failed(refused(asked, two), two_mass):
                chance += p
        worst = max(worst, chance)
    tails = Fraction(1, 10), Fraction(9, 10)
    assert worst == best_verdict(world, plan.least, 2, 2, tails, sides=1)
    assert plan.bound / 3 < worst <= plan.bound <= plan.failure


# Estimates.


def test_an_estimate_is_the_value_of_its_rank() -> None:
    plan = exact_estimates(3, grid=64, tail_low=0.1, tail_high=0.4)
    values = np.random.default_rng(3).normal(30, 10, size=plan.blocks)
    answer = fresh(plan, values).ask(value, grid(0, 63, step=1))
    assert answer.value == np.sort(np.clip(np.ceil(values), 0, 63))[plan.rank - 1]
    assert not answer.at_grid_end


def test_questions_are_counted() -> None:
    asked = ranked(ESTIMATES)
    told = [asked.ask(value, POINTS) for _ in range(4)]
    assert [a.price for a in told] == [1, 1, 1, 1]
    assert [a.budget_left for a in told] == [3, 2, 1, 0]
    with pytest.raises(Exhausted, match="none is left"):
        asked.ask(value, POINTS)
    assert left(asked) == (0, None)


def test_a_larger_grid_pays_more_and_the_last_may_have_any_size() -> None:
    asked = ranked(ESTIMATES)
    assert asked.ask(value, grid(0, 63, step=1)).price == 2
    assert left(asked)[0] == 2
    assert asked.ask(value, POINTS).budget_left == 1
    assert asked.ask(value, grid(0, 10**6, step=1)).budget_left == 0
    with pytest.raises(Exhausted):
        asked.ask(value, POINTS)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_a_question_is_admitted_while_the_sizes_before_it_were_planned(sizes: list[int]) -> None:
    """Smaller grids leave room for more questions: 2⁹ = 8³ can be told before the last."""
    asked, told = ranked(ESTIMATES), 1
    for size in sizes:
        assert left(asked)[0] == sum(told * 8**i <= 8**3 for i in range(4))
        if told <= 8**3:
            asked.ask(value, grid(np.arange(float(size))))
        else:
            with pytest.raises(Exhausted):
                asked.ask(value, grid(np.arange(float(size))))
        told *= size


# Corrections.


def test_a_refused_guess_is_corrected() -> None:
    plan = CORRECTIONS
    values = np.random.default_rng(3).integers(0, 8, size=plan.blocks).astype(float)
    asked, median = fresh(plan, values), float(np.sort(values)[plan.rank - 1])
    kept, changed = asked.correct(value, median, POINTS), asked.correct(value, -1.0, POINTS)
    assert (kept.value, kept.correction, kept.price) == (median, None, 0)
    assert changed.correction is not None
    assert (changed.value, changed.price, changed.tail) == (median, 1, plan.tail_low)
    assert changed.correction.budget_left == changed.verdict.budget_left == 2


def test_corrections_end_politely() -> None:
    asked = ranked(CORRECTIONS)
    told = [asked.correct(value, -1.0, POINTS) for _ in range(4)]
    assert [t.verdict.refused for t in told] == [True, True, True, None]
    assert (told[-1].value, told[-1].price) == (None, 0)


def test_the_grid_of_a_correction_may_use_what_earlier_ones_left() -> None:
    """A wrong grid costs nothing; nothing is told by a Yes; the last may have any size."""
    asked, middle = ranked(CORRECTIONS), CORRECTIONS.blocks / 2

    def too_large(size: int, most: int) -> None:
        with pytest.raises(InvalidInput, match=f"at most {most} points"):
            asked.correct(value, -1.0, grid(0, size - 1, step=1))

    too_large(9, 8)
    assert left(asked)[0] == 20
    assert asked.correct(value, middle, POINTS).verdict.refused is False
    too_large(9, 8)
    assert asked.correct(value, -1.0, grid(0, 1, step=1)).verdict.refused
    too_large(33, 32)
    assert asked.correct(value, -1.0, grid(0, 31, step=1)).verdict.refused
    last = asked.correct(value, -1.0, grid(0, 10**6, step=1))
    assert last.value == CORRECTIONS.rank - 1
