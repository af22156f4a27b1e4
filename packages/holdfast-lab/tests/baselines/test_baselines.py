"""The baselines keep what their theorems say, exactly where that can be tried, and nothing more."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import bdtr, gammaln
from tests.baselines.checks import (
    ROUNDING,
    all_neighbours,
    counts,
    neighbouring_counts,
    quantile_law,
    run,
)
from tests.baselines.laws import Laws, laplace_law, worst_loss
from tests.mutants.baselines import MUTANTS, algorithm_4

from holdfast.errors import Infeasible, InvalidInput
from holdfast.randomness import Entropy, SeededEntropy
from holdfast.theory.paper import interactive_composition, sparse_vector_blocks
from holdfast_lab.baselines import noise, noisy_means, sparse_vector
from holdfast_lab.baselines.guess_and_check import (
    CheckedGuess,
    Confirmation,
    DescriptionLength,
    GuessAndCheck,
    check_half_width,
    check_rows,
    description_rows,
    false_discovery,
    log_questions,
    log_share,
    transcript_error,
)
from holdfast_lab.baselines.ladder import Ladder, LadderScore, ladder_error, ladder_step
from holdfast_lab.baselines.noise import (
    CELLS,
    ROUNDING_ERROR,
    as_mean,
    bounded_sum,
    clipped,
    discrete_gaussian,
    discrete_laplace,
    laplace_reach,
    laplace_tail,
)
from holdfast_lab.baselines.noisy_means import NoisyMean, NoisyMeans, rows_by_bassily, rows_by_dwork
from holdfast_lab.baselines.sparse_vector import (
    SparseRule,
    SparseVector,
    Thresholdout,
    ThresholdoutAnswer,
    ThresholdoutRule,
    sparse_step,
    sv_emp_blocks,
    thresholdout_settings,
    verdict_error,
)
from holdfast_lab.baselines.subsample_aggregate import (
    aggregate,
    draw_quantile,
    quantile_scores,
    subsample_aggregate,
)
from tests.mechanisms.laws import Script, alarm
from tests.mutants.theory import Mutant

SEED = SeededEntropy(1)
HALF = [0.0] * 50 + [1.0] * 50
KINDS: Any = ["laplace", "gaussian"]


def bits(ones: int, rows: int) -> list[float]:
    return [1.0] * ones + [0.0] * (rows - ones)


def scales_drawn(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, value: int = 0) -> Any:
    """The parameters that a baseline draws its noise with; the noise is this value."""
    scales: list[Fraction] = []

    def draw(scale: Fraction, entropy: Entropy) -> int:
        scales.append(scale)
        return value

    monkeypatch.setattr(module, name, draw)
    return scales


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mistake_is_caught(mutant: Mutant) -> None:
    """Each by a check that the real code passes."""
    if mutant.check not in PASSED:
        assert mutant.check()
        PASSED.add(mutant.check)
    assert not mutant.check(mutant.broken)


PASSED: set[object] = set()


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (
            SparseVector,
            {"refusals": 1, "epsilon": 1.0, "delta": 0.0, "entropy": SEED},
            {"refusals": [0, 1.5], "epsilon": [0.0, math.nan], "delta": [1.0, -1e-9]},
        ),
        (
            Thresholdout,
            {"rows": 10, "threshold": 0.1, "sigma": 0.1, "budget": 1, "entropy": SEED},
            {"rows": [0], "threshold": [-0.1, math.nan], "sigma": [0.0], "budget": [0]},
        ),
        (
            NoisyMeans,
            {"rows": 10, "queries": 1, "sigma": 0.1, "noise": "gaussian", "entropy": SEED},
            {"rows": [0], "queries": [0], "sigma": [0.0, math.inf], "noise": ["uniform"]},
        ),
        (
            subsample_aggregate,
            {"values": [0.5], "low": 0.0, "high": 1.0, "epsilon": 1.0, "entropy": SEED},
            {
                "low": [1.0],
                "high": [math.inf],
                "epsilon": [0.0],
                "cells": [0],
                "values": [[], np.zeros((2, 2))],
            },
        ),
        (Ladder, {"rows": 10, "step": 0.1}, {"rows": [1, 2.5], "step": [0.0, 1.5, math.nan]}),
        (GuessAndCheck, {"rows": 10, "failure": 0.05}, {"rows": [0], "failure": [0.0]}),
        (
            DescriptionLength,
            {"rows": 10, "queries": 3, "refusals": 1, "points": 5},
            {"refusals": [4], "points": [0, 1], "rows": [0]},
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_settings_that_make_no_sense_are_refused(
    kind: Any, right: dict[str, Any], wrong: dict[str, list[Any]]
) -> None:
    kind(**right)
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(InvalidInput):
                kind(**{**right, name: value})


@pytest.mark.parametrize(
    "call",
    [
        *(lambda t=t: thresholdout_settings(*t) for t in ((0, 1, 0.1, 0.05), (10, 11, 0.1, 0.05))),
        *(lambda t=t: rows_by_dwork(*t) for t in ((0, 0.1, 0.05), (10, 0.0, 0.05))),
        *(lambda t=t: rows_by_bassily(*t) for t in ((10, 0.1, 0.0), (10, 0.1, 1.0))),
        *(lambda t=t: ladder_error(*t) for t in ((1, 5, 0.1, 0.05), (9, 0, 0.1, 0.05))),
        *(lambda t=t: check_half_width(*t) for t in ((10, 0, 1, 1, 0.05), (10, 5, 6, 1, 0.05))),
        lambda: check_rows(5, 5, 0.1, 0.05),
        *(lambda t=t: log_questions(*t) for t in ((0, 1, 2), (1, 0, 2), (1, 1, 0))),
        lambda: transcript_error(10, 1, 1, 2, 0.0),
        lambda: description_rows(10, 1, 0.0, 0.05),
        lambda: false_discovery(1.5, 10, 1),
        lambda: discrete_laplace(Fraction(0), SEED),
        lambda: discrete_gaussian(Fraction(-1), SEED),
        lambda: laplace_tail(Fraction(1), 0),
        lambda: NoisyMeans(10, 1, 0.1, SEED).epsilon(0.0),  # Gaussian noise needs a delta
        *(lambda v=v: SparseVector(1, 1.0, SEED).ask(*v) for v in ((-1, 0), (0.5, 0), (3, 0.5))),
        *(
            lambda g=g: Thresholdout(100, 0.1, 0.1, 1, SEED).ask(HALF, g)
            for g in (-0.1, math.nan, "half", True)
        ),
        *(lambda v=v: Ladder(2).ask(v) for v in ([0.0], [[0.0, 1.0]], [], "ab")),
        lambda: DescriptionLength(10, 2, 1, 5).ask([0.5] * 9, 0.5),
        lambda: DescriptionLength(10, 2, 1, 5).ask([0.5] * 10, 1.5),
    ],
)
def test_targets_and_questions_that_make_no_sense_are_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(InvalidInput):
        call()


def test_nothing_about_noise_or_rows_can_be_read() -> None:
    vector, holdout = SparseVector(3, 1.0, SEED), Thresholdout(100, 0.5, 0.01, 3, SEED)
    board, checked = Ladder(4), GuessAndCheck(100, 0.05)
    assert repr(board) == "<Ladder: best score None>"
    vector.ask(10_000, 0)
    holdout.ask(HALF, 0.5)
    board.ask([0, 1, 1, 0])
    checked.ask(HALF, 0.5, 0.5)
    assert [repr(each) for each in (vector, holdout, board, checked)] == [
        "<SparseVector: 3 refusals left>",
        "<Thresholdout: 3 answers from the holdout left>",
        "<Ladder: best score 0.5>",
        "<GuessAndCheck: 1 questions, 0 not confirmed>",
    ]


def test_exhaustion_is_final_and_polite() -> None:
    means, holdout = NoisyMeans(2, 1, 0.1, SEED), Thresholdout(100, 0.01, 1e-4, 1, SEED)
    means.ask([0, 1])
    holdout.ask(HALF, 0.9)
    assert [means.ask([0, 1]) for _ in range(3)] == [NoisyMean(None, 0)] * 3
    gone = ThresholdoutAnswer(None, "exhausted", 0)
    assert [holdout.ask(HALF, 0.9) for _ in range(3)] == [gone] * 3
    checked = GuessAndCheck(100, 0.05)
    assert checked.ask(HALF, 0.5, 0.01) == CheckedGuess(None, 0.01, "exhausted", 1)
    assert checked.exhausted
    assert checked.ask(HALF, 0.5, 0.9) == CheckedGuess(None, 0.9, "exhausted", 1)


# Exact sums and exact noise


ANYTHING = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(10**400), 10**400),
    st.none(),
    st.text(max_size=3),
    st.booleans(),
)


@settings(max_examples=60)
@given(st.lists(ANYTHING, min_size=1, max_size=20), ANYTHING, st.data())
def test_nothing_in_a_list_raises_and_one_row_moves_the_sum_by_its_cells(
    values: list[object], new: object, data: st.DataObject
) -> None:
    total = bounded_sum(values, len(values))
    assert 0 <= total <= CELLS * len(values)
    place = data.draw(st.integers(0, len(values) - 1))
    changed: list[object] = [*values[:place], new, *values[place + 1 :]]
    assert abs(total - bounded_sum(changed, len(values))) <= CELLS


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_mean_is_right_up_to_the_rounding_of_values(values: list[float]) -> None:
    mean = as_mean(bounded_sum(values, len(values)), len(values))
    assert abs(mean - math.fsum(values) / len(values)) <= ROUNDING_ERROR + 1e-15
    assert clipped(np.array([math.nan, -math.inf, math.inf]), 2.0, 3.0).tolist() == [2.0, 2.0, 3.0]


@pytest.mark.parametrize("values", [[], [[0.5, 0.5]], 0.5, np.zeros((2, 2))], ids=str)
def test_only_the_shape_can_be_wrong(values: object) -> None:
    with pytest.raises(InvalidInput, match="values") as error:
        bounded_sum(values, 2)
    assert "0.5" not in str(error.value)  # no value is shown


@pytest.mark.parametrize(
    ("draw", "weight"),
    [
        (
            lambda entropy: discrete_laplace(Fraction(5, 2), entropy),
            lambda x, wrong: math.exp(-abs(x) / (2.5 * wrong)),
        ),
        (
            lambda entropy: discrete_gaussian(Fraction(9), entropy),
            lambda x, wrong: math.exp(-x * x / (2 * 9 * wrong**2)),
        ),
    ],
    ids=KINDS,
)
def test_draws_follow_the_law(
    draw: Callable[[Entropy], int], weight: Callable[[int, float], float]
) -> None:
    """With an entropy. False alarm ≤ 1e-6; a scale that is 10 % off is seen.

    P[X = 0], P[|X| = 1], …, P[|X| = 7], P[|X| ≥ 8], and P[X < 0].
    """
    reach, draws, entropy = 8, 12_000, SeededEntropy(8)
    found = [0] * (reach + 2)
    for _ in range(draws):
        value = draw(entropy)
        found[min(abs(value), reach)] += 1
        found[-1] += value < 0

    def tested(wrong: float) -> bool:
        total = math.fsum(weight(x, wrong) for x in range(-500, 501))
        sizes = [2 * weight(x, wrong) / total for x in range(1, reach)]
        inside = [weight(0, wrong) / total, *sizes]
        return alarm(found, draws, [*inside, 1 - math.fsum(inside), (1 - inside[0]) / 2])

    assert [tested(wrong) for wrong in (1.0, 1.1, 0.9)] == [False, True, True]


@given(st.integers(1, 60), st.integers(1, 10), st.integers(1, 60), st.floats(1e-12, 0.9))
def test_tails_and_reach_of_the_noise(
    numerator: int, denominator: int, start: int, failure: float
) -> None:
    scale = Fraction(numerator, denominator)
    exact = math.exp(-start / scale) / (1 + math.exp(-1 / scale))
    assert exact <= laplace_tail(scale, start) <= exact * (1 + 1e-11)
    summed = math.fsum(p for x, p in laplace_law(scale, 1e-15) if x >= start)
    assert summed == pytest.approx(exact, rel=1e-9, abs=1e-14)
    reach = laplace_reach(scale, failure)
    assert laplace_tail(scale, reach + 1) <= failure
    assert reach == 0 or laplace_tail(scale, reach) > failure


@pytest.mark.parametrize("size", [2**62 + 1, 3 * 2**70, 2**64 + 13])
def test_uniform_numbers_beyond_one_word(size: int) -> None:
    """Eighths of the range; false alarm ≤ 1e-6."""
    entropy = SeededEntropy(3)
    drawn = [noise._uniform(size, entropy) for _ in range(400)]
    assert all(0 <= x < size for x in drawn)
    eighths = np.bincount([8 * x // size for x in drawn], minlength=8).tolist()
    assert not alarm(eighths, 400, [1 / 8] * 8)
    # 66 bits of two words: 3·2^64 + 5 is rejected, 0·2^64 + 7 is kept
    assert noise._uniform(2**65 + 1, Script([3, 5, 2**64 - 4, 7])) == 7
    scale = Fraction(0.1) * 2**70  # a fraction with a numerator beyond every word
    sizes = [abs(discrete_laplace(scale, SeededEntropy(seed))) / scale for seed in range(40)]
    assert 0.3 < float(sum(sizes, Fraction(0))) / 40 < 2.5  # the mean of |X|/b is 1 ± 0.16


# The sparse vector


def test_no_transcript_of_the_sparse_vector_tells_more_than_epsilon() -> None:
    """Of two refusals, of all neighbours; and the bound is nearly reached, so that no mutant hides.

    (1 + 6c)/4·ε, what Lyu, Su & Li prove about algorithm 4: reached, and never exceeded.
    """
    two = Laws(SparseRule(2, sparse_step(2, 4.0)))
    assert worst_loss(two, neighbouring_counts()) <= 4 + ROUNDING
    pairs = [(counts(0, 0, 0), counts(*moved)) for moved in product((-1, 0, 1), repeat=3)]
    assert worst_loss(Laws(SparseRule(2, Fraction(2)), tail=1e-11), pairs) <= 4 + ROUNDING
    assert worst_loss(Laws(SparseRule(1, Fraction(2))), [run(10)]) > 0.95 * 2
    loss = worst_loss(Laws(algorithm_4(1, Fraction(2))), neighbouring_counts())
    assert 0.99 * 7 / 4 * 2 < loss <= 7 / 4 * 2


def test_the_sparse_vector_draws_as_it_should(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threshold's noise again after a refusal, and only then."""
    law = Laws(SparseRule(2, Fraction(40))).transcripts([(9, 0), (-9, 0)] * 3)  # hardly any noise
    expected = ("yes", "no", "yes", "no", "exhausted", "exhausted")
    assert law.chances[expected] == pytest.approx(1)
    scales = scales_drawn(monkeypatch, sparse_vector, "discrete_laplace")
    vector = SparseVector(2, epsilon=4.0, entropy=SEED)
    verdicts = [vector.ask(count, 5).verdict for count in (9, 9, 1, 9, 1, 9)]
    assert verdicts == ["yes", "yes", "no", "yes", "no", "exhausted"]
    threshold, question = Fraction(1), Fraction(2)  # 2/ε̃ and 4/ε̃ with ε̃ = 2
    assert scales == [threshold, question, question, question, threshold, question, question]


