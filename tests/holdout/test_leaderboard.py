"""The leaderboard and the gate of a holdout: ids, scores, ranks, improvements, thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.dummy import DummyClassifier

import holdfast as hf
from holdfast.engines.python.metrics import find_metric
from holdfast.engines.source import Limits
from holdfast.errors import Damaged, InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.leaderboard import Entry, Standings, ranked
from holdfast.holdout.scoring import Scorers, read_scorers
from holdfast.holdout.spec import HoldoutSpec
from holdfast.holdout.submissions import IDS_FILE
from holdfast.holdout.tokens import Asker
from holdfast.protocols.answers import Answer
from tests.holdout.forging import failed
from tests.holdout.plans import board, direct, simple
from tests.holdout.tables import refusing, table

UNITS = 100
Played = tuple[Holdout, pd.DataFrame]


def labelled(rows: int, seed: int | None = None) -> pd.DataFrame:
    """A table with an id for every row, in no order."""
    frame = table(rows, seed=seed)
    return frame.assign(row=[f"r{(7 * k) % rows}" for k in range(rows)])


def sealed(path: Path, plan: Any, units: int = 1, **more: Any) -> Played:
    frame = labelled(plan.blocks * units, None if "seed" not in more else 9000 + units)
    given: dict[str, Any] = {"target": "y", "limits": Limits(workers=1), **more}
    holdout = Holdout.create(path, frame, plan, ids="row", **given)
    return holdout, frame


def keyed(frame: pd.DataFrame, values: Any) -> dict[str, Any]:
    return dict(zip(frame["row"], np.asarray(values).tolist(), strict=True))


def flipped(frame: pd.DataFrame, share: float, seed: int = 1) -> dict[str, Any]:
    """Predictions that are wrong on about this share of the rows."""
    wrong = np.random.default_rng(seed).random(len(frame)) < share
    return keyed(frame, np.where(wrong, 1 - frame["y"], frame["y"]))


# Ids.


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([1.5, 2.5, 3.5], "integers or text"),
        (["a", None, "b"], "1 missing"),
        (["a", "b", "a"], "1 repeated"),
        (["a", " b", "c"], "printable characters"),
        (["a", "", "c"], "printable characters"),
        (["a", "b\n", "c"], "printable characters"),
        (["a", "b" * 201, "c"], "printable characters"),
        ([1, 2, 2**60], "2\\^53"),
    ],
    ids=["floats", "missing", "twice", "space", "empty", "control", "long", "huge"],
)
def test_a_column_that_cannot_be_ids(ids: list[Any], said: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"row": ids, "y": [0, 1, 0]})
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"ids": "row"}, said),
        ({"ids": "y", "target": "y"}, "another column"),
        ({"ids": "nobody"}, "among the columns"),
    ]
    for more, words in wrong:
        with pytest.raises(InvalidInput, match=words):
            Holdout.create(tmp_path / "h", frame, lambda _: direct(), **more)
    assert not (tmp_path / "h").exists()


def test_ids_are_public_and_not_sealed(tmp_path: Path, still: None) -> None:
    holdout, frame = sealed(tmp_path / "h", direct())
    with holdout:
        assert holdout.spec.ids is not None
        assert holdout.spec.ids.column == "row"
        assert "row" not in holdout.spec.manifest.schema.names
        kept = holdout._shared.ids()
        assert kept is not None
        assert kept.values.to_pylist() == frame["row"].tolist()
        with pytest.raises(InvalidInput, match="row"):
            holdout.mean("row = 'r1'")
        assert check_holdout(holdout.path).passed
        file = holdout.path / IDS_FILE
        file.write_bytes(file.read_bytes()[:-1] + b"x")
        assert failed(check_holdout(holdout.path)).keys() == {"data"}
    with Holdout.open(tmp_path / "h") as again, pytest.raises(Damaged, match=IDS_FILE):
        again.enter({}, name="a")


def test_a_charter_without_ids_is_read_as_before(tmp_path: Path) -> None:
    with Holdout.create(tmp_path / "h", table(direct().blocks), direct(), target="y") as holdout:
        data = holdout.spec.to_dict()
        assert "ids" not in data
        assert HoldoutSpec.from_dict(holdout.spec.identity, data).ids is None
        with pytest.raises(InvalidInput, match="Create the holdout with ids"):
            holdout.enter({"r1": 1}, name="a")
    ids = {"column": "row", "kind": "float", "rows": 3, "sha256": ""}
    with pytest.raises(ValueError, match="another form"):
        HoldoutSpec.from_dict("x", {**data, "ids": ids})


def test_rows_are_told_apart_by_their_ids_also_in_the_fingerprint(tmp_path: Path) -> None:
    frame = pd.DataFrame({"row": range(direct().blocks), "y": np.arange(direct().blocks) % 2})
    Holdout.create(tmp_path / "a", frame, direct(), ids="row").close()
    Holdout.create(tmp_path / "b", frame.assign(row=frame.row + 1), direct(), ids="row").close()
    with pytest.raises(InvalidInput, match="no holdout was made"):
        Holdout.create(tmp_path / "c", frame.sample(frac=1.0), direct(), ids="row")


# One holdout that answers means and verifies one side; its engine is the real one.


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    # Seeded, so that no verdict goes the other way by chance.
    holdout, frame = sealed(tmp_path_factory.mktemp("board") / "h", board(), UNITS, seed=1)
    with holdout:
        yield holdout, frame


def test_entries_and_ranks(played: Played) -> None:
    holdout, frame = played
    ann, bob = (holdout.on_behalf(Asker(who, None)) for who in ("ann", "bob"))
    good: Any = ann.enter(flipped(frame, 0.1), name="forest")
    bob.enter(flipped(frame, 0.9), name="guesses")
    assert not good.result.cached
    right = 1 - np.mean(np.random.default_rng(1).random(len(frame)) < 0.1)
    assert good.result.low <= right <= good.result.high < 1
    assert good.result.value == pytest.approx(right, abs=0.05)

    told: Any = holdout.leaderboard()
    assert [(each.name, each.asker) for each in told.entries] == [
        ("forest", "ann"),
        ("guesses", "bob"),
    ]
    assert [(e.rank, e.rank_low, e.rank_high) for e in told.entries] == [(1, 1, 1), (2, 2, 2)]
    assert told.ties == 1
    assert told.best.receipt == good.result.receipt

    # The same again, in another form: free, and nothing new. By somebody else: an entry of theirs.
    rows = holdout.receipt.number
    again = pd.Series(flipped(frame, 0.1)).sample(frac=1.0, random_state=3)
    assert ann.enter(again, name="forest").result.cached
    assert holdout.receipt.number == rows
    assert bob.enter(again, name="forest").result.cached
    assert holdout.receipt.number == rows + 1
    assert holdout.leaderboard().ties == 2

    # Another metric is another board, and less is better there.
    loss: Any = ann.enter(flipped(frame, 0.1), name="forest", metric="error_rate")
    assert loss.result.low > 0
    worse = ann.enter(flipped(frame, 0.6), name="coin", metric="zero_one_loss")
    assert worse.metric == "error_rate"
    told = holdout.leaderboard("error_rate")
    assert not told.greater_is_better
    assert [each.name for each in told.entries] == ["forest", "coin"]
    check = check_holdout(holdout.path)
    assert check.passed, str(check)
    assert [e.name for e in Standings.from_dict(told.to_dict()).entries] == ["forest", "coin"]


def test_predictions_by_id_and_in_order_are_one_question(played: Played) -> None:
    holdout, frame = played
    first = holdout.score(keyed(frame, frame.y))
    assert holdout.score(frame.y.to_numpy()).receipt == first.receipt
    assert first.high == 1.0


def test_models_are_scored_as_means_where_the_plan_has_means(played: Played) -> None:
    holdout, frame = played
    model = DummyClassifier(strategy="most_frequent").fit(frame[["x"]], frame.y)
    told: Any = holdout.score(model)
    assert (told.protocol, told.method) == ("mean", "median of block means")
    assert told.low <= np.mean(frame.y == 0) <= told.high < 1
    with pytest.raises(InvalidInput, match="predictions by row id"):
        holdout.enter(model, name="a")


# What needs no engine.


def test_what_is_malformed_writes_nothing(tmp_path: Path, still: None) -> None:
    holdout, frame = sealed(tmp_path / "h", direct())
    with holdout:
        rows = holdout.receipt.number
        names: tuple[Any, ...] = ("", " ", "a\nb", "x" * 101, 3)
        for name in names:
            with pytest.raises(InvalidInput, match="printable"):
                holdout.enter(keyed(frame, frame.y), name=name)
        for wrong in (b"", b"{}", {"r1": 1}, keyed(frame, np.full(len(frame), np.nan))):
            with pytest.raises(InvalidInput, match="Nothing was charged"):
                holdout.enter(wrong, name="a")
        with pytest.raises(InvalidInput, match="Did you mean accuracy"):
            holdout.enter(keyed(frame, frame.y), name="a", metric="acuracy")
        assert holdout.receipt.number == rows


def test_labels_that_no_row_has_are_no_error(tmp_path: Path, still: None) -> None:
    holdout, frame = sealed(tmp_path / "h", direct(), target="g")
    with holdout:
        rare = keyed(frame, ["never seen"] * len(frame))
        assert isinstance(holdout.enter(rare, name="a").result, Answer)


def test_names_are_not_without_end(
    tmp_path: Path, still: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.holdout.leaderboard.MOST_NAMES", 2)
    holdout, frame = sealed(tmp_path / "h", direct())
    with holdout:
        for name in ("a", "b", "a"):
            holdout.enter(keyed(frame, frame.y), name=name)
        with pytest.raises(InvalidInput, match="at most 2"):
            holdout.enter(keyed(frame, 1 - frame.y), name="c")
        assert holdout.status().answers == 1
        holdout.on_behalf(Asker("ann", None)).enter(keyed(frame, frame.y), name="c")


@pytest.mark.parametrize(("row", "metric"), [(1, "accuracy"), (3, "error_rate"), (99, "accuracy")])
def test_a_note_without_its_answer_is_found(
    tmp_path: Path, still: None, row: int, metric: str
) -> None:
    holdout, frame = sealed(tmp_path / "h", direct())
    with holdout:
        made = holdout.enter(keyed(frame, frame.y), name="a")
        assert made.result.receipt.split(":")[1] == "3"
        with holdout.journal.writing() as (transaction, _):
            note = {"name": "b", "greater": True, "recorded": row, "metric": metric}
            transaction.append("noted", {"submission": note})
        assert "answers" in failed(check_holdout(holdout.path))
        with pytest.raises(Damaged, match="a submission with its answer"):
            holdout.leaderboard()


# Metrics that are no means, by a plan of estimates; and those that the custodian adds.


def test_metrics_that_are_no_means(tmp_path: Path) -> None:
    holdout, frame = sealed(tmp_path / "h", simple(), 400, ranges={"x": (0.0, 10.0)})
    rng = np.random.default_rng(3)
    chance = np.clip(frame.y * 0.5 + rng.random(len(frame)) * 0.5, 0, 1)
    label = (chance > 0.6).astype(int)
    with holdout:
        for metric, values, truth, step in (
            ("roc_auc", chance, sk.roc_auc_score(frame.y, chance), 1 / 7),
            ("log_loss", chance, sk.log_loss(frame.y, chance), 2 / 7),
            ("f1", label, sk.f1_score(frame.y, label), 1 / 7),
        ):
            told: Any = holdout.enter(keyed(frame, values), name="a", metric=metric)
            assert told.result.value - step - 0.05 < truth < told.result.value + 0.05
        with pytest.raises(InvalidInput, match=r"--range y=LOW:HIGH.*METRICS"):
            holdout.enter(keyed(frame, chance), name="a", metric="rmse")
        near = keyed(frame, frame.x + rng.normal(size=len(frame)))
        error = holdout.score(near, metric="rmse", target="x", grid=hf.grid(0, 10, points=8))
        assert error.value == pytest.approx(10 / 7)
        assert check_holdout(holdout.path).passed


METRICS = """
def cost(target, predicted):
    return float((abs(target - predicted) * 3).mean())

