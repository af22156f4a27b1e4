"""Correct, rounds, weights, simple, amplified, split: what each promises beside its looks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from holdfast.errors import Exhausted, Infeasible, InvalidInput
from holdfast.grids import grid
from holdfast.mechanisms.hypothesis import Universe
from holdfast.planning.joint import JointPlan, joint_plan
from holdfast.planning.requests import (
    AmplifiedEstimates,
    Estimates,
    Guesses,
    SimpleEstimates,
    WeightedEstimates,
)
from holdfast.planning.rounds import RoundsPlan, rounds_plan
from holdfast.planning.splits import SplitPlan, split_plan
from holdfast.protocols.budget import Budget
from holdfast.protocols.guesses import Correct, Verify
from holdfast.protocols.rounds import EffectiveRounds
from holdfast.protocols.searches import Amplified, Estimate, Simple
from holdfast.protocols.source import BlockArray
from holdfast.protocols.split import Split
from holdfast.protocols.weights import Weights
from holdfast.randomness import SeededEntropy
from holdfast.theory.divergence import divergence
from holdfast.theory.sizing import median_failure
from holdfast.theory.transcripts import most_updates

UNIT = grid(0, 1, step=0.05)


def normal(blocks: int, units: int = 25, seed: int = 1) -> BlockArray:
    rows = np.random.default_rng(seed).normal(0.4, 0.2, size=blocks * units)
    return BlockArray(rows, blocks)


# Verify and correct.


@pytest.fixture(scope="module")
def correcting() -> JointPlan:
    requests = Guesses(30, refusals=3), Estimates(3, tail_low=0.05, tail_high=0.05)
    return joint_plan(*requests)


def correct(plan: JointPlan, budget: Budget | None = None) -> Correct:
    budget, source = budget or Budget(plan), normal(plan.blocks)
    return Correct(
        Verify(budget, source, SeededEntropy(1)), Estimate(budget, source, SeededEntropy(2))
    )


def test_a_right_guess_is_the_answer_and_a_wrong_one_is_corrected(correcting: JointPlan) -> None:
    asked = correct(correcting)
    right = asked.ask(np.mean, 0.4, UNIT)
    assert right.value == 0.4
    assert right.correction is None
    wrong = asked.ask(np.mean, 0.9, UNIT)
    assert wrong.verdict.verdict == "not compatible"
    assert wrong.value == pytest.approx(0.4, abs=0.051)
    assert wrong.price > 10 * right.price
    assert asked.verify.budget.spent == pytest.approx(right.price + wrong.price)


def test_a_correction_that_cannot_be_paid_is_not_started(correcting: JointPlan) -> None:
    budget = Budget(correcting)
    asked = correct(correcting, budget)
    looks = budget.buys()["estimate"].looks
    part = asked.estimate.part
    budget.reserve(part, looks * asked.estimate._no, looks)  # somebody else spends the rest
    before = budget.spent
    result = asked.ask(np.mean, 0.9, UNIT)
    assert result.verdict.verdict == "exhausted"
    assert result.value is None
    assert budget.spent == before


def test_one_sided_guesses_cannot_be_corrected() -> None:
    plan, other = joint_plan(Guesses(5, refusals=1, sides=1)), joint_plan(Estimates(1))
    verify = Verify(Budget(plan), normal(plan.blocks))
    estimate = Estimate(Budget(other), normal(other.blocks))
    with pytest.raises(InvalidInput, match="two-sided"):
        Correct(verify, estimate)


def test_a_budget_pays_for_one_split_of_the_data(correcting: JointPlan) -> None:
    budget = Budget(correcting)
    Verify(budget, normal(correcting.blocks))
    other = normal(correcting.blocks, seed=2)
    with pytest.raises(InvalidInput, match="one split"):
        Estimate(budget, other)


def test_guesses_and_corrections_have_one_budget(correcting: JointPlan) -> None:
    """Two budgets on the same rows spend each block twice; that rows are others is not to be seen.

    Both budgets below are for the very same rows, in two objects.
    """
    assert correct(correcting).confidence == 0.95
    rows = np.random.default_rng(1).normal(0.4, 0.2, size=correcting.blocks * 25)
    verify = Verify(Budget(correcting), BlockArray(rows, correcting.blocks))
    estimate = Estimate(Budget(correcting), BlockArray(rows.copy(), correcting.blocks))
    with pytest.raises(InvalidInput, match="one for guesses and corrections"):
        Correct(verify, estimate)


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


def test_why_blocks_and_sub_blocks_do_not_share_a_budget() -> None:
    """Rows in one order are blocks, in another sub-blocks: one block moves three medians."""
    blocks, each = 30, 3
    rows = np.repeat([0.0, 0.0, 1.0] * 10, each)  # blocks of zeros, zeros and ones
    order = np.arange(blocks * each).reshape(blocks, each).T.ravel()  # first rows of blocks first
    changed = rows.copy()
    changed[:each] = 1.0  # the first block
    before, after = (np.median(x[order].reshape(blocks, each), axis=1) for x in (rows, changed))
    assert np.count_nonzero(before != after) == 3

    plan = joint_plan(Estimates(100, grid=32, tail_low=0.25, tail_high=0.25))
    (part,) = plan.parts
    table, price = part.coin(plan.order).halfsteps, part.prices(plan.order).worst  # type: ignore[attr-defined]
    for place, least in ((0, 8), (table.size // 2, 10), (table.size - 30, 1000)):
        assert nearest(plan.order, float(table[place]), float(table[place + 6])) > least * price


def nearest(order: float, p: float, q: float) -> float:
    """The least divergence, both ways, at which one coin can be from both of these."""

    def worst(log_middle: float) -> float:
        z = math.exp(log_middle)
        return max(divergence(order, *pair) for x in (p, q) for pair in ((x, z), (z, x)))

    low, high = sorted((math.log(p), math.log(q)))
    for _ in range(100):  # a maximum of functions that fall and then rise
        left, right = (2 * low + high) / 3, (low + 2 * high) / 3
        low, high = (low, right) if worst(left) < worst(right) else (left, high)
    return worst((low + high) / 2)


# Effective rounds.


@pytest.fixture(scope="module")
def rounds() -> RoundsPlan:
    return rounds_plan(queries=60, rounds=3, looks=True)


def test_an_honest_analyst_stays_in_the_first_round(rounds: RoundsPlan) -> None:
    asked = EffectiveRounds.of(rounds, normal(rounds.blocks), SeededEntropy(1))
    for _ in range(20):
        assert asked.ask(np.mean).value == pytest.approx(0.4, abs=0.05)
    assert asked.rounds_left == 3


def test_an_overused_set_is_thrown_away_and_the_rounds_end(rounds: RoundsPlan) -> None:
    """An estimator that knows the current set's blocks by heart is right on no other block."""
    rows = np.random.default_rng(1).uniform(size=rounds.blocks * 4)
    whole = BlockArray(rows, rounds.blocks)
    asked = EffectiveRounds.of(rounds, whole, SeededEntropy(1))
    first = rounds.verification.blocks
    for left in (2, 1):
        number = 2 - left
        start = (first + number * rounds.set_blocks) * 4
        known = set(rows[start : start + rounds.set_blocks * 4].tolist())
        answer = asked.ask(lambda block, known=known: float(block[0] in known))
        assert answer.value == 0.0  # the next set, which it does not know, has answered
        assert asked.rounds_left == left
    start = (first + 2 * rounds.set_blocks) * 4
    known = set(rows[start:].tolist())
    with pytest.raises(Exhausted, match="round"):
        asked.ask(lambda block: float(block[0] in known))
    assert asked.rounds_left == 0
    assert isinstance(asked.verify, Verify)
    spent = asked.verify.budget.spent
    with pytest.raises(Exhausted):
        asked.ask(np.mean)
    assert asked.verify.budget.spent == spent


