"""The attack: what it needs is exact, what it claims is so, and it breaks what is broken."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import Infeasible, InvalidInput
from holdfast.grids import IntegerGrid
from holdfast.lab.analysts import (
    Conversation,
    PersistentAnalyst,
    SignAggregator,
    interview,
)
from holdfast.lab.attack import HOLDFAST, NAIVE, plan_attack, run_attack
from holdfast.lab.campaign import main, run_campaign
from holdfast.lab.population import FairBlocks, SignSum, central_rank
from holdfast.lab.questions import ExactMedian, Extremes, Looks, Score, Signs, score_grid
from holdfast.lab.statistics import failure_rate_bound
from holdfast.randomness import SeededEntropy


def everyone(blocks: FairBlocks) -> NDArray[np.int64]:
    return blocks.signs(np.ones(blocks.blocks, np.bool_), blocks.features)


# The population


@pytest.mark.parametrize("terms", [0, 1, 2, 5, 64, 4_999, 9_990])
def test_law_of_a_sum_of_signs(terms: int) -> None:
    """Against whole numbers: Σ C(n, k), compared where it is neither tiny nor all but 1."""
    values, expected = [-terms - 1, terms + 7], [0.0, 1.0]
    choices, total = 1, 0
    for ups in range(terms + 1):
        total += choices
        choices = choices * (terms - ups) // (ups + 1)
        if abs(2 * ups - terms) <= 12 * math.sqrt(terms) and (terms < 100 or ups % 50 == 0):
            values.append(2 * ups - terms)
            expected.append(float(Fraction(total, 2**terms)))
    law, at = SignSum(terms), np.array(values)
    np.testing.assert_allclose(law.at_most(at), expected, rtol=1e-10, atol=0)
    np.testing.assert_allclose(law.above(-at - 1), expected, rtol=1e-10, atol=0)
    assert len(values) == terms + 3 or (terms >= 100 and len(values) > 15)


@given(st.integers(1, 10_000), st.floats(1e-6, 0.4))
def test_the_rare_value_is_the_first(terms: int, tail: float) -> None:
    law = SignSum(terms)
    value = law.rare(tail)
    assert law.above(value) <= tail < law.above(value - 1)


probabilities = st.floats(0, 1)


@given(probabilities, probabilities, st.floats(0.001, 0.499))
def test_the_rank_says_whether_the_promise_holds(a: float, b: float, tail: float) -> None:
    below, up_to = min(a, b), max(a, b)
    rank = central_rank(below, up_to)
    assert (rank <= tail) == (up_to <= tail)
    assert (rank >= 1 - tail) == (below >= 1 - tail)


@pytest.mark.parametrize(("blocks", "features"), [(1, 1), (3, 64), (300, 130), (600, 7)])
def test_counts_and_sums_of_packed_signs(blocks: int, features: int) -> None:
    sample = FairBlocks(blocks, features, SeededEntropy(3))
    signs = everyone(sample)
    assert set(np.unique(signs)) <= {-1, 1}
    assert sample.positive.tolist() == np.count_nonzero(signs == 1, axis=0).tolist()
    orientation = everyone(FairBlocks(1, features, SeededEntropy(4)))[0]
    for used in {1, (features + 1) // 2, features}:
        expected = signs[:, :used] @ orientation[:used]
        assert sample.sums(orientation[:used]).tolist() == expected.tolist()


# Questions and who answers them


@given(st.lists(st.integers(-12, 12), min_size=1, max_size=9))
def test_exact_median_on_a_grid(values: list[int]) -> None:
    grid, array = IntegerGrid(-8, 8, 2), np.array(values)
    index = ExactMedian().median(array, grid)
    projected = grid.project(array)
    median = grid.point(index)
    assert 2 * np.count_nonzero(projected <= median) >= array.size
    assert 2 * np.count_nonzero(projected < median) < array.size
    at_most = np.array([np.count_nonzero(grid.ceiling(array) <= i) for i in range(grid.size)])
    first = int(np.argmax(ExactMedian().low(2 * at_most - array.size)))
    assert first == index  # the two ways to answer agree


def test_ranks_of_a_score_by_enumeration() -> None:
    orientation = np.array([1, -1, 1, 1])
    question = Score(orientation)
    sums = np.array([2 * i.bit_count() - 4 for i in range(16)])
    projected = question.grid.ceiling(sums)
    answers = np.arange(question.grid.size)
    below = (projected[:, np.newaxis] < answers).mean(axis=0)
    up_to = (projected[:, np.newaxis] <= answers).mean(axis=0)
    assert question.ranks(answers).tolist() == central_rank(below, up_to).tolist()


def test_ranks_of_signs() -> None:
    assert Signs(2).ranks(np.array([0, 1])).tolist() == [0.5, 0.5]


def test_extremes_leave_one_sign_out() -> None:
    sample = FairBlocks(400, 99, SeededEntropy(5))
    orientation = everyone(FairBlocks(1, 99, SeededEntropy(6)))[0]
    question = Extremes(orientation, 50, 0.2)
    threshold, oriented = question.law.rare(0.2), everyone(sample) * orientation
    expected = [
        int(np.count_nonzero(np.delete(oriented, left_out, axis=1).sum(axis=1) > threshold))
        for left_out in range(50)
    ]
    assert question.above(sample).tolist() == expected
    assert len(set(expected)) > 3
    low, high = question.ranks(np.array([0, 1]))
    assert low == 0.5
    assert 0.8 <= high < 0.85  # the answer 1 breaks a promise of tail 0.2


@given(st.integers(1, 10**6))
def test_the_final_grid_reaches_far_enough(terms: int) -> None:
    grid = score_grid(terms)
    assert grid.looks == 10
    assert min(-grid.low, grid.high + grid.step) >= 5 * math.sqrt(terms)


# Analysts


@pytest.mark.parametrize("total", [4, 5, 100, 5_010])
def test_persistence_leaves_out_a_sign_that_was_asked_about(total: int) -> None:
    analyst = PersistentAnalyst(total)
    conversation = analyst.converse()
    assert next(conversation).looks == analyst.features
    extremes = conversation.send(np.zeros(analyst.features, np.int64))
    assert isinstance(extremes, Extremes)
    assert extremes.count <= extremes.orientation.size
    tail = float(extremes.law.above(extremes.law.rare(0.01)))
    assert tail <= 0.01
    assert total < 5_000 or tail > 0.0099


@pytest.mark.parametrize("analyst", [SignAggregator(100), PersistentAnalyst(101)])
def test_an_analyst_takes_the_looks_it_says(analyst: SignAggregator | PersistentAnalyst) -> None:
    sample = FairBlocks(21, analyst.features, SeededEntropy(1))
    assert interview(analyst, sample, ExactMedian()).looks == analyst.looks


def test_blocks_must_have_the_signs_that_are_asked_about() -> None:
    with pytest.raises(InvalidInput, match="at least 100 signs"):
        interview(SignAggregator(100), FairBlocks(3, 99, SeededEntropy(1)), ExactMedian())


class Greedy(SignAggregator):
    """Asks for more than it said."""

    def converse(self) -> Conversation:
        yield Signs(self.questions)
        yield from super().converse()


def test_nobody_gets_more_looks_than_planned() -> None:
    with pytest.raises(Infeasible, match="210 looks, but the plan has 110"):
        run_attack(Greedy(100), runs=1, seed=1)


def test_a_responder_must_be_known() -> None:
    with pytest.raises(InvalidInput, match="'naive' or 'holdfast'"):
        run_attack(SignAggregator(100), runs=1, seed=1, against=["exact"])


def test_drift_is_what_the_docstring_says() -> None:
    """Means over 60 runs. Each median has a standard deviation of about 1.25/√m = 0.1: an alarm at
    0.09 is seven standard errors away."""
    questions, blocks, runs = 4_000, 150, 60
    coin = plan_attack(questions).coin
    slope = 2 * float(coin.halfsteps[0] - coin.halfsteps[1])
    expected = {NAIVE: math.sqrt(2 / (math.pi * blocks)), HOLDFAST: slope}
    for name, per_question in expected.items():
        medians = []
        for run in range(runs):
            entropy = SeededEntropy((11, run))
            sample = FairBlocks(blocks, questions, entropy)
            responder = ExactMedian() if name == NAIVE else Looks(coin, entropy)
            answers = Signs(questions).ask(sample, responder)
            medians.append(np.median(sample.sums(2 * answers - 1)) / math.sqrt(questions))
        assert np.mean(medians) == pytest.approx(math.sqrt(questions) * per_question, abs=0.09)


# The evidence


def test_naive_median_fails_and_looks_keep_the_promise() -> None:
    """300 runs of 5,000 yes/no questions and a search at ρ = 0.01 on the planned blocks."""
    result = run_attack(SignAggregator(5_000), runs=300, seed=20)
    assert result.blocks == result.plan.blocks
    assert result.plan.promise.looks == 5_010
    assert result.failures(NAIVE) > 0.95 * 300
    assert result.failure_bound(HOLDFAST) <= result.plan.promise.failure


def test_the_strongest_attack_known_does_not_break_the_planned_size() -> None:
    analyst = PersistentAnalyst(5_000)
    result = run_attack(analyst, runs=100, seed=21, against=[HOLDFAST])
    assert result.failure_bound(HOLDFAST) <= result.plan.promise.failure


def test_the_strongest_attack_known_breaks_seven_tenths_of_it() -> None:
    """So a failure would be seen: at 0.7 of the blocks almost every other run fails."""
    analyst = PersistentAnalyst(5_000)
    planned = plan_attack(analyst.looks).blocks
    blocks = round(0.7 * planned)
    result = run_attack(analyst, runs=40, blocks=blocks, seed=22, against=[HOLDFAST])
    assert result.broken(HOLDFAST)
    assert result.to_json()["certified"] is False


def test_a_coin_too_steep_for_its_looks_is_caught() -> None:
    """A mutant: the coin of a plan for 50 looks answers 5,010."""
    analyst = SignAggregator(5_000)
    plan, steep = plan_attack(analyst.looks), plan_attack(50).coin
    for run in range(5):
        entropy = SeededEntropy((23, run))
        sample = FairBlocks(plan.blocks, analyst.features, entropy)
        assert interview(analyst, sample, Looks(steep, entropy)).rank >= 1 - plan.tail


def test_a_seed_repeats_a_run_and_certifies_nothing() -> None:
    first, again = (run_attack(SignAggregator(200), runs=3, seed=7) for _ in range(2))
    assert first.ranks[HOLDFAST].tolist() == again.ranks[HOLDFAST].tolist()
    assert first.entropy == "seeded (7): no certificate"
    assert first.to_json()["certified"] is False


def test_without_a_seed_runs_differ() -> None:
    heard: list[tuple[int, int]] = []
    result = run_attack(SignAggregator(200), runs=8, progress=lambda *at: heard.append(at))
    assert heard == [(run, 8) for run in range(1, 9)]
    assert len(set(result.ranks[HOLDFAST].tolist())) > 1
    assert "operating system" in result.entropy
    assert result.to_json()["certified"] is True


# Statistics


def test_bound_by_its_definition() -> None:
    """At the bound p, k failures or fewer have probability exactly 1 − confidence."""
    for failures, trials, confidence in ((0, 300, 0.95), (3, 40, 0.95), (39, 40, 0.99)):
        p = failure_rate_bound(failures, trials, confidence)
        lower = sum(
            math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(failures + 1)
        )
        assert lower == pytest.approx(1 - confidence, rel=1e-9)
    assert failure_rate_bound(0, 300) == pytest.approx(1 - 0.05 ** (1 / 300))
    assert failure_rate_bound(40, 40) == 1.0


def test_bound_grows_with_failures() -> None:
    bounds = [failure_rate_bound(failures, 50) for failures in range(51)]
    assert all(a < b for a, b in pairwise(bounds))
    with pytest.raises(InvalidInput):
        failure_rate_bound(3, 2)


# The campaign


def test_campaign_writes_a_page(tmp_path_factory: pytest.TempPathFactory) -> None:
    output = tmp_path_factory.mktemp("campaign") / "page.md"
    command = ["--runs", "30", "--questions", "600", "--seed", "1", "--fractions", "1", "0.5"]
    assert main([*command, "--output", str(output)]) == 4  # the naive median stands 600 questions
    text = output.read_text("utf-8")
    assert "$ python -m holdfast.lab.attack --runs 30 --questions 600 --seed 1" in text
    assert "| naive median | 30 |" in text
    assert "At 0.5 of the planned blocks the persistent analyst breaks the promise" in text
    prose = [line for line in text.splitlines() if line[:1] not in "|$"]
    assert max(map(len, prose)) < 100


def test_campaign_without_shares(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--runs", "2", "--questions", "300", "--seed", "1", "--fractions"])
    printed = capsys.readouterr().out
    assert "## The sign aggregator" in printed
    assert "## Below" not in printed


def test_campaign_passes_only_on_evidence() -> None:
    """60 runs without a failure bound the rate by 0.0487; 50 only by 0.058."""
    assert run_campaign(60, 5_000, seed=1, fractions=()).passed
    assert not run_campaign(50, 5_000, seed=1, fractions=()).passed
