from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast_lab.baselines.ladder import Ladder, LadderScore, ladder_error, ladder_step
from holdfast_lab.baselines.noise import ROUNDING_ERROR


def errors(count: int, rows: int) -> list[float]:
    return [1.0] * count + [0.0] * (rows - count)


# The board


def test_the_first_submission_is_on_the_board_whatever_it_is() -> None:
    for step in (None, 0.1):
        board = Ladder(20, step)
        assert board.value is None
        assert board.ask(errors(20, 20)) == LadderScore(1.0, True)
        assert board.value == 1.0


def test_a_step_by_hand() -> None:
    """η = 1/8: 0.5, then below 0.375 only, and 0.34 is nearer to 3/8 than to 2/8."""
    board = Ladder(100, 0.125)
    asked = [47, 38, 34, 30, 25, 24, 99]
    scores = [board.ask(errors(count, 100)) for count in asked]
    assert [score.value for score in scores] == [0.5, 0.5, 0.375, 0.375, 0.375, 0.25, 0.25]
    assert [score.improved for score in scores] == [True, False, True, False, False, True, False]


def test_exactly_a_step_is_not_enough() -> None:
    board = Ladder(8, 0.25)
    board.ask(errors(6, 8))
    assert not board.ask(errors(4, 8)).improved
    assert board.ask(errors(3, 8)) == LadderScore(0.5, True)  # 3/8 is between, and goes up


def test_without_a_step_the_paired_difference_decides() -> None:
    """100 rows, leader 50 errors. Ten errors mended: the difference is −1 on ten rows, s = 0.3015,
    s/√n = 0.0302 < 0.1. One mended and none broken: s/√n = 0.01 = the gain, which is not above it.
    """
    board = Ladder(100)
    board.ask(errors(50, 100))
    assert board.ask(errors(40, 100)) == LadderScore(0.4, True)
    assert board.ask(errors(39, 100)) == LadderScore(0.4, False)
    swapped = [*errors(10, 40), *[1.0] * 29, *errors(0, 31)]  # 39 errors, on other rows
    assert board.ask(swapped) == LadderScore(0.4, False)


@settings(max_examples=60)
@given(
    st.integers(2, 12).flatmap(
        lambda rows: st.lists(
            st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=rows, max_size=rows),
            min_size=2,
            max_size=6,
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
    step: float, counts: list[int]
) -> None:
    board = Ladder(1_000, step)
    last = math.inf
    for seen, count in enumerate(counts, start=1):
        score = board.ask(errors(count, 1_000))
        best = min(counts[:seen]) / 1_000
        assert best - step / 2 - 1e-12 <= score.value <= best + step + 1e-12
        assert score.improved == (score.value < last)
        last = score.value


def test_values_outside_count_as_the_nearer_end() -> None:
    assert Ladder(4, 0.25).ask([7.0, -1.0, float("nan"), 1.0]).value == 0.5


# Its theorem


@cache
def chains(length: int, values: int) -> int:
    """Falling lists of so many of the values, counted one by one."""
    if length == 0:
        return 1
    return sum(chains(length - 1, lower) for lower in range(1, values + 1))


@pytest.mark.parametrize("step", [1.0, 0.5, 0.4, 0.25])
@pytest.mark.parametrize("queries", [1, 2, 7])
def test_the_error_counts_all_submissions(step: float, queries: int) -> None:
    """2N·e^(−2nε²) = β for the N that are counted here."""
    values = sum(Fraction(j) * Fraction(step) <= 1 + Fraction(step) / 2 for j in range(9))
    count = sum(chains(asked, values) for asked in range(queries))
    drift = ladder_error(500, queries, step, 0.05) - step - ROUNDING_ERROR
    assert 2 * count * math.exp(-2 * 500 * drift**2) == pytest.approx(0.05, rel=1e-9)


def test_answers_are_falling_lists_of_so_many_values() -> None:
    """Every multiple of η up to the one nearest to 1, and no other, is ever on the board."""
    for step in (0.4, 0.25, 0.3, 1.0):
        seen = {Ladder(200, step).ask(errors(count, 200)).value for count in range(201)}
        assert len(seen) == math.floor(1 / Fraction(step) + Fraction(1, 2)) + 1


def test_the_best_step_is_the_best() -> None:
    found = ladder_step(4_000, 400, 0.05)
    tried = np.exp(np.linspace(math.log(0.01), math.log(0.2), 100))
    assert found.error <= min(ladder_error(4_000, 400, float(step), 0.05) for step in tried)
    assert found.error == ladder_error(4_000, 400, found.step, 0.05)


def test_the_error_falls_like_the_cube_root_of_the_rows() -> None:
    few, many = (ladder_step(rows, 10**6, 0.05) for rows in (10**4, 10**7))
    assert 6 < few.error / many.error < 12  # 10, up to logarithms
    assert ladder_error(4_000, 400, 0.05, 0.05) < ladder_error(4_000, 4_000, 0.05, 0.05)
    assert ladder_error(4_000, 400, 0.05, 0.05) < ladder_error(4_000, 400, 0.05, 0.001)


# Bad input


@pytest.mark.parametrize(
    ("rows", "step"), [(1, None), (0, 0.1), (10, 0.0), (10, 1.5), (10, math.nan), (2.5, 0.1)]
)
def test_settings_that_make_no_sense_are_refused(rows: Any, step: Any) -> None:
    with pytest.raises(InvalidInput):
        Ladder(rows, step)


@pytest.mark.parametrize("losses", [[0.0], [[0.0, 1.0]], [], "ab"])
def test_a_wrong_number_of_losses_is_refused(losses: Any) -> None:
    board = Ladder(2)
    with pytest.raises(InvalidInput, match="values"):
        board.ask(losses)
    assert board.value is None


@pytest.mark.parametrize("target", [(1, 5, 0.1, 0.05), (9, 0, 0.1, 0.05), (9, 5, 0.1, 0.0)])
def test_targets_that_make_no_sense_are_refused(target: Any) -> None:
    with pytest.raises(InvalidInput):
        ladder_error(*target)


def test_it_shows_its_score_and_nothing_else() -> None:
    board = Ladder(4)
    assert repr(board) == "<Ladder: best score None>"
    board.ask([0, 1, 1, 0])
    assert repr(board) == "<Ladder: best score 0.5>"