def test_the_class_has_the_law_of_its_rule() -> None:
    """False alarm ≤ 1e-6: each of 800 runs of three questions; the law is known exactly."""
    law = Laws(SparseRule(1, Fraction(1, 2))).transcripts(counts(2, 2, 2))
    trials, seen = 800, dict.fromkeys(law.chances, 0)
    for seed in range(trials):
        vector = SparseVector(1, 0.5, SeededEntropy((4, seed)))
        seen[tuple(vector.ask(2, 0).verdict for _ in range(3))] += 1
    assert not alarm([seen[key] for key in seen], trials, [law.chances[key] for key in seen])


@settings(max_examples=20)
@given(
    st.integers(1, 1_000),
    st.floats(1e-3, 10),
    st.sampled_from([0.0, 1e-9, 1e-3]),
    st.integers(1, 10**6),
    st.floats(0.01, 1),
    st.floats(1e-6, 0.5),
)
def test_refusals_compose_and_blocks_grow_with_everything(
    refusals: int, epsilon: float, delta: float, queries: int, alpha: float, failure: float
) -> None:
    step = float(sparse_step(refusals, epsilon, delta))
    together = refusals * step
    if delta:
        together = min(together, interactive_composition(refusals, step, 0.0, delta)[0])
    assert together <= epsilon * (1 + 1e-9)
    assert step >= epsilon / refusals * (1 - 1e-12)
    asked = (queries, refusals, alpha, 0.5, 1e-6, failure)
    base = sv_emp_blocks(*asked)
    more = {0: queries + 1, 1: refusals + 1, 2: alpha / 2, 3: 0.25, 5: failure / 2}
    for place, value in more.items():
        harder: Any = (*asked[:place], value, *asked[place + 1 :])
        assert sv_emp_blocks(*harder) >= base


