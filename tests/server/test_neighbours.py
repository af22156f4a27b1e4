"""Neighbouring holdouts look the same over the wire; `python -m tools.neighbours` asks 1,000 times.

All blocks but one agree, so a coin of these plans lands on its unlikely side once in 1e7 looks.
What differs is asked again of another pair: a false alarm, of some 100 looks, has a probability of
about 1e-10.
"""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engines.sql.engine import SqlEngine
from tools.neighbours import PLANS, Compared, by_chance, campaign, compare


def test_neighbours_look_the_same() -> None:
    compared = campaign(80)
    assert compared.differences == {}
    assert compared.questions == 80
    answered = sum(count for kind, count in compared.statuses.items() if kind.endswith(" 200"))
    refused = sum(count for kind, count in compared.statuses.items() if " 400 " in kind)
    assert min(answered, refused) > 20
    assert any("exhausted" in kind for kind in compared.statuses)


def test_a_leak_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    original = SqlEngine.values

    def leaking(self: SqlEngine, *words: Any, **more: Any) -> Any:
        if "True" in str(
            self._store.place(self._store.shards[0])
        ):  # an engine that says which row it fails on
            raise ValueError("Could not convert string 'SECRET-4711'")
        return original(self, *words, **more)

    monkeypatch.setattr(SqlEngine, "values", leaking)
    compared = Compared()
    compare(2, PLANS["crowd"](), compared)
    assert compared.differences
    assert not any(
        "convert" in each for each in compared.differences.values()
    )  # seen, but not told


def test_uneven_pairs_are_no_chance() -> None:
    assert by_chance([(0, 0)] * 100) == 1.0
    assert by_chance([(0, 1), (1, 0)] * 50) == 1.0
    assert by_chance([(0, 1)] * 30 + [(0, 0)] * 1000) == 2.0**-29
