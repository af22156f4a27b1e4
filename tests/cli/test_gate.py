"""Tests for `holdfast gate`: its exit status is what continuous integration reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from holdfast.cli.app import run
from holdfast.client.client import Client
from holdfast.holdout.holdout import Holdout
from tests.client.conftest import Served
from tests.holdout.plans import direct, gates
from tests.holdout.tables import sources, table

ROWS = gates().blocks


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A holdout whose six blocks score 0, 1/6, … 5/6, whatever the predictions are."""
    path = tmp_path / "gated.holdfast"
    frame = table(ROWS).assign(row=range(ROWS))
    Holdout.create(path, frame, gates(), ids="row", target="y").close()
    with sources():
        yield path


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text("row,prediction\n" + "".join(f"{k},1\n" for k in range(ROWS)))
    return path


def test_a_pass_is_free_where_gates_have_blocks_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, right, wrong = (tmp_path / name for name in ("labels.csv", "right.csv", "wrong.csv"))
    rows = range(300)
    labels.write_text("row,y\n" + "".join(f"{k},{k % 2}\n" for k in rows))
    right.write_text("row,prediction\n" + "".join(f"{k},{k % 2}\n" for k in rows))
    wrong.write_text("row,prediction\n" + "".join(f"{k},{1 - k % 2}\n" for k in rows))
    path = str(tmp_path / "own.holdfast")
    made = ("--protocols", "gate=20", "--refusals", "2", "--ids", "row", "--target", "y")
    assert run(["create", path, "--data", str(labels), *made]) == 0
    capsys.readouterr()

    def told(predictions: Path, threshold: str, status: int) -> tuple[float, int, bool]:
        assert gate(Path(path), predictions, "--at-least", threshold, "--json") == status
        said = json.loads(capsys.readouterr().out)
        return said["price"], said["refusals_left"], said["certified"]

    for number in range(5):
        assert told(right, f"0.9{number}", 0) == (0, 2, True)
    assert told(wrong, "0.9", 4) == (1, 1, True)
    assert told(right, "0.99", 0) == (0, 1, True)
    assert told(wrong, "0.91", 4) == (1, 0, True)
    assert told(right, "0.999", 3) == (0, 0, True)


def gate(where: Path | str, predictions: Path, *words: str) -> int:
    return run(["gate", str(where), "--predictions", str(predictions), *words])


def test_pass_fail_exhausted(
    folder: Path, predictions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(folder, predictions, "--at-least", "0", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["passed"], told["verdict"], told["metric"]) == (True, "pass", "accuracy")
    for number in range(3):
        assert gate(folder, predictions, "--at-least", f"0.99{number}") == 4
    said = capsys.readouterr().out
    assert "fail: accuracy at least 0.992?" in said
    assert "0 refusals left" in said
    assert gate(folder, predictions, "--at-least", "0.5", "--json") == 3
    assert json.loads(capsys.readouterr().out)["verdict"] == "exhausted"
    assert gate(folder, predictions, "--at-least", "0") == 0  # it was asked before
    assert "free: asked before" in capsys.readouterr().out


WRONG: list[tuple[tuple[str, ...], str]] = [
    ((), "one of them"),
    (("--at-least", "0.5", "--at-most", "0.6"), "one of them"),
    (("--at-least", "0.5", "--metric", "rmse", "--metrics", "none.py"), "exists"),
    (("--at-least", "nan"), "at_least"),
    (("--at-least", "85"), "at_least must be from 0 to 1, where every accuracy lies; got 85"),
    (("--at-most", "-0.1"), "at_most must be from 0 to 1"),
    (("--at-least", "0.5", "--holdout", "other"), "--holdout must be left out here"),
    (("--at-least", "0.5", "--token", "hf_secret"), "--token must be left out here; got '(given)'"),
]


def test_bad_input_is_said_and_costs_nothing(
    folder: Path, predictions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in WRONG:
        assert gate(folder, predictions, *words) == 2
        assert said in capsys.readouterr().err
    with Holdout.open(folder) as holdout:
        assert holdout.receipt.number == 1


def test_predictions_that_are_not_there(
    folder: Path, predictions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(folder, predictions.with_name("none.csv"), "--at-least", "0.5") == 2
    url = "http://127.0.0.1:1/holdouts/gated"
    assert gate(url, predictions.with_name("none.csv"), "--at-least", "0.5") == 2
    assert "file that exists" in capsys.readouterr().err


def test_a_plan_without_guesses(
    tmp_path: Path, predictions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "board.holdfast"
    frame = table(direct().blocks).assign(row=range(direct().blocks))
    Holdout.create(path, frame, direct(), ids="row", target="y").close()
    assert gate(path, predictions, "--at-least", "0.5") == 2
    assert "--protocols gate" in capsys.readouterr().err


def test_damage_is_not_a_gate_that_failed(
    folder: Path, predictions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "ids.parquet").write_bytes(b"nothing")
    assert gate(folder, predictions, "--at-least", "0.5") == 1
    assert "damaged" in capsys.readouterr().err


def test_a_gate_on_a_server(
    folder: Path,
    predictions: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("HOLDFAST_TOKEN", raising=False)
    with Holdout.open(folder) as holdout:
        _, token = holdout.access.grant("analyst")
    transport = Served(folder)
    monkeypatch.setattr("holdfast.client.client.Client", partial(Client, transport=transport))
    try:
        url = "http://127.0.0.1:8000"
        words = ("--holdout", "gated", "--token", token)
        assert gate(url, predictions, "--at-least", "0", *words) == 0
        assert "pass: accuracy at least 0?" in capsys.readouterr().out
        assert gate(url, predictions, "--at-least", "0.99", *words) == 4
        assert gate(url, predictions, "--at-least", "0.99") != 0
    finally:
        transport.end()
