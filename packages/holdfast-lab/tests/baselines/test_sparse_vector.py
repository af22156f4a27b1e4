from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.baselines.checks import (
    ROUNDING,
    counts,
    neighbouring_counts,
    run,
    sparse_vector_is_private,
)
from tests.baselines.laws import Laws, worst_loss
from tests.mutants.baselines import algorithm_4

from holdfast.errors import InvalidInput
from holdfast.randomness import Entropy, SeededEntropy
from holdfast.theory.paper import interactive_composition, sparse_vector_blocks
from holdfast_lab.baselines import sparse_vector
from holdfast_lab.baselines.noise import laplace_tail
from holdfast_lab.baselines.sparse_vector import (
    SparseRule,
    SparseVector,
    sparse_step,
    sv_emp_blocks,
    verdict_error,
)
from tests.mechanisms.laws import alarm


def test_no_transcript_of_one_refusal_tells_more_than_epsilon() -> None:
    assert sparse_vector_is_private()


def test_nor_of_two_refusals() -> None:
    rule = SparseRule(2, sparse_step(2, 4.0))
    assert worst_loss(Laws(rule), neighbouring_counts()) <= 4 + ROUNDING


def test_the_bound_is_nearly_reached() -> None:
    """So the check has no slack that a mutant could hide in."""
    assert worst_loss(Laws(SparseRule(1, Fraction(2))), [run(10)]) > 0.95 * 2


def test_all_neighbours_of_three_questions() -> None:
    laws = Laws(SparseRule(2, Fraction(2)), tail=1e-11)
    zero = counts(0, 0, 0)
    pairs = [(zero, counts(*moved)) for moved in product((-1, 0, 1), repeat=3)]
    assert worst_loss(laws, pairs) <= 4 + ROUNDING


def test_the_loss_of_lee_and_clifton_is_what_lyu_su_and_li_say() -> None:
    """(1 + 6c)/4·ε, their theorem about algorithm 4: reached, and never exceeded."""
    loss = worst_loss(Laws(algorithm_4(1, Fraction(2))), neighbouring_counts())
    assert 0.99 * 7 / 4 * 2 < loss <= 7 / 4 * 2


def test_the_rule_says_what_it_should() -> None:
    laws = Laws(SparseRule(2, Fraction(40)))  # hardly any noise
    law = laws.transcripts([(9, 0), (-9, 0), (9, 0), (-9, 0), (9, 0), (-9, 0)])
    expected = ("yes", "no", "yes", "no", "exhausted", "exhausted")
    assert law.chances[expected] == pytest.approx(1)


def test_the_threshold_is_drawn_again_after_a_refusal_and_only_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scales: list[Fraction] = []

    def draw(scale: Fraction, entropy: Entropy) -> int:
        scales.append(scale)
        return 0

    monkeypatch.setattr(sparse_vector, "discrete_laplace", draw)
    vector = SparseVector(2, epsilon=4.0, entropy=SeededEntropy(1))
    verdicts = [vector.ask(count, 5).verdict for count in (9, 9, 1, 9, 1, 9)]
    assert verdicts == ["yes", "yes", "no", "yes", "no", "exhausted"]
    threshold, question = Fraction(1), Fraction(2)  # 2/ε̃ and 4/ε̃ with ε̃ = 2
    assert scales == [threshold, question, question, question, threshold, question, question]


def test_the_class_has_the_law_of_its_rule() -> None:
    """False alarm ≤ 1e-6: each of 2,000 runs of three questions; the law is known exactly."""
    law = Laws(SparseRule(1, Fraction(1, 2))).transcripts(counts(2, 2, 2))
    trials, seen = 2_000, dict.fromkeys(law.chances, 0)
    for seed in range(trials):
        vector = SparseVector(1, 0.5, SeededEntropy((4, seed)))
        transcript = tuple(vector.ask(2, 0).verdict for _ in range(3))
        seen[transcript] += 1
    keys = list(law.chances)
    chances = [law.chances[key] for key in keys]
    assert not alarm([seen[key] for key in keys], trials, chances)


@given(st.integers(1, 1_000), st.floats(1e-3, 10), st.sampled_from([0.0, 1e-9, 1e-3]))
def test_refusals_compose_to_what_was_asked_for(
    refusals: int, epsilon: float, delta: float
) -> None:
    step = float(sparse_step(refusals, epsilon, delta))
    together = refusals * step
    if delta:
        together = min(together, interactive_composition(refusals, step, 0.0, delta)[0])
    assert together <= epsilon * (1 + 1e-9)
    assert step >= epsilon / refusals * (1 - 1e-12)


def test_many_refusals_profit_from_delta() -> None:
    assert sparse_step(1_000, 1.0, 1e-6) > 2 * sparse_step(1_000, 1.0)


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


def test_the_error_is_within_two_percent_of_the_best_split_of_failure_and_counts() -> None:
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


def test_fewer_blocks_than_the_textbook_bound() -> None:
    settings: tuple[Any, ...] = (2_000, 10, 0.2 / 3, 0.0476550899, 2.6041666e-05, 0.025)
    assert sv_emp_blocks(*settings) < sparse_vector_blocks(*settings) / 2
    assert sv_emp_blocks(*settings) * (0.2 / 3) >= 2 * verdict_error(2_000, 10, *settings[3:])


@given(st.integers(1, 10**6), st.integers(1, 100), st.floats(0.01, 1), st.floats(1e-6, 0.5))
def test_blocks_grow_with_everything(
    queries: int, refusals: int, alpha: float, failure: float
) -> None:
    base = sv_emp_blocks(queries, refusals, alpha, 0.5, 1e-6, failure)
    assert sv_emp_blocks(queries + 1, refusals, alpha, 0.5, 1e-6, failure) >= base
    assert sv_emp_blocks(queries, refusals + 1, alpha, 0.5, 1e-6, failure) >= base
    assert sv_emp_blocks(queries, refusals, alpha / 2, 0.5, 1e-6, failure) >= base
    assert sv_emp_blocks(queries, refusals, alpha, 0.25, 1e-6, failure) >= base
    assert sv_emp_blocks(queries, refusals, alpha, 0.5, 1e-6, failure / 2) >= base


@pytest.mark.parametrize(
    "arguments",
    [
        {"refusals": 0},
        {"refusals": 1.5},
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"delta": 1.0},
        {"delta": -1e-9},
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(arguments: dict[str, float]) -> None:
    settings: dict[str, Any] = {"refusals": 1, "epsilon": 1.0, "delta": 0.0, **arguments}
    with pytest.raises(InvalidInput, match=next(iter(arguments))):
        SparseVector(**settings, entropy=SeededEntropy(1))


@pytest.mark.parametrize(("count", "threshold"), [(-1, 0), (0.5, 0), (3, 0.5), (True, 0)])
def test_counts_and_thresholds_are_whole(count: Any, threshold: Any) -> None:
    vector = SparseVector(1, 1.0, SeededEntropy(1))
    with pytest.raises(InvalidInput):
        vector.ask(count, threshold)
    assert vector.refusals_left == 1


def test_nothing_about_the_noise_can_be_read() -> None:
    vector = SparseVector(3, 1.0, SeededEntropy(1))
    vector.ask(10_000, 0)
    assert repr(vector) == "<SparseVector: 3 refusals left>"
    assert vector.rule.refusals == 3
