"""Creation: all of it or nothing, private, reported, and once for the same data."""

from __future__ import annotations

import itertools
import math
import re
import shutil
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import Damaged, Infeasible, InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.spec import BlockSet, joint_confidence, read_sets, sets_for
from holdfast.protocols.split import split_plan
from tests.holdout import plans
from tests.holdout.tables import sealed, sources, table

POINTS = hf.grid(0, 1, points=8)


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


def test_a_path_where_something_is_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").write_text("mine")
    for name in ("taken", "file"):
        with pytest.raises(InvalidInput, match="nothing is yet"):
            sealed(tmp_path / name, plans.split())
    assert left_behind(tmp_path) == ["file", "taken"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"open_fraction": 1.0}, "open_fraction"),
    ({"open_fraction": -0.1}, "open_fraction"),
    ({"open_fraction": 0.9}, "fewer questions"),
    ({"weight": "x"}, "sum\\(w \\* x\\) / sum\\(w\\)"),
    ({"unit": "nobody"}, "nobody"),
    ({"target": "nobody"}, "target"),
    ({"ranges": {"nobody": (0, 1)}}, "ranges"),
    ({"ranges": {"g": (0, 1)}}, "column of numbers"),
    ({"ranges": {"x": (1, 0)}}, "high"),
    ({"ranges": {"x": (0, math.inf)}}, "high"),
    ({"ranges": {"x": 3}}, "pair"),
    ({"seed": -1}, "seed"),
    ({"seed": 1.5}, "seed"),
    ({"name": "a\x1b[31m"}, "name"),
    ({"name": ""}, "name"),
    ({"name": 5}, "name"),
    ({"new_budget": ""}, "new_budget"),
    ({"new_budget": "a\nb"}, "new_budget"),
    ({"new_budget": "x" * 501}, "new_budget"),
    ({"plan": []}, "at least one plan"),
    ({"plan": 5}, "a plan"),
    ({"plan": [5]}, "a plan"),
    ({"plan": lambda units: []}, "at least one plan"),
    ({"plan": lambda units: 1 / 0}, "division"),
]
OTHER_ERRORS = {"fewer questions": Infeasible, "division": ZeroDivisionError}


def test_a_creation_that_fails_leaves_nothing(tmp_path: Path) -> None:
    data = table(plans.split().blocks)
    for more, message in WRONG:
        given = {"plan": plans.split(), **more}
        with pytest.raises(OTHER_ERRORS.get(message, InvalidInput), match=message):
            Holdout.create(tmp_path / "deep" / "a", data, **given)
        assert [name for name in left_behind(tmp_path) if name != "deep"] == []
    Holdout.create(tmp_path / "b", data, plans.split()).close()  # the data are still unknown


def test_an_interruption_leaves_nothing(tmp_path: Path) -> None:
    def stop(stage: str, done: float) -> None:
        if stage == "writing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sealed(tmp_path / "a", plans.split(), progress=stop)
    assert left_behind(tmp_path) == []


def test_progress_goes_from_stage_to_stage(tmp_path: Path) -> None:
    seen: list[tuple[str, float]] = []
    sealed(tmp_path / "a", plans.split(), progress=lambda *said: seen.append(said)).close()
    assert all(0 <= done <= 1 for _, done in seen)
    assert ("writing", 1.0) in seen


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    plan = plans.weights()
    data = {"y": np.arange(plan.blocks) % 2 == 0, "i": np.arange(plan.blocks) + 0.125}
    universe: dict[str, Any] = {"universe": {"y": [False, True]}, "block_units": 1}
    made = Holdout.create(tmp_path / "universe", data, plan, **universe)
    more: dict[str, Any] = {"units": 2, "open_fraction": 0.01}
    with made, sources(), sealed(tmp_path / "asked", plans.mixed(), **more) as holdout:
        holdout.ask("avg(x > 5)", grid=POINTS)
        for path in (each for folder in (made, holdout) for each in folder.path.rglob("*")):
            expected = 0o700 if path.is_dir() else 0o600
            assert stat.S_IMODE(path.stat().st_mode) == expected, path
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


# The same data again.


