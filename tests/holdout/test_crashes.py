"""Killed on the way: the price stays, the answer was not seen, and one can go on."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.holdout import answering
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from tests.holdout import plans
from tests.holdout.crowd import killed
from tests.holdout.tables import sealed, sources
from tools.crash.account import Acknowledged
from tools.crash.holdout_writer import HoldoutWriter, ToldWriter

POINTS = hf.grid(0, 1, points=8)
LEFT = {
    "in the reservation": ["created"],
    "after the reservation": ["created", "reserved"],
    "in the draw": ["created", "reserved"],
    "before the record": ["created", "reserved"],
    "behind the record": ["created", "reserved", "recorded"],
    "after the record": ["created", "reserved", "recorded"],
}
PLANS: dict[str, tuple[Callable[[], Any], Callable[[Holdout], Any]]] = {
    "mixed": (plans.mixed, lambda h: h.ask("avg(x)", grid=POINTS)),
    "split": (plans.split, lambda h: h.ask("avg(x)")),
    "rounds": (plans.rounds, lambda h: h.ask("avg(x)")),
}


@pytest.mark.parametrize("point", LEFT)
@pytest.mark.parametrize("kind", PLANS)
def test_killed(tmp_path: Path, kind: str, point: str) -> None:
    path = tmp_path / "a.holdfast"
    make, ask = PLANS[kind]
    sealed(path, make()).close()
    assert killed(path, point, ask) == signal.SIGKILL
    assert check_holdout(path).passed
    with Holdout.open(path) as holdout, sources():
        assert [row.kind for row in holdout.journal.ledger.rows()] == LEFT[point]
        before = holdout.status().sets[0]
        assert before.unsettled == (LEFT[point] == ["created", "reserved"])
        free = kind == "rounds" and "recorded" in LEFT[point]  # a Yes
        assert (before.spent > 0) == (point != "in the reservation" and not free)
        again = ask(holdout)
        assert again.cached == ("recorded" in LEFT[point])
        after = holdout.status().sets[0]
        assert after.unsettled == before.unsettled  # what was lost stays charged
        if again.cached:
            assert after.spent == before.spent
    assert check_holdout(path).passed


@pytest.mark.parametrize("subject", [HoldoutWriter, ToldWriter])
def test_what_the_campaign_kills_asks_and_answers(
    subject: type[HoldoutWriter], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "found_by", answering.found_by)  # it has one of its own
    subject.create(tmp_path, 499)
    writer = subject.open(tmp_path)
    said = writer.ask("0123456789abcdef", "one")
    assert said is not None
    assert writer.ask("0123456789abcdef", "one") == said
    writer.close()
    seen = [Acknowledged("one", "0123456789abcdef", said)]
    assert subject.faults(tmp_path, 499, seen) == []
    changed = seen[0]._replace(answer=said[:-1])
    assert "which the ledger does not say" in "".join(subject.faults(tmp_path, 499, [changed]))