def test_the_verification_set_may_answer_exactly(rounds: RoundsPlan) -> None:
    exact = rounds_plan(queries=60, rounds=3)
    assert exact.verify()
    assert exact.blocks < rounds.blocks
    asked = EffectiveRounds.of(exact, normal(exact.blocks))
    answer = asked.ask(np.mean)
    assert answer.certified  # nothing is drawn, so nothing can be foreseen
    assert answer.value == pytest.approx(0.4, abs=0.05)
    for _ in range(2):
        asked.verify.ask(np.mean, 9.0)
    assert asked.verify.ask(np.mean, 9.0).verdict == "not compatible"
    with pytest.raises(Exhausted):
        asked.ask(np.mean)


def test_the_plan_of_rounds_adds_up(rounds: RoundsPlan) -> None:
    assert rounds.verify()
    part = rounds.guesses
    fresh = 2 * median_failure(rounds.set_blocks, part.tail_low)
    alone = 3 * 60 * median_failure(rounds.set_blocks, part.tail_high)
    assert rounds.verification.failure + fresh + alone <= 0.05
    assert not replace(rounds, set_blocks=rounds.set_blocks - 8).verify()
    assert not replace(rounds, sets=4).verify()
    assert not replace(rounds, confidence=0.96).verify()


def test_rounds_need_the_planned_sets(rounds: RoundsPlan) -> None:
    with pytest.raises(InvalidInput, match="blocks"):
        EffectiveRounds.of(rounds, normal(rounds.blocks + 1))
    verification = normal(rounds.verification.blocks)
    with pytest.raises(InvalidInput, match="sets"):
        EffectiveRounds(rounds, verification, [normal(rounds.set_blocks)])


