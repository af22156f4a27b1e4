"""Exact answers at run time: what is told, what is charged, what the best analyst gains."""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import Exhausted, InvalidInput
from holdfast.grids import grid
from holdfast.mechanisms.hypothesis import Universe
from holdfast.planning.exact import (
    exact_corrections,
    exact_estimates,
    exact_verdicts,
    exact_weights,
)
from holdfast.planning.shapes import BoundedMean
from holdfast.protocols.exact import ExactCorrect, ExactEstimate, ExactVerify
from holdfast.protocols.source import BlockArray
from holdfast.protocols.weights import ExactWeighing
from tests.theory.transcript_worlds import World, best_verdict

VERDICTS = exact_verdicts(20, 3)
CORRECTIONS = exact_corrections(20, 3, grid=8)
ESTIMATES = exact_estimates(4, grid=8)
POINTS = grid(0, 7, step=1)


def first(rows: NDArray[Any]) -> float:
    return float(rows[0])


def ranked(blocks: int) -> BlockArray:
    """Blocks of one unit, with the values 0, 1, 2, … in some order."""
    return BlockArray(np.random.default_rng(7).permutation(blocks).astype(float), blocks)


class Broken(BlockArray):
    """A source that is interrupted while it evaluates."""

    def values(self, estimator: Callable[[NDArray[Any]], object], /) -> list[object]:
        raise KeyboardInterrupt


# Verdicts.


def test_yes_if_both_sides_have_enough_blocks() -> None:
    plan = VERDICTS
    for guess in range(plan.blocks):  # at most it: guess + 1 blocks; at least: the others and one
        verdict = ExactVerify(plan, ranked(plan.blocks)).ask(first, guess)
        enough = min(guess + 1, plan.blocks - guess) >= plan.least
        assert verdict.verdict == ("compatible" if enough else "not compatible")


def test_one_sided_guesses_ask_for_one_side() -> None:
    plan = exact_verdicts(20, 3, sides=1)
    for guess, claim in product(range(plan.blocks), ("at least", "at most")):
        verify = ExactVerify(plan, ranked(plan.blocks))
        count = guess + 1 if claim == "at most" else plan.blocks - guess
        expected = "compatible" if count >= plan.least else "not compatible"
        assert verify.ask(first, guess, claim=claim).verdict == expected  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="one-sided"):
        verify.ask(first, 0)
    # A plan for two sides covers them too.
    assert ExactVerify(VERDICTS, ranked(VERDICTS.blocks)).ask(first, 0, claim="at least").verdict


def test_a_no_costs_one_refusal_and_a_yes_nothing() -> None:
    verify = ExactVerify(VERDICTS, ranked(VERDICTS.blocks))
    middle, end = VERDICTS.blocks // 2, 0
    told = [verify.ask(first, guess) for guess in (middle, end, middle, end, end, middle, end)]
    assert [v.verdict for v in told] == [
        "compatible",
        "not compatible",
        "compatible",
        "not compatible",
        "not compatible",
        "exhausted",
        "exhausted",
    ]
    assert [v.price for v in told] == [0, 1, 0, 1, 1, 0, 0]
    assert [v.budget_left for v in told] == [3, 2, 2, 1, 0, 0, 0]
    assert [v.refusals_left for v in told] == [3, 2, 2, 1, 0, 0, 0]
    assert all(v.certified for v in told)
    assert told[0].to_dict()["confidence"] == 0.95
    assert verify.questions_left == 0


def test_the_same_guess_again_is_told_and_charged_again() -> None:
    verify = ExactVerify(VERDICTS, ranked(VERDICTS.blocks))
    assert [verify.ask(first, -1).verdict for _ in range(4)] == [
        "not compatible",
        "not compatible",
        "not compatible",
        "exhausted",
    ]


