"""Submissions that try to learn or to gain something by being wrong."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from holdfast.errors import InvalidInput
from holdfast.grids import grid
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.scoring import Scorers, Scoring, read_scorers
from holdfast.holdout.tokens import Asker
from tests.holdout.plans import board, estimates, mixed
from tests.holdout.tables import sealed


def labels(path: Path, plan: Any, frame: pd.DataFrame, **more: Any) -> Holdout:
    return Holdout.create(path, frame, plan, ids="row", target="y", **more)


def random_labels(rows: int, seed: int) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    row = chance.permutation(10**6)[:rows]
    return pd.DataFrame({"row": row, "y": chance.integers(0, 2, rows)})


def test_errors_do_not_tell_the_order_of_the_rows(tmp_path: Path) -> None:
    """A file is often sorted by what is in it: whoever learns the order learns the labels."""
    frame = random_labels(board().blocks * 10, 1)
    sorted_frame = frame.sort_values("y", kind="stable")
    ids = sorted(frame["row"])
    partial = dict.fromkeys(ids[50:], 0)
    said = []
    for name, each in (("a", frame), ("b", sorted_frame)):
        with labels(tmp_path / name, board(), each, new_budget="a test") as holdout:
            for given in (partial, [(i, 0) for i in [*ids, *ids[5:20]]]):
                pairs = given.items() if isinstance(given, dict) else given
                table = pd.DataFrame(pairs, columns=["row", "prediction"])
                with pytest.raises(InvalidInput) as wrong:
                    holdout.enter(table, name="x")
                said.append(str(wrong.value))
    assert said[:2] == said[2:]
    assert str(ids[0]) in said[0]


def test_a_loss_that_fails_is_the_worst_one(tmp_path: Path) -> None:
    frame = random_labels(estimates().blocks * 2, 2).astype({"y": float})
    frame.loc[::4, "y"] = np.nan  # a row in four has no label: many blocks have no log loss
    wrong = pd.DataFrame({"row": frame["row"], "prediction": np.where(frame["y"] == 1, 0.01, 0.99)})
    with labels(tmp_path / "h", estimates(), frame) as holdout:
        answer = holdout.score(wrong, metric="log_loss", grid=grid(0, 7, step=1))
        assert (answer.value or 0) >= 4  # −ln 0.01 = 4.6, and a failure counts as more


def test_a_metric_that_raises_has_no_score(tmp_path: Path) -> None:
    source = "def cost(target, predicted):\n    raise ValueError\n"
    source += "METRICS = {'cost': {'function': cost, 'greater_is_better': False, 'grid': '0:9:1'}}"
    (tmp_path / "metrics.py").write_text(source, "utf-8")
    frame = random_labels(estimates().blocks, 3)
    zeros = frame.assign(prediction=0)[["row", "prediction"]]
    with labels(tmp_path / "h", estimates(), frame) as holdout:
        holdout.scorers = read_scorers(tmp_path / "metrics.py")
        before = holdout.receipt
        with pytest.raises(InvalidInput, match=r"ValueError.*Nothing was charged"):
            holdout.score(zeros, metric="cost")
        assert holdout.receipt == before
        assert isinstance(holdout.scorers, Scorers)


class Fragile:
    """A model that fails on the sealed rows, and on no made-up one."""

    classes_ = np.array([0, 1])

    def predict(self, frame: Any) -> Any:
        if (frame["x"] == 1e7).any():
            raise ValueError
        return np.zeros(len(frame), int)


def test_a_model_cannot_pass_by_failing(tmp_path: Path) -> None:
    frame = random_labels(200, 4).assign(x=1e7)
    with labels(tmp_path / "h", None, frame, open_fraction=0) as holdout:
        for metric in ("error_rate", "accuracy"):
            limit: Any = {"at_most": 0.1} if metric == "error_rate" else {"at_least": 0.9}
            assert holdout.gate(Fragile(), metric=metric, **limit).verdict == "fail"


def test_predictions_that_are_missing_have_no_sure_bar(tmp_path: Path) -> None:
    frame = random_labels(board().blocks, 5).assign(y=lambda f: f["y"].map({0: "a", 1: "b"}))
    nothing = np.array([pd.NA] * len(frame), object)
    with labels(tmp_path / "h", board(), frame, seed=1) as holdout:
        try:
            answer = holdout.score(nothing, metric="error_rate")
        except InvalidInput:
            return
        assert answer.high is None or answer.high >= 1


def test_nobody_chooses_the_grid_of_an_entry() -> None:
    assert "grid" not in inspect.signature(Scoring.enter).parameters


def test_a_quota_is_a_share_of_the_refusals_too(tmp_path: Path) -> None:
    with sealed(tmp_path / "h", mixed()) as holdout:
        part: Any = holdout.spec.sets[0].plan.part("verify")
        ann = holdout.on_behalf(Asker("ann", 1.5 / part.refusals))
        assert ann.verify("avg(x)", 100.0).verdict == "not compatible"
        assert holdout.access.used("ann")["main"] == pytest.approx(1 / part.refusals)
        assert not ann.price("verify", "avg(x)", guess=200.0).affordable
        assert ann.verify("avg(x)", 200.0).verdict == "exhausted"
        assert holdout.verify("avg(x)", 200.0).verdict == "not compatible"  # the others have theirs
        assert ann.correct("avg(x)", 300.0, grid=grid(0, 7, step=1)).verdict.verdict == "exhausted"