def test_all_sets_have_blocks_of_one_size(rounds: RoundsPlan) -> None:
    """A bar for large blocks would otherwise rest on a confirmation by small ones."""
    sets = [normal(rounds.set_blocks, units=100, seed=seed) for seed in range(3)]
    with pytest.raises(InvalidInput, match="units"):
        EffectiveRounds(rounds, normal(rounds.verification.blocks, units=5), sets)


def test_an_estimator_may_ask_again(rounds: RoundsPlan) -> None:
    asked = EffectiveRounds.of(rounds, normal(rounds.blocks), SeededEntropy(1))
    inside = asked.ask(lambda block: asked.ask(np.mean).value if block[0] > 1.2 else block.mean())
    assert math.isfinite(inside.value)


def test_a_set_whose_median_block_failed_is_handled(rounds: RoundsPlan) -> None:
    asked = EffectiveRounds.of(rounds, normal(rounds.blocks), SeededEntropy(1))

    def fails(block: np.ndarray) -> float:
        raise RuntimeError(block)

    answer = asked.ask(fails)
    assert answer.value == -math.inf
    assert answer.to_dict()["value"] is None
    assert asked.rounds_left == 3  # a failure on every block is no surprise


def test_infinite_values_are_answers_like_others(rounds: RoundsPlan) -> None:
    asked = EffectiveRounds.of(rounds, normal(rounds.blocks), SeededEntropy(1))
    assert asked.ask(lambda _: math.inf).value == math.inf
    assert asked.ask(lambda _: -math.inf).value == -math.inf
    assert asked.rounds_left == 3


# Weights.


@pytest.fixture(scope="module")
def weighing() -> tuple[JointPlan, Universe]:
    universe = Universe.multisets(range(4), block_size=3)
    return joint_plan(WeightedEstimates(300, universe.size, tail=0.05)), universe


def dice(plan: JointPlan, seed: int = 1) -> BlockArray:
    rng = np.random.default_rng(seed)
    return BlockArray(rng.choice(4, p=[0.02, 0.08, 0.2, 0.7], size=3 * plan.blocks), plan.blocks)


