"""What ledgers have in common that keep their rows in a table of a database."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from holdfast.errors import Damaged, InvalidInput, whole_number
from holdfast.ledger.forks import Turns
from holdfast.ledger.interface import Ledger, Transaction
from holdfast.ledger.looks import Looker
from holdfast.ledger.receipts import Receipt
from holdfast.ledger.rows import Row, genesis
from holdfast.ledger.tables import STOP, Table, TableTransaction, read_rows

__all__ = ["TableLedger"]


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
