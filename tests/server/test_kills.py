"""Kill the server by −9 under load: what clients were told is kept, paid and the same.

The campaign of 200 kills is `python -m tools.crash.server`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.grids import grid
from holdfast.holdout import Holdout
from tests.holdout.plans import crowd
from tests.holdout.tables import sealed, sources
from tools.crash.server import campaign, faults, page
from tools.crash.serving import Told


def test_a_server_that_is_killed_keeps_its_word() -> None:
    results = campaign(kills=2, clients=3)
    assert results.faults == []
    assert (results.kills, results.rounds) == (2, 1)
    assert results.answers > 0
    assert sum(results.where.values()) == 2 * 3
    assert "No fault was found." in page(results, "command", "2026-11-16")


@pytest.fixture
def asked(tmp_path: Path) -> tuple[Path, Told]:
    """A holdout that was asked once, and what its asker was told."""
    path = tmp_path / "a.holdfast"
    with sealed(path, crowd()) as holdout, sources():
        answer = holdout.ask("avg(x)", grid=grid(0, 1, points=2), request="anyone/k")
    return path, Told("k", "avg(x)", answer.value, answer.receipt, cached=False, lost=0)


def test_what_was_told_is_no_fault(asked: tuple[Path, Told]) -> None:
    path, told = asked
    assert faults(path, 500, [told, replace(told, cached=True, lost=1)]) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda told: replace(told, value=1 - told.value), "which the ledger does not say"),
        (lambda told: replace(told, receipt=told.receipt[:-1]), "which the ledger does not say"),
        (lambda told: replace(told, value=None), "refused with 1 of 500 charged"),
    ],
    ids=["changed", "lost", "refused"],
)
def test_what_was_not_told_is_a_fault(
    asked: tuple[Path, Told], change: Callable[[Told], Told], fault: str
) -> None:
    path, told = asked
    found = faults(path, 500, [told, change(told)])
    assert any(fault in each for each in found)


def test_a_charge_that_is_gone_is_a_fault(asked: tuple[Path, Told]) -> None:
    path, told = asked
    with Holdout.open(path) as holdout, holdout.door.ledger.begin() as transaction:
        row = transaction.rows()[-1]
        transaction.append("recorded", row.body, question=row.question, request="anyone/l")
    found = faults(path, 500, [told])
    assert any("was answered and not paid" in each for each in found)
    assert any("was drawn again" in each for each in found)
    assert any(each.startswith("check: ") for each in found)
