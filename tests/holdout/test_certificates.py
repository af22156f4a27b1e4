"""What a certificate must not cover: each of these was once certified, or could have been."""

from __future__ import annotations

import shutil
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from holdfast.planning.joint import joint_plan
from holdfast.protocols.plans import JointPlan
from holdfast.protocols.searches import Estimates
from holdfast.protocols.weights import WeightedEstimates
from tests.holdout import plans
from tests.holdout.tables import holds, refusing

GRID = hf.grid(0, 1, step=0.05)


@cache
def plan() -> JointPlan:
    return joint_plan(Estimates(20, grid=32, tail_low=0.05, tail_high=0.05))


def made(path: Path, data: pd.DataFrame, **more: Any) -> hf.Holdout:
    return hf.Holdout.create(path, data, plan(), limits=hf.Limits(workers=1), **more)


def frame(seed: int, rows: int = 4000) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    x = generator.random(rows)
    return pd.DataFrame({"x": x, "y": (x < 0.7).astype(float), "id": np.arange(rows) // 4})


def test_a_row_without_a_target_is_a_miss(tmp_path: Path) -> None:
    data = frame(10)
    right = data.y.to_numpy().copy()
    data.loc[::4, "y"] = np.nan
    with made(tmp_path / "a", data, target="y") as holdout:
        answer = holdout.score(right, grid=GRID)
    assert holds(answer, 0.75)  # the rest is right
    assert (answer.high or 1) < 1
    assert "predictions" in answer.promise


def test_a_score_has_no_bar_where_units_have_several_rows(tmp_path: Path) -> None:
    data = frame(11)
    right = data.y.to_numpy().copy()
    data["row"] = np.arange(len(data))
    named: dict[str, Any] = {"unit": "id", "ids": "row", "target": "y"}
    with made(tmp_path / "a", data, **named) as holdout:
        answer = holdout.score(right, grid=GRID)
    assert (answer.low, answer.high) == (None, None)


def test_how_many_rows_units_have_is_not_found_by_trying(tmp_path: Path) -> None:
    """Predictions by place would be refused with any number of them but one."""
    data, told = frame(22), set[str]()
    with made(tmp_path / "a", data, unit="id", target="y") as holdout:
        for number in (1, len(data) - 1, len(data), len(data) + 1):
            with pytest.raises(hf.InvalidInput, match="keyed by ids") as refused:
                holdout.score(np.zeros(number), grid=GRID)
            told.add(str(refused.value))
    assert len(told) == 1


def test_a_term_that_looks_at_other_rows_has_no_mean(tmp_path: Path) -> None:
    def first(block: Any) -> Any:
        return np.full(len(block), float(block.x.iloc[0] < 0.7))

    with made(tmp_path / "a", frame(12)) as holdout:
        with pytest.raises(hf.InvalidInput, match="row"):
            holdout.mean(first, range=(0, 1))
        assert holdout.status().answers == 0
        assert "row" in holdout.mean(lambda block: block.x < 0.7, range=(0, 1)).promise


def test_row_numbers_cannot_be_asked(tmp_path: Path) -> None:
    with (
        made(tmp_path / "a", frame(14)) as holdout,
        pytest.raises(hf.InvalidInput, match="__row"),
    ):
        holdout.ask(lambda block: block["__row"].mean(), grid=GRID, columns=["__row", "y"])


def test_other_limits_are_another_question(tmp_path: Path) -> None:
    """A block that was too slow under tight limits must not answer those who allow more."""
    folder = tmp_path / "a"
    made(folder, frame(15)).close()
    with (
        hf.Holdout.open(folder, limits=hf.Limits(block_seconds=1e-6)) as hasty,
        refusing(hasty, "took too long"),  # on public blocks already
    ):
        hasty.ask(_mean, grid=GRID)
    for seconds in (100, 101):
        with hf.Holdout.open(folder, limits=hf.Limits(block_seconds=seconds)) as patient:
            answer = patient.ask(_mean, grid=GRID)
            assert not answer.cached
            assert 0.4 <= answer.value <= 0.6


def _mean(block: Any) -> float:
    return float(block.x.mean())


def test_a_request_needs_an_estimator_that_can_be_compared(tmp_path: Path) -> None:
    lock = threading.Lock()  # what cannot be hashed

    def estimator(block: Any) -> float:
        return float(block.x.mean()) * (lock is not None)

    with made(tmp_path / "a", frame(18)) as holdout:
        with pytest.raises(hf.InvalidInput):
            holdout.ask(estimator, grid=GRID, request="one")
        assert holdout.journal.ledger.head().number == 1


def test_two_parts_of_one_name_are_refused(tmp_path: Path) -> None:
    named = joint_plan(Estimates(5, tail_low=0.1, tail_high=0.1, name="split"))
    with pytest.raises(hf.InvalidInput, match="names"):
        hf.Holdout.create(tmp_path / "a", frame(19), [named, plans.split()])


def test_weights_need_units_of_one_row(tmp_path: Path) -> None:
    data = pd.DataFrame({"x": [0.0, 1.0] * 2000, "id": np.arange(4000) // 2})
    with pytest.raises(hf.InvalidInput, match="every row is a unit"):
        hf.Holdout.create(
            tmp_path / "a",
            data,
            plans.weights(),
            unit="id",
            universe={"x": [0.0, 1.0]},
            block_units=1,
        )


def test_weights_refuse_what_depends_on_the_order_of_rows(tmp_path: Path) -> None:
    data = pd.DataFrame({"x": (np.random.default_rng(20).random(12_000) < 0.95).astype(float)})
    size = 21  # multisets of 20 units out of 2 values
    weights = joint_plan(WeightedEstimates(queries=10, universe=size, tail=0.05))
    with hf.Holdout.create(
        tmp_path / "a", data, weights, universe={"x": [0.0, 1.0]}, block_units=20
    ) as holdout:
        with pytest.raises(hf.InvalidInput, match="order"):
            holdout.ask(lambda block: float(block.x.iloc[0]), grid=GRID)
        assert holdout.ask(lambda block: float(block.x.mean()), grid=GRID).value >= 0.8


def test_a_new_ledger_in_an_old_place_is_noticed(tmp_path: Path) -> None:
    """Whoever swaps in a fresh holdout of the same data gets a second budget."""
    data = frame(21)
    here, there = tmp_path / "a", tmp_path / "b"
    made(here, data).close()
    made(there, data, new_budget="a test").close()
    shutil.rmtree(here)
    shutil.copytree(there, here)  # its charter knows of the first: that is allowed, and reported
    hf.Holdout.open(here).close()
    shutil.rmtree(there)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_STATE", str(tmp_path / "elsewhere"))
        made(there, data).close()  # where nobody knows the data
    shutil.rmtree(here)
    shutil.copytree(there, here)
    with pytest.raises(hf.Damaged, match="written anew"):
        hf.Holdout.open(here)
