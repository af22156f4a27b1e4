"""The ledger's table in SQLite: what is read from it, and rows appended to it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

from holdfast.arguments import whole_number
from holdfast.errors import Damaged, InvalidInput
from holdfast.ledger import statements as sql
from holdfast.ledger.interface import Transaction
from holdfast.ledger.receipts import Receipt
from holdfast.ledger.rows import Row, genesis, linked
from holdfast.ledger.sessions import Session

__all__ = ["STOP", "SqliteTransaction", "read_rows", "recorded", "requested", "rows_after"]

_AT_ONCE = 100  # rows in one statement

STOP = "Stop every process that uses the holdout, put back the newest copy, and open it again."


class SqliteTransaction(Transaction):
    """What happens between BEGIN and COMMIT of one session.

    Rows are handed to SQLite together, before anything is read and at the end: every statement
    lets other threads go first, and a thread that commits for many would wait many times.
    """

    def __init__(self, session: Session, head: Receipt) -> None:
        self._session, self.head, self._open = session, head, True
        self._records: list[tuple[Any, ...]] = []

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
        """Hand over to SQLite what was appended."""
        self._written()

    def end(self) -> None:
        """Its block has ended: it can no longer be used."""
        self._open = False

    def _written(self) -> Session:
        session = self._running()
        while self._records:
            some, self._records = self._records[:_AT_ONCE], self._records[_AT_ONCE:]
            session.all(sql.insert(len(some)), *itertools.chain.from_iterable(some))
        return session

    def _running(self) -> Session:
        if not self._open:
            raise InvalidInput("transaction", "an ended one", "one whose block is still running")
        return self._session


def rows_after(session: Session, head: Receipt, after: int) -> list[Row]:
    """The rows behind a number, linked to the row that has it; `head` is that of the session."""
    after = whole_number("after", after, 0, 2**62)
    if 0 < after == head.number:  # whoever has read so far has read all
        return []
    return read_rows(head.holdout, after, session.all(sql.SELECT_AFTER, after))


def read_rows(holdout: str, after: int, records: Iterable[tuple[Any, ...]]) -> list[Row]:
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


def recorded(session: Session, questions: Collection[str]) -> dict[str | None, Row]:
    """The last answer to each question that has one."""
    found = _several(session, sql.select_recorded, questions)
    return {row.question: row for row in found if row.body.get("answer") is not None}


def requested(session: Session, requests: Collection[str]) -> dict[str | None, list[Row]]:
    """The rows of each idempotency key, in order."""
    found: dict[str | None, list[Row]] = {}
    for row in _several(session, sql.select_requested, requests):
        found.setdefault(row.request, []).append(row)
    return found


def _several(
    session: Session, statement: Callable[[int], str], names: Collection[str]
) -> list[Row]:
    records = session.all(statement(len(names)), *names) if names else []
    return sorted(map(Row.from_record, records), key=attrgetter("number"))
