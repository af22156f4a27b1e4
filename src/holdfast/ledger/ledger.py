"""What every ledger does, whatever it is stored in: rows in a chain, appended in transactions.

A ledger knows nothing of plans or prices. It makes one thing certain: what is read inside a
transaction is still true when its rows are appended, whichever processes write at the same time,
and a row whose transaction has ended stays.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from threading import get_ident
from typing import Any

from holdfast.concurrency import Closing
from holdfast.errors import Damaged, InvalidInput, whole_number
from holdfast.ledger.locks import ForkSafe

__all__ = [
    "COLUMNS",
    "KINDS",
    "STOP",
    "VERSION",
    "Hold",
    "Ledger",
    "Receipt",
    "Record",
    "Row",
    "Table",
    "Transaction",
    "canonical",
    "check_against",
    "genesis",
    "holdout_id",
    "linked",
    "verify_chain",
]

STOP = "Stop every process that uses the holdout, put back the newest copy, and open it again."
COLUMNS = "number, version, kind, at, question, request, body, previous, digest"
Record = tuple[Any, ...]  # a row as it is stored: a value for each of the columns


# Receipts: what an analyst keeps to prove later that the ledger still says the same. The chain
# shows that nobody changed a row and left the rest. It cannot show that the whole file was put back
# to an older state, or written anew: only something kept elsewhere can.

_HOLDOUT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_RECEIPT = re.compile(rf"({_HOLDOUT.pattern}):([1-9][0-9]{{0,17}}):([0-9a-f]{{64}})")


def holdout_id(value: object) -> str:
    """The id of a holdout; it must be usable as the name of a file and inside a receipt."""
    if not isinstance(value, str) or not _HOLDOUT.fullmatch(value):
        allowed = "1 to 64 ASCII letters, digits, - and _, beginning with a letter or digit"
        raise InvalidInput("holdout", value, allowed)
    return value


@dataclass(frozen=True)
class Receipt:
    """The head of a holdout's ledger at one moment: how many rows, and the digest of the last."""

    holdout: str
    number: int
    digest: str

    def __str__(self) -> str:
        return f"{self.holdout}:{self.number}:{self.digest}"

    @classmethod
    def parse(cls, text: object) -> Receipt:
        """The receipt that was written as `holdout:number:digest`.

        >>> receipt = Receipt("flights-1", 12, "0123456789abcdef" * 4)
        >>> Receipt.parse(str(receipt)) == receipt
        True
        """
        match = _RECEIPT.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None:
            allowed = "holdout:number:digest, the digest as 64 hexadecimal digits"
            hint = "Copy the whole receipt, as it was printed with the answer."
            raise InvalidInput("receipt", text, allowed, hint)
        holdout, number, digest = match.groups()
        return cls(holdout, int(number), digest)


def check_against(ledger: Ledger, receipt: Receipt) -> None:
    """Raise `Damaged` unless the ledger continues the history that the receipt was given for."""
    if ledger.holdout != receipt.holdout:
        hint = "Every holdout has receipts of its own."
        raise InvalidInput("receipt", str(receipt), f"one of the holdout {ledger.holdout}", hint)
    row = ledger.row(receipt.number)
    if row is None:
        raise Damaged(
            "The ledger",
            f"at least the {receipt.number:,} rows that were seen before",
            f"{ledger.head().number:,}",
            "An older copy was put back: answers given since then are not charged. Put back the "
            "newest copy: of the folder with its ledger.sqlite-wal, or of the database.",
        )
    if row.digest != receipt.digest:
        raise Damaged(
            f"Row {receipt.number:,} of the ledger",
            f"digest {receipt.digest}, as on the receipt",
            row.digest,
            "This is another history of the holdout: it was written anew, or two copies of it were "
            "used. Their budgets add up; neither copy's promise holds.",
        )


# Rows: facts in a chain. Each carries the digest of the one before it. A row's meaning never
# changes: new meaning is a new version. A row of a kind or version that this code does not know is
# refused, never skipped, for it may be a charge.

VERSION = 1
KINDS = ("created", "noted", "recorded", "reserved")

_QUESTION = re.compile(r"[0-9a-f]{1,128}")
_LONGEST_REQUEST = 200
# Of a stored row: number, version, kind, time, question, request, body, previous, digest.
_NAMED = (str, type(None))
_TYPES = {(int, int, str, str, q, r, str, str, str) for q in _NAMED for r in _NAMED}
_REMEDY = (
    "Ask nothing more of this holdout. Put back the newest copy of the whole folder and check it "
    "against the last receipt."
)


