"""`holdfast create`: what it refuses, and what it says and asks before it seals anything."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

from holdfast.cli.plan import PROTOCOLS
from holdfast.errors import InvalidInput
from holdfast.holdout.holdout import Holdout
from tests.cli.conftest import Cli
from tests.holdout.tables import table

SMALL = ("--queries", 5, "--tail", 0.1)
CROWDED = ("--protocols", "estimate=10,verify=30", "--tail", 0.01)  # guesses need many blocks
SPLIT = ("--protocols", "split=2")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    table(3_000).to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


@pytest.fixture
def create(data: Path, cli: Cli) -> Cli:
    return lambda *words: cli("create", data.parent / "new.holdfast", "--data", data, *words)


def test_without_a_plan_it_says_what_bars_to_expect(data: Path, create: Cli, cli: Cli) -> None:
    said = create("--target", "y")
    assert said.status == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("1,800 of 3,000 units are sealed; 1,200 stay open")
    assert "that you guess about right" in lines[1]
    assert lines[2].endswith("  3 surprises")
    whens = [int(line.split()[0].replace(",", "")) for line in lines[3:7]]
    bars = [[float(each[1:]) for each in line.split()[1:]] for line in lines[3:7]]
    assert whens == [0, 20, 100, 1_000]
    assert [len(each) for each in bars] == [1, 3, 3, 3]
    assert all(each == sorted(each) for each in bars)  # surprises widen
    assert [each[0] for each in bars] == sorted(each[0] for each in bars)  # and so do questions
    assert lines[7].startswith("  precise answers, which tell more: ±0.0")
    path = data.parent / "new.holdfast"
    assert lines[8] == (
        f"Sealed. Next, in Python: holdfast.Holdout.open({str(path)!r}).score(predictions), "
        "one prediction for each row of the table."
    )
    status = cli("status", path, "--json").json
    assert (status["open_units"], status["confidence"]) == (1_200, 0.95)
    (only,) = status["sets"]
    assert only["told"]["bars"][0]["half_widths"][0] <= bars[0][0]
    assert cli("check", path).status == 0


def test_a_target_without_ids_is_said_to_be_for_python_alone(create: Cli, data: Path) -> None:
    alone = create("--target", "y")
    assert alone.err == (
        "Careful: without --ids no command, server or leaderboard can score predictions by id; "
        "only Python can, with an array in the order of the table. Name a column by --ids now.\n"
    )
    with Holdout.open(data.parent / "new.holdfast") as holdout:
        assert holdout.score(pd.read_csv(data)["y"].to_numpy()).certified
    again = ("--new-budget", "a test")
    shutil.rmtree(data.parent / "new.holdfast")
    (careful,) = create("--target", "y", *again, "--json").json["preview"]["careful"]
    assert careful.startswith("without --ids")
    shutil.rmtree(data.parent / "new.holdfast")
    table(3_000).assign(row=range(3_000)).to_csv(data, index=False)
    units = create("--target", "y", "--unit", "row")
    assert "only Python can, with a model, and no predictions." in units.err
    assert ".score(model).\n" in units.out
    with Holdout.open(data.parent / "new.holdfast") as holdout:
        model = DummyClassifier().fit([[0]], [0])
        assert holdout.score(model, features=["x"]).certified
        with pytest.raises(InvalidInput, match="keyed by ids"):
            holdout.score(pd.read_csv(data)["y"].to_numpy())
    shutil.rmtree(data.parent / "new.holdfast")
    named = create("--target", "y", "--ids", "row", *again)
    assert named.err == ""
    assert "Next: holdfast score" in named.out


def test_few_rows_are_said_to_be_few_and_none_is_lost_sight_of(
    tmp_path: Path, create: Cli, cli: Cli
) -> None:
    table(571).to_csv(tmp_path / "few.csv", index=False)
    few = cli("create", tmp_path / "few.holdfast", "--data", tmp_path / "few.csv")
    sizes, left = few.out.splitlines()[0].rsplit("; ", 1)
    numbers = [int(each) for each in re.findall(r"\d+", sizes)]
    assert numbers[1] == 571
    assert left == f"{571 - numbers[0] - numbers[2]} are left over, never used"
    assert few.err == ""
    wide = cli("create", tmp_path / "w", "--data", tmp_path / "few.csv", "--new-budget", "a test")
    assert "±" not in wide.err
    opened = create("--target", "y", "--open-fraction", 0.95)
    assert "Careful: even the first bar will be about ±0.1" in opened.err
    assert "seal more rows, or leave fewer open\n" in opened.err


def test_what_is_told_may_be_planned_for(data: Path, create: Cli, cli: Cli) -> None:
    made = create("--protocols", "score=50", "--json").json
    assert (made["open_units"], [each["name"] for each in made["sets"]]) == (0, ["told"])
    shutil.rmtree(data.parent / "new.holdfast")
    reason = ("--new-budget", "another", "--json")
    words = ("--queries", 50, "--confidence", 0.9, "--open-fraction", 0.5, *reason)
    status = create(*words).json
    assert (status["confidence"], status["open_units"]) == (0.9, 1_500)
    (part,) = status["preview"]["parts"]
    assert part["questions"] == 50
    assert part["bars"][0]["half_widths"][0] < part["bars"][3]["half_widths"][2]


def test_a_stratified_table_claims_at_its_shares(data: Path, create: Cli, cli: Cli) -> None:
    assert create("--target", "y", "--split", "stratified", "--open-fraction", 0).status == 0
    path = data.parent / "new.holdfast"
    said = cli("mean", path, "y = 1", "--json").json
    assert said["reading"] == "rule-at-these-class-shares"
    assert "at these class shares" in cli("mean", path, "y = 1").out
    cli("ask", path, "avg(x)", "--grid", "0:10:1").refuses("split class by class")


def test_create_ask_and_look_back(data: Path, create: Cli, cli: Cli) -> None:
    status = create(
        *("--protocols", "estimate=4,split=2", "--grid", 8, "--tail", 0.1),
        *("--open-fraction", 0.1, "--range", "x=0:10", "--target", "y", "--name", "flights"),
        *("--categories", "g=a, b,c", "--json"),
    ).json
    assert (status["name"], status["open_units"], status["certified"]) == ("flights", 300, True)
    assert [each["name"] for each in status["sets"]] == ["main", "split"]
    assert status["confidence"] == pytest.approx(0.95, abs=1e-9)
    path = data.parent / "new.holdfast"
    words = ("ask", path, "avg(x)", "--where", "x > 0", "--protocol", "split", "--json")
    assert 0 <= cli(*words).json["value"] <= 10
    cli("ask", path, "avg(x)", "--where", "g = 'B'", "--json").refuses("Did you mean 'b'?")
    assert cli("status", path, "--json").json["answers"] == 1
    assert cli("check", path, "--json").json["passed"] is True


WRONG: list[tuple[tuple[object, ...], str]] = [
    (("--queries", 3, "--protocols", "nothing"), "protocols"),
    (("--protocols", "estimate"), "--queries"),
    (("--tail", 0.1), "--queries"),
    (("--confidence", 0.5), "confidence"),
    (("--confidence", 1), "confidence"),
    (("--queries", -1), "queries"),
    (("--reading", "both"), "one of rows, rule"),
    (("--split", "none"), "one of simple, stratified"),
    (("--refusals", 3), "--refusals must be left out without a plan"),
    (("--rounds", 3), "--rounds must be left out without a plan"),
    (("--block-units", 3), "--block-units must be left out without a plan"),
    (("--values", "g=a,b,c"), "--values must be left out without a plan"),
    (("--target", "nobody"), "target"),
    ((*SPLIT, "--data", "none.csv"), "No file has this name"),
    ((*SPLIT, "--range", "x"), "--range"),
    ((*SPLIT, "--range", "nobody=0:1"), "ranges"),
    ((*SPLIT, "--categories", "g"), "--categories"),
    ((*SPLIT, "--categories", "x=a,b"), "categories"),
    ((*SPLIT, "--unit", "nobody"), "nobody"),
    ((*SPLIT, "--weight", "x"), "Every unit counts once"),
    ((*SPLIT, "--open-fraction", 2), "open_fraction"),
    (("--protocols", "split=1000000"), "more data"),
    ((*SMALL, "--ledger", "mysql://host/db"), "postgresql://"),
    ((*SMALL, "--ledger", "postgresql://me:secret@host/db"), "password"),
    ((*SMALL, "--location", "s3://bucket/x"), "engine"),
]


def test_a_creation_that_is_refused_leaves_nothing(data: Path, create: Cli) -> None:
    for words, message in WRONG:
        said = create(*words, "--json")
        said.refuses(message)
        assert "secret" not in said.err
        assert [path.name for path in data.parent.iterdir()] == ["data.csv"], words


def test_the_same_data_need_a_reason_that_is_kept(data: Path, create: Cli, cli: Cli) -> None:
    words, old = ("--queries", 2, "--protocols", "split"), data.parent / "old.holdfast"
    reason = ("--new-budget", "a second study")
    assert "known here: none" in " ".join(create(*words, *reason).out.split())
    (data.parent / "new.holdfast").rename(old)
    create(*words, "--json").refuses("--new-budget")
    made = " ".join(create(*words, *reason).out.split())
    assert "earlier holdouts of these data known here: 1" in made
    assert cli("status", data.parent / "new.holdfast", "--json").json["new_budget"] == reason[1]
    assert "a second study" in cli("status", data.parent / "new.holdfast").out


# Plans that were written before.


OPTIONS: dict[str, tuple[object, ...]] = {
    "auto": ("--tail", 0.1),
    "interval": (),
    "mean": ("--half-width", 0.2),
    "verify": ("--refusals", 2),
    "correct": ("--refusals", 2),
    "rounds": ("--rounds", 2),
    "weights": ("--universe", 12, "--tail", 0.1),
    "split": ("--tail", 0.1),
    "amplified": ("--tail", 0.01),
    "simple": ("--tail", 0.1),
    "estimate": ("--tail", 0.1),
}


def test_every_protocol_is_tried() -> None:
    assert set(OPTIONS) == {*PROTOCOLS, "estimate"}


def written(data: Path, cli: Cli, protocol: str, **changes: object) -> tuple[Path, Any]:
    """What `plan --json` says of a protocol, in a file; perhaps changed."""
    words = ("--protocol", protocol, "--queries", 5, *OPTIONS[protocol])
    plan = cli("plan", *words, "--json").json
    plan.get("plan", {}).update(changes)
    file = data.parent / "plan.json"
    file.write_text(json.dumps(plan), "utf-8")
    return file, plan


@pytest.mark.parametrize("protocol", sorted(set(OPTIONS) - {"weights"}))
def test_a_plan_that_was_written_can_be_sealed(
    data: Path, create: Cli, cli: Cli, protocol: str
) -> None:
    file, plan = written(data, cli, protocol)
    said = create("--plan", file)
    assert said.status == 0, said.err
    if plan["method"] == "split" and "plan" not in plan:  # recommended beside the steepest coin
        (plan,) = (each for each in plan["alternatives"] if each["method"] == "split")
    with Holdout.open(data.parent / "new.holdfast") as holdout:
        assert holdout.status().blocks >= plan["blocks"]


def test_what_rows_would_give_can_be_sealed(data: Path, create: Cli, cli: Cli) -> None:
    """`plan --rows` says both what is told and what looks give: the latter is a plan."""
    plan = cli("plan", "--rows", 2_000, "--queries", 5, "--json").json
    assert {"told", "blocks"} <= set(plan)
    file = data.parent / "plan.json"
    file.write_text(json.dumps(plan), "utf-8")
    said = create("--plan", file)
    assert said.status == 0, said.err


def test_scores_and_gates_are_both_told(create: Cli) -> None:
    said = create("--protocols", "score=20,gate=5")
    assert said.status == 0, said.err


@pytest.mark.parametrize(
    ("protocol", "changes", "message"),
    [
        ("weights", {}, "given with block_units for weights"),
        ("split", {"queries": 500}, "changed after it was made"),
    ],
)
def test_a_written_plan_that_is_refused(
    data: Path, create: Cli, cli: Cli, protocol: str, changes: dict[str, Any], message: str
) -> None:
    create("--plan", written(data, cli, protocol, **changes)[0]).refuses(message)
    assert not (data.parent / "new.holdfast").exists()


# What is said and asked before.


def test_sizes_and_bars_are_shown_before_sealing(data: Path, create: Cli) -> None:
    said = create(*SMALL)
    assert (said.status, said.err) == (0, "")
    with Holdout.open(data.parent / "new.holdfast") as holdout:
        made = holdout.status()
    first, second = said.out.splitlines()[:2]
    sizes = f"{made.blocks:,} blocks of {made.block_units:,} units: of 3,000 units 0 stay open and "
    assert first == f"{sizes}{made.leftover_units:,} are left over, never used"
    assert "estimate" in second
    assert "a share of units within ±0." in second


def test_in_json_it_is_data(create: Cli) -> None:
    preview = create(*CROWDED, "--json").json["preview"]
    assert [part["name"] for part in preview["parts"]] == ["estimate", "verify"]
    assert 0 < preview["parts"][0]["half_width"] <= 0.5
    assert any("verify needs the most blocks" in each for each in preview["careful"])


ALONE = ("--protocols", "mean=20", "--block-units", 1)
UNNAMED = ("--target", "y")


@pytest.mark.parametrize(
    ("words", "keys", "status", "said"),
    [
        (ALONE, "n\n", 1, ("without --block-units blocks would", "Nothing was sealed.")),
        (CROWDED, "n\n", 1, ("verify needs the most blocks", "Nothing was sealed.")),
        (ALONE, "y\n", 0, ("Seal the data",)),
        (CROWDED, "y\n", 0, ("Seal the data",)),
        ((*CROWDED, "--yes"), "", 0, ("Careful:",)),  # whoever asked would get no answer
        (CROWDED, None, 0, ("Careful: blocks have",)),  # off a terminal
        (SMALL, "", 0, ()),  # nothing is wasted
        (UNNAMED, "n\n", 1, ("Careful: without --ids", "Nothing was sealed.")),
        (UNNAMED, "y\n", 0, ("Seal the data",)),
        ((*UNNAMED, "--yes"), "", 0, ("Careful: without --ids",)),
        (UNNAMED, None, 0, ("Careful: without --ids", "Next, in Python")),
    ],
)
def test_a_plan_that_wastes_data_is_told_and_asked_about(
    data: Path,
    create: Cli,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[object, ...],
    keys: str | None,
    status: int,
    said: tuple[str, ...],
) -> None:
    keyboard = io.StringIO(keys or "")
    if keys is not None:
        monkeypatch.setattr(keyboard, "isatty", lambda: True)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", keyboard)
    found = create(*words)
    assert found.status == status
    told = found.out + found.err
    assert [each for each in said if each not in told] == []
    assert ("Seal the data" in told) == bool(keys)
    assert ("Careful" in found.err) == bool(said)
    assert (data.parent / "new.holdfast").exists() == (status == 0)
    assert status == 0 or [each.name for each in data.parent.iterdir()] == ["data.csv"]
