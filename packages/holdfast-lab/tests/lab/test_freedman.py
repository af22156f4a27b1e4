"""Freedman's paradox, by votes and by regressions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from holdfast.errors import InvalidInput
from holdfast.randomness import SeededEntropy
from holdfast_lab.attacks.analysts import Freedman, Noise
from holdfast_lab.attacks.conversation import Means, Replies, Terms, interview
from holdfast_lab.attacks.textbook import Naive
from holdfast_lab.experiments import freedman
from holdfast_lab.experiments.base import Cell
from holdfast_lab.experiments.freedman import limits, screened_regression


def test_naive_reuse_is_fooled() -> None:
    """72 % in the limit; one session of 400 rows has a standard deviation of 0.02 (of 200).

    Five standard errors of ten sessions; the truth, 1/2, is far outside.
    """
    analyst, said = Freedman(400, 200), []
    for seed in range(10):
        naive = Naive(Terms(400, analyst.queries, SeededEntropy(seed)))
        said.append(interview(analyst, analyst.draw(np.random.default_rng(seed)), naive).values[-1])
    assert abs(np.mean(said) - 0.72) < 5 * 0.02 / math.sqrt(10) < 0.04


def last_question(analyst: Freedman, world: Noise, said: list[float]) -> Means:
    talk = analyst.converse(world)
    next(talk)
    question = talk.send(Replies.unclaimed(np.array(said)))
    assert isinstance(question, Means)
    return question


def test_what_is_kept() -> None:
    """At 16 rows and 25 % the cut is at 1/2 ± 0.144: the first for, the last against."""
    analyst = Freedman(16, 4)
    table = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1], [1, 0, 1, 0]], np.bool_)
    table = np.tile(table, (1, 4))
    question = last_question(analyst, Noise(table), [0.65, 0.64, float("nan"), 0.3])
    assert question.values(table)[0][:4].tolist() == [0.5, 1.0, 0.0, 0.5]
    assert question.truths.tolist() == [0.5]
    assert question.guesses is not None
    assert question.guesses[0] == pytest.approx(0.5 * math.erfc(-0.7 / 2))  # Φ(0.7/√2)
    nothing = last_question(analyst, Noise(table), [0.5] * 4)
    assert nothing.values(table).tolist() == [[0.5] * 16]


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"variables": 0}, {"level": 0.0}, {"level": 1.0}])
def test_wrong_arguments(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Freedman(**wrong)


# Regressions


def test_regression_on_one_variable() -> None:
    """R² is the squared correlation, and F's P value that of t, which is known for 3 rows."""
    outcome, column = np.array([1.0, 2.0, 4.0]), np.array([[0.0], [1.0], [1.0]])
    row = screened_regression(outcome, column, level=1.0)
    correlation = np.corrcoef(outcome, column[:, 0])[0, 1]
    assert row["r2"] == row["r2_first"] == pytest.approx(correlation**2)
    score = correlation / math.sqrt(1 - correlation**2)
    assert row["p"] == pytest.approx(1 - 2 * math.atan(score) / math.pi)  # one degree of freedom
    assert (row["kept"], row["coefficients"]) == (1, 0)


def test_regression_against_least_squares() -> None:
    chance = np.random.default_rng(3)
    outcome, table = chance.standard_normal(40), chance.standard_normal((40, 7))
    design = np.column_stack([np.ones(40), table])
    residual = np.linalg.lstsq(design, outcome)[1][0]
    row = screened_regression(outcome, table, level=0.3)
    assert row["r2_first"] == pytest.approx(1 - residual / (40 * outcome.var()))
    assert row["r2"] <= row["r2_first"]
    nothing = screened_regression(outcome, table, level=0.0)
    assert (nothing["kept"], nothing["r2"], nothing["p"]) == (0, 0.0, 1.0)


def test_screening_makes_noise_significant() -> None:
    """Freedman's own size, 30 sessions of orthonormal variables: R² 0.36 in the limit.

    One session's standard deviation is 0.1, and at a hundred rows the limit is reached (both of
    40,000 sessions): five standard errors. Without screening a quarter of them would give 1/8.
    """
    cells = [
        Cell({"responder": "regression", "rows": 100, "level": 0.25}, 1, 0, r) for r in range(30)
    ]
    found = pd.DataFrame([row for cell in cells for row in freedman.measure(cell)])
    limit = limits(0.5, 0.25)[0]
    assert abs(found["r2_orthonormal"].mean() - limit) < 5 * 0.1 / math.sqrt(30)
    assert (found["p"] < 0.05).mean() > 0.6  # 0.95 of 400; below 0.6 with probability 1e-9
    assert (found["p_first"] < 0.05).mean() < 0.6


def test_limits_by_integration() -> None:
    """The variance that a normal keeps beyond the cut, by summing the density."""
    z = np.linspace(0, 12, 2_000_001)
    density = np.exp(-(z**2) / 2) * 2 / math.sqrt(2 * math.pi) * (z[1] - z[0])
    tail = density[::-1].cumsum()[::-1]
    beyond = tail <= 0.25
    kept = float((z**2 * density)[beyond].sum())
    explained, score = limits(0.5, 0.25)
    assert explained == pytest.approx(kept / 2, abs=1e-5)
    assert score == pytest.approx(kept / 0.25 * (1 - 0.125) / (1 - kept / 2), abs=1e-4)


# The experiment


def cell(responder: str, rows: int = 100) -> Cell:
    return Cell({"responder": responder, "rows": rows, "level": 0.25}, 1, 5, 0)


def test_measure() -> None:
    naive, split = (next(iter(freedman.measure(cell(name)))) for name in ("naive", "split"))
    assert naive["said"] == naive["sample"]
    assert naive["significant"] == float(abs(2 * naive["said"] - 1) * 10 > 1.96)
    assert 0 <= split["low"] <= split["said"] <= split["high"] <= 1
    assert list(freedman.measure(cell("regression", 10_000))) == []


def results(**said: float) -> pd.DataFrame:
    rows: list[dict[str, Any]] = [
        {
            "responder": name.replace("_", "-"),
            "rows": 1_000,
            "level": 0.25,
            "repeat": repeat,
            "said": value + 0.01 * repeat,
            "low": value - 0.1,
            "high": value + 0.1,
            "sample": value,
            "significant": 1.0,
            "false_claims": int(abs(value - 0.5) > 0.1),
        }
        for name, value in said.items()
        for repeat in (0, 1)
    ]
    return pd.DataFrame(rows)


def regressions(explained: float, p: float) -> pd.DataFrame:
    rows = [
        {"r2": 0.3, "r2_orthonormal": explained + 0.01 * r, "p": p, "p_first": 0.5, "repeat": r}
        for r in (0, 1)
    ]
    return pd.DataFrame(rows).assign(responder="regression", rows=100, level=0.25)


def held(table: pd.DataFrame) -> list[bool | None]:
    found = freedman.findings(table)
    return [each.holds if each.holds is None else bool(each.holds) for each in found]


def test_findings_can_fail() -> None:
    right = pd.concat([regressions(0.36, 0.001), results(naive=0.715, holdfast_mean=0.5)])
    assert held(right) == [None, True, True, True, True]
    wrong = pd.concat([regressions(0.2, 0.3), results(naive=0.55, holdfast_mean=0.7)])
    assert held(wrong) == [None, False, False, False, False]


def test_partial_results_are_drawn() -> None:
    for table in (results(naive=0.7), regressions(0.36, 0.001), results(holdfast_mean=0.5)):
        assert list(freedman.draw(table)) == list(freedman.CAPTIONS)
