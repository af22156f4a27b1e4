"""What pays: a question on its way through the door of a holdout, and bare commits beside it.

door      `Door.answer`: locks, look-up, charge, record, and the receipt kept elsewhere; the
          answer itself is drawn from a hat, so that only the ledger is measured
ledger    the same two rows appended to a ledger, hash-chained, and nothing else
receipt   the receipt alone, kept as the door keeps it
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

import holdfast as hf
from holdfast.holdout.questions import Question
from holdfast.holdout.records import Result, read_result
from holdfast.holdout.sessions import Session
from holdfast.ledger.ledger import Receipt, Row
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.ledger.witness import Witness
from holdfast.protocols.budget import Charge

__all__ = ["Asker", "bare", "kept", "ledger", "synced"]

GRID = hf.grid(0, 1, points=2)
Job = Callable[[], object]


class Asker:
    """Asks a holdout one new question after another, without evaluating anything."""

    def __init__(self, holdout: hf.Holdout, numbers: Iterator[int]) -> None:
        self._clerk, self._door, self._numbers = holdout._clerk, holdout.door, numbers
        self._offer = self._clerk.offer("ask", None)
        self._ready: list[Question] = []
        row = self._last() or self._asked()
        self._worst = Charge.from_dict(row.body["charges"][0])
        self._answer = read_result(row.body["answer"], "", cached=False)

    def prepare(self, count: int) -> None:
        """Parse so many questions; the parser is not what is measured."""
        self._ready += [self._question() for _ in range(count)]

    def ask(self) -> None:
        self._door.answer(self._ready.pop(), self._offer.set, None, None, None, self._drawn)

    def fill(self, count: int) -> None:
        """Write both rows of so many questions as the door does, in one transaction."""
        ledger = self._door.ledger
        reserved, recorded = (row.body for row in ledger.rows(ledger.head().number - 2))
        questions = [self._question() for _ in range(count)]
        with ledger.begin() as transaction:
            for question in questions:
                told = question.to_dict()
                body = {**reserved, "question": told}
                paid = transaction.append("reserved", body, question=question.key)
                body = {**recorded, "question": told, "reserves": [paid.number]}
                transaction.append("recorded", body, question=question.key)

    def _question(self) -> Question:
        asked = self._clerk.estimator(f"avg(x0) + {next(self._numbers)}", None, {})
        return self._clerk.question("ask", self._offer, asked, grid=GRID)

    def _drawn(self, session: Session) -> tuple[Result, None]:
        session.settle(session.hold(self._worst)[0], self._worst)
        return self._answer, None

    def _last(self) -> Row | None:
        row = self._door.ledger.row(self._door.ledger.head().number)
        return row if row is not None and row.kind == "recorded" else None

    def _asked(self) -> Row:
        """A real question, as a pattern for the others."""
        self._clerk.answer(self._offer, self._question(), None, None)
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