def test_weights_answer_within_the_tails(weighing: tuple[JointPlan, Universe]) -> None:
    plan, universe = weighing
    source = dice(plan)
    weights = Weights(Budget(plan), source, universe, SeededEntropy(1))
    fresh = np.random.default_rng(99).choice(4, p=[0.02, 0.08, 0.2, 0.7], size=(200_000, 3))
    scale = grid(0, 9, step=0.5)
    rng = np.random.default_rng(7)
    for _ in range(60):
        costs = rng.normal(size=4)

        def estimator(blocks: np.ndarray, costs: np.ndarray = costs) -> np.ndarray:
            return np.asarray(np.abs(costs[blocks.astype(int)]).sum(axis=1))

        value = weights.ask(estimator, scale).value
        projected = scale.project(estimator(fresh))
        assert np.mean(projected <= value) > 0.05
        assert np.mean(projected >= value) > 0.05
    assert 0 < weights.updates <= weights.part.updates


def test_only_surprises_cost_much(weighing: tuple[JointPlan, Universe]) -> None:
    plan, universe = weighing
    weights = Weights(Budget(plan), dice(plan), universe, SeededEntropy(1))
    scale = grid(0, 3, step=0.25)
    first = weights.ask(lambda blocks: blocks.mean(axis=1), scale)
    updates = weights.updates
    again = weights.ask(lambda blocks: blocks.mean(axis=1), scale)
    assert updates >= 1
    assert weights.updates == updates
    assert first.price > 20 * again.price
    assert again.price == pytest.approx(2 * plan.parts[0].prices(plan.order).yes)


def test_no_data_makes_more_updates_than_planned(weighing: tuple[JointPlan, Universe]) -> None:
    plan, universe = weighing
    part = plan.parts[0]
    assert part.most_refusals is not None
    for value in range(4):
        rows = np.full(3 * plan.blocks, value)
        weights = Weights(Budget(plan), BlockArray(rows, plan.blocks), universe, SeededEntropy(2))
        rng = np.random.default_rng(value)
        for _ in range(100):
            weights.ask_values(rng.uniform(size=universe.size), grid(0, 1, step=0.125))
        assert weights.updates <= part.most_refusals
    assert most_updates(universe.size, part.mass(plan.blocks)) <= part.updates  # type: ignore[attr-defined]


def test_weights_refuse_what_does_not_fit(weighing: tuple[JointPlan, Universe]) -> None:
    plan, universe = weighing
    budget, data = Budget(plan), dice(plan)
    with pytest.raises(InvalidInput, match="universe"):
        Weights(budget, data, Universe.multisets(range(3), block_size=3))
    single = Universe.points(range(universe.size))
    with pytest.raises(InvalidInput, match="block_size"):
        Weights(budget, data, single)
    with pytest.raises(Infeasible, match=r"elements.*GB"):
        Universe.multisets(range(1000), block_size=6)
    weights = Weights(budget, data, universe)
    with pytest.raises(InvalidInput, match="elements"):
        weights.ask_values(np.zeros(3), grid(0, 1, step=0.5))
    assert budget.spent == 0


