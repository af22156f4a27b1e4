from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.baselines.checks import transcripts_are_counted

from holdfast.errors import Infeasible, InvalidInput
from holdfast_lab.baselines.guess_and_check import (
    Confirmation,
    DescriptionLength,
    description_rows,
    false_discovery,
    log_questions,
    transcript_error,
)

WIDTHS = st.floats(0.02, 0.5)


def test_the_number_of_questions_is_that_of_a_tree() -> None:
    assert transcripts_are_counted()


@pytest.mark.parametrize(("queries", "refusals", "points"), [(3, 2, 2), (4, 1, 3), (3, 3, 2)])
def test_no_more_questions_can_be_asked_than_counted(
    queries: int, refusals: int, points: int
) -> None:
    """All samples of three rows with values 0, 1/2, 1, against an analyst with all her answers."""
    asked: set[tuple[object, ...]] = set()
    for means in product((0.0, 0.25, 0.5, 0.75, 1.0), repeat=queries):
        holdout = DescriptionLength(4, queries, refusals, points, tolerance=0.1)
        answers: tuple[object, ...] = ()
        for mean in means:  # what the next function's mean turns out to be
            if holdout.queries_left:
                asked.add(answers)
            answer = holdout.ask([mean] * 4, guess=0.25)
            answers = (*answers, (answer.verdict, answer.value))
    assert len(asked) <= math.exp(log_questions(queries, refusals, points)) * (1 + 1e-12)
    if points > 1:
        assert len(asked) == round(math.exp(log_questions(queries, refusals, points)))


def test_the_promise_holds_for_the_worst_analyst() -> None:
    """Exactly: a fair coin, n rows, and an analyst who has a function for every answer.

    Her questions are fixed functions, one per transcript, so the failure is at most the sum of
    their tails; at the error that the bound gives, that is at most β.
    """
    rows, queries, refusals, points, failure = 400, 5, 2, 10, 0.05
    error = transcript_error(rows, queries, refusals, points, failure)
    far = math.ceil(rows * error)  # a mean off by at least this many rows of 0 or 1
    tail = 2 * sum(math.comb(rows, c) for c in range(rows // 2 + far, rows + 1)) / 2**rows
    questions = math.exp(log_questions(queries, refusals, points))
    assert questions * tail <= failure
    # The union bound is not empty: a tenth of the error would not do.
    near = math.ceil(rows * error / 10)
    tail = 2 * sum(math.comb(rows, c) for c in range(rows // 2 + near, rows + 1)) / 2**rows
    assert questions * tail > 1


def test_answers() -> None:
    holdout = DescriptionLength(rows=10, queries=6, refusals=3, points=10)
    values = [1.0] * 3 + [0.0] * 7
    assert holdout.ask(values, 0.35) == Confirmation("yes", None, 3)  # half a cell away
    assert holdout.ask(values, 0.36) == Confirmation("no", 0.35, 2)  # the cell [0.3, 0.4)
    assert holdout.ask([1.0] * 10, 0.5) == Confirmation("no", 0.95, 1)  # the last cell is closed
    assert holdout.ask([0.0] * 10, 0.5) == Confirmation("no", 0.05, 0)
    assert holdout.ask(values, 0.3) == Confirmation("exhausted", None, 0)
    assert holdout.queries_left == 0


def test_one_point_tells_the_verdict_only() -> None:
    holdout = DescriptionLength(10, 3, 1, points=1, tolerance=0.0625)
    assert holdout.ask([0.5] * 10, 0.5625) == Confirmation("yes", None, 1)
    assert holdout.ask([0.5] * 10, 0.6) == Confirmation("no", None, 0)
    with pytest.raises(InvalidInput, match="tolerance"):
        DescriptionLength(10, 3, 1, points=1)


def test_questions_run_out_even_if_all_are_confirmed() -> None:
    holdout = DescriptionLength(10, 2, 2, points=10)
    verdicts = [holdout.ask([0.5] * 10, 0.5).verdict for _ in range(4)]
    assert verdicts == ["yes", "yes", "exhausted", "exhausted"]


@given(st.integers(1, 500), st.integers(1, 50), WIDTHS, st.floats(1e-4, 0.5))
def test_the_rows_are_enough_and_hardly_more(
    queries: int, refusals: int, width: float, failure: float
) -> None:
    refusals = min(refusals, queries)
    rows, points = description_rows(queries, refusals, width, failure)
    assert transcript_error(rows, queries, refusals, points, failure) + 1 / (2 * points) <= width
    fewer = math.floor(rows * 0.999) - 1
    if fewer >= 1:
        for other in (points - 1, points, points + 1, 2 * points):
            if other > 1 / (2 * width):
                error = transcript_error(fewer, queries, refusals, other, failure)
                assert error + 1 / (2 * other) > width


@pytest.mark.parametrize("refusals", [1, 10, 300])
def test_the_best_number_of_points_is_found(refusals: int) -> None:
    best = description_rows(300, refusals, 0.1, 0.05).rows
    rows = {
        points: math.ceil(
            (log_questions(300, refusals, points) + math.log(2 / 0.05))
            / (2 * (0.1 / (1 + 1e-12) - 1 / (2 * points) - 2.0**-17) ** 2)
        )
        for points in range(6, 600)
    }
    if refusals == 1:  # nothing is asked after the only correction: the finer the better
        assert best < min(rows.values())
    else:
        assert best == min(rows.values())


def test_the_holdout_reports_its_own_half_width() -> None:
    rows, points = description_rows(100, 5, 0.1, 0.05)
    holdout = DescriptionLength(rows, 100, 5, points)
    assert holdout.half_width(0.05) == pytest.approx(0.1, rel=1e-3)
    loose = DescriptionLength(rows, 100, 5, points, tolerance=0.3)
    assert loose.half_width(0.05) > 0.3


def test_description_length_is_linear_in_the_refusals() -> None:
    few, many = (description_rows(10_000, refusals, 0.1, 0.05).rows for refusals in (10, 1_000))
    assert 40 < many / few < 100


def test_sparse_validate() -> None:
    assert false_discovery(0.001, 5, 1) == pytest.approx(0.005)  # plain union bound
    assert false_discovery(1e-6, 5, 5) == pytest.approx(31e-6)
    assert false_discovery(0.5, 5, 2) == 1.0
    assert false_discovery(0.0, 10**6, 10**3) == 0.0


def test_many_refusals_are_refused_politely() -> None:
    with pytest.raises(Infeasible):
        log_questions(10**9, 10**8, 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: log_questions(0, 1, 2),
        lambda: log_questions(1, 0, 2),
        lambda: log_questions(1, 1, 0),
        lambda: transcript_error(0, 1, 1, 2, 0.05),
        lambda: transcript_error(10, 1, 1, 2, 0.0),
        lambda: description_rows(10, 1, 0.0, 0.05),
        lambda: description_rows(10, 1, 0.1, 1.0),
        lambda: false_discovery(1.5, 10, 1),
        lambda: DescriptionLength(10, 1, 2, 5),
        lambda: DescriptionLength(10, 2, 1, 5).ask([0.5] * 9, 0.5),
        lambda: DescriptionLength(10, 2, 1, 5).ask([0.5] * 10, 1.5),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any) -> None:
    with pytest.raises(InvalidInput):
        call()
