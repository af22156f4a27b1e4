"""What is told is what was asked about: units of several rows, ranges, losses, sides of a gate.

Holdouts are seeded, so that the split is always the same: nothing here can fail by chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from holdfast.engines.source import Limits
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.protocols.answers import AT_SHARES, ROWS, RULE
from holdfast.protocols.base import Question
from holdfast.protocols.procedures import HALF_PART, Pair
from holdfast.protocols.told import Expects, ToldCompare, ToldMean, ToldPlan
from holdfast.theory import betting
from tests.holdout.tables import holds

N = 3_000


def rows(seed: int = 1) -> pd.DataFrame:
    """Exactly 9 in 10 rows have x, half of all u ≥ ½; of labels y both are as frequent."""
    chance = np.random.default_rng(seed)
    order = chance.permutation(N)
    return pd.DataFrame(
        {
            "id": np.arange(N) + N * seed,
            "y": order % 2,
            "x": order % 10 > 0,
            "u": order / N,
            "who": np.arange(N) // 3 + N * seed,
        }
    )


def sealed(path: Path, table: pd.DataFrame, **words: Any) -> Holdout:
    return Holdout.create(path, table, seed=3, limits=Limits(workers=1), **words)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Holdout, dict[str, Any]]]:
    """A holdout with ids, and predictions that are right as often as their name says."""
    table = rows(5)
    known = {
        name: pd.DataFrame({"id": table["id"], "prediction": np.where(right, table.y, 1 - table.y)})
        for name, right in {
            "good": np.arange(N) % 10 > 0,
            "bad": np.arange(N) % 10 > 3,
        }.items()
    }
    path = tmp_path_factory.mktemp("board") / "b.holdfast"
    with sealed(path, table, ids="id", target="y") as holdout:
        yield holdout, known
    assert check_holdout(path).passed


def test_a_condition_of_units_of_several_rows_is_no_share_of_units(tmp_path: Path) -> None:
    with sealed(tmp_path / "a.holdfast", rows(2), unit="who") as holdout:
        for text, truth in (("u >= 0.5", 0.5), ("x", 0.9)):
            assert holds(holdout.mean(text), truth)
            assert holds(holdout.mean(text, where="y = 1"), 0.5 if text != "x" else 1.0)


def test_a_condition_is_scaled_by_the_range_that_is_declared(tmp_path: Path) -> None:
    with sealed(tmp_path / "a.holdfast", rows(3)) as holdout:
        for ends in ((0, 1), (0, 2), (-1, 1), (-3, 5)):
            assert holds(holdout.mean("u >= 0.5", range=ends), 0.5), ends
            assert holds(holdout.mean("u >= 0.5", range=ends, where="x"), 0.5), ends
        cut = holdout.mean("u >= 0.5", range=(0.5, 2))  # what is below is cut: half of it is ½
        assert holds(cut, 0.75)


@pytest.mark.parametrize("metric", ["accuracy", "error_rate", "brier"])
def test_better_is_better_whichever_way_a_metric_counts(board: Any, metric: str) -> None:
    holdout, known = board
    good, bad = known["good"], known["bad"]
    assert holdout.compare(good, bad, metric=metric, margin=0).verdict == "better"
    assert holdout.compare(bad, good, metric=metric, margin=0.1).verdict == "worse"
    assert holdout.gate(good, better_than=bad, metric=metric).verdict == "pass"
    assert holdout.gate(bad, better_than=good, metric=metric, margin=0.1).verdict == "fail"
    assert holdout.best([bad, good], metric=metric).winner == 1
    told = holdout.compare(good, bad, metric=metric)
    gain = 0.3 if metric == "accuracy" else -0.3
    assert holds(told, gain)
    least = abs(told.low if gain > 0 else told.high)
    assert f"B is better than A by {least:.4f}"[:-2] in told.promise
    assert "B is worse than A by " in holdout.compare(bad, good, metric=metric).promise


def test_a_gate_has_two_sides(board: Any) -> None:
    holdout, known = board
    words = {"metric": "error_rate"}
    assert holdout.gate(known["good"], at_most=0.2, **words).verdict == "pass"
    assert holdout.gate(known["bad"], at_most=0.2, **words).verdict == "fail"
    assert holdout.gate(known["good"], at_least=0.2, **words).verdict == "fail"
    assert holdout.gate(known["good"], at_least=0.8).verdict == "pass"
    assert holdout.gate(known["good"], at_most=0.8).verdict == "fail"
    near = holdout.gate(known["good"], at_most=0.1, **words)
    assert near.verdict == "unclear"
    told = holdout.gate(known["good"], at_most=0.1, tolerance=0.05, **words)
    assert (told.verdict, told.high) == ("pass", 0.1 + 0.05)


def test_the_bar_that_is_forecast_is_the_bar_that_is_told(tmp_path: Path) -> None:
    """Of a guess with the error that the forecast takes for granted."""
    table = rows(6)
    right = table.assign(prediction=np.where(table.x, table.y, 1 - table.y))[["id", "prediction"]]
    with sealed(tmp_path / "a.holdfast", table, ids="id", target="y") as holdout:
        (before,) = (each.told for each in holdout.status().sets)
        assert before is not None
        opened, share = N * 4 // 10, (0.9 * (N * 6 // 10) + 1) / (N * 6 // 10 + 2)
        error = (share * (1 - share) * (1 / opened + 1 / (N - opened))) ** 0.5
        told: Any = holdout.score(right, guess=0.9, guess_se=error)
        assert told.expected
        assert told.high - told.low == pytest.approx(2 * before.bars[0]["half_widths"][0])


def test_an_answer_says_what_a_row_without_a_value_counts_as(tmp_path: Path) -> None:
    table = rows(7)
    table.loc[table["y"] == 1, "u"] = np.nan
    with sealed(tmp_path / "a.holdfast", table) as holdout:
        told = holdout.mean("u", range=(0, 1))
        assert "a row without a value counts as the lowest" in str(told)
        assert holds(told, 0.25)
        asked = holdout.ask("avg(u)")
        assert "a block without a value counts as the lowest" in str(asked)


def test_only_alike_rows_or_two_classes_have_an_exact_comparison() -> None:
    """Of rows unlike McNemar's test needs rows that differ for sure; at class shares none do."""
    protocol = ToldCompare(
        ToldPlan(0.95, 10, 0, True), ToldPlan(0.95, 10, 0, True), 1, 0.95, certified=True
    )
    first, second = np.array([0, 65_536] * 5), np.zeros(10, np.int64)
    for reading, classes, known, exact in (
        (RULE, 7, None, True), (None, None, None, True), (ROWS, 2, 7, True), (ROWS, 2, None, False),
        (ROWS, 3, 7, False), (ROWS, None, 7, False), (AT_SHARES, 2, 7, False),
    ):  # fmt: skip
        about = {"engine": "local", "text": "a"} | ({} if reading is None else {"reading": reading})
        question = Question("compare", "told", about, share=True, candidates=2, classes=classes)
        found = protocol.procedure(question, Expects(differ=known), [first, second], 5.0)
        assert isinstance(found, Pair)
        assert found.exact is exact
        assert found.differ == (7 if reading == ROWS and exact else 5)  # two lack a label
        assert found.slack == 0
    smooth = Question("compare", "told", {"engine": "local", "text": "a"}, candidates=2)
    assert protocol.procedure(smooth, Expects(), [first, second], 5.0).slack == HALF_PART


