"""A certified number is never about a failure: what fails on public rows is refused, free.

Models and functions that fail always, on made-up rows only, and on sealed rows only, without an
open part and with one; through every door that runs Python.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from holdfast.engines.python.metrics import Metric
from holdfast.engines.source import Limits
from holdfast.errors import InvalidInput
from holdfast.grids import grid
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.scoring import Scorer, Scorers, Scoring
from holdfast.holdout.tokens import Asker
from holdfast.planning.joint import joint_plan
from holdfast.protocols.means import DirectMeans
from holdfast.protocols.plans import JointPlan
from tests.holdout.plans import board, direct, estimates, mixed, simple
from tests.holdout.tables import refusing, table
from tests.holdout.tables import sealed as any_sealed

LIMITS = Limits(workers=1)
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


class Constant:
    """Says 0 of every row."""

    classes_ = np.array([0, 1])

    def predict(self, frame: Any) -> Any:
        return np.zeros(len(frame), int)


def sealed(path: Path, plan: JointPlan, units: int, *, is_open: bool, **more: Any) -> Holdout:
    """Rows whose target is told by x."""
    rows = plan.blocks * units * (2 if is_open else 1)
    frame = table(rows).assign(x=lambda f: FAR + f.x - 5)
    frame["y"] = (frame.x > FAR).astype(int)
    share = 0.5 if is_open else 0.0
    given = {"target": "y", "open_fraction": share, "seed": 1, "limits": LIMITS, **more}
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


SAID = {
    "score accuracy": "a row on which it fails, or without a target, counts as wrong",
    "score error_rate": "a row on which it fails, or without a target, counts as wrong",
    "score brier": "is not 0 or 1 or probability not between them, counts as 1, the worst",
    "mean": "a failure counts as 0",
    "ask": "a block on which it fails counts as the lowest value",
}


@pytest.fixture(scope="module", params=[False, True], ids=["sealed", "open"])
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Holdout, Holdout]]:
    """A holdout for means, and one for what is asked of blocks, with an open part or without."""
    folder, is_open = tmp_path_factory.mktemp("failing"), request.param
    eight = joint_plan(DirectMeans(8, half_width=0.4))
    with (
        sealed(folder / "means", eight, 1, is_open=is_open) as means,
        sealed(folder / "asks", estimates(), 2, is_open=is_open) as asks,
    ):
        yield means, asks
        assert check_holdout(means.path).passed
        assert check_holdout(asks.path).passed


@pytest.mark.parametrize("door", SAID)
def test_what_fails_on_public_rows_is_refused_and_on_sealed_ones_the_worst(
    door: str, made: tuple[Holdout, Holdout]
) -> None:
    holdout = made[door == "ask"]
    if holdout.status().open_units == 0:
        for fails in ("always", "made-up"):
            said = r"has failed\. If it needs.*keep an open part.*open_fraction=0\.1.*Nothing was"
            with refusing(holdout, said):
                asking(holdout, door, FAILS[fails])
        works, broken = (asking(holdout, door, FAILS[fails]) for fails in ("never", "sealed"))
    else:
        with refusing(holdout, r"open (block|rows).*has failed\. Nothing was charged"):
            asking(holdout, door, FAILS["always"])
        known = holdout.open_table(["x"]).column(0).to_numpy()
        works = asking(holdout, door, FAILS["made-up"])
        broken = asking(holdout, door, lambda x: ~np.isin(x, known))
    expect(door, works, broken)


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


def test_on_single_rows_too(tmp_path: Path) -> None:
    """Without a plan and an open part: every verb refuses what fails, and says what counts."""
    frame = table(2_000).assign(x=lambda f: FAR + f.x - 5)
    frame["y"] = (frame.x > FAR).astype(int)
    works, broken = Model(FAILS["never"]), Model(FAILS["always"])
    given: dict[str, Any] = {"target": "y", "labels": [0, 1], "limits": LIMITS}
    with Holdout.create(tmp_path / "h", frame, open_fraction=0, **given) as holdout:
        asks: list[Callable[[Any], Any]] = [
            lambda model: holdout.score(model, features=["x"]),
            lambda model: holdout.gate(model, at_least=0.5, features=["x"]),
            lambda model: holdout.gate(model, better_than=Constant(), features=["x"]),
            lambda model: holdout.compare(model, Constant(), features=["x"]),
            lambda model: holdout.compare(Constant(), model, margin=0, features=["x"]),
            lambda model: holdout.best([Constant(), model], precise=True, features=["x"]),
            lambda model: holdout.scores([Constant(), model], features=["x"]),
        ]
        said = r"on most made-up rows.*has failed\. If it needs.*open_fraction=0\.1.*Nothing was"
        for ask in asks:
            with refusing(holdout, said):
                ask(broken)
        assert holdout.status().answers == 0
        for ask in asks:
            told = ask(works)
            assert str(told).endswith(f"\n{SAID['score accuracy']}")
            assert told.promise.endswith(f"; {SAID['score accuracy']}")
        alone = holdout.best([works, Constant()], features=["x"])
        assert str(alone).endswith(f"\n{SAID['score accuracy']}")
        assert alone.promise.endswith(f"; {SAID['score accuracy']}")
        assert check_holdout(holdout.path).passed


def test_unfitted_models_are_refused(tmp_path: Path) -> None:
    with sealed(tmp_path / "h", direct(), 1, is_open=False) as holdout:
        for metric in ("accuracy", "brier", "error_rate"):
            with refusing(holdout, r"NotFittedError.*Nothing was charged"):
                holdout.score(LogisticRegression(), metric=metric, features=["x"])


def test_a_row_that_fails_takes_no_other_along(tmp_path: Path) -> None:
    """One row in ten lacks a feature: in blocks of 100 that is nearly every block."""
    plan = board()
    frame = table(plan.blocks * 100).assign(x=lambda f: FAR + f.x - 5)
    frame["y"] = (frame.x > FAR).astype(int)
    frame.loc[frame.index % 10 == 0, "x"] = np.nan
    strict = Model(lambda x: np.isnan(x))
    given: dict[str, Any] = {"target": "y", "seed": 1, "limits": LIMITS}
    with Holdout.create(tmp_path / "h", frame, plan, **given) as holdout:
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
        more |= {"target": "y", "seed": 1, "limits": LIMITS}
        return Holdout.create(path, frame, direct(), **more)

    with (
        made(tmp_path / "sealed", block_units=1) as holdout,
        refusing(holdout, r"unknown categories.*keep an open part"),
    ):
        holdout.score(model)
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
        given = dict(zip(frame.row, frame.y, strict=True))
        with refusing(holdout, r"RuntimeError: no cost.*Nothing was charged"):
            holdout.score(given, metric="cost")
        with refusing(holdout, r"RuntimeError: no cost.*Nothing was charged"):
            holdout.enter(given, name="a", metric="cost")


# Submissions that try to learn or to gain something by being wrong.


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
    said = []
    for name, each in (("a", frame), ("b", sorted_frame)):
        with labels(tmp_path / name, board(), each, new_budget="a test") as holdout:
            for given in (ids[50:], [*ids, *ids[5:20]]):  # in part, and twice
                with refusing(holdout) as wrong:
                    holdout.enter(pd.DataFrame({"row": given, "prediction": 0}), name="x")
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
    with any_sealed(tmp_path / "h", mixed()) as holdout:
        part: Any = holdout.spec.sets[0].plan.part("verify")
        ann = holdout.on_behalf(Asker("ann", 1.5 / part.refusals))
        assert ann.verify("avg(x)", 100.0).verdict == "not compatible"
        assert holdout.access.used("ann")["main"] == pytest.approx(1 / part.refusals)
        assert not ann.price("verify", "avg(x)", guess=200.0).affordable
        assert ann.verify("avg(x)", 200.0).verdict == "exhausted"
        assert holdout.verify("avg(x)", 200.0).verdict == "not compatible"  # the others have theirs
        assert ann.correct("avg(x)", 300.0, grid=grid(0, 7, step=1)).verdict.verdict == "exhausted"
