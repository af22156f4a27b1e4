"""Every verb and every protocol end to end: real blocks, real engines, real coins.

Rounds and splits are compared with their definition on the blocks that were sealed. Where coins are
flipped, `c` is 5 in every row: a look then errs with at most 1e-7.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import holdfast as hf
from holdfast.engines.source import Limits
from holdfast.errors import Exhausted, InvalidInput
from holdfast.holdout import answering
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.state import can_be_asked
from holdfast.protocols.shapes import BoundedMean, KnownSd
from tests.holdout import plans
from tests.holdout.tables import refusing, sealed, table
from tests.mechanisms.laws import LARGEST_WORD, Constant

POINTS = hf.grid(0, 7, step=1)
LIMITS = Limits(workers=1)
TRUTH = Constant(LARGEST_WORD)  # no coin errs


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Holdout]:
    """Sets of every kind; an open part; a target."""
    every: list[Any] = [plans.mixed(), plans.amplified(), plans.rounds(), plans.split()]
    blocks = sum(each.blocks * each.subblocks for each in every)
    path = tmp_path_factory.mktemp("everything") / "a.holdfast"
    data = table(int(4 * blocks / 0.8) + 4)
    more: dict[str, Any] = {"open_fraction": 0.2, "ranges": {"x": (-10, 20)}, "target": "y"}
    with Holdout.create(path, data, every, limits=LIMITS, **more) as holdout:
        yield holdout
        assert check_holdout(path).passed


def values(holdout: Holdout, name: str, column: str = "x") -> NDArray[np.float64]:
    """The mean of a column in every block of a set."""
    (found,) = [each for each in holdout.spec.sets if each.name == name]
    store = holdout._open.store
    rows = store.table(found.first, found.first + found.blocks, [column]).column(0).to_numpy()
    return np.asarray(rows.reshape(found.blocks, store.units).mean(axis=1), np.float64)


# By looks, on one budget.


def test_an_estimate(everything: Holdout) -> None:
    answer = everything.ask("avg(c)", grid=POINTS)
    assert (answer.value, answer.low, answer.at_grid_end) == (5, None, False)
    assert (answer.tail, answer.confidence) == (0.02, 0.25)
    assert answer.certified
    assert not answer.cached
    end = everything.ask("avg(c) + 10", grid=POINTS, anyway=True)
    assert (end.value, end.at_grid_end) == (7, True)
    assert "at the end of its grid" in end.described()["answer"]


def test_an_interval(everything: Holdout) -> None:
    answer = everything.interval("avg(c)", grid=hf.grid(0, 9, step=3))
    assert (answer.low, answer.high) == (3, 6)  # the cell that 5 is in


def test_verdicts(everything: Holdout) -> None:
    right = everything.verify("avg(c)", 5)
    wrong = everything.verify("avg(c)", 6)
    assert (right.verdict, wrong.verdict) == ("compatible", "not compatible")
    assert (right.refusals_left, wrong.refusals_left) == (3, 2)
    assert everything.verify("avg(c)", 4, claim="at least").verdict == "compatible"
    assert everything.verify("avg(c)", 6, claim="at most").verdict == "compatible"
    assert everything.verify("avg(c)", 6, claim="at least").verdict == "not compatible"
    with pytest.raises(InvalidInput, match="tolerance"):
        everything.verify("avg(c)", 5, tolerance=1)
    with pytest.raises(InvalidInput, match="claim"):
        everything.verify("avg(c)", 5, claim="about")  # type: ignore[arg-type]


def test_a_correction_by_looks(everything: Holdout) -> None:
    kept = everything.correct("avg(c) + 1", 6, grid=POINTS)
    assert (kept.value, kept.correction) == (6, None)
    put_right = everything.correct("avg(c) + 1", 0, grid=POINTS)
    assert (put_right.verdict.verdict, put_right.value) == ("not compatible", 6)


# Exactly, each on its own blocks.


def test_a_round(everything: Holdout) -> None:
    answer = everything.ask("avg(x)", protocol="rounds")
    plan = plans.rounds()
    first = plan.verification.blocks
    one = np.sort(values(everything, "rounds")[first : first + plan.set_blocks])
    assert answer.value == pytest.approx(one[(len(one) - 1) // 2], rel=1e-12)
    assert (answer.price, answer.budget_left) == (0, 2)


def test_a_split(everything: Holdout) -> None:
    plan = plans.split()
    each, blocks = plan.blocks_per_question, values(everything, "split")
    for number, text in enumerate(["avg(x)", "avg(x) + 0"]):
        answer: Any = everything.ask(text, protocol="split", shape=KnownSd(1.0))
        ranked = np.sort(blocks[number * each : (number + 1) * each])[plan.rank - 1]
        assert answer.value == pytest.approx(ranked, rel=1e-12)
        assert answer.low < 5 < answer.high


def test_parts_are_chosen_by_name(everything: Holdout) -> None:
    for verb, protocol in [("ask", "verify"), ("interval", "estimate"), ("mean", "rounds")]:
        more = {} if verb == "mean" else {"grid": POINTS}
        with pytest.raises(InvalidInput, match=f"a part that can {verb}"):
            getattr(everything, verb)("avg(x)", protocol=protocol, **more)
    with pytest.raises(InvalidInput, match="'nobody'"):
        everything.ask("avg(x)", protocol="nobody", grid=POINTS)


def test_what_the_plan_does_not_cover_is_refused(tmp_path: Path) -> None:
    with sealed(tmp_path / "a", plans.gates()) as holdout:
        for verb, *more in (("ask",), ("interval",), ("mean",), ("correct", 5)):
            with refusing(holdout, "planned for gate"):
                getattr(holdout, verb)("avg(x)", *more)


def test_a_refusal_names_what_can_be_asked(tmp_path: Path) -> None:
    with sealed(tmp_path / "a", plans.simple()) as holdout:  # its verdicts would say nothing
        said = r"asked here \(ask, mean\); got 'correct'\. correct needs a plan with verify and est"
        with refusing(holdout, said):
            holdout.correct("avg(x)", 5, grid=POINTS)
        with refusing(holdout, "compare needs a plan with score, .* was planned for simple"):
            holdout.spec.part_for("compare")
    with sealed(tmp_path / "b", plans.told()) as holdout:
        said = (
            "correct needs a plan with verify and estimate, and this holdout has none: ask verify, "
            r"and then ask\(…\) if the guess is not compatible\."
        )
        with refusing(holdout, said):
            holdout.correct("avg(x)", 5)


# Means.


def test_a_mean_by_an_estimate(everything: Holdout) -> None:
    answer = everything.mean("c = 5")
    assert (answer.protocol, answer.value, answer.at_grid_end) == ("mean", 1, True)
    assert answer.low is not None
    assert answer.high == 1


def test_means_by_medians(tmp_path: Path) -> None:
    with sealed(tmp_path / "a", plans.medians(), units=100, limits=LIMITS) as holdout:
        answer: Any = holdout.mean("y = 1")
        assert answer.low < 0.25 < answer.high < 0.6
        where = holdout.mean("y = 1", where="g = 'a'")
        assert (where.low, where.high) == (None, None)
        assert 0.05 < where.value < 0.55
        python = holdout.mean(lambda frame: frame.y == 1, columns=["y"], range=(0, 1))
        assert 0.05 < python.value < 0.55
        kept = holdout.mean(
            lambda frame: frame.y == 1,
            where=lambda frame: frame.g == "a",
            columns=["y", "g"],
            range=(0, 1),
        )
        assert 0.05 < kept.value < 0.55
        with pytest.raises(InvalidInput, match="like the term itself"):
            holdout.mean("y = 1", where=lambda frame: frame.y == 1)
        with pytest.raises(Exhausted):
            holdout.mean("y = 0")
        assert check_holdout(holdout.path).passed


def test_a_direct_mean(tmp_path: Path) -> None:
    # With a seed: each of its looks errs with 8e-6, too often for a test.
    with sealed(tmp_path / "a", plans.direct(), units=4, seed=1) as holdout:
        answer: Any = holdout.mean("y = 1")
        assert answer.low < 0.25 < answer.high < answer.low + 0.6 + 1e-9
        assert answer.method == "direct search"
        assert holdout.mean("y = 1", grid=hf.grid(0, 1, points=9)).cached  # it has its own
        with refusing(holdout, "where"):
            holdout.mean("y = 1", where="g = 'a'")
        assert check_holdout(holdout.path).passed


# Few blocks, and blocks of sub-blocks.


def test_near(tmp_path: Path) -> None:
    with sealed(tmp_path / "a", plans.estimates(), units=50) as holdout:
        for guess, tolerance in [(4, 1.5), (5, 0)]:
            assert holdout.verify("avg(c)", guess, tolerance=tolerance).verdict == "compatible"
        assert holdout.verify("avg(c)", 4, tolerance=0.5).verdict == "cannot tell"
        assert "verify" in can_be_asked(holdout.spec)["verbs"]
        with pytest.raises(InvalidInput, match="claim"):
            holdout.verify("avg(c)", 5, claim="at most")
        with pytest.raises(InvalidInput, match="tolerance"):
            holdout.verify("avg(c)", 5, tolerance=-1)
        assert check_holdout(holdout.path).passed


def test_near_takes_one_step_of_the_default_grid(tmp_path: Path) -> None:
    with sealed(tmp_path / "a", plans.estimates(), units=50, ranges={"c": (0, 7)}) as holdout:
        verdict = holdout.verify("avg(c)", 4)  # the grid would have been 0, 1, …, 7
        assert verdict.verdict == "compatible"
        assert (verdict.tolerance, verdict.block_units) == (1, 50)
        assert "fresh blocks of 50 units give 5 or less" in verdict.promise
        assert holdout.verify("avg(c)", 4, tolerance=1).cached
        assert holdout.verify("avg(c)", 3).verdict == "cannot tell"


def test_amplified(tmp_path: Path) -> None:
    with sealed(tmp_path / "a", plans.amplified()) as holdout:
        assert holdout.status().blocks == 23 * 15
        answer = holdout.ask("avg(c)", grid=POINTS)
        assert (answer.value, answer.tail) == (5, 0.25)
        assert check_holdout(holdout.path).passed


def test_weights_over_a_universe(tmp_path: Path) -> None:
    plan = plans.weights()
    data = {"y": np.arange(plan.blocks) % 60 == 0, "i": np.arange(plan.blocks) + 0.375}
    made = Holdout.create(tmp_path / "a", data, plan, universe={"y": [False, True]}, block_units=1)
    with made as holdout:
        answer = holdout.ask("count_if(y)", grid=hf.grid(0, 1, points=2))
        assert answer.value == 0  # all blocks but two have none
        assert holdout.ask("count_if(not y)", grid=hf.grid(0, 1, points=2)).value == 1
        spent = holdout.status().to_dict()
    with Holdout.open(tmp_path / "a") as holdout:
        assert holdout.status().to_dict() == spent
        assert holdout.ask("count_if(y)", grid=hf.grid(0, 1, points=2)).cached
        assert check_holdout(holdout.path).passed


# Python.


def test_python_estimators_agree_with_sql(everything: Holdout) -> None:
    by_sql = everything.ask("avg(x)", protocol="rounds").value
    one = everything.ask(lambda frame: frame.x.mean(), protocol="rounds", columns=["x"])
    many = everything.ask(
        lambda arrays: arrays["x"].mean(axis=1), protocol="rounds", columns=["x"], vectorised=True
    )
    assert one.value == pytest.approx(by_sql, rel=1e-12)
    assert many.value == pytest.approx(by_sql, rel=1e-12)


def test_options_are_for_functions_and_where_is_for_sql(everything: Holdout) -> None:
    wrong: tuple[tuple[Any, dict[str, Any], str], ...] = (
        ("avg(x)", {"columns": ["x"]}, "columns"),
        (lambda frame: frame.x.mean(), {"where": "y = 1"}, "inside the function"),
        (5, {}, "SQL text or a callable"),
        ("avg(x)", {"grid": [1, 2, 3]}, "grid"),
        ("avg(x)", {"shape": "mean"}, "shape"),
    )
    for about, words, said in wrong:
        with refusing(everything, said):
            everything.ask(about, **{"grid": POINTS, **words})
    with refusing(everything, "guess"):
        everything.verify("avg(x)", math.nan)


def test_a_function_that_mixes_blocks_is_refused(tmp_path: Path) -> None:
    def mixes(arrays: Any) -> Any:
        return arrays["x"].mean(axis=1) - arrays["x"].mean()

    words: dict[str, Any] = {"columns": ["x"], "vectorised": True}
    with sealed(tmp_path / "a", plans.mixed(), units=2, limits=LIMITS) as holdout:
        for ask in (
            lambda: holdout.ask(mixes, grid=POINTS, **words),
            lambda: holdout.interval(mixes, grid=POINTS, **words),
            lambda: holdout.verify(mixes, 3, **words),
        ):
            with refusing(holdout, "each block by itself"):
                ask()


# Models.


def test_scores_inside_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import ParameterGrid

    data = table(4 * plans.estimates().blocks * 10)
    data["y"] = (data.x + np.random.default_rng(1).normal(0, 0.3, len(data)) > 5).astype(int)
    made = Holdout.create(
        tmp_path / "a", data, plans.estimates(), open_fraction=0.5, target="y", limits=LIMITS
    )
    monkeypatch.setattr(answering, "chosen_entropy", lambda *_: TRUTH)
    with made as holdout:
        train = holdout.open_table().to_pandas()
        scores = {}
        for setting in ParameterGrid({"C": [1e-12, 1.0]}):
            model = LogisticRegression(**setting).fit(train[["x"]], train.y)
            scores[setting["C"]] = holdout.score(model)
        assert (scores[1.0].value or 0) > 0.8 > (scores[1e-12].value or 1)
        assert scores[1.0].low is not None  # accuracy is a mean of zeros and ones
        again = LogisticRegression(C=1.0).fit(train[["x"]], train.y)
        assert holdout.score(again).cached
        predictions = again.predict(data[["x"]])
        by_rows = holdout.score(predictions)
        assert not by_rows.cached
        assert by_rows.value == scores[1.0].value
        assert holdout.score(predictions.copy()).cached
        with pytest.raises(InvalidInput, match="nobody"):
            holdout.score(again, target="nobody")
        assert check_holdout(holdout.path).passed


def test_a_score_needs_a_target(everything: Holdout, tmp_path: Path) -> None:
    with (
        sealed(tmp_path / "a", plans.split()) as holdout,
        pytest.raises(InvalidInput, match="target='y'"),
    ):
        holdout.score(np.zeros(plans.split().blocks))
    with pytest.raises(InvalidInput):  # not one prediction for every row of the data
        everything.score(np.zeros(3))


# Grids that were left out.


def test_grids_come_from_what_is_known(everything: Holdout, tmp_path: Path) -> None:
    asked = everything.ask(
        "avg(x)", protocol="amplified"
    )  # x is declared to lie between −10 and 20 …
    row = everything.journal.ledger.rows()[-1]
    grid = hf.Grid.from_json(row.body["question"]["grid"])
    assert -10 < grid.low < 4  # … and lies about 5 in the open part
    assert 6 < grid.high < 20
    assert asked.value in grid.points(np.arange(grid.size))
    with sealed(tmp_path / "a", plans.mixed(), units=2) as holdout:
        with refusing(holdout, "declare ranges"):
            holdout.ask("avg(number)")
        holdout.ask("corr(x, c)")
        grid = hf.Grid.from_json(holdout.journal.ledger.rows()[-1].body["question"]["grid"])
        assert (grid.low, grid.high) == (-1, 1)


def test_grids_come_from_the_open_part(tmp_path: Path) -> None:
    data = table(5 * plans.mixed().blocks)
    with Holdout.create(tmp_path / "a", data, plans.mixed(), open_fraction=0.5) as holdout:
        answer = holdout.ask("avg(number)")
        grid = hf.Grid.from_json(holdout.journal.ledger.rows()[-1].body["question"]["grid"])
        assert grid.size <= 8
        assert grid.low < data.number.min()
        assert grid.high > data.number.max()
        assert not answer.at_grid_end
        assert holdout.ask("avg(number)").cached


def test_a_bounded_mean_has_its_bar_unasked(everything: Holdout) -> None:
    fine = hf.grid(0, 1, points=8)
    # The mean of a truth value over all units, none of which can be missing.
    answer = everything.ask("avg(case when x > 5 then 1 else 0 end)", grid=fine, protocol="split")
    named = everything.ask("avg(x)", grid=POINTS, protocol="estimate", shape=BoundedMean(-10, 20))
    assert answer.low is not None
    assert named.low is not None
    assert everything.ask("max(x)", grid=POINTS, protocol="estimate").low is None