def test_the_same_data_need_a_reason(tmp_path: Path) -> None:
    data = table(plans.split().blocks)
    with Holdout.create(tmp_path / "a", data, plans.split()) as first:
        shuffled = data.sample(frac=1, random_state=1)[data.columns[::-1]]
        with pytest.raises(InvalidInput, match="new_budget") as refused:
            Holdout.create(tmp_path / "b", shuffled, plans.split())
        there = str(tmp_path / "a")
        made = f"'those of a'. That was made on 2…: open it by holdfast.Holdout.open({there!r})."
        assert re.search(re.escape(made).replace("…", r"[\d-]+"), str(refused.value))
        assert not (tmp_path / "b").exists()
        reason = "a <b>new</b> study"
        again = Holdout.create(tmp_path / "b", shuffled, plans.split(), new_budget=f" {reason} ")
        with again:
            assert again.status().new_budget == reason
            assert reason in str(again.status())
            assert again.spec.earlier == (first.status().holdout,)
        with Holdout.open(tmp_path / "b") as later:
            assert later.status().new_budget == reason
        assert first.status().new_budget is None
    for name in "ab":
        shutil.rmtree(tmp_path / name)  # deleted is not forgotten
    with pytest.raises(InvalidInput, match=f": it was at {tmp_path / 'b'}. A second.* new_budget"):
        Holdout.create(tmp_path / "a", data, plans.split())


# What is in it.


def test_leftover_units_are_reported(tmp_path: Path) -> None:
    blocks = plans.split().blocks
    data = table(3 * blocks + 7 + 20)
    share = 20.5 / len(data)
    with Holdout.create(tmp_path / "a", data, plans.split(), open_fraction=share) as holdout:
        status = holdout.status()
        assert (status.blocks, status.block_units) == (blocks, 3)
        assert (status.open_units, status.leftover_units) == (20, 7)
        assert status.units == len(data)
        assert "20 open, 7 left over" in str(status)
        assert holdout.open_table().num_rows == 20
        assert set(holdout.open_table(["x"]).column_names) == {"x"}


def test_without_an_open_part_there_is_none_to_show(tmp_path: Path) -> None:
    with sealed(tmp_path / "a", plans.split()) as holdout, pytest.raises(InvalidInput):
        holdout.open_table()


def test_rows_of_one_id_stay_together(tmp_path: Path) -> None:
    blocks = plans.split().blocks
    data = table(4 * 2 * blocks)
    data["who"] = np.random.default_rng(3).permutation(np.repeat(np.arange(2 * blocks), 4))
    with Holdout.create(tmp_path / "a", data, plans.split(), unit="who") as holdout:
        assert (holdout.status().units, holdout.status().block_units) == (2 * blocks, 2)
        stored = holdout._open.store.table(hidden=True).to_pandas()
        who = data.who.to_numpy()[stored["__row"]]
        by_id = pd.DataFrame({"who": who, "block": stored["__block"]}).drop_duplicates()
        assert len(by_id) == 2 * blocks  # no id is in two blocks
        assert "who" not in stored
        with pytest.raises(InvalidInput, match="who"):
            holdout.ask("avg(who)", grid=POINTS)


def test_the_plan_may_be_a_function_of_the_units(tmp_path: Path) -> None:
    seen: list[int] = []

    def plan(units: int) -> Any:
        seen.append(units)
        return plans.split()

    data = table(100)
    # 0.29 of 100 is 29, though 0.29 * 100 is less in floating point.
    Holdout.create(tmp_path / "a", data, plan, open_fraction=0.29).close()
    assert seen == [71]


def test_too_few_units_are_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(Infeasible, match="fewer questions or a smaller tail, or bring more data"):
        Holdout.create(tmp_path / "a", table(plans.split().blocks - 1), plans.split())
    assert left_behind(tmp_path) == []


def test_a_plan_that_does_not_prove_itself_is_refused(tmp_path: Path) -> None:
    from dataclasses import replace

    weaker = replace(plans.split(), queries=2_000)
    with pytest.raises(InvalidInput, match="certifies itself"):
        sealed(tmp_path / "a", weaker)
    richer = replace(plans.mixed(), budget=9.0)
    with pytest.raises(InvalidInput, match="certifies itself"):
        sealed(tmp_path / "b", richer)
    assert left_behind(tmp_path) == []


def test_a_planned_split_is_split(tmp_path: Path) -> None:
    made = hf.plan(queries=2, grid=8, tail=0.25)
    assert made.method == "split"
    rows = table(made.recommended_blocks)
    with Holdout.create(tmp_path / "a", rows, made) as holdout, sources():
        assert holdout.spec.sets[0].plan.names == ("split",)
        holdout.ask("avg(x)", grid=POINTS)  # the grid of a search is no matter here
        assert holdout.ask("avg(x)").cached
        assert check_holdout(holdout.path).passed


