"""What pays: a question on its way through a holdout, and bare commits beside it.

door      `OpenHoldout.answer`: locks, look-up, charge, record, and the receipt kept elsewhere; the
          answer itself is drawn from a hat, so that only the ledger is measured
ledger    the same two rows appended to a ledger, hash-chained, and nothing else
receipt   the receipt alone, kept as a holdout keeps it
full      two transactions of a bare connection, WAL and synchronous = FULL, rows of equal size
normal    the same with synchronous = NORMAL, which a power cut may undo
synced    two writes to a plain file, each followed by fsync
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import holdfast as hf
from holdfast.holdout.questions import Asked
from holdfast.ledger.ledger import Receipt, Row
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.ledger.witness import Witness
from holdfast.protocols.base import Drawn
from holdfast.protocols.plans import Charge

__all__ = ["Asker", "bare", "kept", "ledger", "synced"]

GRID = hf.grid(0, 1, points=2)
Job = Callable[[], object]


class Asker:
    """Asks a holdout one new question after another, without evaluating anything."""

    def __init__(self, holdout: hf.Holdout, numbers: Iterator[int]) -> None:
        self._open, self._ledger, self._numbers = holdout._open, holdout.journal.ledger, numbers
        self._ready: list[Asked] = []
        row = self._last() or self._first()
        self._worst = Charge.from_dict(row.body["charges"][0])
        self._drawn = row.body["drawn"]
        self._open._draw = self._from_a_hat  # type: ignore[assignment,method-assign]

    def prepare(self, count: int) -> None:
        """Parse so many questions; the parser is not what is measured."""
        self._ready += [self._question() for _ in range(count)]

    def ask(self) -> None:
        self._open.answer(self._ready.pop(), None, None)

    def fill(self, count: int) -> None:
        """Write both rows of so many questions as a holdout does, in one transaction."""
        reserved, recorded = (row.body for row in self._ledger.rows(self._ledger.head().number - 2))
        questions = [self._question() for _ in range(count)]
        with self._ledger.begin() as transaction:
            for each in questions:
                told = each.question.facts
                body = {**reserved, "question": told}
                paid = transaction.append("reserved", body, question=each.key)
                body = {**recorded, "question": told, "reserves": [paid.number]}
                transaction.append("recorded", body, question=each.key)

    def _question(self) -> Asked:
        return self._open.asked("ask", f"avg(x0) + {next(self._numbers)}", grid=GRID)

    def _from_a_hat(self, _: Asked, pending: Any, _progress: object) -> Drawn:
        pending.reserve(self._worst)
        return dict(self._drawn)

    def _last(self) -> Row | None:
        row = self._ledger.row(self._ledger.head().number)
        return row if row is not None and row.kind == "recorded" else None

    def _first(self) -> Row:
        """A real question, as a pattern for the others."""
        self._open.answer(self._question(), None, None)
        row = self._last()
        assert row is not None
        return row


def ledger(folder: Path, rows: list[Row]) -> Job:
    """Both rows of a question, in a transaction each."""
    found = SqliteLedger.create(folder / "ledger.sqlite", "benchmark", {})

    def job() -> None:
        for row in rows:
            with found.begin() as transaction:
                transaction.append(row.kind, row.body, question=row.question)

    return job


def kept(folder: Path) -> Job:
    """One receipt after another."""
    witness, numbers = Witness(folder / "receipts"), itertools.count(1)
    digest = "0" * 64
    return lambda: witness.see(Receipt("benchmark", next(numbers), digest))


def bare(path: Path, sizes: list[int], synchronous: str) -> Job:
    """A transaction for each row of so many characters."""
    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("CREATE TABLE IF NOT EXISTS t (number INTEGER PRIMARY KEY, body TEXT)")
    bodies = ["x" * size for size in sizes]

    def job() -> None:
        for body in bodies:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO t (body) VALUES (?)", (body,))
            connection.execute("COMMIT")

    return job


def synced(path: Path, sizes: list[int]) -> Job:
    """A write and an fsync for each row."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    bodies = [b"x" * size for size in sizes]

    def job() -> None:
        for body in bodies:
            os.write(descriptor, body)
            os.fsync(descriptor)

    return job