def canonical(value: object) -> str:
    """The one text of a JSON value: sorted keys, no spaces, ASCII, floats as Python's repr.

    >>> canonical({"price": 0.1, "kind": "a", "sides": [1, None]})
    '{"kind":"a","price":0.1,"sides":[1,null]}'
    """
    try:
        text = _text(value)
        same = json.loads(text) == value  # not so for tuples, and for keys that are no text
    except (TypeError, ValueError):
        same = False
    if not same:
        allowed = "plain JSON: text keys, lists, text, finite numbers, true, false and null"
        raise InvalidInput("body", value, allowed)
    return text


# Made once: every row is written with it, and read rows are compared with what it writes.
_text = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
).encode


def genesis(holdout: str) -> str:
    """What the first row is chained to. It binds the chain to its holdout.

    >>> genesis("flights-1")[:16]
    '392f4b75b9cbbf20'
    """
    return sha256(f"holdfast ledger of {holdout_id(holdout)}".encode("ascii")).hexdigest()


@dataclass(frozen=True)
class Row:
    """One fact: what happened, when, for which question and request."""

    number: int
    version: int
    kind: str
    at: str
    question: str | None
    request: str | None
    body: dict[str, Any]
    previous: str
    digest: str

    @classmethod
    def after(
        cls,
        head: Receipt,
        kind: str,
        body: dict[str, Any],
        *,
        at: str,
        question: str | None = None,
        request: str | None = None,
    ) -> Row:
        """The row that follows the head of a chain.

        >>> head = Receipt("flights-1", 0, genesis("flights-1"))
        >>> row = Row.after(head, "created", {"rows": 5}, at="2026-01-31T12:00:00.000000+00:00")
        >>> row.number, row.digest[:16], row.digest == row.computed_digest()
        (1, '7829a371b7f3f4b3', True)
        """
        if kind not in KINDS:
            raise InvalidInput("kind", kind, f"one of {', '.join(KINDS)}")
        key = question if isinstance(question, str) else ""
        if question is not None and not _QUESTION.fullmatch(key):
            allowed = "a key of 1 to 128 hexadecimal digits, or None"
            raise InvalidInput("question", question, allowed)
        name = request if isinstance(request, str) else ""
        if request is not None and not (1 <= len(name) <= _LONGEST_REQUEST and name.isprintable()):
            allowed = f"1 to {_LONGEST_REQUEST} printable characters"
            raise InvalidInput("request", request, allowed)
        if not isinstance(body, dict):
            raise InvalidInput("body", body, "a dictionary")
        text = canonical(body)
        facts = (head.number + 1, VERSION, kind, at, question, request)
        return cls(*facts, json.loads(text), head.digest, _digest(*facts, text, head.digest))

    @classmethod
    def from_record(cls, record: tuple[Any, ...]) -> Row:
        """A row as it was stored, refused if it is not what was written."""
        number, version, kind, at, question, request, text, previous, digest = record
        what = f"Row {number} of the ledger"
        if version != VERSION or kind not in KINDS:
            remedy = "If a newer Holdfast wrote it, use that one. Otherwise: " + _REMEDY
            known = f"version {VERSION} and one of {', '.join(KINDS)}"
            raise Damaged(what, known, f"version {version}, {kind!r}", remedy)
        if tuple(map(type, record)) not in _TYPES:
            found = ", ".join(type(each).__name__ for each in record)
            raise Damaged(what, "whole numbers and text, as they were written", found, _REMEDY)
        try:
            body = json.loads(text)
            same = isinstance(body, dict) and _text(body) == text  # the one text of this body
        except (ValueError, RecursionError):
            same = False
        if not same:
            raise Damaged(what, "a canonical JSON object", f"{text[:60]!r}", _REMEDY)
        facts = (number, version, kind, at, question, request)
        computed = _digest(*facts, text, previous)
        if computed != digest:
            raise Damaged(what, f"digest {digest}", computed, _REMEDY)
        return cls(*facts, body, previous, digest)

    def record(self) -> tuple[Any, ...]:
        """The row as it is stored."""
        return (
            *(self.number, self.version, self.kind, self.at, self.question, self.request),
            *(_text(self.body), self.previous, self.digest),
        )

    def computed_digest(self) -> str:
        """The SHA-256 of everything but the digest itself."""
        return _digest(
            *(self.number, self.version, self.kind, self.at, self.question, self.request),
            *(_text(self.body), self.previous),
        )


