"""What counts as growth in a soak, what its page says, and a few seconds of one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import soak
from tools.soak import MOST_GROWTH, Watched, page, resident, watched


def taken(sizes: list[int], minutes: float = 30.0) -> Watched:
    """A run whose memory was looked at evenly."""
    step = 60 * minutes / len(sizes)
    return Watched(minutes, [i * step for i in range(len(sizes))], sizes, processes=2)


def test_the_warm_up_does_not_count() -> None:
    seen = taken([10] * 25 + [100] * 155)
    assert len(seen.settled()) == 150
    assert (seen.growth, seen.passed) == (0, True)


@pytest.mark.parametrize(("last", "passed"), [(104, True), (106, False)])
def test_the_last_minute_stands_beside_the_first(last: int, passed: bool) -> None:
    seen = taken([100] * 170 + [last] * 10)
    assert seen.growth == pytest.approx(last / 100 - 1)
    assert seen.passed is passed
    assert seen.passed is (seen.growth < MOST_GROWTH)


def test_a_short_peak_is_told_and_a_wrong_answer_fails() -> None:
    seen = taken([100 * 2**20] * 100 + [900 * 2**20] + [100 * 2**20] * 79)
    told = " ".join(page(seen, "python -m tools.soak", "2026-01-31").split())
    assert "at most 900 MB: a growth of 0.0 %" in told
    assert "It passed." in told
    seen.wrong.append("GET /status: 500")
    assert not seen.passed
    assert "**It failed.**" in page(seen, "python -m tools.soak", "2026-01-31")


def test_children_are_counted() -> None:
    alone, before = resident(os.getpid())
    child = subprocess.Popen(
        [sys.executable, "-c", "x = b'x' * 10**8; input()"], stdin=subprocess.PIPE
    )
    try:
        assert child.stdin is not None
        while resident(child.pid)[0] < 10**8:
            pass
        together, after = resident(os.getpid())
    finally:
        child.communicate(b"\n")
    assert after == before + 1
    assert together > alone + 9 * 10**7


def test_both_holdouts_are_asked_and_what_is_refused_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = soak._told

    def unlike(n: int) -> Iterator[soak._Request]:
        """As if what must be refused were to be answered."""
        for method, place, body, expected in asked(n):
            yield method, place, body, min(expected, 200)

    monkeypatch.setattr(soak, "_told", unlike)
    monkeypatch.setattr(soak, "scratch", lambda: tmp_path)
    seen = watched(0.2)
    told = {name for name in seen.answers if "told/" in name}
    assert told >= {f"POST told/{verb}" for verb in ("score", "compare", "gate", "best", "mean")}
    assert seen.wrong
    assert all(": 400 " in each and "guess" in each for each in seen.wrong)
