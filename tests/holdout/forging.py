"""The forger's tools: whoever can write to the folder can also compute digests."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.holdout.check import Checked
from holdfast.ledger.sqlite import SqliteLedger

LEDGER = "ledger.sqlite"


@dataclass
class Entry:
    """A row as a forger sees it."""

    kind: str
    body: dict[str, Any]
    question: str | None
    request: str | None


def failed(checked: Checked) -> dict[str, str]:
    return {finding.name: finding.detail for finding in checked.findings if not finding.passed}


def forge(folder: Path, edit: Callable[[list[Entry]], None]) -> None:
    """Write the ledger anew: other rows, one whole chain."""
    with SqliteLedger.open(folder / LEDGER) as ledger:
        holdout = ledger.holdout
        entries = [
            Entry(row.kind, copy.deepcopy(row.body), row.question, row.request)
            for row in ledger.rows()
        ]
    edit(entries)
    for file in folder.glob(f"{LEDGER}*"):
        file.unlink()
    first, *rest = entries
    with (
        SqliteLedger.create(folder / LEDGER, holdout, first.body) as ledger,
        ledger.begin() as transaction,
    ):
        for each in rest:
            transaction.append(each.kind, each.body, question=each.question, request=each.request)


def found(entries: list[Entry], kind: str, part: str, verb: str = "", nth: int = 0) -> Entry:
    """The n-th row of this kind for a part."""
    return [
        each
        for each in entries
        if each.kind == kind
        and each.body["question"]["part"] == part
        and each.body["question"]["verb"] in (verb or each.body["question"]["verb"])
    ][nth]