def test_thresholds_are_told_in_full(board: Any) -> None:
    """A claim is not rounded: 0.6543214999 would be 0.654321, which is more than was proved."""
    holdout, known = board
    passed = holdout.gate(known["good"], metric="error_rate", at_most=0.6543214999)
    assert passed.verdict == "pass"
    assert "error rate is at most 0.6543214999" in passed.promise
    shown = holdout.compare(known["good"], known["bad"], margin=0.0123456789)
    assert shown.verdict == "better"
    assert "by at least 0.0123456789 in accuracy" in shown.promise


def test_a_filter_over_rows_is_no_matter_of_blocks(tmp_path: Path) -> None:
    """That most open blocks have no such row says nothing against it."""
    with sealed(tmp_path / "a.holdfast", rows(8)) as holdout:
        told = holdout.mean("x", where="u > 0.96")
        assert holds(told, 0.9)
        with pytest.raises(hf.Doubtful, match="No open row fits the filter"):
            holdout.mean("x", where="u > 2")


@pytest.mark.parametrize("guess", [0.02, 0.21, 0.5, 0.98])
@pytest.mark.parametrize("precise", [None, True])
def test_a_letter_takes_no_longer_than_is_planned_for_it(
    guess: float, precise: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In evaluations of bets, by the number of terms: whatever the rows are."""
    protocol = ToldMean(
        ToldPlan(0.95, 100, 0, True), ToldPlan(0.95, 100, 0, True), 60, 0.95, certified=True
    )
    seen: list[int] = []
    real = betting._log_wealths

    def counted(terms: Any, *words: Any) -> Any:
        seen.append(terms.parts.size)
        return real(terms, *words)

    monkeypatch.setattr(betting, "_log_wealths", counted)
    chance = np.random.default_rng(4)
    about = {"engine": "local", "text": "a"}
    for error in (1e-5, 1e-3, 0.1):
        question = Question("mean", "told", about, guess=guess, error=error, precise=precise)
        expects = Expects(guess, error, 0.3)
        past = ToldPlan(0.95, 100, 0, True).past()
        for terms in (chance.random(6_000), chance.random(6_000) ** 9, np.full(6_000, 0.3)):
            seen.clear()
            parts = np.rint(terms * 65_536).astype(np.int64)
            rule = protocol.rule(question, expects, past)
            rule.letter(protocol.procedure(question, expects, [parts], rule.level))
            assert 0 < sum(seen) * 2e-7 < protocol.seconds(question)
