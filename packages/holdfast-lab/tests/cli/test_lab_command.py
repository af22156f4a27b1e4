"""`holdfast lab attack`: what it refuses, before it leaves a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.cli.app import run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seed", "-1"], "seed must be a whole number from 0 to 18,446,744,073,709,551,615"),
        (["--seed", str(2**64)], "seed must be a whole number from 0"),
        (["--seed", "1.5"], "'--seed': '1.5' is not a whole number."),
        (["--runs", "0"], "runs must be a whole number from 1 to 100,000"),
        (["--runs", "1e6"], "runs must be a whole number from 1 to 100,000"),
    ],
)
def test_bad_questions_make_no_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], message: str
) -> None:
    folder = tmp_path / "attack"
    assert run(["lab", "attack", "--output", str(folder), *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""
    assert not folder.exists()


def test_a_file_is_no_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    taken = tmp_path / "attack"
    taken.touch()
    assert run(["lab", "attack", "--output", str(taken)]) == 2
    assert "output must be a folder" in capsys.readouterr().err


def test_json_is_one_object(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = [
        "lab",
        "attack",
        "-o",
        str(tmp_path / "new"),
        "--runs",
        "2",
        "--seed",
        "1",
        "--json",
    ]
    assert run(arguments) == 0
    assert json.loads(capsys.readouterr().out)["certified"] is False
    assert (tmp_path / "new" / "demo.svg").exists()


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab"]) == 2
    shown = capsys.readouterr()
    assert "attack" in shown.err
    assert "Try --help" not in shown.err
    assert shown.out == ""
