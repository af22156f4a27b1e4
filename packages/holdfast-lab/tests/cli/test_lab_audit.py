"""`holdfast lab audit`: its JSON, its text, and what it refuses."""

from __future__ import annotations

import json

import pytest

from holdfast.cli.app import run

AUDIT = ["lab", "audit", "--workers", "1", "--seed", "1", "--queries", "40", "--tail", "0.05"]


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*AUDIT, "--grid", "2", "--sessions", "20", "--analyst", "tuned", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["sessions"], told["failures"], told["analyst"]) == (20, 0, "tuned")
    assert 1 <= told["tightness"] < 2
    assert told["naive_failures"] < 10
    assert "does not fail here" in told["naive_fails"]
    assert told["upper_bound"] == pytest.approx(1 - 0.05 ** (1 / 20))


def test_text_and_progress_go_to_their_own_streams(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*AUDIT, "--protocol", "split", "--sessions", "3"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("Plan       split: 40 questions; ")
    assert "sessions" not in shown.err.replace("\r", "\n").splitlines()[-1:]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--analyst", "nobody"], "analyst must be one of aggregator, persistent, tuned"),
        (["--protocol", "magic"], "protocol must be one of estimate, interval"),
        (["--sessions", "0"], "sessions must be a whole number from 1"),
        (["--workers", "0"], "workers must be a whole number from 1"),
        (["--tail", "0.7"], "tail must be a number in (0, 0.5)"),
        (["--confidence", "1.5"], "confidence must be"),
        (["--seed", "1.5"], "'1.5' is not a whole number"),
    ],
)
def test_bad_questions(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run([*AUDIT, *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""
