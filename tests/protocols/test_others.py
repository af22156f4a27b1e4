"""Rounds, weights, fresh splitting: what each promises beside its looks."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Exhausted, Infeasible, InvalidInput
from holdfast.grids import grid
from holdfast.mechanisms.hypothesis import Universe
from holdfast.planning.joint import joint_plan, rounds_plan
from holdfast.protocols.memory import MemoryHoldout
from holdfast.protocols.plans import Charge, JointPlan
from holdfast.protocols.rounds import RoundsPlan
from holdfast.protocols.source import BlockArray
from holdfast.protocols.split import SplitPlan, split_plan
from holdfast.protocols.weights import (
    WeightedEstimates,
    WeightsPart,
    read_indices,
    written_indices,
)
from holdfast.randomness import SeededEntropy
from holdfast.theory.sizing import median_failure
from holdfast.theory.weights import most_updates
from tests.protocols.worlds import Rows, fresh, value


def normal(blocks: int, units: int = 25) -> BlockArray:
    rows = np.random.default_rng(1).normal(0.4, 0.2, size=blocks * units)
    return BlockArray(rows, blocks)


# Effective rounds.


@pytest.fixture(scope="module")
def rounds() -> RoundsPlan:
    return rounds_plan(queries=60, rounds=3)


def in_rounds(plan: RoundsPlan) -> MemoryHoldout:
    return fresh(plan, normal(plan.blocks), SeededEntropy(1))


def test_an_honest_analyst_stays_in_the_first_round(rounds: RoundsPlan) -> None:
    asked = in_rounds(rounds)
    for _ in range(20):
        assert asked.ask(np.mean).value == pytest.approx(0.4, abs=0.05)
    assert asked.left == 3


def test_an_overused_set_is_thrown_away_and_the_rounds_end(rounds: RoundsPlan) -> None:
    """An estimator that knows the current set's blocks by heart is right on no other block."""
    rows = np.random.default_rng(1).uniform(size=rounds.blocks * 4)
    asked = fresh(rounds, BlockArray(rows, rounds.blocks), SeededEntropy(1))

    def known(number: int) -> Any:
        start = (rounds.verification.blocks + number * rounds.set_blocks) * 4
        known = set(rows[start : start + rounds.set_blocks * 4].tolist())
        return lambda block: float(block[0] in known)

    for number, left in ((0, 2), (1, 1)):
        assert asked.ask(known(number)).value == 0.0  # the next set, which it does not know
        assert asked.left == left
    with pytest.raises(Exhausted, match="round"):
        asked.ask(known(2))
    assert asked.left == 0
    spent = asked.spent
    with pytest.raises(Exhausted):
        asked.ask(np.mean)
    assert asked.spent == spent


def test_the_plan_of_rounds_adds_up(rounds: RoundsPlan) -> None:
    assert rounds.verify()
    part = rounds.guesses
    fresh_answers = 2 * median_failure(rounds.set_blocks, part.tail_low)
    alone = 3 * 60 * median_failure(rounds.set_blocks, part.tail_high)
    assert rounds.verification.failure + fresh_answers + alone <= 0.05
    assert not replace(rounds, set_blocks=rounds.set_blocks - 8).verify()
    assert not replace(rounds, sets=4).verify()
    assert not replace(rounds, confidence=0.96).verify()


def test_an_estimator_may_ask_again(rounds: RoundsPlan) -> None:
    asked = in_rounds(rounds)
    inside = asked.ask(lambda block: asked.ask(np.mean).value if block[0] > 1.2 else block.mean())
    assert math.isfinite(inside.value)


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_infinite_values_and_failures_are_answers_like_others(
    rounds: RoundsPlan, number: float
) -> None:
    asked = in_rounds(rounds)
    answer = asked.ask(lambda _: number)
    assert answer.value == (number if number == number else -math.inf)
    assert answer.to_dict()["value"] is None
    assert asked.left == 3  # a failure on every block is no surprise


# Weights.


@pytest.fixture(scope="module")
def weighing() -> tuple[JointPlan, Universe]:
    universe = Universe.multisets(range(4), block_size=3)
    return joint_plan(WeightedEstimates(300, universe.size, tail=0.05)), universe


def dice(plan: JointPlan, universe: Universe, rows: Rows | None = None) -> MemoryHoldout:
    if rows is None:
        rng = np.random.default_rng(1)
        rows = rng.choice(4, p=[0.02, 0.08, 0.2, 0.7], size=3 * plan.blocks)
    return fresh(plan, BlockArray(rows, plan.blocks), SeededEntropy(1), universe=universe)


def updates(asked: MemoryHoldout) -> int:
    return sum(len(lesson["steps"]) for lesson in asked.lessons)


