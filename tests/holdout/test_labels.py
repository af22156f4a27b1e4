"""Labels: what is public of them is compared with predictions, before anything is charged."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import make_scorer

from holdfast.engines.source import Limits
from holdfast.errors import HoldfastWarning, InvalidInput
from holdfast.grids import grid
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.spec import HoldoutSpec
from holdfast.holdout.state import can_be_asked
from holdfast.report.page import report_html
from tests.cli.conftest import Cli
from tests.cli.conftest import cli as cli
from tests.holdout.plans import direct, simple
from tests.holdout.tables import refusing, table

ROWS = 2 * direct().blocks
LIMITS = Limits(workers=1)
Opened = tuple[Holdout, pd.DataFrame]
MAILS = {0: "ham", 1: "spam"}


def mails(rows: int = ROWS) -> pd.DataFrame:
    """`kind` is text, `y` 0 or 1, `stars` 0 … 4; all of them are told by x."""
    frame = table(rows).assign(row=range(rows))
    frame["y"] = (frame.x > 5).astype(int)
    frame["kind"] = frame.y.map(MAILS)
    frame["stars"] = np.clip(np.floor(frame.x - 3), 0, 4)
    return frame


def made(path: Path, target: str, *, is_open: bool = False, **more: Any) -> Any:
    share = 0.5 if is_open else 0.0
    frame = mails(ROWS if is_open else ROWS // 2)
    more = {"ids": "row", "seed": 1, "limits": LIMITS, **more}
    return Holdout.create(path, frame, direct(), target=target, open_fraction=share, **more), frame


def modelled(rows: int) -> tuple[pd.DataFrame, Any, Any]:
    """Mails, a model of them, and its probabilities."""
    frame = mails(rows)
    model = LogisticRegression().fit(frame[["x"]], frame.y)
    return frame, model, model.predict_proba(frame[["x"]])[:, 1]


def keyed(frame: pd.DataFrame, values: Any) -> dict[int, Any]:
    return dict(zip(frame["row"], np.asarray(values).tolist(), strict=True))


def refused(holdout: Holdout, given: Any, said: str, **more: Any) -> None:
    """A score is refused, with these words, and free."""
    with refusing(holdout, rf"{said}.*Nothing was charged"):
        holdout.score(given, **more)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    holdout, frame = made(tmp_path_factory.mktemp("open") / "h", "kind", is_open=True)
    with holdout:
        yield holdout, frame


# Predictions.


def test_declared_labels_are_public_and_others_are_refused(tmp_path: Path) -> None:
    holdout, frame = made(tmp_path / "h", "kind", labels=["ham", "spam"])
    with holdout:
        assert holdout.spec.labels == ("ham", "spam")
        again = HoldoutSpec.from_dict(holdout.spec.identity, holdout.spec.to_dict())
        assert again.labels == holdout.spec.labels
        assert can_be_asked(holdout.spec)["labels"] == ["ham", "spam"]
        assert "(labels 'ham', 'spam')" in unescape(report_html(holdout))
        capitals = keyed(frame, frame.kind.str.capitalize())
        said = r"one of the labels 'ham', 'spam'; got .*249 predictions that are no label \('.*'\)"
        for given in (capitals, frame.kind.str.capitalize().to_numpy()):
            refused(holdout, given, said)
        with pytest.raises(InvalidInput, match="one of the labels"):
            holdout.enter(capitals, name="loud")
        refused(holdout, frame.y.to_numpy(), "text, as the target is")
        answer = holdout.score(keyed(frame, frame.kind))
        assert answer.value > 0.6
        assert "labels are" not in answer.promise  # nothing is left to be assumed
        assert check_holdout(holdout.path).passed


def test_the_open_part_decides_where_it_can(opened: Opened) -> None:
    holdout, frame = opened
    refused(holdout, frame.kind.str.capitalize().to_numpy(), "as the open part spells it")
    refused(holdout, keyed(frame, ["no"] * len(frame)), "labels such as the open part has: ")
    known = holdout.score(keyed(frame, frame.kind))
    assert "open part has, can be labels" not in known.promise
    other = frame.kind.where(frame.x < 6, "phishing")
    answer = holdout.score(keyed(frame, other))
    assert "assuming that 'phishing', which no row of the open part has, can be labels" in (
        answer.promise
    )


def test_fractions_are_no_labels_where_labels_are_whole(tmp_path: Path) -> None:
    share = np.random.default_rng(1).random(ROWS)
    few = np.random.default_rng(1).choice([0.0, 0.25, 1.0], ROWS)
    holdout, frame = made(tmp_path / "open", "y", is_open=True)
    with holdout:
        for given in (share, few):
            refused(holdout, given, "whole numbers, as all labels of the open part are")
            refused(holdout, keyed(frame, given), "fraction", metric="error_rate")
    holdout, frame = made(tmp_path / "declared", "y", labels=[0, 1])
    with holdout:
        half = ROWS // 2
        refused(holdout, few[:half], r"one of the labels 0, 1; got .*\(0\.25\)")
        nothing = np.where(np.arange(half) % 5, 1.0, np.nan)
        refused(holdout, nothing, "a label for every row; got '50 missing predictions'")
    holdout, frame = made(tmp_path / "unknown", "y")
    with holdout:
        refused(holdout, share[:half], "different fractions.*brier, log_loss and roc_auc|brier")
        answer = holdout.score(few[:half])
        assert "assuming that predictions such as 0.25 are spelled as the labels are" in (
            answer.promise
        )


def test_brier_takes_targets_0_and_1_alone(tmp_path: Path) -> None:
    share = np.full(ROWS, 0.5)
    model = LogisticRegression().fit(mails(100)[["x"]], mails(100).y)
    holdout, frame = made(tmp_path / "open", "stars", is_open=True)
    with holdout:
        for given in (share, model):
            refused(holdout, given, r"stars has 5 \(0, 1, 2, …\): take accuracy", metric="brier")
    holdout, frame = made(tmp_path / "declared", "stars", labels=range(5))
    with holdout:
        refused(holdout, share[: ROWS // 2], r"stars has 5 \(0, 1, 2, …\)", metric="brier")
        refused(holdout, model, r"stars has 5 \(0, 1, 2, …\)", metric="brier")
    holdout, frame = made(tmp_path / "unknown", "stars")
    with holdout:
        answer = holdout.score(share[: ROWS // 2], metric="brier")
        worst = np.where(frame.stars > 1, 1.0, 0.25).mean()  # not (4 − 0.5)², cut to 1 or not
        assert answer.low <= worst <= answer.high
        assert (
            "whose target is not 0 or 1 or probability not between them, counts as 1, the worst"
            in answer.promise
        )
        assert "assuming that every target is 0 or 1" in answer.promise


# Models.


class Says:
    """A model that knows nothing but what to say."""

    def __init__(self, *labels: Any) -> None:
        self.labels = labels

    def predict(self, frame: Any) -> Any:
        return np.array([self.labels[k % len(self.labels)] for k in range(len(frame))], object)


def test_models_that_predict_no_labels_are_refused(opened: Opened, tmp_path: Path) -> None:
    holdout, _ = opened
    for model, said in (
        (Says("Spam", "ham"), r"It predicts 'Spam'; allowed are spelled as the open part"),
        (Says(1.0), "It predicts numbers"),
        (Says(None), "predicts nothing"),
    ):
        refused(holdout, model, said, features=["x"])
    assert (holdout.score(Says("ham"), features=["x"]).value or 1) < 0.8
    with made(tmp_path / "h", "kind", labels=["ham", "spam"])[0] as holdout:
        refused(holdout, Says("ham", "Spam"), r"no label \('Spam'\)", features=["x"])
        refused(holdout, Says("ham", "Spam"), r"\('Spam'\)", features=["x"], metric="error_rate")
    with made(tmp_path / "y", "y")[0] as holdout:
        line = LinearRegression().fit(mails(100)[["x"]], mails(100).y)
        refused(holdout, line, r"fractions \(.*labels: for probabilities", features=["x"])


# What create says.


def test_missing_targets_are_warned_of_from_the_open_part_alone(tmp_path: Path) -> None:
    frame = mails().astype({"y": float})
    frame.loc[frame.index % 5 == 0, "y"] = np.nan
    with pytest.warns(HoldfastWarning, match=r"of the 249 open rows have no y"):
        Holdout.create(tmp_path / "a", frame, direct(), target="y", open_fraction=0.5).close()
    frame = frame.assign(number=frame.number + 0.5)  # another table: warnings are errors here
    Holdout.create(tmp_path / "b", frame, direct(), target="y", block_units=2).close()
    frame = frame.assign(number=frame.number + 0.5)
    Holdout.create(tmp_path / "c", frame, direct(), open_fraction=0.5).close()


def test_the_warning_depends_on_no_sealed_row(tmp_path: Path) -> None:
    """The same open rows, and sealed ones with and without targets: the same words."""
    frame = mails().astype({"y": float})
    half = frame.assign(y=np.where(frame.index % 2, np.nan, 1.0))
    more: Any = {"target": "y", "open_fraction": 0.5, "seed": 3}
    with pytest.warns(HoldfastWarning) as first:
        one = Holdout.create(tmp_path / "a", half, direct(), **more)
    with one:
        kept = set(one.open_table(["number"]).column(0).to_pylist())
    other = half.assign(y=half.y.where(half.number.isin(kept), 1.0))
    with pytest.warns(HoldfastWarning) as second:
        two = Holdout.create(tmp_path / "b", other, direct(), **more)
    two.close()
    assert [str(each.message) for each in first] == [str(each.message) for each in second]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"labels": ["ham", "spam"]}, "left out without a target"),
        ({"labels": ["ham"], "target": "kind", "open_fraction": 0.5}, "open part has 'spam' too"),
        ({"labels": ["a", "a"], "target": "kind"}, "different labels, each a text"),
        ({"labels": [], "target": "kind"}, "1 to 1,000"),
        ({"labels": "ham", "target": "kind"}, "1 to 1,000"),
        ({"labels": [1, 2], "target": "kind"}, "each a text"),
        ({"labels": ["one"], "target": "y"}, "each a number"),
        ({"labels": [0, 1], "target": "flag"}, "truth values are known"),
    ],
    ids=["no target", "open part", "twice", "none", "one text", "numbers", "text", "boolean"],
)
def test_labels_that_cannot_be(more: dict[str, Any], said: str, tmp_path: Path) -> None:
    frame = mails().assign(flag=lambda f: f.y == 1)
    with pytest.raises(InvalidInput, match=said):
        Holdout.create(tmp_path / "h", frame, direct(), **more)
    assert not (tmp_path / "h").exists()


def test_the_command_line(tmp_path: Path, cli: Cli) -> None:
    frame, path, loud = mails(), tmp_path / "m.holdfast", tmp_path / "loud.csv"
    frame.loc[frame.index % 5 == 0, "kind"] = None
    frame.to_csv(tmp_path / "m.csv", index=False)
    words = ("--target", "kind", "--labels", "ham, spam", "--open-fraction", 0.5)
    data = ("--data", tmp_path / "m.csv", "--protocols", "score=20", "--ids", "row")
    said = cli("create", path, *data, *words)
    assert said.status == 0
    assert "Warning: " in said.err
    assert "open rows have no kind" in said.err
    pd.DataFrame({"row": frame.row, "prediction": "SPAM"}).to_csv(loud, index=False)
    wrong = cli("gate", path, loud, "--at-least", 0.8, "--json")
    wrong.refuses("one of the labels 'ham', 'spam'")


# Metrics: one rule each.


def test_losses_of_models_are_means_too(tmp_path: Path) -> None:
    train = mails(200)
    model = LogisticRegression().fit(train[["x"]], train.y)
    holdout, frame = made(tmp_path / "h", "y")
    with holdout:
        for metric in ("brier", "error_rate"):
            answer = holdout.score(model, metric=metric)
            assert answer.protocol == "mean"
            assert answer.high is not None
        share = model.predict_proba(frame[["x"]])[:, 1]
        theirs = holdout.score(model, metric="brier")
        mine = holdout.score(share, metric="brier")
        truth = np.square(share - frame.y).mean()
        for each in (theirs, mine):
            assert each.low <= truth <= each.high
        with pytest.raises(InvalidInput, match="roc_auc is no mean over rows"):
            holdout.score(model, metric="roc_auc")


def test_labels_are_named_where_their_kind_is_wrong(tmp_path: Path) -> None:
    holdout, frame = made(tmp_path / "h", "kind", labels=["ham", "spam"])
    with holdout, refusing(holdout, r"text .*, as the labels are: 'ham', 'spam'; got .numbers \(1"):
        holdout.score(keyed(frame, [1] * len(frame)))


def test_what_there_is_for_more_than_two_classes(tmp_path: Path) -> None:
    holdout, frame = made(tmp_path / "h", "stars", is_open=True)
    model = LogisticRegression().fit(frame[["x"]], frame.stars)
    with holdout:
        for metric in ("f1", "precision"):
            with refusing(holdout, rf"stars has 5 \(0, 1, 2, …\): take {metric}_macro"):
                holdout.score(model, metric=metric)
    holdout, _ = made(tmp_path / "two", "y", labels=[1, 2], new_budget="a test")
    with holdout, refusing(holdout, r"f1 takes 0, 1 alone; got 'f1'. y has 2 \(declared\)"):
        holdout.score(frame.y.to_numpy(), metric="f1")


def test_log_loss_has_one_grid(tmp_path: Path) -> None:
    plan = simple()
    frame, model, share = modelled(plan.blocks * 40)
    more: Any = {"ids": "row", "target": "y", "seed": 1, "limits": LIMITS}
    with Holdout.create(tmp_path / "h", frame, plan, **more) as holdout:
        holdout.score(model, metric="log_loss")
        holdout.score(share, metric="log_loss")
        holdout.enter(keyed(frame, share), name="a", metric="log_loss")
        grids = [each["question"]["grid"] for each in holdout.transcript()]
        assert len(grids) == 2  # by id or by place, predictions are the same question
        assert grids[0] == grids[1]
        assert "0" in str(grids[0])
        assert "2" in str(grids[0])


def test_a_metric_function_gets_labels_and_says_so(tmp_path: Path) -> None:
    plan = simple()
    frame, model, share = modelled(plan.blocks * 40)

    def largest(target: Any, predicted: Any) -> float:
        return float(np.max(predicted) if np.isin(predicted, (0, 1)).all() else 0.5)

    points = grid(0, 1, step=0.25)
    more: Any = {"ids": "row", "target": "y", "seed": 1, "labels": [0, 1], "limits": LIMITS}
    with Holdout.create(tmp_path / "h", frame, plan, **more) as holdout:
        for given in (model, model.predict(frame[["x"]])):
            answer = holdout.score(given, metric=largest, grid=points)
            assert answer.value == 1
            assert "assuming that largest takes labels, as predict gives them" in answer.promise
        refused(holdout, share, r"make_scorer.*response_method", metric=largest, grid=points)
        scorer = make_scorer(largest, response_method="predict_proba")
        both = [holdout.score(given, metric=scorer, grid=points) for given in (model, share)]
        assert [each.value for each in both] == [0.5, 0.5]
        assert "takes labels" not in both[0].promise
