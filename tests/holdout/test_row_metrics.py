"""Metrics of one's own over rows: told like any other, elsewhere, and never past their range."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from holdfast.engines.source import Limits
from holdfast.errors import InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.scoring import read_scorers
from holdfast.protocols.answers import Told
from holdfast.protocols.source import WEIGHT_SCALE
from tests.holdout.tables import refusing

ROWS = 900
CUT, WORST = "cut to [0, 5]", "counts as the worst"
HERE = os.getpid()
CALLS: list[int] = []


def table() -> pd.DataFrame:
    rng = np.random.default_rng(21)
    frame = pd.DataFrame({"id": rng.permutation(ROWS) + 10, "x": rng.random(ROWS)})
    frame["late"] = np.arange(ROWS) % 300 / 10.0  # three rows of each value
    frame["odd"] = np.arange(ROWS) / 1_000  # no two rows alike
    frame["y"] = (frame.x + rng.normal(0, 0.2, ROWS) > 0.5).astype(int)
    frame["word"] = np.where(frame.y == 1, "yes", "no")
    return frame


@pytest.fixture(scope="module")
def holdout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hf.Holdout]:
    path = tmp_path_factory.mktemp("row-metrics") / "a.holdfast"
    told: dict[str, Any] = {"ids": "id", "target": "y", "ranges": {"late": (0, 30)}, "seed": 3}
    with hf.Holdout.create(path, table(), limits=Limits(workers=1), **told) as opened:
        yield opened
    assert check_holdout(path).passed


def said(column: str = "y", **change: Any) -> pd.DataFrame:
    """Predictions that are right but for every ninth row."""
    frame = table()
    given = frame[column].copy()
    if column == "y":
        given = given.where(np.arange(ROWS) % 9 > 0, 1 - given)
    return pd.DataFrame({"id": frame.id, "prediction": given}).assign(**change)


def sealed(holdout: hf.Holdout) -> Any:
    """The sealed rows, in the order of the blocks."""
    return holdout._open.store.table(hidden=True).to_pandas()


def terms(holdout: hf.Holdout, given: Any, metric: Any, **more: Any) -> list[float]:
    """What the sealed rows count as."""
    score = holdout._score_request(given, holdout.scorers.find(metric), target=more.get("target"))
    blocks, bounds = holdout._open.spec.manifest.blocks, score.bounds
    assert bounds is not None
    found = holdout._open._engines.sums(score.term(), None, 0, blocks, bounds, terms=True)
    low, high = bounds
    return list(low + (high - low) * found / WEIGHT_SCALE)


def cost(target: Any, predicted: Any) -> Any:
    """Dearer where something is missed."""
    return np.where(predicted < target, 5.0, 2.0) * (predicted != target)


COST = hf.row_metric(cost, range=(0, 5), greater_is_better=False)


def test_a_score_by_it_has_a_bar_and_says_what_it_takes_for_granted(holdout: hf.Holdout) -> None:
    answer: Any = holdout.score(said(), metric=COST)
    assert isinstance(answer, Told)
    rows, predicted = sealed(holdout), dict(zip(*said().T.to_numpy().tolist(), strict=True))
    ids = table().id.to_numpy()[rows["__row"]]
    truth = cost(rows.y.to_numpy(), np.array([predicted[each] for each in ids]))
    assert answer.low <= truth.mean() <= answer.high
    assert CUT in answer.promise
    assert any(WORST in each for each in answer.assumes)
    assert any("depends on that row alone" in each for each in answer.assumes)
    assert terms(holdout, said(), COST) == pytest.approx(list(truth), abs=5 / WEIGHT_SCALE)
    assert holdout.score(said(), metric=COST).cached


def test_it_runs_where_estimators_run(holdout: hf.Holdout) -> None:
    CALLS.clear()

    def elsewhere(target: Any, predicted: Any) -> Any:
        if os.getpid() == HERE:
            CALLS.append(os.getpid())
        return (predicted != target) * 1.0

    holdout.score(said(), metric=hf.row_metric(elsewhere, range=(0, 1), greater_is_better=False))
    assert CALLS == []


def test_every_verb_of_scores_takes_it(holdout: hf.Holdout) -> None:
    good, bad = said(), said(prediction=1)
    assert holdout.gate(good, metric=COST, at_most=1).verdict == "pass"
    assert holdout.gate(bad, metric=COST, at_most=0.1).verdict == "fail"
    verdict = holdout.compare(good, bad, metric=COST, margin=0.0)
    assert verdict.letter == (0,)  # it costs less
    assert CUT in verdict.promise
    assert holdout.best([bad, good], metric=COST).winner == 1
    batch = holdout.scores([said(prediction=0), said(prediction=1)], metric=COST)
    assert len(batch.batch) == 2
    with pytest.raises(InvalidInput, match="from 0 to 5"):
        holdout.gate(good, metric=COST, at_most=6)
    with pytest.raises(InvalidInput, match="guess"):
        holdout.score(said(prediction=0), metric=COST, guess=5.5)


@pytest.mark.parametrize("greater", [True, False])
def test_on_a_sealed_row_a_failure_is_the_worst_and_what_leaves_the_range_is_cut(
    holdout: hf.Holdout, greater: bool
) -> None:
    """Nothing of it is seen but the letter, and no other row is taken along."""
    rows = sealed(holdout)
    raises, nothing, above, below = rows.odd[:4].tolist()

    def picky(target: Any, predicted: Any) -> Any:
        del predicted
        if raises in target:
            raise RuntimeError(f"{raises}")
        found = np.where(target == nothing, np.nan, 1.0)
        return np.where(target == above, 9.0, np.where(target == below, -9.0, found))

    metric = hf.row_metric(
        picky, range=(0, 5), greater_is_better=greater, predictions="number", name="picky"
    )
    found = terms(holdout, said("odd"), metric, target="odd")
    worst = 0.0 if greater else 5.0
    assert found[:4] == [worst, worst, 5.0, 0.0]
    assert found[4:] == pytest.approx([1.0] * (len(found) - 4), abs=5 / WEIGHT_SCALE)
    answer: Any = holdout.score(said("odd"), metric=metric, target="odd")
    assert CUT in answer.promise
    assert any(WORST in each for each in answer.assumes)


def ones(change: Callable[[Any, Any], Any]) -> Any:
    return hf.row_metric(change, range=(0, 5), greater_is_better=False, name="tried")


REFUSED: dict[str, tuple[Any, str]] = {
    "raises": (lambda target, predicted: target["a"], "It failed on every open block"),
    "no number": (lambda target, predicted: [None] * len(target), "It failed on every open block"),
    "leaves its range": (lambda target, predicted: 5.5 + 0 * target, "gave 5.5 on an open row"),
    "compares rows": (lambda target, predicted: abs(target - target.mean()), "by itself"),
    "ranks rows": (lambda target, predicted: np.arange(len(target)) % 5, "that row alone"),
    "draws": (
        lambda target, predicted: np.random.default_rng().random(len(target)),
        "the same value every time",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_with_it_on_open_rows_is_refused_and_nothing_is_told(
    holdout: hf.Holdout, case: str
) -> None:
    change, words = REFUSED[case]
    with refusing(holdout, words):
        holdout.score(said(), metric=ones(change))


def test_predictions_for_sealed_rows_alone_are_tried_on_made_up_ones(holdout: hf.Holdout) -> None:
    """The open rows have none: nothing is guessed from them, and none of them is asked."""
    needed = holdout._shared.sealed_rows(ROWS)
    assert needed is not None
    part = said().iloc[needed]

    def never_nine(target: Any, predicted: Any) -> Any:
        return np.where(np.isin(predicted, (0, 1)), 1.0 * (predicted != target), np.nan)

    metric = hf.row_metric(never_nine, range=(0, 1), greater_is_better=False)
    guessed: Any = holdout.score(part, metric=metric, guess=0.1)
    assert guessed.expected is not None
    precise: Any = holdout.score(part, metric=metric)
    assert precise.expected is None  # without a guess nothing is
    whole = holdout.score(said(), metric=metric)
    assert whole.cached  # of the sealed rows it says the same
    with pytest.raises(InvalidInput, match="It failed on"):
        holdout.score(part, metric=ones(lambda target, predicted: target["a"]), guess=0.1)


class Threshold:
    """A model that fails on one row."""

    def __init__(self, fails: float = -1.0) -> None:
        self.fails = fails

    def predict(self, frame: Any) -> Any:
        if (frame["x"] == self.fails).any():
            raise RuntimeError
        return (frame["x"] > 0.5).astype(int)


def test_a_model_is_scored_by_it_too(holdout: hf.Holdout) -> None:
    rows = sealed(holdout)
    model = Threshold(float(rows.x[7]))
    score = holdout._score_request(model, holdout.scorers.find(COST), target=None, features=["x"])
    blocks = holdout._open.spec.manifest.blocks
    terms = holdout._open._engines.sums(score.term(), None, 0, blocks, (0, 5), terms=True)
    found = 5 * terms / WEIGHT_SCALE
    truth = cost(rows.y.to_numpy(), (rows.x > 0.5).to_numpy())
    truth[7] = 5.0
    assert found.tolist() == pytest.approx(list(truth), abs=5 / WEIGHT_SCALE)
    answer: Any = holdout.score(model, metric=COST, features=["x"])
    assert any(WORST in each for each in answer.assumes)


def test_types_depend_on_the_schema_alone(holdout: hf.Holdout) -> None:
    """Whole numbers come as floats, also where no row of a batch lacks a target."""

    def typed(target: Any, predicted: Any) -> Any:
        kinds = target.dtype.kind + predicted.dtype.kind
        return np.full(len(target), {"ff": 1.0, "OO": 2.0}[kinds])

    metric = hf.row_metric(typed, range=(0, 3), greater_is_better=True)
    assert np.allclose(terms(holdout, said(), metric), 1.0, atol=1e-4)
    assert np.allclose(terms(holdout, said("word"), metric, target="word"), 2.0, atol=1e-4)


def test_probabilities(holdout: hf.Holdout) -> None:
    def wide(target: Any, predicted: Any) -> Any:
        return abs(target - predicted)

    words: dict[str, Any] = {"range": (0, 1), "greater_is_better": False}
    metric = hf.row_metric(wide, predictions="probability", **words)
    assert "cut to [0, 1]" in holdout.score(said(prediction=0.25), metric=metric).promise
    with pytest.raises(InvalidInput, match="probabilities between 0 and 1"):
        holdout.score(said(prediction=1.25), metric=metric)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"range": (1, 0)}, "low < high"),
        ({"range": (0, float("inf"))}, "range"),
        ({"range": 5}, "pair"),
        ({"greater_is_better": None}, "True or False"),
        ({"predictions": "score"}, "label, number, probability"),
        ({"name": "accuracy"}, "none of Holdfast's own"),
        ({"name": "a b"}, "letters, digits"),
        ({"term": lambda target: 1.0, "name": "one"}, "targets and predictions"),
        ({"term": lambda target, predicted: 1.0}, "name="),
        ({"term": 3, "name": "three"}, "targets and predictions"),
    ],
)
def test_what_is_no_metric_of_rows(wrong: dict[str, Any], words: str) -> None:
    right: dict[str, Any] = {"term": cost, "range": (0, 5), "greater_is_better": False}
    given = {**right, **wrong}
    with pytest.raises(InvalidInput, match=words):
        hf.row_metric(given.pop("term"), **given)


METRICS = """
def cost(target, predicted):
    return 5.0 * (predicted != target)