def test_the_promise_of_sv_emp_holds_on_the_sample() -> None:
    """Exactly, on small counts: P[some verdict wrong by more than t] ≤ β for every adaptive list.

    The worst counts are just outside: threshold + t + 1 must get Yes, threshold − t must get No.
    """
    refusals, epsilon, failure, queries = 2, 4.0, 0.2, 4
    error = verdict_error(queries, refusals, epsilon, 0.0, failure)
    laws = Laws(SparseRule(refusals, sparse_step(refusals, epsilon)))
    for pattern in product((True, False), repeat=queries):
        law = laws.transcripts([(error + 1, 0) if yes else (-error, 0) for yes in pattern])
        right = tuple(
            "exhausted" if pattern[:j].count(False) >= refusals else "yes" if yes else "no"
            for j, yes in enumerate(pattern)
        )
        assert law.chances[right] >= 1 - failure


def test_the_error_is_near_the_best_and_below_the_textbook() -> None:
    """Within two per cent of the best split of failure and counts."""
    queries, refusals, failure = 1_000, 10, 0.05
    rule = SparseRule(refusals, sparse_step(refusals, 1.0))
    error = verdict_error(queries, refusals, 1.0, 0.0, failure)

    def least_chance(total: int) -> float:
        return min(
            2 * refusals * laplace_tail(rule.threshold_scale, x + 1)
            + queries * laplace_tail(rule.question_scale, total - x + 1)
            for x in range(total + 1)
        )

    assert least_chance(error) <= failure < least_chance(math.floor(error / 1.02))
    asked: tuple[Any, ...] = (2_000, 10, 0.2 / 3, 0.0476550899, 2.6041666e-05, 0.025)
    assert sv_emp_blocks(*asked) < sparse_vector_blocks(*asked) / 2
    assert sv_emp_blocks(*asked) * (0.2 / 3) >= 2 * verdict_error(2_000, 10, *asked[3:])
    assert sparse_step(1_000, 1.0, 1e-6) > 2 * sparse_step(1_000, 1.0)


# Thresholdout


