"""The campaign about growth: its gates can fail, and its page says what was found."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tools.growth.model import Rates, Table, cost
from tools.growth.page import failures, page


def size(rows: int) -> dict[str, Any]:
    question = {
        "question": "avg(x)",
        "same_bits": True,
        "here": 0.1,
        "there": 0.25,
        "scanned_bytes": 8 * rows,
    }
    return {
        "rows": rows,
        "blocks": 4_262,
        "shards": max(1, rows // 10**6),
        "creation": {"opening": 0.1, "shuffling": rows / 1e6},
        "creation_seconds": 0.1 + rows / 1e6,
        **{f"{name}_bytes": 20 * rows for name in ("data", "staged", "spilled", "sealed")},
        "peak_bytes": {"driver": 2e8, "scheduler": 1e8, "worker 1": 5e8, "worker 2": 6e8},
        "questions": [question],
        "holdout": {"seconds": 0.5, "value": 1.0, "ledger_rows": 2},
    }


BESIDE = {"rows": 100, "task": 0.01, "seconds": {"2": 0.03, "128": 0.66}}


def test_what_holds_passes_and_is_told() -> None:
    sizes = [size(10**6), size(10**7)]
    assert failures(sizes) == []
    text = page(sizes, BESIDE, 2)
    assert "agree to the last bit" in text
    assert "| `avg(x)` | 10,000,000 | 10 | 80 MB | 100 ms | 250 ms | 2.50 |" in text
    assert "| 1e12 | 1024 |" in text
    assert "| 10,000,000 | 10 s | 10 s | 250 ms | 250 ms |" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"there": 0.31}, "3.10 times"),
        ({"same_bits": False}, "differ"),
    ],
)
def test_a_gate_that_is_missed_is_said(change: dict[str, object], said: str) -> None:
    found = copy.deepcopy([size(10**6), size(10**7)])
    found[1]["questions"][0] |= change
    [wrong] = failures(found)
    assert said in wrong
    found = [size(10**7)]
    found[0]["holdout"]["ledger_rows"] = 3
    assert "3" in failures(found)[0]


def test_costs_grow_as_they_should() -> None:
    rates = Rates(scanned=1e8, shuffled=1e7)
    small, large = (Table(n, 3, 1, 20.0, 8.0, 4_262, 1_000) for n in (10**9, 10**10))
    one, ten = cost(small, rates, 10), cost(large, rates, 10)
    for name in ("shuffled", "written", "creation_seconds", "scanned"):
        assert getattr(ten, name) == pytest.approx(10 * getattr(one, name))
    assert (one.driver, one.commits, one.tasks) == (ten.driver, ten.commits, ten.tasks)
    assert one.question_seconds == pytest.approx(100 * 8e9 / 1_000 / 1e8)
    assert cost(small, rates, 1_000).question_seconds < one.question_seconds / 50
