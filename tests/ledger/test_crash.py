"""A short version of the crash campaign; `python -m tools.crash` runs the long one.

It runs in a process of its own, which forks: the process of the tests has threads.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.holdout import answering
from holdfast.randomness import SeededEntropy
from tools.crash.holdout_writer import ToldWriter
from tools.crash.power import power_campaign

ROOT = Path(__file__).parents[2]
TOLD = "tools.crash.holdout_writer:ToldWriter"
NOTHING = {"kills": 0, "cuts": 0, "processes": 1, "requests": 1, "retries": 8, "batches": 1}


def campaign(tmp_path: Path, subject: str | None = None, **wanted: int) -> tuple[int, str, str]:
    """The exit status, the page and the faults of a campaign."""
    page = tmp_path / "page.md"
    command = [sys.executable, "-m", "tools.crash", "--output", str(page)]
    for name, value in (NOTHING | wanted).items():
        command += [f"--{name}", str(value)]
    if subject is not None:
        command += ["--subject", subject if ":" in subject else f"tests.ledger.mutants:{subject}"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    return run.returncode, page.read_text("utf-8"), run.stderr


def test_kills_crowds_and_retries_lose_change_and_give_away_nothing(tmp_path: Path) -> None:
    wanted = {"kills": 60, "processes": 32, "requests": 100, "budget": 500, "retries": 1000}
    status, page, faults = campaign(tmp_path, None, **wanted)
    assert (status, faults) == (0, "")
    for said in (
        "60 kills on 2 ledgers",
        "3,200 requests on a budget of 500: 500 were granted",
        "1,000 times each: one answer each",
    ):
        assert said in page.replace("\n", " ")


def test_what_is_told_is_told_once_and_kept(tmp_path: Path) -> None:
    asked = {"processes": 4, "requests": 10, "budget": 40, "retries": 40}
    status, page, faults = campaign(tmp_path, TOLD, kills=30, **asked)
    assert (status, faults) == (0, "")
    assert "30 kills on 1 ledgers" in page


@pytest.mark.parametrize(
    ("subject", "wanted", "fault"),
    [
        ("TellsBeforeRecording", {"kills": 20}, "was told"),
        ("ChargesAfterwards", {"kills": 10}, "was answered and not paid"),
        ("ChecksThenAppends", {"processes": 8, "requests": 25, "budget": 50}, "on a budget of 50"),
        ("Unlocked", {"kills": 20, "retries": 400}, "was drawn again"),
        ("TellsAnew", {"retries": 8}, "has two answers"),
    ],
)
def test_the_campaign_finds_the_mistake(
    tmp_path: Path, subject: str, wanted: dict[str, int], fault: str
) -> None:
    status, page, faults = campaign(tmp_path, subject, **wanted)
    assert status == 4
    assert fault in faults
    assert fault in page.replace("\n", " ")


def test_power_cuts_lose_nothing_with_full_and_something_with_normal() -> None:
    durable = power_campaign(60, entropy=SeededEntropy(1))
    assert (durable.cuts, durable.lost, durable.faults) == (60, 0, [])
    assert durable.acknowledged > 300
    assert durable.during["creating"] > 0
    control = power_campaign(30, durable=False, entropy=SeededEntropy(1))
    assert control.lost > 5
    assert control.faults == []


def test_power_cuts_lose_nothing_that_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "found_by", answering.found_by)  # a writer has one of its own
    durable = power_campaign(4, entropy=SeededEntropy(3), subject=ToldWriter)
    assert (durable.cuts, durable.lost, durable.faults) == (4, 0, [])
    assert durable.acknowledged > 30
    control = power_campaign(6, durable=False, entropy=SeededEntropy(1), subject=ToldWriter)
    assert control.lost > 0
    assert control.faults == []
