"""The long attack on medians: what it needs is exact, what it claims is so, and it breaks what is
broken."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.randomness import SeededEntropy
from holdfast.theory.coins import logistic_coin
from holdfast_lab.attacks.conversation import Replies, central_rank, interview
from holdfast_lab.attacks.learners import SearchResponder, answer_chance
from holdfast_lab.attacks.signs import (
    ExactMedian,
    FairBlocks,
    LabelAnalyst,
    Looks,
    PersistentAnalyst,
    RareEvents,
    Score,
    SignAggregator,
    SignAnalyst,
    Signs,
    SignSum,
    best_learning,
    expected_breaking,
    expected_failure,
    failure_chance,
    margin,
    score_grid,
)
from holdfast_lab.audit import planned
from holdfast_lab.statistics import failure_rate_bound


def everyone(blocks: FairBlocks) -> NDArray[np.int64]:
    return 2 * blocks.table(0, blocks.features).T.astype(np.int64) - 1


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


@given(st.integers(1, 10_000), st.floats(1e-6, 0.4), st.integers(1, 10**6))
def test_rare_values_events_and_the_final_grid(terms: int, tail: float, many: int) -> None:
    law = SignSum(terms)
    value = law.rare(tail)
    assert law.above(value) <= tail < law.above(value - 1)
    mass = RareEvents(np.ones(terms, np.int64), 1, tail).event.mass
    assert tail * (1 - 1e-8) <= mass <= tail
    grid = score_grid(many)
    assert grid.looks == 10
    assert min(-grid.low, grid.high + grid.step) >= 5 * math.sqrt(many)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.001, 0.499))
def test_the_rank_says_whether_the_promise_holds(a: float, b: float, tail: float) -> None:
    below, up_to = min(a, b), max(a, b)
    rank = central_rank(below, up_to)
    assert (rank <= tail) == (up_to <= tail)
    assert (rank >= 1 - tail) == (below >= 1 - tail)


@pytest.mark.parametrize(("blocks", "features"), [(1, 1), (3, 64), (300, 130), (600, 7)])
def test_counts_and_sums_of_packed_signs(blocks: int, features: int) -> None:
    sample = FairBlocks(blocks, features, SeededEntropy(3))
    signs = everyone(sample)
    assert sample.positive.tolist() == np.count_nonzero(signs == 1, axis=0).tolist()
    orientation = everyone(FairBlocks(1, features, SeededEntropy(4)))[0]
    orientation[features // 2 :: 3] = 0
    for used in {1, (features + 1) // 2, features}:
        expected = signs[:, :used] @ orientation[:used]
        assert sample.sums(orientation[:used]).tolist() == expected.tolist()
    same = FairBlocks.of(signs > 0)
    assert (everyone(same) == signs).all()
    assert same.sums(orientation).tolist() == sample.sums(orientation).tolist()


# Questions and who answers them


@given(st.lists(st.integers(0, 8), min_size=1, max_size=9))
def test_exact_medians_by_values_and_by_counts(values: list[int]) -> None:
    array = np.array(values)
    index = int(ExactMedian().medians(array[np.newaxis], 9).values[0])
    assert 2 * np.count_nonzero(array <= index) >= array.size
    assert 2 * np.count_nonzero(array < index) < array.size
    at_most = np.array([np.count_nonzero(array <= i) for i in range(9)])
    assert int(np.argmax(ExactMedian().chance_low(2 * at_most - array.size))) == index


def test_ranks_of_a_score_by_enumeration() -> None:
    question = Score(np.array([1, -1, 1, 0, 1]))
    sums = np.array([2 * i.bit_count() - 4 for i in range(16)])
    projected = score_grid(4).ceiling(sums)
    answers = np.arange(question.points)
    below = (projected[:, np.newaxis] < answers).mean(axis=0)
    up_to = (projected[:, np.newaxis] <= answers).mean(axis=0)
    assert question.ranks(answers).tolist() == central_rank(below, up_to).tolist()


def test_rare_events_by_counting() -> None:
    """A block has an event if its score is high, or tied and its other 64 signs choose it."""
    sample = FairBlocks(400, 99, SeededEntropy(5))
    orientation = everyone(FairBlocks(1, 64, SeededEntropy(6)))[0]
    question = RareEvents(orientation, 50, 0.2)
    scores = everyone(sample)[:, :64] @ orientation
    threshold = SignSum(64).rare(0.2)
    counts = question.above(sample)
    assert counts.tolist() == question._table(sample).sum(axis=1).tolist()
    surely = int(np.count_nonzero(scores > threshold))
    tied = int(np.count_nonzero(scores == threshold))
    assert surely <= counts.min() < counts.max() <= surely + tied
    filled = (0.2 - float(SignSum(64).above(threshold))) / math.comb(64, (64 + threshold) // 2)
    expected = surely + tied * filled * 2**64
    assert counts.mean() == pytest.approx(expected, abs=3)  # of 50 draws of `tied` each: 9 sigma
    low, high = question.reached(np.array([0.0, 1.0]))
    assert low == 0.5
    assert 0.8 <= high < 0.8 + 1e-8  # the answer 1 breaks a promise of tail 0.2, and just so


def test_no_rare_event_is_asked_about_twice() -> None:
    """A holdout gives the recorded answer to a question that it knows: the events must differ.

    Here for tie levels of six bits: if an odd number of them belongs, every mask makes another set.
    """
    levels = np.arange(64)
    for inside in range(1, 64, 2):
        assert len({((levels ^ mask) < inside).tobytes() for mask in range(64)}) == 64
    for terms in (10, 64, 4_201):
        assert RareEvents(np.ones(terms, np.int64), 1, 0.2).event.levels % 2 == 1


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
def test_chances_are_those_of_the_verdicts(responder: SearchResponder) -> None:
    """4,000 verdicts at each offset: off by 5.5 standard errors in one of 10⁷ tests."""
    offsets = np.arange(-6, 7)
    high = responder.sides(np.repeat(offsets, 4_000), lambda: np.empty(0)).values
    expected = responder.chance_low(offsets)
    errors = 5.5 * np.sqrt(expected * (1 - expected) / 4_000)
    assert (np.abs(1 - high.reshape(13, -1).mean(axis=1) - expected) <= errors).all()


def test_the_chance_of_rare_events() -> None:
    sample = FairBlocks(40, 99, SeededEntropy(5))
    question, looks = RareEvents(np.ones(32, np.int64), 7, 0.3), Looks(COIN, SeededEntropy(1))
    slips = [COIN.yes(int(2 * count - 40)) for count in question.above(sample)]
    assert question.chance(sample, looks, 0.3) == pytest.approx(1 - math.prod(1 - p for p in slips))
    assert question.chance(sample, looks, 0.25) == 0  # an event of mass 0.3 breaks no such promise
    assert question.chance(sample, ExactMedian(), 0.3) == 0


# Analysts


@pytest.mark.parametrize(
    "analyst",
    [SignAggregator(100), PersistentAnalyst(101), PersistentAnalyst(101, 0.02, 0.3)],
    ids=["aggregator", "persistent", "impatient"],
)
def test_an_analyst_takes_the_looks_it_says(analyst: SignAnalyst) -> None:
    session = interview(analyst, analyst.sample(21, SeededEntropy(1)), ExactMedian())
    assert session.looks == analyst.looks


def test_the_collector_breaks_exact_medians_within_its_looks() -> None:
    analyst, exact = LabelAnalyst(500, 110), ExactMedian()
    assert analyst.expected_looks < 500
    for run in range(5):
        world = analyst.sample(110, SeededEntropy((30, run)))
        session = interview(analyst, world, exact)
        assert session.rank >= 0.99
        assert failure_chance(session, world.holdout, exact, 0.01) == 1
        assert session.looks <= 500


def test_blocks_must_have_the_signs_that_are_asked_about() -> None:
    with pytest.raises(InvalidInput, match="at least 100 signs"):
        interview(SignAggregator(100), FairBlocks(3, 99, SeededEntropy(1)), ExactMedian())


def test_drift_is_what_the_docstring_says() -> None:
    """Means over 30 runs. Each median has a standard deviation of about 1.25/√m = 0.1: an alarm at
    0.13 is seven standard errors away."""
    questions, blocks, runs = 4_000, 150, 30
    coin = planned(5_000, 2, 0.01, 0.95).coin
    slope = 2 * float(coin.halfsteps[0] - coin.halfsteps[1])
    for naive, per_question in ((True, math.sqrt(2 / (math.pi * blocks))), (False, slope)):
        medians = []
        for run in range(runs):
            entropy = SeededEntropy((11, run))
            sample = FairBlocks(blocks, questions, entropy)
            responder = ExactMedian() if naive else Looks(coin, entropy)
            leaning = 2 * Signs(questions).put(sample, responder).values - 1
            medians.append(np.median(sample.sums(leaning.astype(int))) / math.sqrt(questions))
        assert np.mean(medians) == pytest.approx(math.sqrt(questions) * per_question, abs=0.13)


def test_the_sum_has_the_law_that_it_says_and_leaves_out_refusals() -> None:
    analyst = SignAggregator(400, rows=4_000)
    world = analyst.draw(np.random.default_rng(2))
    conversation = analyst.converse(world)
    next(conversation)
    orientation = np.random.default_rng(3).integers(0, 2, 400).astype(np.float64)  # fixed before
    orientation[:3] = np.nan
    last = conversation.send(Replies.unclaimed(orientation))
    assert isinstance(last, Score)
    assert last.terms == 397
    values = last(world)
    empirical = np.searchsorted(np.sort(values), np.arange(1_024), side="right") / values.size
    law = SignSum(397).at_most(score_grid(397).points(np.arange(1_024)))
    # Dvoretzky, Kiefer & Wolfowitz: the distance exceeds ε with at most 2·e^(−2nε²) < 1e-6
    assert np.abs(empirical - law).max() < 0.0428


def test_the_bound_is_clopper_and_pearsons() -> None:
    """At the bound p, k failures or fewer have probability exactly 1 − confidence."""
    for failures, trials, confidence in ((0, 300, 0.95), (3, 40, 0.95), (39, 40, 0.99)):
        p = failure_rate_bound(failures, trials, confidence)
        lower = sum(
            math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(failures + 1)
        )
        assert lower == pytest.approx(1 - confidence, rel=1e-9)
    bounds = [failure_rate_bound(failures, 50) for failures in range(51)]
    assert all(a < b for a, b in pairwise(bounds))
    assert bounds[-1] == 1.0
    with pytest.raises(InvalidInput):
        failure_rate_bound(3, 2)


# Tuning


def test_the_margin_is_what_agreement_shows() -> None:
    """Of 21 blocks and 200,000 looks; the mean has a standard error of 1/√4.2e6: 5.5 of them."""
    coin, blocks = logistic_coin(slope=0.1, floor=1e-6), 21
    sample = FairBlocks(blocks, 200_000, SeededEntropy(31))
    leaning = 2 * Signs(200_000).put(sample, Looks(coin, SeededEntropy(32))).values - 1
    agreement = float(sample.sums(leaning.astype(int)).mean()) / 200_000
    assert agreement == pytest.approx(margin(coin, blocks), abs=5.5 / math.sqrt(4.2e6))


def test_the_model_is_near_what_is_played() -> None:
    """It only divides the looks, but a bad model would divide them badly: mean chance of 150 runs
    with a standard error of about a tenth of it, and the model's own error."""
    plan = planned(500, 2, 0.01, 0.95)
    blocks = round(0.7 * plan.blocks)
    analyst = PersistentAnalyst(500, best_learning(plan.coin, blocks, 500, 0.01))
    chances = []
    for run in range(150):
        world, looks = analyst.sample(blocks, SeededEntropy((33, run))), SeededEntropy((34, run))
        responder = Looks(plan.coin, looks)
        session = interview(analyst, world, responder)
        chances.append(failure_chance(session, world, responder, 0.01))
    modelled = expected_failure(plan.coin, blocks, 500, analyst.learnt, 0.01)
    assert modelled / 2 < np.mean(chances) < 2 * modelled
    assert 0.02 < modelled < 0.5
    edge = expected_breaking(plan.coin, 500, 0.01, 0.05)
    assert plan.blocks / 2 < edge < plan.blocks
    shares = [best_learning(plan.coin, edge, looks, 0.01) for looks in (500, 50_000)]
    assert shares[0] < shares[1] < 1