def test_thresholdout_is_private_when_the_guess_lies_between_the_cells() -> None:
    """|h − g| then moves by a fraction; a shift of the noise by one whole row still covers it."""
    rule = ThresholdoutRule(Fraction(3, 2), Fraction(1, 2), 1)
    pairs = [([(0, guess)], [(1, guess)]) for guess in (Fraction(1, 3), Fraction(-1, 2))]
    assert worst_loss(Laws(rule, tail=1e-6), pairs, least=1e-4) <= 4 + ROUNDING


def test_thresholdout_draws_as_in_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    scales = scales_drawn(monkeypatch, sparse_vector, "discrete_laplace")
    holdout = Thresholdout(100, threshold=0.25, sigma=0.125, budget=2, entropy=SEED)
    asked = [holdout.ask(HALF, guess) for guess in (0.5, 0.25, 0.2, 0.9, 0.5)]
    # The second is at the threshold, not beyond it.
    sources = ["guess", "guess", "holdout", "holdout", "exhausted"]
    assert [answer.source for answer in asked] == sources
    assert [answer.value for answer in asked] == [0.5, 0.25, 0.5, 0.5, None]
    assert [answer.budget_left for answer in asked] == [2, 2, 1, 0, 0]
    # T̂ and a comparison; a comparison; a comparison and an answer; T̂ again, and both
    assert [scale / (100 * CELLS) * 8 for scale in scales] == [2, 4, 4, 4, 1, 2, 4, 1]
    # |h − g| > T + γ + η: noise above the threshold confirms; the answer is h + ξ.
    rule = ThresholdoutRule(Fraction(10), Fraction(1), 1)
    for drawn, answer in (((2, 0), None), ((0, 2), None), ((1, 0, 5), 5), ((-3, 4, -7), -7)):
        rest = list(drawn)
        assert rule.ask(rule.start(), (0, Fraction(12)), lambda _: rest.pop(0))[0] == answer  # noqa: B023


def test_thresholdouts_settings_keep_the_promise_of_the_paper_on_the_sample() -> None:
    """Each step of the proof, with the tails of the noise; then 40 interactions, of which the union
    bound of the proof gives each a false alarm below 1e-6."""
    queries, budget, width, failure = 1_000, 10, 0.1, 0.05
    rows, threshold, sigma = thresholdout_settings(queries, budget, width, failure)
    noisy = (
        budget * math.exp(-width / 24 / (2 * sigma))
        + queries * math.exp(-width / 12 / (4 * sigma))
        + budget * math.exp(-width / 8 / sigma)
    )
    assert noisy <= failure / 2
    assert threshold + width / 24 + width / 12 + width / 8 == pytest.approx(width)
    assert threshold - width / 24 - width / 12 - width / 8 == pytest.approx(width / 2)
    # Dwork et al. 2014 at width/8 and β/2, with δ = 0.
    assert 2 * budget / (sigma * rows) <= width / 8 / 4
    assert rows >= 48 / (width / 8) ** 2 * math.log(4 / (failure / 2))
    assert Thresholdout(rows, threshold, sigma, budget, SEED).epsilon() <= width / 32 * (1 + 1e-9)
    _, threshold, sigma = thresholdout_settings(8, 4, 0.4, 1e-6)
    values = np.repeat([0.0, 1.0], 500)
    for seed in range(40):
        holdout = Thresholdout(1_000, threshold, sigma, 4, SeededEntropy((9, seed)))
        for guess in (0.5, 0.1, 0.74, 0.95, 0.26, 0.9):
            answer = holdout.ask(values, guess)
            assert answer.source == ("holdout" if abs(guess - 0.5) > threshold else "guess")
            assert answer.value is not None
            assert abs(answer.value - 0.5) <= 7 / 8 * 0.4


def test_epsilon_takes_the_better_composition() -> None:
    for few, many in (
        (Thresholdout(1_000, 0.1, 0.1, 2, SEED), Thresholdout(1_000, 0.1, 0.1, 2_000, SEED)),
        tuple(NoisyMeans(1_000, k, 0.1, SEED, noise="laplace") for k in (2, 2_000)),
    ):
        assert few.epsilon(1e-6) == few.epsilon(0.0)
        assert many.epsilon(1e-6) < many.epsilon(0.0) / 2


# Noisy means


