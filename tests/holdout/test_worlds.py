"""Weights through a holdout: what the hypothesis knows, also after reopening."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from holdfast.holdout.check import check_holdout
from holdfast.holdout.universe import Cells, World, read_cells, world_size
from holdfast.mechanisms import hypothesis as mechanism
from holdfast.planning.joint import joint_plan
from holdfast.protocols.plans import JointPlan
from holdfast.protocols.searches import Estimates
from holdfast.protocols.weights import WeightedEstimates, written_indices
from tests.holdout import forging
from tests.holdout.tables import refusing

GRID = hf.grid(0, 1, step=0.05)
VALUES: dict[str, list[object]] = {"x": [i / 10 for i in range(11)], "group": ["a", "b"]}
QUESTIONS = ("avg(x)", "count_if(group = 'b')", "count_if(x > 0.4)", "avg(1 - x)")


def table(seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    x = generator.binomial(10, 0.3, 4000) / 10
    group = generator.choice(["b", "a"], 4000, p=[0.9, 0.1])
    return pd.DataFrame({"x": x, "group": group, "z": x})


@cache
def plan() -> JointPlan:
    return joint_plan(WeightedEstimates(queries=30, universe=22, tail=0.05), blocks=1000)


def created(folder: Path, number: int, plan: Any, **more: Any) -> hf.Holdout:
    given = {"universe": VALUES, "block_units": 1, "seed": 1, **more}
    return hf.Holdout.create(folder, table(number), plan, **given)


def lessons(holdout: hf.Holdout) -> list[dict[str, Any]]:
    """What surprises have taught."""
    drawn = [row.body.get("drawn") or {} for row in holdout.journal.ledger.rows()]
    return [each for each in drawn if "steps" in each]


@pytest.fixture(scope="module")
def weighing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hf.Holdout]:
    with created(tmp_path_factory.mktemp("world") / "a", 1, plan()) as holdout:
        yield holdout


def test_answers_are_inside_the_tails_of_the_sample(weighing: hf.Holdout) -> None:
    sealed = weighing._open.store.table(columns=["x"]).column(0).to_numpy()
    answer = weighing.ask("avg(x)", grid=GRID)
    assert np.mean(sealed <= answer.value) > 0.05
    assert np.mean(np.ceil(sealed * 20 - 1e-9) / 20 >= answer.value) > 0.05


def test_a_hypothesis_read_from_the_ledger_is_the_one_that_learnt(tmp_path: Path) -> None:
    """The same questions to a holdout that stays open, and to one reopened for each."""
    with created(tmp_path / "a", 4, plan()) as living:
        expected = [living.ask(text, grid=GRID).value for text in QUESTIONS]
        taught = lessons(living)
    assert len(taught) > 1
    created(tmp_path / "b", 4, plan(), new_budget="a test").close()
    told = []
    for text in QUESTIONS:
        with hf.Holdout.open(tmp_path / "b") as later:
            told.append(later.ask(text, grid=GRID).value)
            learnt = lessons(later)
    assert (told, learnt) == (expected, taught)
    assert check_holdout(tmp_path / "b").passed


def test_other_parts_of_the_set_may_answer_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights answer one question after the other; estimates on the same blocks do not wait."""
    both = joint_plan(
        WeightedEstimates(queries=5, universe=22, tail=0.05),
        Estimates(5, grid=8, tail_low=0.05, tail_high=0.05),
    )
    with created(tmp_path / "a", 7, both) as holdout:
        places = World.places
        points = hf.grid(0, 1, points=8)
        other = Thread(target=lambda: holdout.ask("avg(x)", grid=points, protocol="estimate"))

        def interrupted(world: World, start: int, stop: int) -> Any:
            other.start()
            other.join()
            return places(world, start, stop)

        monkeypatch.setattr(World, "places", interrupted)
        holdout.ask("count_if(x > 0.25)", grid=GRID, protocol="weights")  # guessed right
        kinds = [
            (row.kind, row.body["question"]["part"]) for row in holdout.journal.ledger.rows()[1:]
        ]
    assert kinds == [
        ("reserved", "weights"),
        ("reserved", "estimate"),
        ("recorded", "estimate"),
        ("recorded", "weights"),
    ]
    assert check_holdout(tmp_path / "a").passed