METRICS = {"cost": {"term": cost, "range": (0, 5), "greater_is_better": False}}
"""


def test_a_file_of_metrics_has_them(holdout: hf.Holdout, tmp_path: Path) -> None:
    path = tmp_path / "metrics.py"
    path.write_text(METRICS, "utf-8")
    before = holdout.scorers
    try:
        holdout.scorers = read_scorers(path)
        assert CUT in holdout.score(said(), metric="cost").promise
    finally:
        holdout.scorers = before
    path.write_text(METRICS.replace('"range": (0, 5), ', ""), "utf-8")
    with pytest.raises(InvalidInput, match="its range"):
        read_scorers(path)
    path.write_text(METRICS.replace('"range": (0, 5)', '"range": (0, 5), "grid": "0:5:1"'), "utf-8")
    with pytest.raises(InvalidInput, match="a term, its range"):
        read_scorers(path)


# Errors on a target of a declared range, and the log loss, are means over rows as well.


@pytest.mark.parametrize("metric", ["mae", "mse"])
def test_errors_on_a_target_of_a_declared_range(holdout: hf.Holdout, metric: str) -> None:
    near = said("late").assign(prediction=np.clip(table().late + 2, 0, 30))
    rows = sealed(holdout)
    errors = np.abs(np.clip(rows.late + 2, 0, 30) - rows.late) ** (1 if metric == "mae" else 2)
    most = 30 if metric == "mae" else 900
    answer: Any = holdout.score(near, metric=metric, target="late")
    assert f"{metric} cut to [0, {most}]" in answer.promise
    assert answer.low <= errors.mean() <= (answer.high or 0)
    assert terms(holdout, near, metric, target="late") == pytest.approx(
        errors.tolist(), abs=most / WEIGHT_SCALE
    )
    with pytest.raises(InvalidInput, match="numbers between 0 and 30"):
        holdout.score(said("late", prediction=31.0), metric=metric, target="late")


def test_a_log_loss_is_cut_where_its_target_had_one_chance_in_a_thousand(
    holdout: hf.Holdout,
) -> None:
    rows = sealed(holdout)
    answer: Any = holdout.score(said(prediction=0.9), metric="log_loss")
    assert "log_loss cut to [0, 6.90776]" in answer.promise
    losses = -np.log(np.where(rows.y == 1, 0.9, 0.1))
    assert answer.low <= losses.mean() <= (answer.high or 0)
    sure = terms(holdout, said(prediction=1.0), "log_loss")
    assert sorted(set(sure)) == [0.0, pytest.approx(np.log(1000))]
