"""The table that a ledger keeps its rows in: what is read from it, and rows appended to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import Any

from holdfast.concurrency import Combiner, Job, Turns
from holdfast.errors import Damaged, HoldfastError, InvalidInput, whole_number
from holdfast.ledger.ledger import Ledger, Receipt, Row, Transaction, genesis, linked

__all__ = [
    "STOP",
    "Looker",
    "Record",
    "Table",
    "TableLedger",
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


# Looking into a ledger: what several threads want to know is read in one go.
#
# Every statement lets other threads of the process go first. A crowd that looks one after the
# other,
# each with a lock in its hands, would spend its time waiting; so one looks for all.


Reading = Callable[[], AbstractContextManager[tuple[Table, Receipt]]]


@dataclass(frozen=True)
class _Look:
    """What one thread wants to know: one of these."""

    after: int | None = None
    question: str | None = None
    request: str | None = None


class Looker:
    """Looks for all threads of a process. `reading` gives a table, and the head as of then.

    It is given each time, not kept: a ledger that nobody holds any more is closed at once.
    """

    def __init__(self) -> None:
        self._looks: Combiner[_Look, Any] = Combiner()

    def rows(self, reading: Reading, after: int) -> list[Row]:
        """The rows behind a number."""
        found: list[Row] = self._looks.do(partial(_look, reading), _Look(after=after))
        return found

    def recorded(self, reading: Reading, question: str) -> Row | None:
        """The last answer to a question."""
        found: Row | None = self._looks.do(partial(_look, reading), _Look(question=question))
        return found

    def requested(self, reading: Reading, request: str) -> list[Row]:
        """The rows of an idempotency key."""
        found: list[Row] = self._looks.do(partial(_look, reading), _Look(request=request))
        return found


def _look(reading: Reading, jobs: list[Job[_Look, Any]]) -> None:
    questions = {job.task.question for job in jobs if job.task.question is not None}
    requests = {job.task.request for job in jobs if job.task.request is not None}
    with reading() as (table, head):
        answers, keys = recorded(table, questions), requested(table, requests)
        _read_on(table, head, [job for job in jobs if job.task.after is not None])
    for job in jobs:
        if job.task.question is not None:
            job.succeed(answers.get(job.task.question))
        elif job.task.request is not None:
            job.succeed(keys.get(job.task.request, []))


def _read_on(table: Table, head: Receipt, jobs: list[Job[_Look, Any]]) -> None:
    """Read for all from where the one begins that has read least."""
    rows: list[Row] | None = None
    for job in sorted(jobs, key=lambda each: each.task.after or 0):
        after = job.task.after or 0
        try:
            if rows is None or not 0 < after <= head.number:
                rows = rows_after(table, head, after)
            job.succeed([row for row in rows if row.number > after])
        except HoldfastError as error:  # this one's: it has seen more than there is
            job.fail(error)


# What ledgers have in common that keep their rows in a table of a database.


class TableLedger(Turns, Ledger):
    """A ledger in a table, which one thread at a time reaches."""

    def __init__(self, holdout: str) -> None:
        super().__init__()
        self._holdout = holdout
        self._known: Receipt | None = None  # the last row that this process has seen
        self._looker = Looker()

    @abstractmethod
    def _reach(self) -> Table:
        """The table; connected anew, if need be."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Table]:
        """The table in a transaction, which no other writer can be in meanwhile."""

    @property
    def holdout(self) -> str:
        return self._holdout

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        with self._turn(), self._writing() as table:
            transaction = TableTransaction(table, self._head(table))
            try:
                yield transaction
                transaction.write()
            finally:
                transaction.end()
        self._known = transaction.head

    def rows(self, after: int = 0, limit: int | None = None) -> list[Row]:
        self._not_mine()
        if limit is None:
            return self._looker.rows(self._reading, after)
        after = whole_number("after", after, 0, 2**62)
        limit = whole_number("limit", limit, 1, 2**31)
        with self._reading() as (table, head):
            records = table.records(after, limit + (after > 0))
        return read_rows(head.holdout, after, records)  # writers need not wait for that

    def row(self, number: int) -> Row | None:
        with self._reading() as (table, _):
            found = table.record(number)
            return None if found is None else Row.from_record(found)

    def head(self) -> Receipt:
        with self._reading() as (_, head):
            return head

    def recorded(self, question: str) -> Row | None:
        self._not_mine()
        return self._looker.recorded(self._reading, question)

    def requested(self, request: str) -> list[Row]:
        self._not_mine()
        return self._looker.requested(self._reading, request)

    def close(self) -> None:
        with self._turn():
            self._disconnect()

    @contextmanager
    def _reading(self) -> Iterator[tuple[Table, Receipt]]:
        with self._turn():
            table = self._reach()
            yield table, self._head(table)

    def _head(self, table: Table) -> Receipt:
        """The head, checked to continue what this process has seen."""
        found, known = table.head(), self._known
        head = Receipt(self._holdout, *(found or (0, genesis(self._holdout))))
        if known is not None and head != known:
            row = table.record(known.number)
            digest = "none" if row is None else Row.from_record(row).digest
            if digest != known.digest:
                what = f"Row {known.number:,} of the ledger"
                raise Damaged(what, f"digest {known.digest}, as seen before", digest, STOP)
        self._known = head
        return head

    def _outside(self, names: tuple[str, ...]) -> None:
        """Refuse to take names inside of a transaction."""
        if self._mine:
            hint = "Take the lock first, then begin."
            raise InvalidInput("lock", names, "taken outside of a transaction", hint)
