"""The forger's tools: whoever can write to the folder can also compute digests."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.holdout.check import Checked, check_holdout
from holdfast.ledger.sqlite import SqliteLedger

LEDGER = "ledger.sqlite"


@dataclass
class Entry:
    """A row as a forger sees it."""

    kind: str
    body: dict[str, Any]
    question: str | None
    request: str | None


GONE = object()
"""In the place of a value: it is taken out."""


def put(body: Any, place: str, value: object) -> None:
    """Another value at a place such as "charges.0.price"; a function makes it of the old one."""
    *outer, last = (int(each) if each.lstrip("-").isdigit() else each for each in place.split("."))
    for each in outer:
        body = body[each]
    if value is GONE:
        del body[last]
    else:
        body[last] = value(body[last]) if callable(value) else value


def failed(checked: Checked) -> dict[str, str]:
    return {finding.name: finding.detail for finding in checked.findings if not finding.passed}


def forge(folder: Path, edit: Callable[[list[Entry]], object]) -> None:
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


def forged(folder: Path, edit: Callable[[list[Entry]], object]) -> dict[str, str]:
    """What `check` finds of the answers of a forged ledger, which is then as it was before."""
    kept = (folder / LEDGER).read_bytes()
    forge(folder, edit)
    try:
        return failed(check_holdout(folder, told=False))
    finally:
        for file in folder.glob(f"{LEDGER}*"):
            file.unlink()
        (folder / LEDGER).write_bytes(kept)


def found(entries: list[Entry], kind: str, part: str, verb: str = "", nth: int = 0) -> Entry:
    """The n-th row of this kind for a part."""
    return [
        each
        for each in entries
        if each.kind == kind
        and each.body["question"]["part"] == part
        and each.body["question"]["verb"] in (verb or each.body["question"]["verb"])
    ][nth]
