"""A certified number is never about a failure: what fails on public rows is refused, free.

Models and functions that fail always, on made-up rows only, and on sealed rows only, without an
open part and with one; through every door that runs Python.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from holdfast.engines.python.metrics import Metric
from holdfast.errors import InvalidInput
from holdfast.grids import grid
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.scoring import Scorer, Scorers
from holdfast.protocols.plans import JointPlan
from tests.holdout.plans import board, direct, estimates, simple
from tests.holdout.tables import table

FAR = 1e6  # where the data lie, and no made-up row
Fails = Callable[[Any], Any]
FAILS: dict[str, Fails] = {
    "always": lambda x: np.ones(len(x), np.bool_),
    "made-up": lambda x: np.abs(x - FAR) > 1e3,
    "sealed": lambda x: np.abs(x - FAR) <= 1e3,
    "never": lambda x: np.zeros(len(x), np.bool_),
}


class Model:
    """Knows every target: where x is above its middle it is 1. Raises where a row fails."""

    classes_ = np.array([0, 1])

    def __init__(self, fails: Fails) -> None:
        self.fails = fails

    def predict(self, frame: Any) -> Any:
        x = frame["x"].to_numpy()
        if self.fails(x).any():
            raise RuntimeError("this model has failed")
        return (x > FAR).astype(int)

    def predict_proba(self, frame: Any) -> Any:
        right = self.predict(frame)
        return np.stack([1 - right, right], axis=1)


def sealed(path: Path, plan: JointPlan, units: int, *, is_open: bool, **more: Any) -> Holdout:
    """Rows whose target is told by x."""
    rows = plan.blocks * units * (2 if is_open else 1)
    frame = table(rows).assign(x=lambda f: FAR + f.x - 5)
    frame["y"] = (frame.x > FAR).astype(int)
    share = 0.5 if is_open else 0.0
    given = {"target": "y", "open_fraction": share, "seed": 1, **more}
    return Holdout.create(path, frame, plan, **given)


def asking(holdout: Holdout, door: str, fails: Fails) -> Any:
    """The question that runs something that fails so."""

    def value(frame: Any) -> float:
        if fails(frame.x.to_numpy()).any():
            raise RuntimeError("this function has failed")
        return float((frame.x > FAR).mean())

    def term(frame: Any) -> Any:
        if fails(frame.x.to_numpy()).any():
            raise RuntimeError("this function has failed")
        return frame.x > FAR

    if door == "ask":
        return holdout.ask(value, grid=grid(0, 1, step=0.25), columns=["x"])
    if door == "mean":
        return holdout.mean(term, columns=["x"], range=(0, 1))
    metric = door.removeprefix("score ")
    return holdout.score(Model(fails), metric=metric, features=["x"])


DOORS = {
    "score accuracy": direct,
    "score brier": direct,
    "score error_rate": direct,
    "mean": direct,
    "ask": estimates,
}
SAID = {
    "score accuracy": "a row on which it fails, or without a target, counts as wrong",
    "score error_rate": "a row on which it fails, or without a target, counts as wrong",
    "score brier": "is not 0 or 1 or probability not between them, counts as 1, the worst",
    "mean": "a failure counts as 0",
    "ask": "a block on which it fails counts as the lowest value",
}


@pytest.mark.parametrize("door", DOORS)
def test_without_an_open_part(door: str, tmp_path: Path) -> None:
    with sealed(tmp_path / "h", DOORS[door](), 2 if door == "ask" else 1, is_open=False) as holdout:
        before = holdout.receipt
        for fails in ("always", "made-up"):
            said = r"has failed\. If it needs.*keep an open part.*open_fraction=0\.1.*Nothing was"
            with pytest.raises(InvalidInput, match=said):
                asking(holdout, door, FAILS[fails])
        assert holdout.receipt == before
        works, broken = (asking(holdout, door, FAILS[fails]) for fails in ("never", "sealed"))
        expect(door, works, broken)
        assert check_holdout(holdout.path).passed


@pytest.mark.parametrize("door", DOORS)
def test_with_an_open_part(door: str, tmp_path: Path) -> None:
    with sealed(tmp_path / "h", DOORS[door](), 2 if door == "ask" else 1, is_open=True) as holdout:
        before = holdout.receipt
        with pytest.raises(InvalidInput, match=r"open block.*has failed\. Nothing was charged"):
            asking(holdout, door, FAILS["always"])
        assert holdout.receipt == before
        known = holdout.open_table(["x"]).column(0).to_numpy()
        works = asking(holdout, door, FAILS["made-up"])
        broken = asking(holdout, door, lambda x: ~np.isin(x, known))
        expect(door, works, broken)
        assert check_holdout(holdout.path).passed


def expect(door: str, works: Any, broken: Any) -> None:
    """What works has its value, what fails on sealed rows the worst; both say what counts."""
    assert SAID[door] in works.promise
    assert SAID[door] in broken.promise
    if door != "ask":  # whose promises name what was drawn
        assert works.promise.partition("; assuming")[0] == broken.promise.partition("; assuming")[0]
    if door == "ask":
        assert broken.value == 0
    elif door in ("score brier", "score error_rate"):
        assert works.low == 0
        assert broken.high == 1
        assert works.value < 0.5 < broken.value
    elif door == "mean":
        assert broken.low == 0
        assert broken.value < works.value
    else:
        assert broken.low == 0
        assert works.value > 0.5 > broken.value


def test_unfitted_models_are_refused(tmp_path: Path) -> None:
    with sealed(tmp_path / "h", direct(), 1, is_open=False) as holdout:
        before = holdout.receipt
        for metric in ("accuracy", "brier", "error_rate"):
            with pytest.raises(InvalidInput, match=r"NotFittedError.*Nothing was charged"):
                holdout.score(LogisticRegression(), metric=metric, features=["x"])
        assert holdout.receipt == before


def test_a_row_that_fails_takes_no_other_along(tmp_path: Path) -> None:
    """One row in ten lacks a feature: in blocks of 100 that is nearly every block."""
    plan = board()
    frame = table(plan.blocks * 100).assign(x=lambda f: FAR + f.x - 5)
    frame["y"] = (frame.x > FAR).astype(int)
    frame.loc[frame.index % 10 == 0, "x"] = np.nan
    strict = Model(lambda x: np.isnan(x))
    with Holdout.create(tmp_path / "h", frame, plan, target="y", seed=1) as holdout:
        answer = holdout.score(strict, features=["x"])
        assert answer.value == pytest.approx(0.9, abs=0.05)


def test_categories_that_only_the_data_have(tmp_path: Path) -> None:
    """An encoder that knows the data's categories fails on others, and works on open rows."""
    rows = pd.DataFrame({"g": ["a b", "c d"] * 50})
    model = make_pipeline(OneHotEncoder(), LogisticRegression())
    model.fit(rows[["g"]], rows.g == "c d")

    def made(path: Path, **more: Any) -> Holdout:
        frame = table(2 * direct().blocks)
        frame["g"] = np.where(frame.x > 5, "c d", "a b")
        frame["y"] = frame.x > 5
        return Holdout.create(path, frame, direct(), target="y", seed=1, **more)

    with made(tmp_path / "sealed", block_units=1) as holdout:
        before = holdout.receipt
        with pytest.raises(InvalidInput, match=r"unknown categories.*keep an open part"):
            holdout.score(model)
        assert holdout.receipt == before
    for share in (0.5, 0.004):  # many open blocks, and two open rows
        with made(tmp_path / f"open {share}", block_units=1, open_fraction=share) as holdout:
            assert (holdout.score(model).value or 0) > 0.6


def test_a_metric_of_the_custodian_that_fails(tmp_path: Path) -> None:
    """A submission runs only that: predictions themselves do not fail."""
    plan = simple()
    frame = table(plan.blocks * 40).assign(row=range(plan.blocks * 40))

    def cost(target: Any, predicted: Any) -> float:
        raise RuntimeError("no cost")

    with Holdout.create(tmp_path / "h", frame, plan, ids="row", target="y") as holdout:
        metric = Metric("cost", "label", function=cost, range=(0.0, 1.0))
        holdout.scorers = Scorers({"cost": Scorer(metric)})
        before = holdout.receipt
        with pytest.raises(InvalidInput, match=r"RuntimeError: no cost.*Nothing was charged"):
            holdout.enter(dict(zip(frame.row, frame.y, strict=True)), name="a", metric="cost")
        assert holdout.receipt == before