def test_the_planned_guesses_and_no_more() -> None:
    verify = ExactVerify(VERDICTS, ranked(VERDICTS.blocks))
    told = [verify.ask(first, VERDICTS.blocks // 2).verdict for _ in range(22)]
    assert told == ["compatible"] * 20 + ["exhausted"] * 2
    assert (verify.questions_left, verify.refusals_left) == (0, 0)


def test_what_fails_on_a_block_is_its_lowest_value() -> None:
    verify = ExactVerify(VERDICTS, ranked(VERDICTS.blocks))

    def fails(rows: NDArray[Any]) -> float:
        raise ValueError(rows)

    assert verify.ask(fails, -1e300, claim="at most").verdict == "compatible"
    assert verify.ask(fails, -1e300, claim="at least").verdict == "not compatible"
    assert verify.ask(lambda rows: math.nan, 0.0).verdict == "not compatible"


@pytest.mark.parametrize("kind", ["verify", "correct", "estimate"])
def test_what_was_reserved_stays_spent(kind: str) -> None:
    """An interruption may have told something: the refusal is not given back."""
    if kind == "estimate":
        estimates = ExactEstimate(ESTIMATES, Broken(np.zeros(ESTIMATES.blocks), ESTIMATES.blocks))
        with pytest.raises(KeyboardInterrupt):
            estimates.ask(first, POINTS)
        assert estimates.questions_left == 3
        return
    plan: Any = VERDICTS if kind == "verify" else CORRECTIONS
    broken = Broken(np.zeros(plan.blocks), plan.blocks)
    guesses: Any = ExactVerify(plan, broken) if kind == "verify" else ExactCorrect(plan, broken)
    question = (first, 0.0) if kind == "verify" else (first, 0.0, grid(0, 1, step=1))
    with pytest.raises(KeyboardInterrupt):
        guesses.ask(*question)
    assert (guesses.questions_left, guesses.refusals_left) == (19, 2)


def test_threads_share_what_is_left() -> None:
    plan = exact_verdicts(60, 7)
    verify = ExactVerify(plan, ranked(plan.blocks))
    told: list[str] = []

    def many(start: int) -> None:
        for i in range(30):
            guess = plan.blocks // 2 if (start + i) % 3 else -1
            told.append(verify.ask(first, guess).verdict)

    threads = [threading.Thread(target=many, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 240
    assert told.count("not compatible") == 7
    assert told.count("compatible") + 7 <= 60
    assert told[-1] == "exhausted"


def test_an_estimator_that_asks_does_not_hang() -> None:
    verify = ExactVerify(VERDICTS, ranked(VERDICTS.blocks))
    inner: list[str] = []

    def asks(rows: NDArray[Any]) -> float:
        if not inner:
            inner.append(verify.ask(first, -1).verdict)
        return float(rows[0])

    assert verify.ask(asks, VERDICTS.blocks // 2).verdict == "compatible"
    assert inner == ["not compatible"]
    assert verify.refusals_left == 2


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

    def told(count: tuple[int, ...], chosen: list[Any]) -> list[str]:
        """The verdicts on 'at least 1' for indicators, the later ones chosen by the first."""
        rows = np.repeat(np.arange(3.0), count)
        verify = ExactVerify(plan, BlockArray(rows, plan.blocks))
        verdicts: list[str] = []
        for choose in chosen:
            members = choose(verdicts)
            estimator = lambda rows, members=members: float(members[int(rows[0])])  # noqa: E731
            verdicts.append(verify.ask(estimator, 1.0, claim="at least").verdict)
        return verdicts

    def failed(verdict: str, mass: Fraction) -> bool:
        return (
            verdict == "compatible"
            if mass <= Fraction(1, 10)
            else verdict == "not compatible" and 10 * mass >= 9
        )

    worst = Fraction(0)
    for (one, one_mass), (yes, yes_mass), (no, no_mass) in product(guesses, repeat=3):
        chance = Fraction(0)
        for count, p in zip(world.samples, world.chances, strict=True):
            second = {"compatible": (yes, yes_mass), "not compatible": (no, no_mass)}
            verdicts = told(count, [lambda _, one=one: one, lambda v, s=second: s[v[0]][0]])
            if failed(verdicts[0], one_mass) or failed(verdicts[1], second[verdicts[0]][1]):
                chance += p
        worst = max(worst, chance)
    tails = Fraction(1, 10), Fraction(9, 10)
    assert worst == best_verdict(world, plan.least, 2, 2, tails, sides=1)
    assert plan.bound / 3 < worst <= plan.bound <= plan.failure


# Estimates.


def test_an_estimate_is_the_value_of_its_rank() -> None:
    plan = exact_estimates(3, grid=64, tail_low=0.1, tail_high=0.4)
    values = np.random.default_rng(3).normal(30, 10, size=plan.blocks)
    points = grid(0, 63, step=1)
    answer = ExactEstimate(plan, BlockArray(values, plan.blocks)).ask(first, points)
    projected = np.sort(np.clip(np.ceil(values), 0, 63))
    assert answer.value == projected[plan.rank - 1]
    assert (answer.tail_low, answer.tail_high, answer.method) == (0.1, 0.4, "exact")
    assert answer.certified
    assert not answer.at_grid_end


def test_questions_are_counted() -> None:
    estimates = ExactEstimate(ESTIMATES, ranked(ESTIMATES.blocks))
    told = [estimates.ask(first, POINTS) for _ in range(4)]
    assert [a.price for a in told] == [1, 1, 1, 1]
    assert [a.budget_left for a in told] == [3, 2, 1, 0]
    with pytest.raises(Exhausted, match="none is left"):
        estimates.ask(first, POINTS)
    assert estimates.questions_left == 0


def test_a_larger_grid_pays_more_and_the_last_may_have_any_size() -> None:
    estimates = ExactEstimate(ESTIMATES, ranked(ESTIMATES.blocks))
    large, huge = grid(0, 63, step=1), grid(0, 10**6, step=1)
    assert estimates.ask(first, large).price == 2
    assert estimates.questions_left == 2
    assert estimates.ask(first, POINTS).budget_left == 1
    assert estimates.ask(first, huge).budget_left == 0
    with pytest.raises(Exhausted):
        estimates.ask(first, POINTS)


def test_smaller_grids_leave_room_for_more_questions() -> None:
    estimates = ExactEstimate(ESTIMATES, ranked(ESTIMATES.blocks))
    small, single = grid(0, 1, step=1), grid([0.0])
    for _ in range(10):  # 2^9 = 8^3 can be told before the last
        estimates.ask(first, single)  # says nothing, costs nothing
        estimates.ask(first, small)
    with pytest.raises(Exhausted):
        estimates.ask(first, small)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_a_question_is_admitted_while_the_sizes_before_it_were_planned(sizes: list[int]) -> None:
    estimates = ExactEstimate(ESTIMATES, ranked(ESTIMATES.blocks))
    product_before = 1
    for size in sizes:
        assert (estimates.questions_left > 0) == (product_before <= 8**3)
        if product_before <= 8**3:
            left = sum(product_before * 8**i <= 8**3 for i in range(4))
            assert estimates.questions_left == left
            estimates.ask(first, grid(np.arange(float(size))))
        else:
            with pytest.raises(Exhausted):
                estimates.ask(first, grid(np.arange(float(size))))
        product_before *= size


def test_a_bar_comes_with_a_shape() -> None:
    plan = exact_estimates(3, grid=51, tail_low=0.05, tail_high=0.05)
    rows = np.random.default_rng(1).binomial(1, 0.3, size=plan.blocks * 400).astype(float)
    estimates = ExactEstimate(plan, BlockArray(rows, plan.blocks))
    answer = estimates.ask(np.mean, grid(0, 1, step=0.02), shape=BoundedMean())
    assert answer.low is not None
    assert answer.high is not None
    assert answer.low < 0.3 < answer.high < answer.low + 0.2
    assert "mean" in answer.promise
    assert "mean" not in estimates.ask(np.mean, grid(0, 1, step=0.02)).promise


# Corrections.


def test_a_refused_guess_is_corrected() -> None:
    plan = CORRECTIONS
    values = np.random.default_rng(3).integers(0, 8, size=plan.blocks).astype(float)
    correct = ExactCorrect(plan, BlockArray(values, plan.blocks))
    median = float(np.sort(values)[plan.rank - 1])
    kept, changed = correct.ask(first, median, POINTS), correct.ask(first, -1.0, POINTS)
    assert (kept.value, kept.correction, kept.price) == (median, None, 0)
    assert changed.correction is not None
    assert (changed.value, changed.price, changed.tail) == (median, 1, plan.tail_low)
    assert changed.correction.certified
    assert changed.correction.budget_left == changed.verdict.budget_left == 2
    assert correct.confidence == 0.95


def test_corrections_end_politely() -> None:
    correct = ExactCorrect(CORRECTIONS, ranked(CORRECTIONS.blocks))
    told = [correct.ask(first, -1.0, POINTS) for _ in range(4)]
    assert [t.verdict.verdict for t in told] == [
        "not compatible",
        "not compatible",
        "not compatible",
        "exhausted",
    ]
    assert told[-1].value is None
    assert told[-1].price == 0


def test_the_grid_of_a_correction_may_use_what_earlier_ones_left() -> None:
    large, small = grid(0, 31, step=1), grid(0, 1, step=1)
    correct = ExactCorrect(CORRECTIONS, ranked(CORRECTIONS.blocks))

    def largest() -> int | None:
        return correct.largest_grid

    assert largest() == 8
    with pytest.raises(InvalidInput, match="at most 8 points"):
        correct.ask(first, -1.0, large)
    assert correct.questions_left == 20  # a wrong grid costs nothing
    middle = CORRECTIONS.blocks / 2
    assert correct.ask(first, middle, POINTS).verdict.verdict == "compatible"
    assert largest() == 8  # nothing was told
    assert correct.ask(first, -1.0, small).verdict.verdict == "not compatible"
    assert largest() == 32
    assert correct.ask(first, -1.0, large).verdict.verdict == "not compatible"
    assert largest() is None
    assert correct.ask(first, -1.0, grid(0, 10**6, step=1)).value == CORRECTIONS.rank - 1


# Weights.


def test_the_best_analyst_against_the_real_weights() -> None:
    """All samples, all pairs of questions, the second chosen by all that the first has told."""
    plan = exact_weights(2, 3, tail=0.1, confidence=0.2)
    masses = tuple(Fraction(n, 10) for n in (1, 1, 8))
    world = World(masses, plan.blocks)
    universe = Universe.points(np.arange(3.0))
    points = grid(0, 1, step=1)
    questions = list(product((0.0, 1.0), repeat=3))

    def outside(values: tuple[float, ...], v: float) -> bool:
        low = sum((p for p, value in zip(masses, values, strict=True) if value <= v), Fraction(0))
        high = sum((p for p, value in zip(masses, values, strict=True) if value >= v), Fraction(0))
        return min(low, high) <= Fraction(1, 10)

    worst = Fraction(0)
    for one in questions:
        chance = Fraction(0)
        later: dict[Any, list[Fraction]] = defaultdict(lambda: [Fraction(0)] * len(questions))
        for count, p in zip(world.samples, world.chances, strict=True):
            rows = np.repeat(np.arange(3.0), count)
            for i, two in enumerate(questions):
                weighing = ExactWeighing(plan, BlockArray(rows, plan.blocks), universe)
                v = weighing.ask_values(np.array(one), points).value
                public = v, tuple(weighing.hypothesis.masses.tolist())
                w = weighing.ask_values(np.array(two), points).value
                assert weighing.updates <= plan.updates
                if outside(one, v):
                    chance += p / len(questions)  # once for every second question
                elif outside(two, w):
                    later[public][i] += p
        worst = max(worst, chance + sum(map(max, later.values()), Fraction(0)))
    assert plan.bound / 30 < worst <= plan.bound <= plan.failure


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.05, 0.2]))
def test_weights_never_exceed_their_updates(seed: int, tail: float) -> None:
    plan = exact_weights(40, 30, tail=tail)
    rng = np.random.default_rng(seed)
    rows = rng.choice(30, size=plan.blocks, p=rng.dirichlet(np.full(30, 0.2))).astype(float)
    universe = Universe.points(np.arange(30.0))
    weighing = ExactWeighing(plan, BlockArray(rows, plan.blocks), universe)
    points = grid(0, 9, step=1)
    for left in range(39, 19, -1):
        values = rng.integers(0, 10, size=30).astype(float)
        answer = weighing.ask_values(values, points)
        sample = values[rows.astype(int)]
        assert min(np.sum(sample <= answer.value), np.sum(sample >= answer.value)) >= plan.least
        assert (answer.price, answer.budget_left, answer.certified) == (1, left, True)
    assert weighing.updates <= plan.updates


def test_weights_end_after_the_planned_questions() -> None:
    plan = exact_weights(2, 5, tail=0.2)
    universe = Universe.points(np.arange(5.0))
    weighing = ExactWeighing(plan, BlockArray(np.ones(plan.blocks), plan.blocks), universe)
    done: list[int] = []
    answers = weighing.ask_all(
        [lambda blocks: blocks.mean(axis=1)] * 2, POINTS, progress=lambda i, _: done.append(i)
    )
    assert [answer.value for answer in answers] == [1, 1]
    assert done == [1, 2]
    with pytest.raises(Exhausted):
        weighing.ask(lambda blocks: blocks.mean(axis=1), POINTS)


# What makes no sense.


def test_plans_that_prove_nothing_and_other_splits_are_refused() -> None:
    pairs: list[tuple[Any, Any]] = [
        (ExactVerify, VERDICTS),
        (ExactCorrect, CORRECTIONS),
        (ExactEstimate, ESTIMATES),
    ]
    for kind, plan in pairs:
        with pytest.raises(InvalidInput, match="certifies itself"):
            kind(replace(plan, confidence=0.9999), ranked(plan.blocks))
        with pytest.raises(InvalidInput, match="blocks"):
            kind(plan, ranked(plan.blocks + 1))
    plan = exact_weights(2, 5, tail=0.2)
    source, universe = ranked(plan.blocks), Universe.points(np.arange(5.0))
    with pytest.raises(InvalidInput, match="certifies itself"):
        ExactWeighing(replace(plan, queries=10**6), source, universe)
    with pytest.raises(InvalidInput, match="blocks"):
        ExactWeighing(plan, ranked(plan.blocks + 1), universe)
    with pytest.raises(InvalidInput, match="universe"):
        ExactWeighing(plan, source, Universe.points(np.arange(6.0)))
    with pytest.raises(InvalidInput, match="block_size"):
        ExactWeighing(plan, BlockArray(np.zeros(2 * plan.blocks), plan.blocks), universe)
    with pytest.raises(InvalidInput, match="values"):
        ExactWeighing(plan, source, universe).ask_values(np.zeros(4), POINTS)


def test_wrong_questions_cost_nothing() -> None:
    verify = ExactVerify(VERDICTS, ranked(VERDICTS.blocks))
    with pytest.raises(InvalidInput):
        verify.ask(first, math.nan)
    with pytest.raises(InvalidInput):
        verify.ask(first, 1.0, claim="exactly")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        verify.refuse(math.inf)
    assert (verify.questions_left, verify.refusals_left) == (20, 3)
    correct = ExactCorrect(CORRECTIONS, ranked(CORRECTIONS.blocks))
    with pytest.raises(InvalidInput):
        correct.ask(first, 1.0, "a grid")  # type: ignore[arg-type]
    assert correct.questions_left == 20
    estimates = ExactEstimate(ESTIMATES, ranked(ESTIMATES.blocks))
    with pytest.raises(InvalidInput):
        estimates.ask(first, 8)  # type: ignore[arg-type]
    assert estimates.questions_left == 4