@pytest.mark.parametrize(("kind", "median"), [("laplace", math.log(2)), ("gaussian", 0.67449)])
def test_an_answer_is_the_exact_sum_plus_noise_of_the_stated_scale(
    kind: Any, median: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the answers are within the median of the noise, half too low: false alarm ≤ 1e-6."""
    trials = 2_000
    means = NoisyMeans(100, trials, 0.1, SeededEntropy(5), noise=kind)
    errors = np.array([means.ask([0.5] * 100).value for _ in range(trials)], np.float64) - 0.5
    seen = [np.count_nonzero(np.abs(errors) < 0.1 * median), np.count_nonzero(errors < 0)]
    assert not alarm([int(x) for x in seen], trials, [0.5, 0.5])
    scales = scales_drawn(monkeypatch, noisy_means, f"discrete_{kind}", 3)
    means = NoisyMeans(rows=10, queries=1, sigma=0.25, entropy=SEED, noise=kind)
    assert means.ask([0.5] * 4 + [1.0] * 6) == NoisyMean((8 * CELLS + 3) / (10 * CELLS), 0)
    scale = Fraction(1, 4) * 10 * CELLS
    assert scales == [scale if kind == "laplace" else scale**2]


def test_noisy_answers_are_private_to_the_letter() -> None:
    """Laplace: e^ε is reached and not exceeded, one row of 2^16 cells, all values of the noise.
    Gaussian: D_a ≤ a·ρ at several orders, and P[loss > ε] bounds δ; x has loss (2x + 1)/(2σ²)."""
    means = NoisyMeans(4, 3, 0.5, SEED, noise="laplace")
    law = dict(laplace_law(Fraction(1, 2) * 4, 1e-13))  # in rows
    losses = [math.log(law[x] / law[x + 1]) for x in law if x + 1 in law]
    assert 3 * max(losses) == pytest.approx(means.epsilon(0.0))
    sigma, rows, queries, delta = 0.5, 4, 3, 1e-3
    deviation, points = sigma * rows, range(-90, 91)
    weights = {x: math.exp(-x * x / (2 * deviation**2)) for x in points}
    total, rho = math.fsum(weights.values()), queries / (2 * deviation**2)
    for order in (1.5, 2.0, 5.0, 20.0):
        powers = [-(order * x**2 + (1 - order) * (x + 1) ** 2) / (2 * deviation**2) for x in points]
        moment = math.log(math.fsum(map(math.exp, powers)) / total)
        assert queries * moment / (order - 1) <= order * rho * (1 + 1e-9)
    epsilon = NoisyMeans(rows, queries, sigma, SEED).epsilon(delta)
    losing = (x for x in points if (2 * abs(x) + 1) / (2 * deviation**2) > epsilon)
    assert math.fsum(weights[x] / total for x in losing) <= delta


@pytest.mark.parametrize("rows_by", [rows_by_dwork, rows_by_bassily])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(st.integers(1, 10**6), st.floats(0.005, 1), st.floats(1e-6, 0.9))
def test_the_rows_meet_what_the_theorems_ask(
    rows_by: Any, kind: Any, queries: int, half_width: float, failure: float
) -> None:
    size = rows_by(queries, half_width, failure, noise=kind)
    nats = -size.log_delta
    # Private enough …
    if kind == "laplace":
        one = 1 / (size.rows * size.sigma)
        composed = queries * one**2 / 2 + one * math.sqrt(2 * queries * nats)
        assert min(queries * one, composed) <= size.epsilon * (1 + 1e-9)
        outside = queries * math.exp(-half_width / 2 / size.sigma)
    else:
        rho = queries / (2 * (size.rows * size.sigma) ** 2)
        assert rho + 2 * math.sqrt(rho * nats) <= size.epsilon * (1 + 1e-9)
        outside = 2 * queries * math.exp(-((half_width / 2 / size.sigma) ** 2) / 2)
    # … accurate enough on the sample …
    assert outside <= failure / 2 * (1 + 1e-9)
    # … and large enough for the transfer.
    if rows_by is rows_by_dwork:
        tau, share = half_width / 2, failure / 2
        assert size.epsilon <= tau / 4 * (1 + 1e-12)
        assert nats >= 4 * math.log(8 / share) / tau * (1 - 1e-12)
        assert size.rows >= 48 * math.log(4 / share) / tau**2
    else:
        share = math.exp(-nats) / size.epsilon  # δ/ε
        assert 18 * size.epsilon <= half_width / 2 * (1 + 1e-12)
        assert size.epsilon < 1 / 3
        assert share < 1 / 4
        assert share <= failure / 2 * (1 + 1e-9)
        assert size.rows >= math.log(4 / share) / size.epsilon**2


def test_noise_needs_more_rows_than_splitting_but_grows_with_a_root() -> None:
    fresh = 1_000 * math.ceil(math.log(2 * 1_000 / 0.05) / (2 * 0.1**2))
    for rows_by in (rows_by_dwork, rows_by_bassily):
        assert min(rows_by(1_000, 0.1, 0.05, noise=kind).rows for kind in KINDS) > 5 * fresh
    rows = [rows_by_bassily(queries, 0.1, 0.05).rows for queries in (10**4, 10**6)]
    assert 10 < rows[1] / rows[0] < 14
    assert rows[1] < 10**6 * math.log(2 * 10**6 / 0.05) / (2 * 0.1**2)  # a million: noise wins


# Subsample and aggregate


QUARTER, THREE_QUARTERS = Fraction(1, 4), Fraction(3, 4)


@pytest.mark.parametrize("share", [QUARTER, THREE_QUARTERS], ids=str)
def test_scores_are_the_definition_and_move_by_one(share: Fraction) -> None:
    def spread(values: tuple[int, ...], cells: int) -> list[Fraction]:
        scores = zip(*quantile_scores(np.array(values), cells, share), strict=True)
        found = {p: score for first, last, score in scores for p in range(first, last + 1)}
        assert list(found) == list(range(cells + 1))
        return list(found.values())

    for blocks, cells in ((1, 4), (3, 3), (4, 2)):
        for data in product(range(cells + 1), repeat=blocks):
            less = [sum(x < p for x in data) - share * blocks for p in range(cells + 1)]
            more = [sum(x > p for x in data) - (1 - share) * blocks for p in range(cells + 1)]
            assert spread(data, cells) == [max(pair) for pair in zip(less, more, strict=True)]
        for here, there in all_neighbours(blocks, cells):
            moved = zip(spread(here, cells), spread(there, cells), strict=True)
            assert max(abs(a - b) for a, b in moved) <= 1


def test_quantiles_are_drawn_from_their_law() -> None:
    """False alarm ≤ 1e-6; an ε that is 10 % off is seen. A sharp quantile is the quantile."""
    epsilon, draws, entropy, seen = Fraction(1), 6_000, SeededEntropy(6), [0] * 7
    scores = quantile_scores(np.array([0] * 6 + [6] * 6), 6, QUARTER)
    for _ in range(draws):
        seen[draw_quantile(scores, epsilon, entropy)] += 1

    def tested(factor: Fraction) -> bool:
        law = dict(quantile_law(scores, epsilon * factor))
        return alarm(seen, draws, [law[point] for point in range(7)])

    tenths = [tested(Fraction(n, 10)) for n in (10, 11, 9)]
    assert tenths == [False, True, True]
    for share, expected in ((QUARTER, 25), (THREE_QUARTERS, 75)):
        sharp = quantile_scores(np.arange(0, 101), 100, share)
        assert draw_quantile(sharp, Fraction(1_000), SEED) == expected


def test_limits_and_noise_of_the_aggregate() -> None:
    values, scales = np.array([0, 10, 10, 11, 11, 12, 12, 1_000]), []

    def draw(scale: Fraction) -> int:
        scales.append(scale)
        return 5

    def quartiles(low: int, high: int) -> Callable[[Fraction], int]:
        return lambda share: low if share == QUARTER else high

    mean, low, high = aggregate(values, 1_000, Fraction(2), quartiles(10, 12), draw)
    reach = 4 * 8 ** (1 / 3 + 1 / 10) * 2
    assert (low, high) == (max(0, math.floor(11 - reach)), math.ceil(11 + reach))
    assert scales == [Fraction(high - low)]  # 2w/ε on the sum
    assert mean == Fraction(low + 66 + high + 5, 8)
    # Equal quartiles hide everything else, and draw nothing; limits stay in the range.
    same = aggregate(np.array([0, 7, 7, 7, 100]), 100, Fraction(1), quartiles(7, 7), draw)
    assert same == (Fraction(7), 7, 7)
    assert len(scales) == 1
    assert aggregate(np.array([0, 50, 100]), 100, Fraction(1), quartiles(0, 100), draw)[1:] == (
        0,
        100,
    )


def test_the_aggregate_is_near_the_mean_whatever_a_few_blocks_say() -> None:
    """m = 4,000, ε = 20: noise of scale ≤ 2·(limits)/(20·4,000); 20 scales are one in 10^8."""
    values = np.linspace(-1.0, 3.0, 4_000)
    answer, again = (
        subsample_aggregate(values, -100.0, 100.0, 20.0, SeededEntropy(3)) for _ in range(2)
    )
    assert answer == again
    assert answer.low <= -1.0
    assert answer.high >= 3.0
    scale = 2 * (answer.high - answer.low) / (20 * 4_000)
    assert abs(answer.value - 1.0) <= 20 * scale + 200 / 2**20
    failing: list[Any] = [0.5, 0.51, 0.52] * 300
    failing[:3] = [math.nan, 10**400, None]
    robust = subsample_aggregate(failing, 0.0, 1.0, 50.0, SeededEntropy(3))
    assert robust.value == pytest.approx(0.51, abs=0.01)


# The Ladder


def test_a_ladder_by_hand() -> None:
    """η = 1/8: 0.5, then below 0.375 only, and 0.34 is nearer to 3/8 than to 2/8."""
    board = Ladder(100, 0.125)
    scores = [board.ask(bits(count, 100)) for count in (47, 38, 34, 30, 25, 24, 99)]
    assert [score.value for score in scores] == [0.5, 0.5, 0.375, 0.375, 0.375, 0.25, 0.25]
    assert [score.improved for score in scores] == [True, False, True, False, False, True, False]
    board = Ladder(8, 0.25)
    assert board.value is None
    board.ask(bits(6, 8))
    assert not board.ask(bits(4, 8)).improved  # exactly a step is not enough
    assert board.ask(bits(3, 8)) == LadderScore(0.5, True)  # 3/8 is between, and goes up
    assert Ladder(20).ask(bits(20, 20)) == LadderScore(1.0, True)  # the first, whatever it is
    assert Ladder(4, 0.25).ask([7.0, -1.0, math.nan, 1.0]).value == 0.5


def test_without_a_step_the_paired_difference_decides() -> None:
    """100 rows, leader 50 errors. Ten errors mended: the difference is −1 on ten rows, s = 0.3015,
    s/√n = 0.0302 < 0.1. One mended and none broken: s/√n = 0.01 = the gain, which is not above it.
    """
    board = Ladder(100)
    board.ask(bits(50, 100))
    assert board.ask(bits(40, 100)) == LadderScore(0.4, True)
    assert board.ask(bits(39, 100)) == LadderScore(0.4, False)
    swapped = [*bits(10, 40), *[1.0] * 29, *bits(0, 31)]  # 39 errors, on other rows
    assert board.ask(swapped) == LadderScore(0.4, False)


LOSSES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@settings(max_examples=60)
@given(
    st.integers(2, 12).flatmap(
        lambda rows: st.lists(
            st.lists(LOSSES, min_size=rows, max_size=rows), min_size=2, max_size=6
        )
    )
)
@example([[0.0] + [0.5] * 5 + [1.0] * 5])  # the float 7.5 / 11 * 11 is below 7.5
def test_without_a_step_it_is_the_rule_of_the_paper(submissions: list[list[float]]) -> None:
    rows = len(submissions[0])
    board = Ladder(rows)
    best, leader = math.inf, np.zeros(rows)
    for losses in submissions:
        mean, deviation = float(np.mean(losses)), float(np.std(np.subtract(losses, leader), ddof=1))
        gain = best - mean - deviation / math.sqrt(rows)
        score = board.ask(losses)
        if abs(gain) > 1e-12:  # otherwise a float cannot decide it
            assert score.improved == (gain > 0)
        if score.improved:
            best, leader = math.floor(sum(losses) + 0.5) / rows, np.array(losses)  # exact
        assert score.value == pytest.approx(best)


@settings(max_examples=50)
@given(
    st.sampled_from([0.01, 0.05, 0.1, 0.3, 1.0]),
    st.lists(st.integers(0, 1_000), min_size=1, max_size=30),
)
def test_the_board_is_within_a_step_of_the_best_on_the_sample(
    step: float, asked: list[int]
) -> None:
    board, last = Ladder(1_000, step), math.inf
    for seen, count in enumerate(asked, start=1):
        score = board.ask(bits(count, 1_000))
        best = min(asked[:seen]) / 1_000
        assert best - step / 2 - 1e-12 <= score.value <= best + step + 1e-12
        assert score.improved == (score.value < last)
        last = score.value


@cache
def chains(length: int, values: int) -> int:
    """Falling lists of so many of the values, counted one by one."""
    if length == 0:
        return 1
    return sum(chains(length - 1, lower) for lower in range(1, values + 1))


@pytest.mark.parametrize("step", [1.0, 0.5, 0.4, 0.25])
def test_the_ladders_error_counts_all_submissions(step: float) -> None:
    """2N·e^(−2nε²) = β for the N that are counted here: falling lists of the multiples of η up to
    the one nearest to 1, and no other value is ever on the board."""
    values = sum(Fraction(j) * Fraction(step) <= 1 + Fraction(step) / 2 for j in range(9))
    for queries in (1, 2, 7):
        count = sum(chains(asked, values) for asked in range(queries))
        drift = ladder_error(500, queries, step, 0.05) - step - ROUNDING_ERROR
        assert 2 * count * math.exp(-2 * 500 * drift**2) == pytest.approx(0.05, rel=1e-9)
    seen = {Ladder(200, step).ask(bits(count, 200)).value for count in range(201)}
    assert len(seen) == values


def test_the_best_step_is_the_best() -> None:
    found = ladder_step(4_000, 400, 0.05)
    tried = np.exp(np.linspace(math.log(0.01), math.log(0.2), 100))
    assert found.error <= min(ladder_error(4_000, 400, float(step), 0.05) for step in tried)
    assert found.error == ladder_error(4_000, 400, found.step, 0.05)
    few, many = (ladder_step(rows, 10**6, 0.05) for rows in (10**4, 10**7))
    assert 6 < few.error / many.error < 12  # like the cube root of the rows, up to logarithms
    assert ladder_error(4_000, 400, 0.05, 0.05) < ladder_error(4_000, 4_000, 0.05, 0.05)
    assert ladder_error(4_000, 400, 0.05, 0.05) < ladder_error(4_000, 400, 0.05, 0.001)


# Description length


@pytest.mark.parametrize(("queries", "refusals", "points"), [(3, 2, 2), (4, 1, 3), (3, 3, 2)])
def test_no_more_questions_can_be_asked_than_counted(
    queries: int, refusals: int, points: int
) -> None:
    """All samples of four equal rows, against an analyst with all her answers."""
    asked: set[tuple[object, ...]] = set()
    for means in product((0.0, 0.25, 0.5, 0.75, 1.0), repeat=queries):
        holdout = DescriptionLength(4, queries, refusals, points, tolerance=0.1)
        answers: tuple[object, ...] = ()
        for mean in means:  # what the next function's mean turns out to be
            if holdout.queries_left:
                asked.add(answers)
            answer = holdout.ask([mean] * 4, guess=0.25)
            answers = (*answers, (answer.verdict, answer.value))
    assert len(asked) == round(math.exp(log_questions(queries, refusals, points)))


def test_the_union_bound_holds_for_the_worst_analyst() -> None:
    """Exactly: a fair coin, n rows, and an analyst who has a function for every answer.

    Her questions are fixed functions, one per transcript, so the failure is at most the sum of
    their tails; at the error that the bound gives, that is at most β. A tenth of it would not do.
    """
    rows, asked, failure = 400, (5, 2, 10), 0.05
    error, questions = transcript_error(rows, *asked, failure), math.exp(log_questions(*asked))

    def tail(far: int) -> float:  # a mean off by at least this many rows of 0 or 1
        ways = sum(math.comb(rows, c) for c in range(rows // 2 + far, rows + 1))
        return float(2 * ways / 2**rows)

    assert questions * tail(math.ceil(rows * error)) <= failure
    assert questions * tail(math.ceil(rows * error / 10)) > 1


def test_description_length_answers() -> None:
    holdout = DescriptionLength(rows=10, queries=6, refusals=3, points=10)
    values = [1.0] * 3 + [0.0] * 7
    for asked, guess, answer in (
        (values, 0.35, Confirmation("yes", None, 3)),  # half a cell away
        (values, 0.36, Confirmation("no", 0.35, 2)),  # the cell [0.3, 0.4)
        ([1.0] * 10, 0.5, Confirmation("no", 0.95, 1)),  # the last cell is closed
        ([0.0] * 10, 0.5, Confirmation("no", 0.05, 0)),
        (values, 0.3, Confirmation("exhausted", None, 0)),
    ):
        assert holdout.ask(asked, guess) == answer
    single = DescriptionLength(10, 3, 1, points=1, tolerance=0.0625)  # tells the verdict only
    assert single.ask([0.5] * 10, 0.5625) == Confirmation("yes", None, 1)
    assert single.ask([0.5] * 10, 0.6) == Confirmation("no", None, 0)
    two = DescriptionLength(10, 2, 2, points=10)  # questions run out even if all are confirmed
    verdicts = [two.ask([0.5] * 10, 0.5).verdict for _ in range(4)]
    assert verdicts == ["yes", "yes", "exhausted", "exhausted"]


@given(st.integers(1, 500), st.integers(1, 50), st.floats(0.02, 0.5), st.floats(1e-4, 0.5))
def test_the_rows_are_enough_and_hardly_more(
    queries: int, refusals: int, width: float, failure: float
) -> None:
    refusals = min(refusals, queries)
    rows, points = description_rows(queries, refusals, width, failure)
    assert transcript_error(rows, queries, refusals, points, failure) + 1 / (2 * points) <= width
    fewer = math.floor(rows * 0.999) - 1
    for other in (points - 1, points, points + 1, 2 * points):
        if fewer >= 1 and other > 1 / (2 * width):
            error = transcript_error(fewer, queries, refusals, other, failure)
            assert error + 1 / (2 * other) > width


@pytest.mark.parametrize("refusals", [1, 10, 300])
def test_the_best_number_of_points_is_found(refusals: int) -> None:
    best = description_rows(300, refusals, 0.1, 0.05).rows
    rows = [
        math.ceil(
            (log_questions(300, refusals, points) + math.log(2 / 0.05))
            / (2 * (0.1 / (1 + 1e-12) - 1 / (2 * points) - 2.0**-17) ** 2)
        )
        for points in range(6, 600)
    ]
    # Nothing is asked after the only correction: then the finer the better.
    assert best < min(rows) if refusals == 1 else best == min(rows)


def test_description_length_in_numbers() -> None:
    rows, points = description_rows(100, 5, 0.1, 0.05)
    assert DescriptionLength(rows, 100, 5, points).half_width(0.05) == pytest.approx(0.1, rel=1e-3)
    assert DescriptionLength(rows, 100, 5, points, tolerance=0.3).half_width(0.05) > 0.3
    few, many = (description_rows(10_000, refusals, 0.1, 0.05).rows for refusals in (10, 1_000))
    assert 40 < many / few < 100  # linear in the refusals
    assert false_discovery(0.001, 5, 1) == pytest.approx(0.005)  # plain union bound
    assert false_discovery(1e-6, 5, 5) == pytest.approx(31e-6)
    assert (false_discovery(0.5, 5, 2), false_discovery(0.0, 10**6, 10**3)) == (1.0, 0.0)
    with pytest.raises(Infeasible):
        log_questions(10**9, 10**8, 2)


# Guess and check


@pytest.mark.parametrize("points", [1, 3, 50])
def test_the_shares_of_all_that_can_be_asked_add_up_to_beta(points: int) -> None:
    """After i answers with f corrections of p values there are C(i, f)·p^f questions."""
    beta, last = 0.05, 100
    total = math.fsum(
        math.comb(i, f) * math.exp(f * math.log(points) + share)
        for i in range(last)
        for f in range(i + 1)
        for share in [log_share(i, f, f * math.log(points), beta)]
    )
    squares = np.cumsum(1 / np.arange(1, last + 1) ** 2)  # Σ 1/(f + 1)² for f ≤ i
    stated = beta * (6 / math.pi**2) ** 2 * (squares / np.arange(1, last + 1) ** 2).sum()
    assert total <= beta
    assert total == pytest.approx(stated, rel=1e-9)
    by_hand = 0.1 * (6 / math.pi**2) ** 2 / (9 * 4 * 2 * 5)  # i = 2, f = 1, p = 5
    assert math.exp(log_share(2, 1, math.log(5), 0.1)) == pytest.approx(by_hand)


def answers(rows: int, guess: float, half_width: float, beta: float) -> list[CheckedGuess]:
    """The first answer, for every number of ones."""
    asked = (bits(ones, rows) for ones in range(rows + 1))
    return [GuessAndCheck(rows, beta).ask(values, guess, half_width) for values in asked]


@pytest.mark.parametrize(
    ("rows", "guess", "half_width"), [(60, 0.5, 0.25), (60, 0.9, 0.2), (150, 0.05, 0.12)]
)
@pytest.mark.parametrize("beta", [0.5, 0.05])
def test_an_answer_is_wrong_with_at_most_its_share(
    rows: int, guess: float, half_width: float, beta: float
) -> None:
    """By the law of the number of ones, at a fine grid of means and next to the guess's ends."""
    given = answers(rows, guess, half_width, beta)
    values = np.array([math.nan if a.value is None else a.value for a in given])
    ends = [end + nudge for end in (guess - half_width, guess + half_width) for nudge in (-1e-9, 0)]
    means = np.clip([*np.linspace(0.001, 0.999, 500), *ends, 1e-9 + max(ends)], 1e-6, 1 - 1e-6)
    means, ones = means[:, np.newaxis], np.arange(rows + 1)
    ways = gammaln(rows + 1) - gammaln(ones + 1) - gammaln(rows - ones + 1)
    law = np.exp(ways + ones * np.log(means) + (rows - ones) * np.log1p(-means))
    wrong = np.abs(values - means) > half_width  # NaN is never wrong
    worst = float((law * wrong).sum(axis=1).max())
    share = beta * (6 / math.pi**2) ** 2
    assert share / 50 <= worst <= share  # Chernoff's bound, not a tenth of it


def test_a_guess_is_confirmed_up_to_where_chernoff_refutes_the_rest() -> None:
    """kl(h, g + w) ≥ ln(2/β_0)/n, with 50 digits; values of 0 and 1 are not rounded."""
    rows, beta, guess, half_width = 400, 0.05, 0.5, 0.12
    nats = mpmath.log(2 / (beta * (6 / mpmath.pi**2) ** 2)) / rows

    def divergence(p: Any, q: Any) -> Any:
        return p * mpmath.log(p / q) + (1 - p) * mpmath.log((1 - p) / (1 - q))

    for ones, answer in enumerate(answers(rows, guess, half_width, beta)):
        mean = mpmath.mpf(ones) / rows
        ends = [mpmath.mpf(guess - half_width), mpmath.mpf(guess + half_width)]
        inside = ends[0] < mean < ends[1]
        margins = [divergence(mean, end) - nats for end in ends] if inside else [-1]
        if abs(min(margins)) > 1e-4:  # 2^-17 is taken off
            assert (answer.source == "guess") == (min(margins) > 0)


@settings(max_examples=50)
@given(st.integers(50, 10**5), st.floats(0.01, 0.99), st.floats(1e-6, 0.5))
def test_a_perfect_guess_is_confirmed_at_the_smallest_half_width(
    rows: int, share: float, beta: float
) -> None:
    holdout = GuessAndCheck(rows, beta)
    mean = round(rows * share) / rows
    width = holdout.smallest_half_width() * (1 + 1e-6)
    if width <= 1:
        values = np.arange(rows) < round(rows * share)
        assert holdout.ask(values, mean, width).source == "guess"


def test_a_conversation_by_hand() -> None:
    """Two corrections: cells, their centres, and a share that pays for both."""
    rows, beta = 2_000, 0.05
    holdout = GuessAndCheck(rows, beta)
    assert holdout.ask(bits(1_000, rows), 0.5, 0.1) == CheckedGuess(0.5, 0.1, "guess", 0)
    log_values = 0.0

    def drift(asked: int, failures: int) -> float:
        nats = math.log(2) - log_share(asked, failures, log_values, beta)
        return float(math.sqrt(nats / (2 * rows)) + ROUNDING_ERROR)

    for asked, failures, guess in ((1, 0, 0.9), (2, 1, 0.1)):
        off = drift(asked, failures)
        points = math.ceil(1 / (2 * (0.1 - off)))
        log_values += math.log(points)
        answer = holdout.ask(bits(1_000, rows), guess, 0.1)
        centre = (math.floor(0.5 * points) + 0.5) / points
        assert answer == CheckedGuess(centre, 0.1, "holdout", failures + 1)
        assert abs(centre - 0.5) + off <= 0.1
    before = holdout.smallest_half_width()
    assert before == pytest.approx(drift(3, 2))
    for wrong in (([0.0], 0.5, 0.1), (HALF, 1.5, 0.1), (HALF, math.nan, 0.1), (HALF, 0.5, 0.0)):
        with pytest.raises(InvalidInput):
            holdout.ask(*wrong)
        assert holdout.smallest_half_width() == before  # it costs nothing
    last = GuessAndCheck(1_000, 0.05).ask(bits(1_000, 1_000), 0.1, 0.2)
    assert last.value is not None
    assert 0.8 <= last.value < 1  # a share of one is in the last cell
    sure = GuessAndCheck(10_000, 0.05)
    middle = sure.smallest_half_width()  # near zero a smaller half-width is enough
    assert sure.ask(bits(50, 10_000), 0.005, middle / 3).source == "guess"
    assert GuessAndCheck(10_000, 0.05).ask(bits(5_000, 10_000), 0.5, middle / 3).value is None


def test_half_widths_and_rows() -> None:
    """Right guesses cost a logarithm and wrong ones a share each; Hoeffding's bound, against the
    exact tail of the worst share; and the rows are the fewest."""
    few, many = (check_half_width(10_000, asked, 0, 1, 0.05) for asked in (10, 10**6))
    assert many < 2 * few
    wrong = [check_half_width(10_000, 10**4, failures, 20, 0.05) for failures in (100, 400)]
    assert wrong[1] / wrong[0] == pytest.approx(2, rel=0.15)  # √f
    rows, asked, failures, points, beta = 300, 5, 2, 4, 0.3
    width = check_half_width(rows, asked, failures, points, beta)
    share = math.exp(log_share(asked, failures, failures * math.log(points), beta))
    tail = 2 * float(bdtr(math.ceil(rows * (0.5 - width)) - 1, rows, 0.5))
    assert share / 30 <= tail <= share
    found = check_rows(1_000, 10, 0.1, 0.05)

    def needed(rows: int, points: int) -> float:
        return float(check_half_width(rows, 999, 10, points, 0.05)) + 1 / (2 * points)

    assert needed(found.rows, found.points) <= 0.1
    assert min(needed(found.rows - 2, points) for points in range(10, 400)) > 0.1
    assert check_rows(1_000, 0, 0.1, 0.05).rows < found.rows < check_rows(1_000, 20, 0.1, 0.05).rows
