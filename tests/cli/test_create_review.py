"""What `holdfast create` says, and asks, before it seals anything."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from holdfast.cli.app import run
from holdfast.cli.plan import PROTOCOLS
from holdfast.holdout.holdout import Holdout

ROWS = 3_000
CROWDED = ["--protocols", "estimate=10,verify=30", "--tail", "0.01"]  # guesses need many blocks


class Terminal(io.StringIO):
    """Somebody at a keyboard."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def data(tmp_path: Path) -> Path:
    chance = np.random.default_rng(1)
    frame = pd.DataFrame({"x": chance.exponential(10, ROWS), "y": chance.random(ROWS) < 0.4})
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def create(data: Path, *words: object) -> tuple[int, Path]:
    folder = data.parent / "new.holdfast"
    given = ["create", folder, "--data", data, "--new-budget", "a test", *words]
    return run([str(word) for word in given]), folder


OPTIONS: dict[str, list[str]] = {
    "auto": ["--tail", "0.1"],
    "interval": [],
    "mean": ["--half-width", "0.2"],
    "verify": ["--refusals", "2"],
    "correct": ["--refusals", "2"],
    "rounds": ["--rounds", "2"],
    "weights": ["--universe", "12", "--tail", "0.1"],
    "split": ["--tail", "0.1"],
    "exact": ["--tail", "0.1"],
    "amplified": ["--tail", "0.01"],
    "simple": ["--tail", "0.1"],
    "estimate": ["--tail", "0.1"],
}


def test_every_protocol_is_tried() -> None:
    assert set(OPTIONS) == {*PROTOCOLS, "estimate"}


@pytest.mark.parametrize("protocol", sorted(set(OPTIONS) - {"weights"}))
def test_a_plan_that_was_written_can_be_sealed(
    data: Path, protocol: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", "--protocol", protocol, "--queries", "5", *OPTIONS[protocol], "--json"]
    assert run(words) == 0
    written = data.parent / "plan.json"
    written.write_text(capsys.readouterr().out, encoding="utf-8")
    status, folder = create(data, "--plan", written)
    assert status == 0, capsys.readouterr().err
    plan = json.loads(written.read_text())
    if plan["method"] == "split" and "plan" not in plan:  # recommended beside the steepest coin
        (sizes,) = (each for each in plan["alternatives"] if each["method"] == "split")
        plan = sizes
    with Holdout.open(folder) as holdout:
        assert holdout.status().blocks >= plan["blocks"]


def test_a_written_plan_of_weights_says_what_it_lacks(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", "--protocol", "weights", "--queries", "5", *OPTIONS["weights"], "--json"]
    assert run(words) == 0
    written = data.parent / "plan.json"
    written.write_text(capsys.readouterr().out, encoding="utf-8")
    status, folder = create(data, "--plan", written)
    assert status == 2
    assert "given with block_units for weights" in capsys.readouterr().err
    assert not folder.exists()


def test_a_plan_that_was_changed_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--protocol", "split", "--queries", "5", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    plan["plan"]["queries"] = 500
    written = data.parent / "plan.json"
    written.write_text(json.dumps(plan), encoding="utf-8")
    status, _ = create(data, "--plan", written)
    assert status == 2
    assert "changed after it was made" in capsys.readouterr().err


def test_sizes_and_bars_are_shown_before_sealing(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, folder = create(data, "--queries", 5, "--tail", 0.1)
    said = capsys.readouterr()
    assert (status, said.err) == (0, "")
    with Holdout.open(folder) as holdout:
        made = holdout.status()
    first, second = said.out.splitlines()[:2]
    sizes = f"{made.blocks:,} blocks of {made.block_units:,} units: of 3,000 units 0 stay open and "
    assert first == f"{sizes}{made.leftover_units:,} are left over, never used"
    assert "estimate" in second
    assert "a share of units within ±0." in second


def test_in_json_it_is_data(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _ = create(data, *CROWDED, "--json")
    said = capsys.readouterr()
    assert (status, said.err) == (0, "")
    preview = json.loads(said.out)["preview"]
    assert [part["name"] for part in preview["parts"]] == ["estimate", "verify"]
    assert 0 < preview["parts"][0]["half_width"] <= 0.5
    assert any("verify needs the most blocks" in each for each in preview["careful"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--protocols", "mean=20", "--block-units", "1"], "without --block-units blocks would"),
        (CROWDED, "verify needs the most blocks"),
    ],
)
def test_a_plan_that_wastes_data_is_told_and_asked_about(
    data: Path, words: list[Any], message: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    keyboard = Terminal("n\n")
    monkeypatch.setattr(sys, "stdin", keyboard)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    status, folder = create(data, *words)
    said = capsys.readouterr()
    assert status == 1
    assert message in said.err
    assert "Nothing was sealed." in said.err
    assert [each.name for each in data.parent.iterdir()] == ["data.csv"]

    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert create(data, *words)[0] == 0
    assert folder.exists()


def test_with_yes_it_does_not_ask(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(""))  # whoever asked would get no answer
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert create(data, *CROWDED, "--yes")[0] == 0
    assert "Careful:" in capsys.readouterr().err


def test_off_a_terminal_it_never_asks(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    status, folder = create(data, *CROWDED)
    said = capsys.readouterr()
    assert status == 0
    assert "Careful: blocks have" in said.err
    assert "Seal the data" not in said.out + said.err
    assert folder.exists()


def test_a_plan_that_wastes_nothing_is_not_doubted(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert create(data, "--queries", 5, "--tail", 0.1)[0] == 0
    assert "Careful" not in capsys.readouterr().err


def test_a_reason_for_data_never_sealed_does_not_call_them_known(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_STATE", str(data.parent / "state"))
    assert create(data, "--queries", 5, "--tail", 0.1)[0] == 0
    assert "earlier holdouts of these data known here: none" in capsys.readouterr().out
    data.parent.joinpath("new.holdfast").rename(data.parent / "old.holdfast")
    assert create(data, "--queries", 5, "--tail", 0.1)[0] == 0
    assert "earlier holdouts of these data known here: 1" in capsys.readouterr().out
