"""Weights through a holdout: what the hypothesis knows, also after reopening."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from holdfast.engines.sql.estimator import sql_estimator
from holdfast.holdout.check import check_holdout
from holdfast.holdout.universe import Cells, read_cells, world_size
from holdfast.mechanisms import hypothesis as mechanism
from holdfast.planning.joint import joint_plan
from holdfast.protocols import BlockArray, MemoryHoldout
from holdfast.protocols.exact import exact_weights
from holdfast.protocols.plans import JointPlan
from holdfast.protocols.weights import WeightedEstimates, written_indices
from tests.holdout import forging

GRID = hf.grid(0, 1, step=0.05)
VALUES: dict[str, list[object]] = {"x": [i / 10 for i in range(11)], "group": ["a", "b"]}
QUESTIONS = ("avg(x)", "count_if(group = 'b')", "count_if(x > 0.4)", "avg(1 - x)")


def table(seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    x = generator.binomial(10, 0.3, 4000) / 10
    group = generator.choice(["b", "a"], 4000, p=[0.9, 0.1])
    return pd.DataFrame({"x": x, "group": group, "z": x})


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hf.Holdout]:
    plan = exact_weights(50, universe=22, tail=0.1)
    folder = tmp_path_factory.mktemp("world") / "exact"
    with hf.Holdout.create(folder, table(1), plan, universe=VALUES, block_units=1) as holdout:
        yield holdout


def test_answers_are_inside_the_tails_of_the_sample(exact: hf.Holdout) -> None:
    sealed = exact._open.store.table(columns=["x"]).column(0).to_numpy()
    answer = exact.ask("avg(x)", grid=GRID)
    assert answer.certified
    assert np.mean(sealed <= answer.value) > 0.1
    assert np.mean(np.ceil(sealed * 20 - 1e-9) / 20 >= answer.value) > 0.1


def test_a_hypothesis_read_from_the_ledger_is_the_one_that_learnt(tmp_path: Path) -> None:
    """The same questions to one object that lives on, and to a holdout reopened for each."""
    plan, folder = exact_weights(50, universe=22, tail=0.2), tmp_path / "a"
    with hf.Holdout.create(folder, table(4), plan, universe=VALUES, block_units=1) as holdout:
        world = holdout._open._world
        assert world is not None
        cells = world._cells.numbers(holdout._open.store.table(0, plan.blocks, list(VALUES)))
        living = MemoryHoldout(plan, BlockArray(cells, plan.blocks), universe=world.universe)
        expected = [
            living.ask(world.values(sql_estimator(text, holdout._open.store.schema)), GRID)
            for text in QUESTIONS
        ]
        assert len(living.lessons) > 1
    told = []
    for text in QUESTIONS:
        with hf.Holdout.open(folder) as later:
            told.append(later.ask(text, grid=GRID).value)
    assert told == [answer.value for answer in expected]
    assert check_holdout(folder).passed


def only_points_that_occur(monkeypatch: pytest.MonkeyPatch, sparse: bool) -> None:
    """Histograms of the points that occur, as on huge grids, or of all points of the grid."""
    monkeypatch.setattr(mechanism, "_DENSE", 0 if sparse else 2**22)


def weights_by_looks() -> JointPlan:
    return joint_plan(WeightedEstimates(queries=30, universe=22, tail=0.05), blocks=1000)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("make", [lambda: exact_weights(50, 22, tail=0.2), weights_by_looks])
def test_what_was_learnt_in_one_representation_is_confirmed_in_the_other(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[], Any],
    sparse: bool,
) -> None:
    """Made in the one, continued in either, checked in both; the first guess is a tie."""
    plan, folder, other = make(), tmp_path / "one", tmp_path / "other"
    told = []
    for path, ways in ((folder, [sparse]), (other, [sparse, not sparse])):
        hf.Holdout.create(
            path, table(5), plan, universe=VALUES, block_units=1, seed=1, new_budget="a test"
        ).close()
        answers = []
        for number, text in enumerate(QUESTIONS):
            only_points_that_occur(monkeypatch, ways[number % len(ways)])
            with hf.Holdout.open(path) as holdout:
                answers.append(holdout.ask(text, grid=GRID).value)
                rows = holdout.journal.ledger.rows()
        told.append(
            (
                answers,
                [row.body["drawn"] for row in rows if "steps" in (row.body.get("drawn") or {})],
            )
        )
    assert told[0] == told[1]
    assert len(told[0][1]) > 1
    for way in (sparse, not sparse):
        only_points_that_occur(monkeypatch, way)
        assert check_holdout(folder).passed


def last_lesson(entries: list[forging.Entry]) -> dict[str, Any]:
    body = [each.body for each in entries if "steps" in (each.body.get("drawn") or {})][-1]
    assert len(body["drawn"]["steps"]) >= 1
    return body


def another_guess(body: dict[str, Any]) -> None:
    body["drawn"]["steps"][0][0] += 1


def another_rate(body: dict[str, Any]) -> None:
    body["drawn"]["steps"][0][2] *= 1 + 1e-6


def another_answer(body: dict[str, Any]) -> None:
    body["drawn"]["index"] -= 1


def other_indices(body: dict[str, Any]) -> None:
    body["drawn"]["indices"] = written_indices(np.full(22, 3))


def fewer_indices(body: dict[str, Any]) -> None:
    body["drawn"]["indices"] = written_indices(np.zeros(21, int))


def no_indices(body: dict[str, Any]) -> None:
    body["drawn"]["indices"] = "0" * 40


def another_grid(body: dict[str, Any]) -> None:
    body["drawn"]["size"] += 1


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (another_guess, "a guess that weights did not make"),
        (another_rate, "a guess that weights did not make"),
        (another_answer, "answers what weights did not guess"),
        (other_indices, "weights did not"),
        (fewer_indices, "on 22 blocks"),
        (no_indices, "not the grid indices"),
        (another_grid, "another grid"),
    ],
)
def test_lessons_that_weights_did_not_learn_are_found(
    learnt: Path, tmp_path: Path, mistake: Callable[[dict[str, Any]], None], words: str
) -> None:
    folder = tmp_path / "a"
    shutil.copytree(learnt, folder)
    forging.forge(folder, lambda entries: mistake(last_lesson(entries)))
    found = forging.failed(check_holdout(folder))
    assert words in found["answers"]


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learnt") / "a"
    plan = exact_weights(50, universe=22, tail=0.2)
    with hf.Holdout.create(folder, table(6), plan, universe=VALUES, block_units=1) as holdout:
        for text in QUESTIONS:
            holdout.ask(text, grid=GRID)
    assert check_holdout(folder).passed
    return folder


@pytest.mark.parametrize("estimator", ["avg(z)", lambda frame: frame.z.mean()], ids=["sql", "py"])
def test_a_column_without_named_values_is_refused_and_free(
    exact: hf.Holdout, estimator: object
) -> None:
    before = exact.receipt
    with pytest.raises(hf.InvalidInput):
        exact.ask(estimator, grid=GRID)  # type: ignore[arg-type]
    assert exact.receipt == before


def test_weights_by_looks_learn_and_pay(tmp_path: Path) -> None:
    plan = joint_plan(WeightedEstimates(queries=30, universe=22, tail=0.05), blocks=1000)
    with hf.Holdout.create(
        tmp_path / "looks", table(2), plan, universe=VALUES, block_units=1, seed=1
    ) as holdout:
        values = [holdout.ask(question, grid=GRID).value for question in QUESTIONS]
        rows = holdout.journal.ledger.rows()
    assert any(
        "steps" in (row.body.get("drawn") or {}) for row in rows
    )  # the uniform guess is far from this law
    assert 0.2 <= values[0] <= 0.45
    assert check_holdout(tmp_path / "looks").passed


def test_weights_need_a_universe_and_a_size(tmp_path: Path) -> None:
    plan = exact_weights(50, universe=22, tail=0.1)
    data = table(3)
    with pytest.raises(hf.InvalidInput, match="universe"):
        hf.Holdout.create(tmp_path / "a", data, plan)
    with pytest.raises(hf.InvalidInput, match="block_units"):
        hf.Holdout.create(tmp_path / "b", data, exact_weights(5, 22), universe=VALUES)
    few = {"x": VALUES["x"]}
    with pytest.raises(hf.InvalidInput, match="22"):
        hf.Holdout.create(tmp_path / "c", data, plan, universe=few, block_units=1)
    missing: dict[str, list[object]] = {**VALUES, "x": [i / 10 + 0.01 for i in range(11)]}
    with pytest.raises(hf.InvalidInput, match="all rows"):
        hf.Holdout.create(tmp_path / "d", data, plan, universe=missing, block_units=1)
    assert list(tmp_path.iterdir()) == []


def test_cells_have_one_number_whatever_order_columns_come_in(exact: hf.Holdout) -> None:
    schema = exact.spec.manifest.schema
    one, other = read_cells(VALUES, schema), read_cells(dict(reversed(VALUES.items())), schema)
    assert one == other == Cells({"group": ("a", "b"), "x": tuple(VALUES["x"])})  # type: ignore[arg-type]
    rows = exact._open.store.table(0, 50)
    numbers = one.numbers(rows)
    back = one.columns(numbers)
    assert back["x"] == rows.column("x").to_pylist()
    assert back["group"] == rows.column("group").to_pylist()


def test_a_world_too_large_is_refused() -> None:
    cells = Cells({"x": tuple(float(i) for i in range(100))})
    assert world_size(cells, 1) == 100
    with pytest.raises(hf.Infeasible, match="block_units=1"):
        world_size(cells, 5)
