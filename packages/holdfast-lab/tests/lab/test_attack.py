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
from holdfast.randomness import SeededEntropy
from holdfast.theory.coins import logistic_coin, steepest_coin
from holdfast_lab.attacks.medians import HOLDFAST, NAIVE, plan_attack, run_attack
from holdfast_lab.attacks.sign_sums import (
    Conversation,
    ExactMedian,
    FairBlocks,
    LabelAnalyst,
    Labelled,
    Looks,
    PersistentAnalyst,
    RareEvents,
    Responder,
    Score,
    SignAggregator,
    Signs,
    SignSum,
    answer_chance,
    best_learning,
    central_rank,
    expected_breaking,
    expected_failure,
    interview,
    margin,
    score_grid,
)
from holdfast_lab.statistics import failure_rate_bound


def everyone(blocks: FairBlocks) -> NDArray[np.int64]:
    return blocks.signs(blocks.features)


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


def test_rare_events_by_counting() -> None:
    """A block has an event if its score is high, or tied and its other 64 signs choose it."""
    sample = FairBlocks(400, 99, SeededEntropy(5))
    orientation = everyone(FairBlocks(1, 64, SeededEntropy(6)))[0]
    question = RareEvents(orientation, 50, 0.2)
    scores = everyone(sample)[:, :64] @ orientation
    threshold = SignSum(64).rare(0.2)
    counts = question.above(sample)
    surely = int(np.count_nonzero(scores > threshold))
    tied = int(np.count_nonzero(scores == threshold))
    assert surely <= counts.min() < counts.max() <= surely + tied
    filled = (0.2 - float(SignSum(64).above(threshold))) / math.comb(64, (64 + threshold) // 2)
    expected = surely + tied * filled * 2**64
    assert counts.mean() == pytest.approx(expected, abs=3)  # of 50 draws of `tied` each: 9 sigma
    low, high = question.ranks(np.array([0, 1]))
    assert low == 0.5
    assert 0.8 <= high < 0.8 + 1e-8  # the answer 1 breaks a promise of tail 0.2, and just so


@given(st.integers(1, 20_000), st.floats(0.001, 0.45))
def test_rare_events_fill_their_tail(terms: int, tail: float) -> None:
    question = RareEvents(np.ones(terms, np.int64), 1, tail)
    assert tail * (1 - 1e-8) <= question.mass <= tail


def test_no_rare_event_is_asked_about_twice() -> None:
    """A holdout gives the recorded answer to a question that it knows: the events must differ.

    Here for tie levels of six bits: if an odd number of them belongs, every mask makes another set.
    """
    levels = np.arange(64)
    for inside in range(1, 64, 2):
        assert len({((levels ^ mask) < inside).tobytes() for mask in range(64)}) == 64
    for terms in (10, 64, 4_201):
        assert RareEvents(np.ones(terms, np.int64), 1, 0.2)._one.levels % 2 == 1


COIN = logistic_coin(slope=0.3, floor=1e-6)


def tree(low: NDArray[np.float64], first: int, last: int) -> NDArray[np.float64]:
    """The law of a bisection's end, by following both verdicts of every look."""
    law = np.zeros(low.size)
    if first == last:
        law[first] = 1
        return law
    middle = (first + last) // 2
    yes, no = tree(low, first, middle), tree(low, middle + 1, last)
    return np.asarray(low[middle] * yes + (1 - low[middle]) * no)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=9), st.integers(2, 13), st.data())
def test_the_chance_of_an_answer_by_following_every_path(
    values: list[int], points: int, data: st.DataObject
) -> None:
    indices = np.minimum(np.array(values), points - 1)
    shares = st.lists(st.floats(0, 1), min_size=points, max_size=points)
    ranks, tail = np.array(sorted(data.draw(shares))), data.draw(st.floats(0.001, 0.499))
    at_most = np.array([np.count_nonzero(indices <= i) for i in range(points)])
    looks = Looks(COIN, SeededEntropy(1))
    law = tree(looks.chance_low(2 * at_most - indices.size), 0, points - 1)
    expected = law[(ranks <= tail) | (ranks >= 1 - tail)].sum()
    assert answer_chance(indices, ranks, looks, tail) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "responder", [Looks(COIN, SeededEntropy(2)), ExactMedian()], ids=["l", "e"]
)
def test_chances_are_those_of_the_verdicts(responder: Responder) -> None:
    """4,000 verdicts at each offset: off by 5.5 standard errors in one of 10⁷ tests."""
    offsets = np.arange(-6, 7)
    verdicts = responder.low(np.repeat(offsets, 4_000)).reshape(offsets.size, -1).mean(axis=1)
    expected = responder.chance_low(offsets)
    errors = 5.5 * np.sqrt(expected * (1 - expected) / 4_000)
    assert (np.abs(verdicts - expected) <= errors).all()


def test_the_chance_of_rare_events() -> None:
    sample = FairBlocks(40, 99, SeededEntropy(5))
    question, looks = RareEvents(np.ones(32, np.int64), 7, 0.3), Looks(COIN, SeededEntropy(1))
    slips = [COIN.yes(int(2 * count - 40)) for count in question.above(sample)]
    assert question.chance(sample, looks, 0.3) == pytest.approx(1 - math.prod(1 - p for p in slips))
    assert question.chance(sample, looks, 0.25) == 0  # an event of mass 0.3 breaks no such promise
    assert question.chance(sample, ExactMedian(), 0.3) == 0


@given(st.integers(1, 10**6))
def test_the_final_grid_reaches_far_enough(terms: int) -> None:
    grid = score_grid(terms)
    assert grid.looks == 10
    assert min(-grid.low, grid.high + grid.step) >= 5 * math.sqrt(terms)


