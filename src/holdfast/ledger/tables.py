"""The table that a ledger keeps its rows in: what is read from it, and rows appended to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

from holdfast.errors import Damaged, InvalidInput, whole_number
from holdfast.ledger.interface import Transaction
from holdfast.ledger.receipts import Receipt
from holdfast.ledger.rows import Row, genesis, linked

__all__ = [
    "STOP",
    "Record",
    "Table",
    "TableTransaction",
    "read_rows",
    "recorded",
    "requested",
    "rows_after",
]

STOP = "Stop every process that uses the holdout, put back the newest copy, and open it again."

Record = tuple[Any, ...]  # a row as it is stored


class Table(ABC):
    """The stored rows of one holdout, as a connection reaches them."""

    @abstractmethod
    def head(self) -> tuple[int, str] | None:
        """Number and digest of the last row, or None if there is none."""

    @abstractmethod
    def record(self, number: int) -> Record | None:
        """The row that has this number."""

    @abstractmethod
    def records(self, first: int, limit: int | None = None) -> list[Record]:
        """The rows from this number on, in order; with a limit, so many."""

    @abstractmethod
    def recorded(self, questions: Collection[str]) -> list[Record]:
        """The `recorded` rows of all the questions, in no order."""

    @abstractmethod
    def requested(self, requests: Collection[str]) -> list[Record]:
        """The rows of all the idempotency keys, in no order."""

    @abstractmethod
    def insert(self, records: list[Record]) -> None:
        """Append rows."""


class TableTransaction(Transaction):
    """What happens between BEGIN and COMMIT of one connection.

    Rows are handed over together, before anything is read and at the end: every statement lets
    other threads go first, and a thread that commits for many would wait many times.
    """

    def __init__(self, table: Table, head: Receipt) -> None:
        self._table, self.head, self._open = table, head, True
        self._records: list[Record] = []

    @property
    def number(self) -> int:
        return self.head.number

    def rows(self, after: int = 0) -> list[Row]:
        return rows_after(self._written(), self.head, after)

    def append(
        self,
        kind: str,
        body: dict[str, Any],
        *,
        question: str | None = None,
        request: str | None = None,
    ) -> Row:
        self._running()
        if (kind == "created") != (self.head.number == 0):
            raise InvalidInput("kind", kind, "`created` for the first row, and only for it")
        at = datetime.now(UTC).isoformat(timespec="microseconds")
        row, record = Row.written_after(
            self.head, kind, body, at=at, question=question, request=request
        )
        self._records.append(record)
        self.head = Receipt(self.head.holdout, row.number, row.digest)
        return row

    def recorded(self, question: str) -> Row | None:
        return recorded(self._written(), [question]).get(question)

    def requested(self, request: str) -> list[Row]:
        return requested(self._written(), [request]).get(request, [])

    def write(self) -> None:
        """Hand over what was appended."""
        self._written()

    def end(self) -> None:
        """Its block has ended: it can no longer be used."""
        self._open = False

    def _written(self) -> Table:
        table = self._running()
        if self._records:
            records, self._records = self._records, []
            table.insert(records)
        return table

    def _running(self) -> Table:
        if not self._open:
            raise InvalidInput("transaction", "an ended one", "one whose block is still running")
        return self._table


def rows_after(table: Table, head: Receipt, after: int) -> list[Row]:
    """The rows behind a number, linked to the row that has it; `head` is that of the table."""
    after = whole_number("after", after, 0, 2**62)
    if 0 < after == head.number:  # whoever has read so far has read all
        return []
    return read_rows(head.holdout, after, table.records(after))


def read_rows(holdout: str, after: int, records: Iterable[Record]) -> list[Row]:
    """Rows as they were stored, linked to the row that has this number, which comes first."""
    rows = map(Row.from_record, records)
    if after == 0:
        start = Receipt(holdout, 0, genesis(holdout))
    else:
        first = next(rows, None)
        if first is None:
            raise Damaged("The ledger", f"at least {after:,} rows", "fewer", STOP)
        start = Receipt(holdout, first.number, first.digest)
    return list(linked(start, rows, read=True))


def recorded(table: Table, questions: Collection[str]) -> dict[str | None, Row]:
    """The last answer to each question that has one."""
    found = _in_order(table.recorded(questions)) if questions else []
    return {row.question: row for row in found if row.body.get("answer") is not None}


def requested(table: Table, requests: Collection[str]) -> dict[str | None, list[Row]]:
    """The rows of each idempotency key, in order."""
    found: dict[str | None, list[Row]] = {}
    for row in _in_order(table.requested(requests)) if requests else []:
        found.setdefault(row.request, []).append(row)
    return found


def _in_order(records: list[Record]) -> list[Row]:
    return sorted(map(Row.from_record, records), key=attrgetter("number"))
