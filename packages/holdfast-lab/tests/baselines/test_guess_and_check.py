from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import bdtr, gammaln

from holdfast.errors import InvalidInput
from holdfast_lab.baselines.guess_and_check import (
    CheckedGuess,
    GuessAndCheck,
    check_half_width,
    check_rows,
    log_share,
)
from holdfast_lab.baselines.noise import ROUNDING_ERROR


def bits(ones: int, rows: int) -> list[float]:
    return [1.0] * ones + [0.0] * (rows - ones)


# The shares


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


def test_a_share_by_hand() -> None:
    """i = 2, f = 1, p = 5: β·(6/π²)²/(9·4·2·5)."""
    expected = 0.1 * (6 / math.pi**2) ** 2 / (9 * 4 * 2 * 5)
    assert math.exp(log_share(2, 1, math.log(5), 0.1)) == pytest.approx(expected)


# One question, exactly


def answers(rows: int, guess: float, half_width: float, beta: float) -> list[CheckedGuess]:
    """The first answer, for every number of ones."""
    return [
        GuessAndCheck(rows, beta).ask(bits(ones, rows), guess, half_width)
        for ones in range(rows + 1)
    ]


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
    counts = np.arange(rows + 1)
    log_law = gammaln(rows + 1) - gammaln(counts + 1) - gammaln(rows - counts + 1)
    law = np.exp(
        log_law
        + counts * np.log(means)[:, np.newaxis]
        + (rows - counts) * np.log1p(-means)[:, np.newaxis]
    )
    wrong = np.abs(values - means[:, np.newaxis]) > half_width  # NaN is never wrong
    worst = float((law * wrong).sum(axis=1).max())
    share = beta * (6 / math.pi**2) ** 2
    assert worst <= share
    assert worst >= share / 50  # Chernoff's bound, not a tenth of it


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


def test_near_zero_a_smaller_half_width_is_enough() -> None:
    holdout = GuessAndCheck(10_000, 0.05)
    middle = holdout.smallest_half_width()
    assert holdout.ask(bits(50, 10_000), 0.005, middle / 3).source == "guess"
    assert GuessAndCheck(10_000, 0.05).ask(bits(5_000, 10_000), 0.5, middle / 3).value is None


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


# A conversation


def test_a_conversation_by_hand() -> None:
    """Two corrections: cells, their centres, and a share that pays for both."""
    rows, beta = 2_000, 0.05
    holdout = GuessAndCheck(rows, beta)
    assert holdout.ask(bits(1_000, rows), 0.5, 0.1) == CheckedGuess(0.5, 0.1, "guess", 0)
    log_values = 0.0
    for asked, failures, guess in ((1, 0, 0.9), (2, 1, 0.1)):
        share = log_share(asked, failures, log_values, beta)
        drift = math.sqrt(math.log(2 / math.exp(share)) / (2 * rows)) + ROUNDING_ERROR
        points = math.ceil(1 / (2 * (0.1 - drift)))
        log_values += math.log(points)
        answer = holdout.ask(bits(1_000, rows), guess, 0.1)
        centre = (math.floor(0.5 * points) + 0.5) / points
        assert answer == CheckedGuess(centre, 0.1, "holdout", failures + 1)
        assert abs(centre - 0.5) + drift <= 0.1
    assert holdout.smallest_half_width() == pytest.approx(
        math.sqrt(math.log(2 / math.exp(log_share(3, 2, log_values, beta))) / (2 * rows))
        + ROUNDING_ERROR
    )


def test_a_share_of_one_is_in_the_last_cell() -> None:
    answer = GuessAndCheck(1_000, 0.05).ask(bits(1_000, 1_000), 0.1, 0.2)
    assert answer.source == "holdout"
    assert answer.value is not None
    assert 0.8 <= answer.value < 1


def test_exhaustion_is_final_and_polite() -> None:
    holdout = GuessAndCheck(100, 0.05)
    assert holdout.ask(bits(50, 100), 0.5, 0.01) == CheckedGuess(None, 0.01, "exhausted", 1)
    assert holdout.exhausted
    assert holdout.ask(bits(50, 100), 0.5, 0.9) == CheckedGuess(None, 0.9, "exhausted", 1)
    assert holdout.failures == 1


def test_right_guesses_cost_a_logarithm_and_wrong_ones_a_share_each() -> None:
    few, many = (check_half_width(10_000, asked, 0, 1, 0.05) for asked in (10, 10**6))
    assert many < 2 * few
    wrong = [check_half_width(10_000, 10**4, failures, 20, 0.05) for failures in (100, 400)]
    assert wrong[1] / wrong[0] == pytest.approx(2, rel=0.15)  # √f


def test_the_half_width_holds_for_a_fixed_question() -> None:
    """Hoeffding's bound, against the exact tail of the worst share."""
    rows, asked, failures, points, beta = 300, 5, 2, 4, 0.3
    width = check_half_width(rows, asked, failures, points, beta)
    share = math.exp(log_share(asked, failures, failures * math.log(points), beta))
    tail = 2 * float(bdtr(math.ceil(rows * (0.5 - width)) - 1, rows, 0.5))
    assert share / 30 <= tail <= share


def test_rows_are_the_fewest() -> None:
    found = check_rows(1_000, 10, 0.1, 0.05)

    def needed(rows: int, points: int) -> float:
        return check_half_width(rows, 999, 10, points, 0.05) + 1 / (2 * points)

    assert needed(found.rows, found.points) <= 0.1
    assert min(needed(found.rows - 2, points) for points in range(10, 400)) > 0.1
    assert check_rows(1_000, 0, 0.1, 0.05).rows < found.rows < check_rows(1_000, 20, 0.1, 0.05).rows


# Bad input


@pytest.mark.parametrize(("rows", "failure"), [(0, 0.05), (10, 0.0), (10, 1.0), (2.5, 0.05)])
def test_settings_that_make_no_sense_are_refused(rows: Any, failure: Any) -> None:
    with pytest.raises(InvalidInput):
        GuessAndCheck(rows, failure)


@pytest.mark.parametrize(
    ("values", "guess", "half_width"),
    [
        ([0.0], 0.5, 0.1),
        ([0.0, 1.0], 1.5, 0.1),
        ([0.0, 1.0], math.nan, 0.1),
        ([0.0, 1.0], 0.5, 0.0),
        ([0.0, 1.0], 0.5, 1.5),
    ],
)
def test_questions_that_make_no_sense_cost_nothing(
    values: Any, guess: float, half_width: float
) -> None:
    holdout = GuessAndCheck(2, 0.05)
    before = holdout.smallest_half_width()
    with pytest.raises(InvalidInput):
        holdout.ask(values, guess, half_width)
    assert holdout.smallest_half_width() == before


@pytest.mark.parametrize("target", [(10, 0, 1, 1, 0.05), (10, 5, 6, 1, 0.05), (10, 5, 1, 0, 0.05)])
def test_targets_that_make_no_sense_are_refused(target: Any) -> None:
    with pytest.raises(InvalidInput):
        check_half_width(*target)
    with pytest.raises(InvalidInput):
        check_rows(5, 5, 0.1, 0.05)


def test_it_shows_counts_and_nothing_else() -> None:
    holdout = GuessAndCheck(100, 0.05)
    holdout.ask(bits(50, 100), 0.5, 0.5)
    assert repr(holdout) == "<GuessAndCheck: 1 questions, 0 not confirmed>"