# Analysts


@pytest.mark.parametrize(
    "analyst",
    [SignAggregator(100), PersistentAnalyst(101), PersistentAnalyst(101, 0.02, 0.3)],
    ids=["aggregator", "persistent", "impatient"],
)
def test_an_analyst_takes_the_looks_it_says(analyst: SignAggregator | PersistentAnalyst) -> None:
    sample = FairBlocks(21, analyst.features, SeededEntropy(1))
    assert interview(analyst, sample, ExactMedian()).looks == analyst.looks


def test_the_collector_breaks_exact_medians_within_its_looks() -> None:
    analyst = LabelAnalyst(500, 110)
    assert analyst.expected_looks < 500
    for run in range(5):
        sample = FairBlocks(110, 64, SeededEntropy((30, run)))
        heard = interview(analyst, sample, ExactMedian(), 0.01)
        assert heard.rank >= 0.99
        assert heard.chance == 1
        assert heard.looks <= 500


def test_questions_about_labels_know_their_ranks() -> None:
    """Against the law of all labels, one block for each of them."""
    analyst = LabelAnalyst(100, 10, tail=0.2)
    conversation = analyst.converse()
    answers, asked = [np.array([20]), np.array([3]), np.array([0])], [next(conversation)]
    asked += [conversation.send(answer) for answer in answers]
    for question in asked:
        assert isinstance(question, Labelled)
        values = np.asarray(question.question(np.arange(question.size)))
        points = np.arange(question.grid.size)
        below = (values[:, np.newaxis] < points).mean(axis=0)
        up_to = (values[:, np.newaxis] <= points).mean(axis=0)
        np.testing.assert_allclose(question.ranks(points), central_rank(below, up_to))


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
    """Means over 30 runs. Each median has a standard deviation of about 1.25/√m = 0.1: an alarm at
    0.13 is seven standard errors away."""
    questions, blocks, runs = 4_000, 150, 30
    coin = plan_attack(5_000).coin
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
        assert np.mean(medians) == pytest.approx(math.sqrt(questions) * per_question, abs=0.13)


# The evidence


def test_naive_median_fails_and_looks_keep_the_promise() -> None:
    """4,990 yes/no questions and a search at ρ = 0.01 on the planned blocks."""
    result = run_attack(SignAggregator(4_990), runs=60, seed=20)
    assert result.blocks == result.plan.blocks
    assert result.plan.promise.looks == 5_000
    assert result.failures(NAIVE) > 0.95 * 60
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
    """A mutant: a coin whose looks cost a hundred times the planned price."""
    analyst = SignAggregator(4_990)
    plan = plan_attack(analyst.looks)
    steep = steepest_coin(plan.order, 100 * plan.budget / 5_000, 1e-9)
    for run in range(5):
        entropy = SeededEntropy((23, run))
        sample = FairBlocks(plan.blocks, analyst.features, entropy)
        assert interview(analyst, sample, Looks(steep, entropy)).rank >= 1 - plan.tail


def test_a_seed_repeats_a_run_and_certifies_nothing() -> None:
    first, again = (run_attack(SignAggregator(100), runs=3, seed=7) for _ in range(2))
    assert first.ranks[HOLDFAST].tolist() == again.ranks[HOLDFAST].tolist()
    assert first.entropy == "seeded (7): no certificate"
    assert first.to_json()["certified"] is False


def test_without_a_seed_runs_differ() -> None:
    heard: list[tuple[int, int]] = []
    result = run_attack(SignAggregator(100), runs=8, progress=lambda *at: heard.append(at))
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


# Tuning


def test_the_margin_is_what_agreement_shows() -> None:
    """Of 21 blocks and 200,000 looks; the mean has a standard error of 1/√4.2e6: 5.5 of them."""
    coin, blocks = logistic_coin(slope=0.1, floor=1e-6), 21
    sample = FairBlocks(blocks, 200_000, SeededEntropy(31))
    answers = Signs(200_000).ask(sample, Looks(coin, SeededEntropy(32)))
    agreement = float(sample.sums(2 * answers - 1).mean()) / 200_000
    assert agreement == pytest.approx(margin(coin, blocks), abs=5.5 / math.sqrt(4.2e6))


def test_the_model_is_near_what_is_played() -> None:
    """It only divides the looks, but a bad model would divide them badly: mean chance of 150 runs
    with a standard error of about a tenth of it, and the model's own error."""
    plan = plan_attack(500)
    blocks = round(0.7 * plan.blocks)
    learning = best_learning(plan.coin, blocks, 500, 0.01)
    analyst = PersistentAnalyst(500, learning)
    chances = []
    for run in range(150):
        sample = FairBlocks(blocks, analyst.features, SeededEntropy((33, run)))
        looks = Looks(plan.coin, SeededEntropy((34, run)))
        chances.append(interview(analyst, sample, looks, 0.01).chance)
    modelled = expected_failure(plan.coin, blocks, 500, analyst.learnt, 0.01)
    assert modelled / 2 < np.mean(chances) < 2 * modelled
    assert 0.02 < modelled < 0.5


def test_the_model_breaks_below_the_certified_size_and_above_its_half() -> None:
    plan = plan_attack(500)
    edge = expected_breaking(plan.coin, 500, 0.01, 0.05)
    assert plan.blocks / 2 < edge < plan.blocks
    shares = [best_learning(plan.coin, edge, looks, 0.01) for looks in (500, 50_000)]
    assert shares[0] < shares[1] < 1