def _digest(
    number: int,
    version: int,
    kind: str,
    at: str,
    question: str | None,
    request: str | None,
    text: str,
    previous: str,
) -> str:
    """The SHA-256 of the canonical text of all these as one object; `text` is that of its body."""
    facts = {
        "kind": kind,
        "number": number,
        "previous": previous,
        "question": question,
        "request": request,
        "version": version,
    }
    # In the order of their names: at, body, and all others after them.
    whole = f'{{"at":{_text(at)},"body":{text},{_text(facts)[1:]}'
    return sha256(whole.encode("ascii")).hexdigest()


def linked(head: Receipt, rows: Iterable[Row], *, read: bool = False) -> Iterator[Row]:
    """The rows, each checked to follow the one before; the first follows the head given.

    Rows that were `read` with `from_record` had their own digests checked there.
    """
    number, digest = head.number, head.digest
    for row in rows:
        what = f"Row {row.number} of the ledger"
        if row.number != number + 1:
            raise Damaged("The ledger", f"row {number + 1}", f"row {row.number}", _REMEDY)
        if row.previous != digest:
            raise Damaged(what, f"a link to {digest}", row.previous, _REMEDY)
        if not read and row.computed_digest() != row.digest:
            raise Damaged(what, f"digest {row.digest}", row.computed_digest(), _REMEDY)
        if (row.kind == "created") != (row.number == 1):
            raise Damaged(what, "`created` first and only there", f"`{row.kind}`", _REMEDY)
        yield row
        number, digest = row.number, row.digest


def verify_chain(holdout: str, rows: Iterable[Row], *, read: bool = False) -> Receipt:
    """Check a whole chain, from its start, and return the receipt of its head."""
    head = Receipt(holdout, 0, genesis(holdout))
    for row in linked(head, rows, read=read):
        head = Receipt(holdout, row.number, row.digest)
    return head


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
    def recorded(self, question: str) -> list[Record]:
        """The `recorded` rows of a question, in order."""

    @abstractmethod
    def requested(self, request: str) -> list[Record]:
        """The rows of an idempotency key, in order."""

    @abstractmethod
    def insert(self, records: list[Record]) -> None:
        """Append rows."""

    @abstractmethod
    def close(self) -> None:
        """End the connection."""


class Transaction:
    """Reads and appends that happen at one moment, or not at all.

    No other transaction of the ledger runs meanwhile: check first, then append. Keep it short, and
    evaluate no estimator in it.

    Rows are handed over together, before anything is read and at the end: every statement lets
    other threads go first, and a thread that commits for many would wait many times.
    """

    def __init__(self, table: Table, head: Receipt) -> None:
        self.head = head  # the receipt of the last row; what was appended here counts
        self._table: Table | None = table  # until its block ends
        self._records: list[Record] = []

    def rows(self, after: int = 0) -> list[Row]:
        """All rows with a higher number, in order, checked to be one chain."""
        table = self.written()
        if 0 < after == self.head.number:  # whoever has read so far has read all
            return []
        return _read_rows(self.head.holdout, after, table.records(after))

    def append(
        self,
        kind: str,
        body: dict[str, Any],
        *,
        question: str | None = None,
        request: str | None = None,
    ) -> Row:
        """Append a row. It is durable, and seen by others, when the transaction has ended."""
        if self._table is None:
            raise _ended()
        if (kind == "created") != (self.head.number == 0):
            raise InvalidInput("kind", kind, "`created` for the first row, and only for it")
        at = datetime.now(UTC).isoformat(timespec="microseconds")
        row = Row.after(self.head, kind, body, at=at, question=question, request=request)
        self._records.append(row.record())
        self.head = Receipt(self.head.holdout, row.number, row.digest)
        return row

    def written(self) -> Table:
        """The table, with what was appended."""
        if self._table is None:
            raise _ended()
        if self._records:
            records, self._records = self._records, []
            self._table.insert(records)
        return self._table


def _ended() -> InvalidInput:
    return InvalidInput("transaction", "an ended one", "one whose block is still running")


