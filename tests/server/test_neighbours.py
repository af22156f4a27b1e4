"""Neighbouring holdouts look the same over the wire; `python -m tools.neighbours` asks 1,000 times.

All blocks but one agree, so a coin of these plans lands on its unlikely side once in 1e7 looks.
What differs is asked again of another pair: a false alarm, of some 100 looks, has a probability of
about 1e-10.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from holdfast.engines.sql.engine import SqlEngine
from holdfast.verbs import SCORES
from tools.neighbours import PLANS, Compared, by_chance, campaign, compare, timed


def test_neighbours_look_the_same() -> None:
    compared = campaign(160)
    assert compared.differences == {}
    assert compared.questions == 160
    asked = {kind.split()[0] for kind in compared.statuses if kind.endswith(" 200")}
    assert asked >= {*SCORES, "mean", "neighbours", "price/score"}
    answered = sum(count for kind, count in compared.statuses.items() if kind.endswith(" 200"))
    refused = sum(count for kind, count in compared.statuses.items() if " 400 " in kind)
    assert min(answered, refused) > 20
    assert any("exhausted" in kind for kind in compared.statuses)


@pytest.mark.parametrize(("kind", "method"), [("crowd", "values"), ("told", "sums")])
def test_a_leak_would_be_seen(kind: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = getattr(SqlEngine, method)

    def leaking(self: SqlEngine, *words: Any, **more: Any) -> Any:
        if "True" in str(
            self._store.place(self._store.shards[0])
        ):  # an engine that says which row it fails on
            raise ValueError("Could not convert string 'SECRET-4711'")
        return original(self, *words, **more)

    monkeypatch.setattr(SqlEngine, method, leaking)
    compared = Compared()
    compare(2 if kind == "crowd" else 12, PLANS[kind](), compared)
    assert compared.differences
    assert not any(
        "convert" in each for each in compared.differences.values()
    )  # seen, but not told


def test_a_side_that_reads_more_slowly_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    original = SqlEngine.sums

    def slow(self: SqlEngine, *words: Any, **more: Any) -> Any:
        time.sleep(1.0 if "True" in str(self._store.place(self._store.shards[0])) else 0.0)
        return original(self, *words, **more)

    monkeypatch.setattr(SqlEngine, "sums", slow)
    (read, _) = timed(1, 0.05, "told")  # a mean: the slot of its rows, and that of its letter
    assert read[0] < read[1]


def test_uneven_pairs_are_no_chance() -> None:
    assert by_chance([(0, 0)] * 100) == 1.0
    assert by_chance([(0, 1), (1, 0)] * 50) == 1.0
    assert by_chance([(0, 1)] * 30 + [(0, 0)] * 1000) == 2.0**-29