def test_progress_is_reported(weighing: tuple[JointPlan, Universe]) -> None:
    plan, universe = weighing
    weights = Weights(Budget(plan), dice(plan), universe, SeededEntropy(1))
    seen: list[tuple[int, int]] = []
    estimators = [lambda blocks: blocks.max(axis=1)] * 3
    answers = weights.ask_all(
        estimators, grid(0, 3, step=1), progress=lambda done, total: seen.append((done, total))
    )
    assert len(answers) == 3
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_bar_shows_progress_and_leaves_standard_output_alone(
    weighing: tuple[JointPlan, Universe],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    plan, universe = weighing
    weights = Weights(Budget(plan), dice(plan), universe, SeededEntropy(1))
    weights.ask_all([lambda blocks: blocks.max(axis=1)] * 2, grid(0, 3, step=1), progress=True)
    shown = capsys.readouterr()
    assert "asking" in shown.err
    assert shown.out == ""


def test_exhausted_weights_keep_what_they_learnt(weighing: tuple[JointPlan, Universe]) -> None:
    plan, universe = weighing
    budget = Budget(plan)
    weights = Weights(budget, dice(plan), universe, SeededEntropy(1))
    weights.ask(lambda blocks: blocks.mean(axis=1), grid(0, 3, step=0.25))
    masses = weights.hypothesis.masses
    rest = budget.buys()["weights"].looks
    budget.reserve(weights.part, rest * weights._yes, rest)
    with pytest.raises(Exhausted, match="weights"):
        weights.ask(lambda blocks: blocks.max(axis=1), grid(0, 3, step=1))
    assert np.array_equal(weights.hypothesis.masses, masses)


# Simple and amplified.


def test_simple_answers_are_interior_points() -> None:
    plan = joint_plan(SimpleEstimates(queries=50, grid=32, tail=1e-6))
    source = normal(plan.blocks, units=100)
    simple = Simple(Budget(plan), source, SeededEntropy(1))
    values = np.array([float(v) for v in source.values(np.mean)])  # type: ignore[arg-type]
    points = UNIT.project(values)
    assert plan.blocks < 100
    assert simple.outside < 1e-6
    for _ in range(50):
        assert points.min() <= simple.ask(np.mean, UNIT).value <= points.max()


def test_amplified_medians_promise_the_sub_blocks_tail() -> None:
    plan = joint_plan(AmplifiedEstimates(queries=20, grid=32, tail=0.25, subblocks=9))
    source = normal(plan.blocks * 9)
    amplified = Amplified(Budget(plan), source, SeededEntropy(1))
    answer = amplified.ask(np.mean, UNIT)
    assert answer.tail == 0.25
    assert answer.value == pytest.approx(0.4, abs=0.051)
    with pytest.raises(InvalidInput, match="blocks"):
        Amplified(Budget(plan), normal(plan.blocks))
    groups = np.arange(plan.blocks * 9).reshape(-1, 9)
    found = amplified._projected(np.mean, UNIT)
    assert isinstance(found, np.ndarray)
    each = UNIT.ceiling(source.values(np.mean))
    assert np.array_equal(found, np.median(each[groups], axis=1).astype(int))


# Fresh splitting.


@pytest.fixture
def splitting() -> SplitPlan:
    return split_plan(4, tail_low=0.1, tail_high=0.3)


def test_every_question_has_blocks_of_its_own(splitting: SplitPlan) -> None:
    seen: list[float] = []

    def remember(block: np.ndarray) -> float:
        seen.append(float(block[0]))
        return float(block.mean())

    split = Split(splitting, normal(splitting.blocks))
    for left in (3, 2, 1, 0):
        answer = split.ask(remember)
        assert split.questions_left == left
        assert answer.certified
        assert (answer.tail_low, answer.tail_high) == (0.1, 0.3)
    assert len(set(seen)) == splitting.blocks
    with pytest.raises(Exhausted, match="fresh"):
        split.ask(remember)
    assert len(seen) == splitting.blocks


def test_the_answer_is_the_value_of_the_planned_rank(splitting: SplitPlan) -> None:
    each = splitting.blocks_per_question
    rows = np.random.default_rng(1).permutation(splitting.blocks).astype(float)
    split = Split(splitting, BlockArray(rows, splitting.blocks))
    for number in range(4):
        mine = np.sort(rows[number * each : (number + 1) * each])
        assert split.ask(lambda block: block[0]).value == mine[splitting.rank - 1]


def test_a_split_plan_that_does_not_prove_itself_is_refused(splitting: SplitPlan) -> None:
    weaker = replace(splitting, blocks_per_question=splitting.blocks_per_question - 1)
    assert not weaker.verify()
    with pytest.raises(InvalidInput, match="certifies"):
        Split(weaker, normal(weaker.blocks))
