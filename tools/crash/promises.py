"""What clients were told, held against the ledger: nothing lost, unpaid or changed."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.ledger.ledger import Row
from holdfast.ledger.opening import open_ledger
from holdfast.protocols.plans import Charge
from tools.crash.holdout_writer import recorded_values
from tools.crash.serving import Told
from tools.crash.told import amiss

__all__ = ["faults", "told_faults"]


def faults(path: Path, queries: int, seen: Iterable[Told]) -> list[str]:
    """What is not as it should be, given what clients were told."""
    told = list(seen)
    rows, found = _kept(path, told)
    return [*found, *_unpaid(path, rows), *_refused(rows, queries, told)]


def told_faults(path: Path, seen: Iterable[Told]) -> list[str]:
    """The same of a holdout whose answers are told: nothing is charged, and none is refused."""
    told = list(seen)
    rows, found = _kept(path, told)
    found += [f"{each.request} was refused" for each in told if each.value is None]
    return [*found, *amiss(path, rows)]


def _kept(path: Path, told: list[Told]) -> tuple[list[Row], list[str]]:
    """The rows, what the check finds, and what is not as clients were told."""
    found = [f"check: {f.name}: {f.detail}" for f in check_holdout(path).findings if not f.passed]
    with open_ledger(path) as ledger:
        rows, holdout = ledger.rows(), ledger.holdout
    return rows, [*found, *_lost(rows, holdout, told)]


def _lost(rows: list[Row], holdout: str, told: list[Told]) -> list[str]:
    """Acknowledged answers that the ledger does not have, or that were not always the same."""
    kept = recorded_values(rows, holdout)
    found = []
    first: dict[str, Told] = {}
    for each in told:
        if each.value is None:
            continue
        if kept.get(each.receipt) != each.value:
            found.append(f"{each.request} was told {each.value}, which the ledger does not say")
        for name in (each.request, each.question):
            before = first.setdefault(name, each)
            if (before.value, before.receipt) != (each.value, each.receipt):
                found.append(f"{name} has two answers")
    return found


def _unpaid(path: Path, rows: list[Row]) -> list[str]:
    """Answers without a charge before them, and a budget that is not the sum of the charges."""
    held: dict[int, Charge] = {}
    spent, answered, found = Fraction(0), set(), []
    for row in rows:
        if row.kind == "reserved":
            held[row.number] = Charge.from_dict(row.body["charge"])
        elif row.kind == "recorded":
            if any(number not in held for number in row.body["reserves"]):
                found.append(f"row {row.number} was answered and not paid")
            for number, data in zip(row.body["reserves"], row.body["charges"], strict=True):
                held.pop(number, None)
                spent += Charge.from_dict(data).price
            if row.question in answered:
                found.append(f"row {row.number} was drawn again")
            answered.add(row.question)
    spent += sum((charge.price for charge in held.values()), start=Fraction(0))
    return [*found, *_shown(path, spent, len(held))]


def _shown(path: Path, spent: Fraction, unsettled: int) -> list[str]:
    """What the holdout itself makes of its ledger, where that is something else."""
    try:
        with Holdout.open(path) as holdout, holdout.journal.state() as state:
            (only,) = state.sets.values()
            account, open_ones = only.account, only.unsettled
            same = account.charged == spent <= account.limit and open_ones == unsettled
            return [] if same else [f"{account.charged} is charged, and the rows say {spent}"]
    except HoldfastError as wrong:
        return [str(wrong)]


def _refused(rows: list[Row], queries: int, told: list[Told]) -> list[str]:
    """A refusal while something was left. What a kill has left unsettled stays charged."""
    charged = sum(row.kind == "reserved" for row in rows)
    if any(each.value is None for each in told) and charged < queries:
        return [f"refused with {charged} of {queries} charged"]
    return []