def test_weights_answer_within_the_tails(weighing: tuple[JointPlan, Universe]) -> None:
    plan, universe = weighing
    asked, (part,) = dice(plan, universe), plan.parts
    new = np.random.default_rng(99).choice(4, p=[0.02, 0.08, 0.2, 0.7], size=(200_000, 3))
    scale = grid(0, 9, step=0.5)
    rng = np.random.default_rng(7)
    for _ in range(60):
        costs = rng.normal(size=4)

        def estimator(blocks: Rows, costs: Rows = costs) -> Rows:
            return np.asarray(np.abs(costs[blocks.astype(int)]).sum(axis=1))

        found = asked.ask(estimator, scale).value
        projected = scale.project(estimator(new))
        assert np.mean(projected <= found) > 0.05
        assert np.mean(projected >= found) > 0.05
    assert part.most_refusals is not None
    assert 0 < updates(asked) <= part.most_refusals


def test_only_surprises_cost_much(weighing: tuple[JointPlan, Universe]) -> None:
    plan, universe = weighing
    asked, scale = dice(plan, universe), grid(0, 3, step=0.25)
    first = asked.ask(lambda blocks: blocks.mean(axis=1), scale)
    learnt = updates(asked)
    again = asked.ask(lambda blocks: blocks.mean(axis=1), scale)
    assert learnt == updates(asked) >= 1
    assert first.price > 20 * again.price
    assert again.price == pytest.approx(2 * plan.parts[0].prices(plan.order).yes)


def test_no_data_makes_more_updates_than_planned(weighing: tuple[JointPlan, Universe]) -> None:
    plan, universe = weighing
    (part,) = plan.parts
    assert isinstance(part, WeightsPart)
    for number in range(4):
        asked = dice(plan, universe, np.full(3 * plan.blocks, number))
        rng = np.random.default_rng(number)
        for _ in range(100):
            asked.ask(rng.uniform(size=universe.size), grid(0, 1, step=0.125))
        assert updates(asked) <= part.updates
    assert most_updates(universe.size, part.mass(plan.blocks)) <= part.updates


def test_weights_refuse_what_does_not_fit(weighing: tuple[JointPlan, Universe]) -> None:
    plan, universe = weighing
    with pytest.raises(InvalidInput, match="universe"):
        dice(plan, Universe.multisets(range(3), block_size=3))
    with pytest.raises(InvalidInput, match="universe"):
        fresh(plan, BlockArray(np.zeros(3 * plan.blocks), plan.blocks))
    with pytest.raises(InvalidInput, match="block_size"):
        dice(plan, Universe.points(range(universe.size)))
    with pytest.raises(Infeasible, match=r"elements.*GB"):
        Universe.multisets(range(1000), block_size=6)
    with pytest.raises(InvalidInput, match="elements"):
        dice(plan, universe).ask(np.zeros(3), grid(0, 1, step=0.5))


def test_weights_that_are_exhausted_on_the_way_teach_nothing(
    weighing: tuple[JointPlan, Universe],
) -> None:
    """But what was reserved for looks that were drawn stays spent: they may have been seen."""
    plan, universe = weighing
    scale, (part,) = grid(0, 3, step=0.25), plan.parts
    whole, short = (dice(plan, universe, np.full(3 * plan.blocks, 3)) for _ in range(2))
    whole.ask(lambda blocks: blocks.mean(axis=1), scale)
    steps = updates(whole)
    assert part.most_refusals is not None
    assert steps > 1
    short.account.hold(Charge("weights", Fraction(0), 0, part.most_refusals - steps + 1))
    with pytest.raises(Exhausted, match="weights"):
        short.ask(lambda blocks: blocks.mean(axis=1), scale)
    assert short.lessons == []
    assert short.account.charged > 0
    assert short.account.uses["weights"].refusals == part.most_refusals


@given(st.lists(st.integers(0, 2**62), max_size=30))
def test_indices_survive_as_text(numbers: list[int]) -> None:
    text = written_indices(np.array(numbers, np.int64))
    assert read_indices(text, len(numbers)).tolist() == numbers
    for wrong, count in ((text, len(numbers) + 1), ("", 1), ("zzz", 1), (text[:-1] + "~~", 99)):
        with pytest.raises(ValueError, match=r"indices|base85"):
            read_indices(wrong, count)


# Fresh splitting.


@pytest.fixture
def splitting() -> SplitPlan:
    return split_plan(4, tail_low=0.1, tail_high=0.3)


def test_every_question_has_blocks_of_its_own(splitting: SplitPlan) -> None:
    seen: list[float] = []

    def remember(block: Rows) -> float:
        seen.append(float(block[0]))
        return float(block.mean())

    asked = fresh(splitting, normal(splitting.blocks))
    for left in (3, 2, 1, 0):
        assert asked.ask(remember).budget_left == left == asked.left
    assert len(set(seen)) == splitting.blocks
    with pytest.raises(Exhausted, match="split"):
        asked.ask(remember)
    assert len(seen) == splitting.blocks


def test_the_answer_is_the_value_of_the_planned_rank(splitting: SplitPlan) -> None:
    each = splitting.blocks_per_question
    rows = np.random.default_rng(1).permutation(splitting.blocks).astype(float)
    asked = fresh(splitting, BlockArray(rows, splitting.blocks))
    for number in range(4):
        mine = np.sort(rows[number * each : (number + 1) * each])
        assert asked.ask(value).value == mine[splitting.rank - 1]
    weaker = replace(splitting, blocks_per_question=each - 1)
    assert not weaker.verify()