def only_points_that_occur(monkeypatch: pytest.MonkeyPatch, sparse: bool) -> None:
    """Histograms of the points that occur, as on huge grids, or of all points of the grid."""
    monkeypatch.setattr(mechanism, "_DENSE", 0 if sparse else 2**22)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_what_was_learnt_in_one_representation_is_confirmed_in_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sparse: bool
) -> None:
    """Made in the one, continued in either, checked in both; the first guess is a tie."""
    folder, other = tmp_path / "one", tmp_path / "other"
    told = []
    for path, ways in ((folder, [sparse]), (other, [sparse, not sparse])):
        created(path, 5, plan(), new_budget="a test").close()
        answers = []
        for number, text in enumerate(QUESTIONS):
            only_points_that_occur(monkeypatch, ways[number % len(ways)])
            with hf.Holdout.open(path) as holdout:
                answers.append(holdout.ask(text, grid=GRID).value)
                taught = lessons(holdout)
        told.append((answers, taught))
    assert told[0] == told[1]
    assert len(told[0][1]) > 1
    for way in (sparse, not sparse):
        only_points_that_occur(monkeypatch, way)
        assert check_holdout(folder).passed


def last_lesson(entries: list[forging.Entry]) -> dict[str, Any]:
    drawn = [each.body.get("drawn") or {} for each in entries]
    lesson: dict[str, Any] = [each for each in drawn if "steps" in each][-1]
    assert len(lesson["steps"]) >= 1
    return lesson


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("steps.0.0", lambda index: index + 1, "a guess that weights did not make"),
        ("steps.0.2", lambda rate: rate * (1 + 1e-6), "a guess that weights did not make"),
        ("index", lambda index: index - 1, "answers what weights did not guess"),
        ("indices", written_indices(np.full(22, 3)), "weights did not"),
        ("indices", written_indices(np.zeros(21, int)), "on 22 blocks"),
        ("indices", "0" * 40, "not the grid indices"),
        ("size", lambda size: size + 1, "another grid"),
    ],
)
def test_lessons_that_weights_did_not_learn_are_found(
    learnt: Path, tmp_path: Path, place: str, value: object, words: str
) -> None:
    folder = tmp_path / "a"
    shutil.copytree(learnt, folder)
    forging.forge(folder, lambda entries: forging.put(last_lesson(entries), place, value))
    found = forging.failed(check_holdout(folder))
    assert words in found["answers"]


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learnt") / "a"
    with created(folder, 6, plan()) as holdout:
        values = [holdout.ask(text, grid=GRID).value for text in QUESTIONS]
        assert lessons(holdout)  # the uniform guess is far from this law
    assert 0.2 <= values[0] <= 0.45
    assert check_holdout(folder).passed
    return folder


@pytest.mark.parametrize("estimator", ["avg(z)", lambda frame: frame.z.mean()], ids=["sql", "py"])
def test_a_column_without_named_values_is_refused_and_free(
    weighing: hf.Holdout, estimator: object
) -> None:
    with refusing(weighing):
        weighing.ask(estimator, grid=GRID)  # type: ignore[arg-type]


def test_weights_need_a_universe_and_a_size(tmp_path: Path) -> None:
    missing = {**VALUES, "x": [i / 10 + 0.01 for i in range(11)]}
    for said, given in (
        ("universe", {"universe": None, "block_units": None}),
        ("block_units", {"block_units": None}),
        ("22", {"universe": {"x": VALUES["x"]}}),
        ("all rows", {"universe": missing}),
    ):
        with pytest.raises(hf.InvalidInput, match=said):
            created(tmp_path / "a", 3, plan(), **given)
    assert list(tmp_path.iterdir()) == []


def test_cells_have_one_number_whatever_order_columns_come_in(weighing: hf.Holdout) -> None:
    schema = weighing.spec.manifest.schema
    one, other = read_cells(VALUES, schema), read_cells(dict(reversed(VALUES.items())), schema)
    assert one == other == Cells({"group": ("a", "b"), "x": tuple(VALUES["x"])})  # type: ignore[arg-type]
    rows = weighing._open.store.table(0, 50)
    numbers = one.numbers(rows)
    back = one.columns(numbers)
    assert back["x"] == rows.column("x").to_pylist()
    assert back["group"] == rows.column("group").to_pylist()


def test_a_world_too_large_is_refused() -> None:
    cells = Cells({"x": tuple(float(i) for i in range(100))})
    assert world_size(cells, 1) == 100
    with pytest.raises(hf.Infeasible, match="block_units=1"):
        world_size(cells, 5)
