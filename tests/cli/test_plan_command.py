"""`holdfast plan` as a person or a program uses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.app import run
from holdfast.cli.common import whole

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
        (["--queries", "x"], "'--queries': 'x' is not a whole number."),
        (["--queries", "2.5"], "'--queries': '2.5' is not a whole number."),
        (["--rows", "1e-3"], "'--rows': '1e-3' is not a whole number."),
        (["--blocks", "inf"], "'--blocks': 'inf' is not a whole number."),
        (["--block-size", "nan"], "'--block-size': 'nan' is not a whole number."),
        (["--queries", "1e9"], "queries must be a whole number from 1 to 100,000,000"),
        (["--nonsense"], "--nonsense"),
        (["--queries", "5", "--tail", "0.5"], "tail must be a number in (0, 0.5)"),
        (["--queries", "5", "--confidence", "2"], "confidence must be"),
        (["--queries", "5", "--tails", "0.1"], "tails must be two numbers"),
        (["--queries", "5", "--grid", "3,2,1"], "grid"),
        (["--queries", "5", "--grid", "nan"], "grid must be a whole number, LOW:HIGH:STEP"),
        (["--queries", "5", "--grid", "2.5"], "grid must be a whole number, LOW:HIGH:STEP"),
        (["--queries", "5", "--grid", "1e0"], "grid must be a whole number from 2"),
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


def test_whole_numbers_may_have_an_exponent(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for queries, grid, rows in (("10", "1000", "100000"), ("1e1", "1e3", "1.0e5")):
        assert run(["plan", "--queries", queries, "--grid", grid, "--rows", rows, "--json"]) == 0
        shown.append(json.loads(capsys.readouterr().out))
    assert shown[0] == shown[1]
    assert shown[0]["grid"] == 1_000


def test_a_large_whole_number_is_read_exactly() -> None:
    assert whole(str(2**62 + 1)) == 2**62 + 1


def test_a_folder_is_no_plot_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "figure.svg"
    folder.mkdir()
    assert run([*ASK, "--plot", str(folder)]) == 2
    shown = capsys.readouterr()
    assert "plot must be a file, not a folder" in shown.err
    assert shown.out == ""  # refused before the work


@pytest.mark.parametrize("columns", [80, 40, 30])
def test_a_narrow_terminal_shows_whole_numbers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run(ASK) == 0
    table = capsys.readouterr().out.partition("The same promise")[2]
    for number in ("228,705", "4,300", "1.00"):
        assert number in table
    assert "× steepest" in table


@pytest.mark.parametrize(
    "arguments",
    [ASK, ["plan", "--help"], ["plan", "--queries", "5", "--shape", "ρ"]],
    ids=["answer", "help", "error"],
)
def test_a_terminal_without_unicode(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from holdfast.cli import main; main()", *arguments],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == (2 if "ρ" in arguments else 0)
    assert b"Traceback" not in done.stderr
    assert done.stdout or done.stderr.startswith(b"holdfast: shape")


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_plot(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
) -> None:
    monkeypatch.setattr(sys.modules["holdfast.planning.recommend"], "PLOT_QUERIES", (1, 10))
    target = tmp_path / f"figure.{suffix}"
    assert run(["plan", "--queries", "5", "--tail", "0.1", "--plot", str(target)]) == 0
    assert target.stat().st_size > 5_000
    assert "Drawn" in capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("holdfast 0.")
    assert run(["plan", "--help"]) == 0
    assert "--tail" in capsys.readouterr().out


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    asked = capsys.readouterr().out
    assert run([]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == asked
    assert shown.err.startswith("Usage:")
