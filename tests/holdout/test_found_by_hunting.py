"""Certified falsehoods, uncounted bits and slips that people with fresh eyes have found, once.

Each test is an attempt that succeeded, as it was made. Seeds fix what is drawn where that decides.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import holdfast as hf
from holdfast.engines.source import Limits
from holdfast.errors import Doubtful, Exhausted, InvalidInput, Unavailable
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.tokens import Asker
from holdfast.planning.joint import joint_plan
from holdfast.protocols.guesses import Guesses
from holdfast.protocols.means import DirectMeans, MedianMeans
from holdfast.protocols.plans import JointPlan
from holdfast.protocols.searches import Estimate, Estimates
from holdfast.protocols.shapes import BoundedMean, KnownSd
from holdfast.report.page import report_html
from tests.holdout import plans, registry
from tests.holdout.tables import holds, refusing

LIMITS = Limits(workers=1)
SOME = np.random.default_rng(20_261_118)


def sealed(path: Path, data: Any, plan: Any, **more: Any) -> Holdout:
    given = {"seed": 1, "limits": LIMITS, "new_budget": "another test", **more}
    return Holdout.create(path, data, plan, **given)


# A row that fails takes no other along.


def regions(rows: int) -> pd.DataFrame:
    """Every hundredth row is of a region that nobody thought of."""
    names = np.where(np.arange(rows) % 100 == 7, "islands", "north")
    return pd.DataFrame({"region": names, "y": np.ones(rows, np.int64), "n": SOME.random(rows)})


def ends(frame: Any) -> Any:
    if (frame.region == "islands").any():
        raise SystemExit(1)
    return frame.region == "north"


@pytest.mark.parametrize(
    "term", [lambda f: [{"north": 1.0}[each] for each in f.region], ends], ids=["raises", "exits"]
)
def test_one_row_of_a_hundred_fails_and_the_mean_is_that_of_the_others(
    term: Any, tmp_path: Path
) -> None:
    plan = plans.medians()
    data = regions(80 * plan.blocks)
    with sealed(tmp_path / "h", data, plan, open_fraction=0.5) as holdout:
        answer: Any = holdout.mean(term, range=(0, 1), columns=["region"])
        assert holds(answer, 0.99)
        assert answer.low > 0.5
        assert "a failure counts as 0" in answer.promise
        assert "on no row the function ends its process" in answer.promise
        assert check_holdout(holdout.path).passed


class Missing:
    """A model that knows nothing of the islands, and says so as pandas does."""

    feature_names_in_ = np.array(["region"])

    def predict(self, frame: Any) -> Any:
        return frame["region"].map({"north": 1}).astype("Int64")

    def predict_proba(self, frame: Any) -> Any:
        right = self.predict(frame).astype(object)
        return np.stack([np.zeros(len(frame), object), right], axis=1)


@pytest.mark.parametrize(("metric", "truth"), [("accuracy", 0.99), ("brier", 0.01)])
def test_a_model_that_gives_missing_values_is_wrong_there_and_nowhere_else(
    metric: str, truth: float, tmp_path: Path
) -> None:
    plan = plans.medians()
    data = regions(200 * plan.blocks)
    with sealed(tmp_path / "h", data, plan, target="y", open_fraction=0.5) as holdout:
        answer: Any = holdout.score(Missing(), metric=metric)
        assert holds(answer, truth)
        assert answer.high - answer.low < 0.7
        assert ((answer.value or 0) > 0.5) == (truth > 0.5)


# Predictions in the order of the rows are held to what keyed ones are held to.


def labelled(rows: int) -> pd.DataFrame:
    return pd.DataFrame({"y": np.arange(rows) % 2, "x": SOME.random(rows)})


@pytest.mark.parametrize("metric", ["brier", "log_loss"])
def test_what_is_no_probability_is_refused(metric: str, tmp_path: Path) -> None:
    plan = plans.estimates()
    with sealed(tmp_path / "h", labelled(2 * plan.blocks), plan, target="y") as holdout:
        for given in (70.0, -1.0, 1.7, np.nan, np.inf):
            predictions = np.full(2 * plan.blocks, 0.5)
            predictions[3] = given
            with refusing(holdout, "probabilities between 0 and 1"):
                holdout.score(predictions, metric=metric)


class Percent:
    classes_ = np.array([0, 1])

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def predict(self, frame: Any) -> Any:
        return np.ones(len(frame), int)

    def predict_proba(self, frame: Any) -> Any:
        return np.full((len(frame), 2), self.scale)


def test_a_model_without_probabilities_is_refused(tmp_path: Path) -> None:
    plan = plans.direct()
    with sealed(tmp_path / "h", labelled(plan.blocks), plan, target="y") as holdout:
        for scale in (50.0, np.nan, -3.0):
            with refusing(holdout, "no probability between 0 and 1 on most rows"):
                holdout.score(Percent(scale), metric="brier", features=["x"])


def spelled(rows: int) -> pd.DataFrame:
    return pd.DataFrame({"y": np.where(np.arange(rows) % 2, "spam", "ham"), "x": SOME.random(rows)})


def test_labels_of_every_type_are_compared_as_text(tmp_path: Path) -> None:
    plan = plans.direct()
    rows, texts = plan.blocks, ["ham", "spam"]
    with sealed(tmp_path / "h", spelled(rows), plan, target="y", labels=texts) as holdout:
        wrong: list[Any] = [
            np.full(rows, "Spam", np.dtypes.StringDType()),
            ["spam\0"] * rows,
            np.full(rows, b"spam"),
            np.full(rows, "2026-01-01", "datetime64[D]"),
            np.full(rows, 1j),
            np.ma.array(["spam"] * rows, mask=True),
        ]
        for each in wrong:
            with refusing(holdout):
                holdout.score(each)
        right = np.where(np.arange(rows) % 2, "spam", "ham")
        answers = [holdout.score(each) for each in (right, pl.Series(right), pd.Categorical(right))]
        assert len({each.receipt for each in answers}) == 1  # one question


def test_a_models_classes_that_no_open_row_has_are_named(tmp_path: Path) -> None:
    class Signs(Percent):
        classes_ = np.array([-1, 1])

    plan = plans.direct()
    data = labelled(2 * plan.blocks)
    with sealed(tmp_path / "h", data, plan, target="y", open_fraction=0.5) as holdout:
        promise = holdout.score(Signs(0.5), features=["x"]).promise
        assert "-1, which no row of the open part has, can be labels" in promise


def test_a_seeded_leaderboard_certifies_nothing(tmp_path: Path) -> None:
    data = labelled(plans.board().blocks * 2).assign(row=np.arange(plans.board().blocks * 2))
    with sealed(tmp_path / "h", data, plans.board(), target="y", ids="row") as holdout:
        holdout.enter(data.assign(prediction=1)[["row", "prediction"]], name="ann")
        board = holdout.leaderboard()
        assert not board.certified
        assert board.to_dict()["certified"] is False
        assert "NOT certified" in str(board)


# Nothing is told after the draw but the answer.


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_an_answer_beyond_what_a_bar_can_be_is_an_answer(share: float, tmp_path: Path) -> None:
    plan = plans.mixed()
    rows = 10 * plan.blocks
    data = {"b": np.arange(rows) % 10 < 10 * share, "y": SOME.random(rows)}
    with sealed(tmp_path / "h", data, plan) as holdout:
        points = hf.grid(0, 1e305, points=8)
        for shape in (None, KnownSd(1.0)):
            asked = "avg(CASE WHEN b THEN 1e305 ELSE 0 END)"
            assert holdout.ask(asked, grid=points, shape=shape).receipt
        assert holdout.status().answers == 2
        assert check_holdout(holdout.path).passed


@pytest.mark.parametrize("step", ["index", "answer"])
def test_what_is_wrong_after_the_draw_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise InvalidInput("edge", 0.123, "something else")

    plan = plans.mixed()
    with sealed(tmp_path / "h", {"x": SOME.random(plan.blocks)}, plan) as holdout:
        monkeypatch.setattr(Estimate, step, fails)
        with pytest.raises(Unavailable) as wrong:
            holdout.ask("avg(x)", grid=hf.grid(0, 1, points=8))
        assert "0.123" not in str(wrong.value)
        assert [row.kind for row in holdout.journal.ledger.rows()] == ["created", "reserved"]


# Words and numbers that say no more than was proved.


def test_a_printed_bar_holds_what_the_bar_holds(tmp_path: Path) -> None:
    plan = plans.direct()
    start = 1.7e9
    data = {"t": start + 1000 * SOME.random(plan.blocks)}
    with sealed(tmp_path / "h", data, plan) as holdout:
        answer: Any = holdout.mean("t", range=(start, start + 1000))
        printed = answer.described()["answer"]
        low, high = (float(end) for end in printed.partition("[")[2].partition("]")[0].split(","))
        assert answer.low - 10 <= low <= answer.low
        assert answer.high <= high <= answer.high + 10


def test_a_verdicts_sentence_is_about_the_guess_or_less(tmp_path: Path) -> None:
    exact = 1_700_000_000.1264
    plan = plans.mixed()
    with sealed(tmp_path / "h", {"x": np.full(plan.blocks, exact)}, plan) as holdout:
        promise = holdout.verify("avg(x)", exact, protocol="verify").promise
        assert "give 1700000000.13 or less" in promise
        assert "give 1700000000.12 or more" in promise
        assert "no confirmation of 1700000000.1264" in promise


def test_no_confidence_is_shown_as_certainty(tmp_path: Path) -> None:
    plan = joint_plan(Estimates(2, grid=4, tail_low=0.1, tail_high=0.1), confidence=0.9999996)
    with sealed(tmp_path / "h", {"x": SOME.random(plan.blocks)}, plan) as holdout:
        answer = holdout.ask("avg(x)", grid=hf.grid(0, 1, points=4))
        for said in (answer, holdout.status(), check_holdout(holdout.path)):
            assert "0.999999" in str(said)
            assert "confidence 1" not in str(said).replace("confidence 1 ", "confidence 1")


def test_a_report_rounds_one_sided_ends_outwards(tmp_path: Path) -> None:
    plan = plans.mixed()
    data = {"t": 1.7e9 + 1000 * np.arange(plan.blocks) / plan.blocks}
    with sealed(tmp_path / "h", data, plan) as holdout:
        points = hf.grid([1.7e9 + each for each in (2_560, 5_000, 9_000, 99_000)])
        answer = holdout.interval("avg(t)", grid=points)
        assert (answer.low, answer.high) == (None, 1.7e9 + 2_560)
        assert "1,700,002,560]" in report_html(holdout)


def test_open_blocks_without_a_value_count_as_lowest(tmp_path: Path) -> None:
    plan = joint_plan(
        Estimates(2, grid=4, tail_low=0.1, tail_high=0.1),
        Guesses(20, 5, tail_low=0.1, tail_high=0.3),
    )
    rows = 8 * plan.blocks
    data = pd.DataFrame({"w": SOME.random(rows) + 10, "g": SOME.random(rows) < 0.2})
    with sealed(tmp_path / "h", data, plan, open_fraction=0.5, block_units=4) as holdout:
        told: Any = holdout.verify("avg(w)", 10.5, where="g", protocol="verify", anyway=True)
        assert told.range_low is None
        assert told.range_high < 12


def test_exact_means_say_how_values_near_the_middle_count(tmp_path: Path) -> None:
    plan = joint_plan(DirectMeans(queries=5, half_width=0.2, exact=True))
    data = {"x": np.full(plan.blocks, 0.499995), "y": SOME.random(plan.blocks)}
    with sealed(tmp_path / "h", data, plan, block_units=1) as holdout:
        promise = holdout.mean("x", range=(0, 1)).promise
        assert "is rounded to 65,536ths and counts as 0 below the middle, as 1 from it" in promise


# A bar is drawn from no claim that what is public contradicts.


def test_a_mean_that_may_leave_its_claimed_range_is_refused(tmp_path: Path) -> None:
    plan = plans.mixed()
    data = {"a": SOME.random(4 * plan.blocks) < 0.8, "x": SOME.normal(size=4 * plan.blocks)}
    with sealed(tmp_path / "h", data, plan, block_units=4, ranges={"x": (0, 1)}) as holdout:
        for text in ("avg(10 * CASE WHEN a THEN 1 ELSE 0 END)", "avg(x + 1)"):
            with refusing(holdout, "may leave that"):
                holdout.ask(text, grid=hf.grid(0, 10, points=8), shape=BoundedMean(0, 1))
        assert holdout.ask("avg(x)", grid=hf.grid(0, 1, points=8), shape=BoundedMean(0, 1)).high
        far = holdout.ask(
            lambda f: 8.0 + f.a.mean(), grid=hf.grid(0, 10, points=8), shape=BoundedMean(0, 1)
        )
        assert (far.low, far.high) == (None, None)


# No byte of the open part tells of a sealed row.


@pytest.mark.parametrize("last", [5, 5.5, None])
def test_the_open_parts_types_are_its_own(last: float | None, tmp_path: Path) -> None:
    plan = plans.mixed()
    rows = 4 * plan.blocks
    with sealed(tmp_path / "probe", {"i": np.arange(rows)}, plan, open_fraction=0.2) as probe:
        is_open = set(probe.open_table()["i"].to_pylist())
    hidden = next(row for row in range(rows) if row not in is_open)
    values: list[Any] = [row % 10 for row in range(rows)]
    values[hidden] = last
    data = pd.DataFrame({"i": np.arange(rows), "x": values})
    with sealed(tmp_path / "h", data, plan, open_fraction=0.2) as holdout:
        table = holdout.open_table()
        assert set(table["i"].to_pylist()) == is_open
        assert str(table.schema.field("x").type) == "int64"


# Slips.


def test_slips_that_the_open_part_shows_are_free(tmp_path: Path) -> None:
    texts = {"sex": ["female", "male"]}
    with registry.made(tmp_path / "h", ranges={"age": (18, 102)}, categories=texts) as holdout:
        slips: dict[str, Any] = {
            "most of them cut": lambda: holdout.ask(
                lambda f: float(f.days.mean()), grid=hf.grid(0, 1, points=8), columns=["days"]
            ),
            "between nobody": lambda: holdout.ask("avg(age BETWEEN 200 AND 300)"),
        }
        for ask in slips.values():
            with refusing(holdout, error=Doubtful):
                ask()
        for constant in ("avg(1)", "max(3)", "sum(2)", "count(*)"):
            with refusing(holdout, "Nothing was charged"):
                holdout.ask(constant, grid=hf.grid(0, 4, points=8))


def mean_plan() -> JointPlan:
    return joint_plan(MedianMeans(4, grid=16, tail=0.05), confidence=0.8)


def test_slips_of_means_are_free(tmp_path: Path) -> None:
    plan = mean_plan()
    data = registry.registry(20 * plan.blocks)
    with sealed(tmp_path / "h", data, plan, open_fraction=0.5, block_units=10) as holdout:
        for term, more in (
            ("age", {"range": (0, 1)}),
            ("days", {"range": (3000, 4000)}),
            ("died", {"grid": hf.grid(0.98, 1, points=8)}),
        ):
            with refusing(holdout, error=Doubtful):
                holdout.mean(term, **({"range": (0, 1)} | more))
        for constant in ("TRUE", "0.5"):
            with refusing(holdout, "names no column"):
                holdout.mean(constant)
        assert holdout.mean("age", range=(0, 1), anyway=True).receipt


# What is told over rows.


def told_rows(path: Path, rows: int = 600, **more: Any) -> tuple[Holdout, Any]:
    """Rows of two labels without an open part, and the labels."""
    labels = SOME.integers(0, 2, rows)
    frame = pd.DataFrame({"y": labels, "x": SOME.random(rows)})
    given: dict[str, Any] = {
        "target": "y",
        "labels": [0, 1],
        "open_fraction": 0,
        "seed": 1,
        "new_budget": "a test",
    }
    given["ranges"] = {"x": (0, 1)}
    return Holdout.create(path, frame, **{**given, **more}), labels


def nats(holdout: Holdout) -> float:
    told = holdout.status().sets[0].told
    assert told is not None
    return float(told.nats)


def test_a_quota_holds_a_batch_and_what_is_bound_to_be_dear(tmp_path: Path) -> None:
    """Forty wrong guesses at once told a hundred times the quota; a guess of no use told six."""
    holdout, labels = told_rows(tmp_path / "h", reading="rule")
    with holdout:
        ann = holdout.on_behalf(Asker("ann", None, 5.0))
        several = [np.where(np.arange(600) % 40 == k, 1 - labels, labels) for k in range(40)]
        for precise in (True, False):
            with refusing(holdout, "Your quota", Exhausted):
                ann.scores(several, guesses=[0.0] * 40, precise=precise)
        assert not ann.price("scores", several, guesses=[0.0] * 40).affordable
        vague: Any = ann.price("mean", "x", guess=0.5, guess_se=1e10, precise=True)
        assert max(each["nats"] for each in vague.told.answers) < 10
        with refusing(holdout, "an answer that says something", Exhausted):
            ann.mean("x", guess=0.5, guess_se=1e308)
        sure: Any = holdout.mean("x", guess=0.9, guess_se=1e-300, precise=True)
        assert sure.told < 30
        assert check_holdout(holdout.path).passed


def test_an_honest_stratified_holdout_is_sound(tmp_path: Path) -> None:
    holdout, _ = told_rows(tmp_path / "h", split="stratified")
    with holdout:
        told: Any = holdout.mean("x")
        assert told.claims
        assert check_holdout(holdout.path).passed


def test_a_name_that_sounds_like_a_score_is_none(tmp_path: Path) -> None:
    holdout, _ = told_rows(tmp_path / "h")
    with holdout:
        term = lambda f: f.x > 0.5  # noqa: E731
        term.__qualname__ = "accuracy of predictions for y"
        told: Any = holdout.mean(term, columns=["x"], range=(0, 1))
        assert told.about.startswith("function")
        holdout.mean("x > 0.25 and 'a' <> ' of predictions for '")
        assert check_holdout(holdout.path).passed


def test_rows_without_a_label_are_named_in_every_answer(tmp_path: Path) -> None:
    labels = SOME.choice(["cat", "dog"], 2_000)
    frame = pd.DataFrame({"y": pd.Series(labels, dtype=object).where(SOME.random(2_000) > 0.1)})
    words = {"target": "y", "labels": ["cat", "dog"], "open_fraction": 0, "seed": 1}
    with Holdout.create(tmp_path / "h", frame, **words) as holdout:  # type: ignore[arg-type]
        told = holdout.gate(labels, at_least=0.95)
        assert told.verdict == "fail"
        assert "a row without one counts as wrong" in told.promise
        assert "a row without one counts as wrong" in str(told)


def test_no_price_is_zero_where_an_answer_tells(tmp_path: Path) -> None:
    """Next to an end of the range no likely answer was listed, and none was refused."""
    holdout, _ = told_rows(tmp_path / "h")
    with holdout:
        price = holdout.price("mean", "x*x", guess=0.0, precise=True)
        assert price.price > 0
        assert price.told is not None
        assert price.told.answers
    small, labels = told_rows(tmp_path / "small", 1)
    with small:
        for ask in (lambda: small.compare(labels, 1 - labels), lambda: small.mean("x")):
            with refusing(small, "an answer that says something", Exhausted):
                ask()


@pytest.mark.parametrize("words", [{"claim": "at_least"}, {"claim": "x"}, {"guess": None}])
def test_a_verdict_has_a_guess_and_one_of_three_claims(
    words: dict[str, Any], tmp_path: Path
) -> None:
    holdout, _ = told_rows(tmp_path / "h")
    with holdout, refusing(holdout, "guess|claim"):
        holdout.verify("avg(x)", **{"guess": 0.2, **words})


def test_a_winner_without_a_bar_is_named_and_what_is_new_is_counted(tmp_path: Path) -> None:
    holdout, labels = told_rows(tmp_path / "small", 1)
    with holdout, pytest.raises(Exhausted, match=r"The winner is candidate \d"):
        holdout.best([labels, 1 - labels], precise=True)
    holdout, labels = told_rows(tmp_path / "h")
    near = np.where(np.arange(600) % 30 == 0, 1 - labels, labels)
    with holdout:
        holdout.score(labels, precise=True)
        holdout.score(near, precise=True)
        before = nats(holdout)
        told = holdout.best([labels, near], precise=True)
        assert f"told {nats(holdout) - before:.2g} nats" in str(told)


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("gate", {"at_least": 0.5, "tolerance": 0.6}),
        ("gate", {"at_least": 0.0}),
        ("gate", {"at_most": 1.0}),
        ("gate", {"at_most": 0.99, "tolerance": 0.5}),
        ("gate", {"margin": 0.0, "tolerance": 3.0}),
        ("gate", {"margin": 1.0}),
        ("compare", {"margin": 1.0}),
    ],
)
def test_what_is_known_beforehand_is_not_asked(
    verb: str, words: dict[str, Any], tmp_path: Path
) -> None:
    holdout, labels = told_rows(tmp_path / "h")
    more = {} if verb == "compare" or "margin" not in words else {"better_than": 1 - labels}
    rules = (labels, 1 - labels) if verb == "compare" else (labels,)
    with holdout, refusing(holdout, "margin|at_least|at_most"):
        getattr(holdout, verb)(*rules, **words, **more)


def test_few_open_blocks_say_nothing_of_other_guesses(tmp_path: Path) -> None:
    holdout, _ = told_rows(tmp_path / "h", 1_500, open_fraction=0.03)
    with holdout:
        told = str(holdout.verify("avg(x)", guess=0.5))
        assert "no confirmation: other guesses are compatible too" in told


def test_ends_beyond_a_trillion_have_their_sign_once(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": np.arange(800), "y": SOME.random(800) * 1e14})
    words: Any = {"target": "y", "ids": "id", "ranges": {"y": (0, 1e14)}, "seed": 1}
    with Holdout.create(tmp_path / "h", frame, **words) as holdout:
        first, second = dict.fromkeys(range(800), 5e13), {i: 4.9e13 + i * 1e9 for i in range(800)}
        said = str(holdout.compare(first, second, metric="mae"))
        assert "between -" not in said
        assert "between −" not in said
