"""Kill the server by −9 under load: what clients were told is kept, paid and the same.

The campaign of 200 kills is `python -m tools.crash.server`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.grids import grid
from holdfast.holdout.holdout import Holdout
from holdfast.protocols.told import Past
from holdfast.randomness import SeededEntropy
from tests.holdout.plans import crowd
from tests.holdout.tables import sealed, sources
from tools.crash import cluster
from tools.crash.places import Place, Setup
from tools.crash.promises import faults, told_faults
from tools.crash.rush import Call, Rushed, inexact, rush_calls
from tools.crash.server import Results, campaign, page
from tools.crash.serving import PROGRAM, Caller, Told

CARELESS = Path(__file__).with_name("careless.py")


def test_a_server_that_is_killed_keeps_its_word() -> None:
    results = campaign(kills=2, clients=3)
    assert results.faults == []
    assert (results.kills, results.rounds) == (2, 1)
    assert results.answers >= results.told > 0
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
    with Holdout.open(path) as holdout, holdout.journal.ledger.begin() as transaction:
        row = transaction.rows()[-1]
        transaction.append("recorded", row.body, question=row.question, request="anyone/l")
    found = faults(path, 500, [told])
    assert any("was answered and not paid" in each for each in found)
    assert any("was drawn again" in each for each in found)
    assert any(each.startswith("check: ") for each in found)


@pytest.mark.parametrize(
    ("mistake", "fault"),
    [
        (None, None),
        ("talkative", "was told again"),
        ("thoughtless", "does not say what was told so far"),
    ],
)
def test_what_is_told_is_recorded_once_and_counted(
    mistake: str | None, fault: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = PROGRAM if mistake is None else (sys.executable, str(CARELESS), mistake)
    with Place(tmp_path, 200, Setup(program=program)) as place:
        caller = Caller(place.urls)
        asked = [(4, "a"), (4, "a"), (4, "b"), (7, "c"), (10, "d")]
        seen = [caller.tell(number, request) for number, request in asked]
        caller.close()
        place.stop()
        found = told_faults(place.told, seen)
        assert any(fault in each for each in found) if fault else found == []
        refused, changed = replace(seen[3], value=None), replace(seen[3], value=seen[4].value)
        found = told_faults(place.told, [refused, changed])
        assert "c was refused" in found
        assert any(each.startswith("c was told") for each in found)
        monkeypatch.setattr(Past, "tell", lambda *_: None)
        assert any("and the letters cost" in each for each in told_faults(place.told, []))


@pytest.fixture
def calls() -> list[Call]:
    """Three questions, the first of them asked three times."""
    return [("a", "k1"), ("b", "k2"), ("a", "k1"), ("c", "k3"), ("a", "k4")]


def answered(question: str, request: str, *, cached: bool = False) -> Told:
    return Told(request, question, 1.0, f"receipt of {question}", cached, lost=0)


def refused(question: str, request: str) -> Told:
    return Told(request, question, None, "", cached=False, lost=0)


def test_what_a_budget_pays_for_is_granted_once(calls: list[Call]) -> None:
    seen = [answered("a", "k1"), answered("b", "k2"), refused("c", "k3")]
    seen += [answered("a", "k1", cached=True), answered("a", "k4", cached=True)]
    assert inexact(calls, 2, seen) == []


@pytest.mark.parametrize(
    ("third", "fault"),
    [
        ([answered("c", "k3")], "3 granted on a budget for 2"),
        ([answered("c", "k3", cached=True)], "3 questions answered on a budget for 2"),
        ([refused("b", "k3")], "k3 was refused what others were told"),
        ([], "1 of 5 requests had no reply"),
    ],
)
def test_what_a_budget_does_not_pay_for_is_a_fault(
    calls: list[Call], third: list[Told], fault: str
) -> None:
    seen = [answered("a", "k1"), answered("b", "k2"), *third]
    seen += [answered("a", "k1", cached=True), answered("a", "k4", cached=True)]
    assert fault in inexact(calls, 2, seen)


def test_too_few_is_a_fault(calls: list[Call]) -> None:
    seen = [answered("a", "k1"), refused("b", "k2"), refused("c", "k3")]
    seen += [answered("a", "k1", cached=True), answered("a", "k4", cached=True)]
    assert "1 granted on a budget for 2" in inexact(calls, 2, seen)


def test_many_calls_of_a_rush_are_free() -> None:
    calls = rush_calls(1000, 100, SeededEntropy(1))
    questions, keys = {question for question, _ in calls}, {key for _, key in calls}
    assert 500 < len(questions) < len(keys) - 100 < 750
    assert len({*calls}) == len(keys)  # a key names one question


@pytest.mark.parametrize(("found", "status"), [([], 0), (["k1 has two answers"], 4)])
def test_a_fault_of_two_servers_is_the_exit_status(
    found: list[str], status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rushed = Rushed(1, 1, 1, 1, 1, 0, 0, 0.0, found)
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path))  # main has another one
    monkeypatch.setattr(cluster, "postgres_server", lambda: nullcontext(_NoPostgres()))
    monkeypatch.setattr(cluster, "rush", lambda *_: rushed)
    monkeypatch.setattr(cluster, "campaign", lambda *_: Results(1))
    output = tmp_path / "page.md"
    assert cluster.main(["--output", str(output)]) == status
    assert all(f"**{fault}**" in output.read_text("utf-8") for fault in found)


class _NoPostgres:
    def command(self, _: str) -> str:
        return "15.18 (Debian)"