def _read_rows(holdout: str, after: int, records: Iterable[Record]) -> list[Row]:
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


class Hold:
    """Names that are held.

    Locks of the kernel stay until they are given back. Those of a database end with the
    connection, and somebody else may have them since: a ledger that can lose them says so.
    """

    def check(self) -> None:
        """Raise `OSError` if the names were lost meanwhile.

        Call it inside a transaction, before appending what must not be appended without them.
        """


class Ledger(ForkSafe, Closing):
    """An append-only, hash-chained record of events. Safe to share between threads and by forks.

    Its rows are in a table, which one thread at a time reaches.
    """

    def __init__(self, holdout: str) -> None:
        super().__init__()
        self.holdout = holdout  # the id of the holdout that this is the ledger of
        self._table: Any = None  # of the connection, if there is one
        self._known: Receipt | None = None  # the last row that this process has seen

    @abstractmethod
    def _reach(self) -> Table:
        """The table; connected anew, if need be."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Table]:
        """The table in a transaction, which no other writer can be in meanwhile."""

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

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        """A transaction. It ends with the block: kept if all went well, undone by an exception."""
        with self._turn(), self._writing() as table:
            transaction = Transaction(table, self._head(table))
            try:
                yield transaction
                transaction.written()
            finally:
                transaction._table = None
        self._known = transaction.head

    def rows(self, after: int = 0, limit: int | None = None) -> list[Row]:
        """All rows with a higher number, as of one moment, checked to be one chain.

        With a limit, the first so many of them.
        """
        after = whole_number("after", after, 0, 2**62)
        if limit is not None:
            limit = whole_number("limit", limit, 1, 2**31) + (after > 0)
        with self._reading() as (table, head):
            if 0 < after == head.number:  # whoever has read so far has read all
                return []
            records = table.records(after, limit)
        return _read_rows(self.holdout, after, records)  # writers need not wait for that

    def row(self, number: int) -> Row | None:
        """One row, or None if there are not so many."""
        with self._reading() as (table, _):
            found = table.record(number)
            return None if found is None else Row.from_record(found)

    def head(self) -> Receipt:
        """The receipt of the last row."""
        with self._reading() as (_, head):
            return head

    def recorded(self, question: str) -> Row | None:
        """The last `recorded` row of the question whose body has a `drawn` that is not null.

        It waits for a transaction of this process that is under way, not for those of others. It
        stays true only for whoever holds the `lock` under which the question is answered.
        """
        with self._reading() as (table, _):
            for row in map(Row.from_record, reversed(table.recorded(question))):
                if row.body.get("drawn") is not None:
                    return row
        return None

    def requested(self, request: str) -> list[Row]:
        """The rows of an idempotency key, in order, in the same way."""
        with self._reading() as (table, _):
            return list(map(Row.from_record, table.requested(request)))

    def close(self) -> None:
        """Free what the ledger holds. It opens again by itself if it is used again."""
        with self._turn():
            self._disconnect()

    def _disconnect(self) -> None:
        if self._table is not None:
            table, self._table = self._table, None
            table.close()

    @contextmanager
    def _reading(self) -> Iterator[tuple[Table, Receipt]]:
        with self._turn():
            table = self._reach()
            yield table, self._head(table)

    def _head(self, table: Table) -> Receipt:
        """The head, checked to continue what this process has seen."""
        found, known = table.head(), self._known
        head = Receipt(self.holdout, *(found or (0, genesis(self.holdout))))
        if known is not None and head != known:
            row = table.record(known.number)
            digest = "none" if row is None else Row.from_record(row).digest
            if digest != known.digest:
                what = f"Row {known.number:,} of the ledger"
                raise Damaged(what, f"digest {known.digest}, as seen before", digest, STOP)
        self._known = head
        return head

    def _create(self, table: Table, body: dict[str, Any]) -> Receipt:
        """Append the first row, inside a transaction of the table."""
        transaction = Transaction(table, Receipt(self.holdout, 0, genesis(self.holdout)))
        transaction.append("created", body)
        transaction.written()
        return transaction.head

    def _outside(self, names: tuple[str, ...]) -> None:
        """Refuse to take names inside of a transaction."""
        if self._owner == get_ident():
            hint = "Take the lock first, then begin."
            raise InvalidInput("lock", names, "taken outside of a transaction", hint)
