"""Exact verdicts at run time: what is told, what is charged, what the best analyst gains."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.protocols.exact import exact_verdicts
from holdfast.protocols.memory import MemoryHoldout
from holdfast.protocols.plans import SetPlan
from holdfast.protocols.source import BlockArray
from tests.protocols.worlds import fresh, value
from tests.theory.transcript_worlds import World, best_verdict

VERDICTS = exact_verdicts(20, 3)
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