def test_a_name_is_the_folders_or_its_own(tmp_path: Path) -> None:
    with sealed(tmp_path / "flights.holdfast", plans.split()) as holdout:
        assert holdout.status().name == "flights"
        assert repr(holdout) == f"Holdout.open({str(tmp_path / 'flights.holdfast')!r})"
    with sealed(tmp_path / "b", plans.split(), name="Flüge <2013>") as holdout:
        assert holdout.status().name == "Flüge <2013>"
        assert "<2013>" not in holdout.status()._repr_html_()


def test_what_it_was_created_as_is_kept(tmp_path: Path) -> None:
    more: dict[str, Any] = {"target": "y", "ranges": {"X": (0, 10)}, "seed": 3}
    with sealed(tmp_path / "a", plans.mixed(), **more) as holdout:
        first = holdout.spec
    with Holdout.open(str(tmp_path / "a")) as holdout:
        assert holdout.spec == first
        assert holdout.spec.ranges == {"x": (0.0, 10.0)}  # as the column is spelled
        assert (holdout.spec.target, holdout.spec.seed) == ("y", 3)


def test_a_seed_repeats_the_blocks_and_the_answers(tmp_path: Path) -> None:
    data = table(plans.mixed().blocks)
    told = []
    for name in ("a", "b"):
        again = "to repeat it" if name == "b" else None
        made = Holdout.create(tmp_path / name, data, plans.mixed(), seed=5, new_budget=again)
        with made as holdout, sources():
            order = holdout._open.store.table(hidden=True).column("__row").to_pylist()
            told.append((order, holdout.ask("avg(x)", grid=POINTS).value))
    assert told[0] == told[1]
    made = Holdout.create(tmp_path / "c", data, plans.mixed(), new_budget="without a seed")
    with made as holdout:
        assert holdout._open.store.table(hidden=True).column("__row").to_pylist() != told[0][0]


# Sets.


def test_sets_are_disjoint_and_cover_all_blocks(tmp_path: Path) -> None:
    every: list[Any] = [
        plans.amplified(),
        plans.split(),
        plans.rounds(),
    ]
    sets = sets_for(every)
    ends = [(each.first, each.first + each.blocks) for each in sets]
    assert ends[0] == (0, 23 * 15)  # sub-blocks
    assert all(a[1] == b[0] for a, b in itertools.pairwise(ends))
    with sealed(tmp_path / "a", every) as holdout:
        assert holdout.status().blocks == ends[-1][1]
        assert holdout.spec.sets == sets


def test_a_kind_of_plan_comes_once() -> None:
    with pytest.raises(InvalidInput, match="joint_plan"):
        sets_for([plans.mixed(), plans.estimates()])
    with pytest.raises(InvalidInput, match="once"):
        sets_for([plans.split(), split_plan(5)])


def test_sets_that_overlap_are_refused() -> None:
    sets = sets_for([plans.rounds(), plans.split()])
    written = [each.to_dict() for each in sets]
    blocks = sum(each.blocks for each in sets)
    assert read_sets(written, blocks) == sets
    for wrong in ([written[0], {**written[1], "first": 3}], written[:1], written[::-1]):
        with pytest.raises(Damaged, match="disjoint"):
            read_sets(wrong, blocks)


def set_of(confidence: float) -> BlockSet:
    class Plan:
        pass

    plan: Any = Plan()
    plan.confidence = confidence
    return BlockSet("any", plan, 0)


def test_confidence_is_one_minus_all_betas() -> None:
    assert joint_confidence([set_of(0.95)]) == 0.95
    assert joint_confidence([set_of(0.95), set_of(0.95)]) == 0.9
    assert joint_confidence([set_of(0.95)] * 3) == 0.85
    with pytest.raises(InvalidInput, match="higher confidence"):
        joint_confidence([set_of(0.5), set_of(0.5)])


@given(st.lists(st.floats(0.8, 1, exclude_max=True, allow_nan=False), min_size=1, max_size=4))
def test_confidence_is_rounded_toward_safety(confidences: list[float]) -> None:
    exact = 1 - sum(1 - Fraction(repr(each)) for each in confidences)
    if exact <= 0:
        return
    together = joint_confidence([set_of(each) for each in confidences])
    assert Fraction(repr(together)) <= exact
    assert Fraction(math.nextafter(math.nextafter(together, 1), 1)) > exact
