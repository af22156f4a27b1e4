"""`holdfast plan` as a person or a program uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.cli.app import run

ASK = ["plan", "--queries", "100", "--grid", "32", "--tail", "0.25", "--confidence", "0.95"]


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ASK, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["method"] == "steepest"
    assert data["blocks"] <= 2_260
    assert data["looks"] == 500
    assert data["tail"] == 0.25
    assert data["confidence"] == 0.95
    for key in ("order", "budget", "floor", "tau"):
        assert data[key] > 0
    blocks = {entry["method"]: entry["blocks"] for entry in data["alternatives"]}
    assert blocks["paper"] == 228_705
    assert blocks["split"] == 4_300
    assert blocks["steepest"] == data["blocks"]


def test_rows_add_block_size_and_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--queries", "50", "--grid", "32", "--rows", "50000", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["block_size"] >= 1
    assert 0 < data["error"] < 0.5


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ASK) == 0
    out = capsys.readouterr().out
    assert "228,705" in out
    assert "recommended" in out
    assert "asymptotic only" in out


def test_grid_as_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--queries", "5", "--grid", "0:1:0.1", "--tail", "0.1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["grid"] == 11


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--queries", "0"], "queries must be a whole number from 1"),
        (["--queries", "x"], "--queries"),
        (["--nonsense"], "--nonsense"),
        (["--queries", "5", "--tail", "0.5"], "tail must be a number in (0, 0.5)"),
        (["--queries", "5", "--confidence", "2"], "confidence must be"),
        (["--queries", "5", "--tails", "0.1"], "tails must be two numbers"),
        (["--queries", "5", "--grid", "3,2,1"], "grid"),
        (["--queries", "5", "--grid", "nan"], "grid"),
        (["--queries", "5", "--plot", "picture.gif"], "svg, png, pdf"),
        (["--queries", "5", "--plot", "nowhere/at/all.svg"], "existing folder"),
        (["--queries", "9", "--tail", "0.2", "--rows", "10"], "Not enough rows"),
    ],
)
def test_bad_questions_exit_with_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(["plan", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""
    assert "Traceback" not in shown.err
    assert run(["plan", *arguments, "--json"]) == 2
    assert message in json.loads(capsys.readouterr().err)["error"]["message"]


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_plot(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
) -> None:
    monkeypatch.setattr("holdfast.planning.figure.PLOT_QUERIES", (1, 10))
    target = tmp_path / f"figure.{suffix}"
    assert run(["plan", "--queries", "5", "--tail", "0.1", "--plot", str(target)]) == 0
    assert target.stat().st_size > 5_000
    assert "Drawn" in capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("holdfast 0.")
    assert run(["plan", "--help"]) == 0
    assert "--tail" in capsys.readouterr().out