METRICS = {
    "cost": {"function": cost, "greater_is_better": False, "grid": "0:3:0.5"},
    "rmse": {"grid": "0:1:0.125"},
}
"""


def test_metrics_of_the_custodian(tmp_path: Path) -> None:
    file = tmp_path / "metrics.py"
    file.write_text(METRICS)
    holdout, frame = sealed(tmp_path / "h", simple(), 200)
    with holdout:
        holdout.scorers = read_scorers(file)
        assert {"cost", "accuracy", "rmse"} <= set(holdout.scorers.names)
        wrong = keyed(frame, 1 - frame.y)
        for metric, value in (("cost", 3.0), ("rmse", 1.0)):
            told: Any = holdout.enter(wrong, name="a", metric=metric)
            assert told.result.value == value
        assert not holdout.leaderboard("cost").greater_is_better


SCORERS = """
from sklearn.metrics import cohen_kappa_score, fbeta_score, get_scorer, make_scorer

METRICS = {
    "kappa": {"function": make_scorer(cohen_kappa_score), "range": (-1, 1)},
    "fbeta": {"function": make_scorer(fbeta_score, beta=2), "range": (0, 1)},
    "cost": {"function": get_scorer("neg_log_loss"), "grid": "-1:0:0.125"},
    "area": {"function": get_scorer("roc_auc"), "range": (0, 1)},
}
"""


def test_scorers_of_scikit_learn(tmp_path: Path) -> None:
    """They are functions of a model: here what they wrap is asked of predictions."""
    file = tmp_path / "metrics.py"
    file.write_text(SCORERS)
    holdout, frame = sealed(tmp_path / "h", simple(), 200)
    with holdout:
        holdout.scorers = read_scorers(file)
        expected = (("kappa", 1.0, 1.0), ("fbeta", 1.0, 1.0), ("cost", 0.98, 0.0))
        for metric, sure, value in (*expected, ("area", 0.98, 1.0)):
            assert holdout.leaderboard(metric).greater_is_better
            given = frame.y if sure == 1 else np.where(frame.y == 1, sure, 1 - sure)
            told: Any = holdout.enter(keyed(frame, given), name="a", metric=metric)
            assert told.result.value == value
        with pytest.raises(InvalidInput, match="here also kappa, fbeta, cost, area"):
            holdout.leaderboard("kapa")


def test_a_scorer_in_place_of_a_function(tmp_path: Path) -> None:
    holdout, frame = sealed(tmp_path / "h", simple(), 200)
    labels, points = frame.y.to_numpy(), hf.grid(0, 1, points=8)
    with holdout:
        jaccard = sk.make_scorer(sk.jaccard_score)
        assert holdout.score(labels, metric=jaccard, target="y", grid=points).value == 1.0
        with refusing(holdout, "of targets and predictions, or a scorer"):
            holdout.score(labels, metric=lambda model, x, y: 1.0, target="y")
        first = sk.make_scorer(sk.brier_score_loss, response_method="predict_proba", pos_label=0)
        with refusing(holdout, "second class: leave pos_label out"):
            holdout.score(labels, metric=first, target="y")
    assert find_metric(sk.get_scorer("neg_log_loss")).name == "neg_log_loss"
    assert find_metric(jaccard).name == "jaccard_score"


BETTER = "{'function': max, 'greater_is_better': True"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "from sklearn.metrics import get_scorer\n"
            "METRICS = {'a': {'function': get_scorer('accuracy'), 'greater_is_better': False,"
            " 'range': (0, 1)}}",
            "greater_is_better of a must be one of True",
        ),
        (
            "METRICS = {'a': {'function': lambda model, x, y: 0, 'greater_is_better': True,"
            " 'range': (0, 1)}}",
            "function of a must be a function of targets and predictions",
        ),
        ("1 / 0", "a file that runs|Python file that runs"),
        ("METRICS = 3", "a file with METRICS"),
        ("METRICS = {'a b': {}}", "letters, digits"),
        ("METRICS = {'cost': {'function': 3}}", "function of cost"),
        ("METRICS = {'cost': {'function': max, 'range': (0, 1)}}", "greater_is_better of cost"),
        (f"METRICS = {{'cost': {BETTER}}}}}", "one with a grid or a range"),
        (f"METRICS = {{'cost': {BETTER}, 'range': 3}}}}", "a pair"),
        ("METRICS = {'rmse': {'range': (0, 1)}}", "a grid alone"),
        ("METRICS = {'rmse': {'gird': '0:1:0.1'}}", "a dictionary with"),
        ("METRICS = {'rmsee': {'grid': '0:1:0.1'}}", "Did you mean"),
    ],
    ids=range(12),
)
def test_metrics_that_are_written_wrong(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "metrics.py"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=said):
        read_scorers(file)


def test_names_of_metrics() -> None:
    assert {"accuracy", "f1", "log_loss", "rmse", "roc_auc"} <= set(Scorers().names)
    with pytest.raises(InvalidInput, match="exists"):
        read_scorers(Path("nowhere.py"))


# Ranks.


def entry(value: float | None, half_width: float | None, number: int) -> Entry:
    low, high = (None, None)
    if value is not None and half_width is not None:
        low, high = value - half_width, value + half_width
    return Entry(f"e{number}", value, low, high, f"{number:03}", "", None, 1)


BARS = st.lists(
    st.tuples(st.integers(0, 20), st.none() | st.integers(0, 6)), min_size=1, max_size=12
)


@settings(max_examples=100, deadline=None)
@given(BARS, st.booleans())
def test_ranks_are_those_that_the_bars_allow(
    bars: list[tuple[int, int | None]], greater: bool
) -> None:
    told = ranked([entry(v, w, k) for k, (v, w) in enumerate(bars)], greater)
    values = [each.value or 0.0 for each in told]
    assert values == sorted(values, reverse=greater)
    for mine in told:
        others = [each for each in told if each is not mine]
        beyond = sum(_beyond(each, mine, greater) for each in others)
        behind = sum(_beyond(mine, each, greater) for each in others)
        assert (mine.rank_low, mine.rank_high) == (1 + beyond, len(told) - behind)
        assert mine.rank is not None
        assert 1 + beyond <= mine.rank <= len(told) - behind


def _beyond(one: Entry, two: Entry, greater: bool) -> bool:
    if greater:
        return one.low is not None and two.high is not None and one.low > two.high
    return one.high is not None and two.low is not None and one.high < two.low
