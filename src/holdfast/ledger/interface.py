"""What every ledger does, whatever it is stored in.

A ledger knows nothing of plans or prices. It makes one thing certain: what is read inside a
transaction is still true when its rows are appended, whichever processes write at the same time,
and a row whose transaction has ended stays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

from holdfast.closing import Closing
from holdfast.ledger.receipts import Receipt
from holdfast.ledger.rows import Row

__all__ = ["Hold", "Ledger", "Transaction"]


class Transaction(ABC):
    """Reads and appends that happen at one moment, or not at all.

    No other transaction of the ledger runs meanwhile: check first, then append. Keep it short, and
    evaluate no estimator in it.
    """

    @property
    @abstractmethod
    def number(self) -> int:
        """The number of the last row; what this transaction has appended counts."""

    @abstractmethod
    def rows(self, after: int = 0) -> list[Row]:
        """All rows with a higher number, in order, checked to be one chain."""

    @abstractmethod
    def append(
        self,
        kind: str,
        body: dict[str, Any],
        *,
        question: str | None = None,
        request: str | None = None,
    ) -> Row:
        """Append a row. It is durable, and seen by others, when the transaction has ended."""

    @abstractmethod
    def recorded(self, question: str) -> Row | None:
        """The last `recorded` row of the question whose body has an `answer` that is not null."""

    @abstractmethod
    def requested(self, request: str) -> list[Row]:
        """The rows of an idempotency key, in order."""


class Hold:
    """Names that are held.

    Locks of the kernel stay until they are given back. Those of a database end with the
    connection, and somebody else may have them since: a ledger that can lose them says so.
    """

    def check(self) -> None:
        """Raise `OSError` if the names were lost meanwhile.

        Call it inside a transaction, before appending what must not be appended without them.
        """


class Ledger(Closing):
    """An append-only, hash-chained record of events. Safe to share between threads and by forks."""

    @property
    @abstractmethod
    def holdout(self) -> str:
        """The id of the holdout that this is the ledger of."""

    @abstractmethod
    def begin(self) -> AbstractContextManager[Transaction]:
        """A transaction. It ends with the block: kept if all went well, undone by an exception."""

    @abstractmethod
    def rows(self, after: int = 0, limit: int | None = None) -> list[Row]:
        """All rows with a higher number, as of one moment, checked to be one chain.

        With a limit, the first so many of them.
        """

    @abstractmethod
    def row(self, number: int) -> Row | None:
        """One row, or None if there are not so many."""

    @abstractmethod
    def head(self) -> Receipt:
        """The receipt of the last row."""

    @abstractmethod
    def recorded(self, question: str) -> Row | None:
        """As in a transaction, of all that has ended.

        It waits for a transaction of this process that is under way, not for those of others. It
        stays true only for whoever holds the `lock` under which the question is answered.
        """

    @abstractmethod
    def requested(self, request: str) -> list[Row]:
        """The rows of an idempotency key in the same way."""

    @abstractmethod
    def verify(self) -> Receipt:
        """Check everything that was ever written, and return the receipt of the last row."""

    @abstractmethod
    def lock(self, *names: str) -> AbstractContextManager[Hold]:
        """Hold the names exclusively, against all threads and processes, until the block ends.

        For what must not happen twice at once and takes longer than a transaction, such as drawing
        the answer to a question. Take all names in one call, before any transaction; they are free
        when the process dies. Two names may share a lock.
        """

    @abstractmethod
    def close(self) -> None:
        """Free what the ledger holds. It opens again by itself if it is used again."""
