"""What every ledger does, whatever it is stored in.

A ledger knows nothing of plans or prices. It makes one thing certain: what is read inside a
transaction is still true when its rows are appended, whichever processes write at the same time,
and a row whose transaction has ended stays.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from holdfast.concurrency import Closing
from holdfast.errors import Damaged, InvalidInput

__all__ = [
    "KINDS",
    "VERSION",
    "Hold",
    "Ledger",
    "Receipt",
    "Row",
    "Transaction",
    "canonical",
    "check_against",
    "genesis",
    "holdout_id",
    "linked",
    "verify_chain",
]


# Receipts: what an analyst keeps to prove later that the ledger still says the same.
#
# The chain shows that nobody changed a row and left the rest. It cannot show that the whole file
# was
# put back to an older state, or written anew: only something kept elsewhere can. That is a
# receipt.


_HOLDOUT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_RECEIPT = re.compile(r"([^:]*):([1-9][0-9]{0,17}):([0-9a-f]{64})")


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
        return cls(holdout_id(holdout), int(number), digest)


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


# Rows: facts in a chain. Each carries the digest of the one before it.
#
# A row's meaning never changes: new meaning is a new version. A row of a kind or version that this
# code does not know is refused, never skipped, for it may be a charge.


VERSION = 1
KINDS = ("created", "noted", "recorded", "reserved")

_QUESTION = re.compile(r"[0-9a-f]{1,128}")
_LONGEST_REQUEST = 200
# Of a stored row: number, version, kind, time, question, request, body, previous, digest.
_NAMED = (str, type(None))
_TYPES = ((int,), (int,), (str,), (str,), _NAMED, _NAMED, (str,), (str,), (str,))
_REMEDY = (
    "Ask nothing more of this holdout. Put back the newest copy of the whole folder and check it "
    "against the last receipt."
)


def canonical(value: object) -> str:
    """The one text of a JSON value: sorted keys, no spaces, ASCII, floats as Python's repr.

    >>> canonical({"price": 0.1, "kind": "a", "sides": [1, None]})
    '{"kind":"a","price":0.1,"sides":[1,null]}'
    """
    return _read_back(value)[0]


def _read_back(value: object) -> tuple[str, Any]:
    """The one text of a value, and the value as it is read again from it: equal, and a copy."""
    allowed = "plain JSON: text keys, lists, text, finite numbers, true, false and null"
    try:
        text = _text(value)
        again = json.loads(text)
        same = again == value  # not so for tuples, and for keys that are no text
    except (TypeError, ValueError):
        same = False
    if not same:
        raise InvalidInput("body", value, allowed)
    return text, again


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
        return cls.written_after(head, kind, body, at=at, question=question, request=request)[0]

    @classmethod
    def written_after(
        cls,
        head: Receipt,
        kind: str,
        body: dict[str, Any],
        *,
        at: str,
        question: str | None = None,
        request: str | None = None,
    ) -> tuple[Row, tuple[Any, ...]]:
        """The row that follows the head of a chain, and the record of it."""
        _check_parts(kind, question, request)
        if not isinstance(body, dict):
            raise InvalidInput("body", body, "a dictionary")
        text, copy = _read_back(body)
        facts = (head.number + 1, VERSION, kind, at, question, request)
        digest = _digest(*facts, text, head.digest)
        return cls(*facts, copy, head.digest, digest), (*facts, text, head.digest, digest)

    @classmethod
    def from_record(cls, record: tuple[Any, ...]) -> Row:
        """A row as it was stored, refused if it is not what was written."""
        number, version, kind, at, question, request, text, previous, digest = record
        what = f"Row {number} of the ledger"
        if version != VERSION or kind not in KINDS:
            remedy = "If a newer Holdfast wrote it, use that one. Otherwise: " + _REMEDY
            known = f"version {VERSION} and one of {', '.join(KINDS)}"
            raise Damaged(what, known, f"version {version}, {kind!r}", remedy)
        if not all(type(each) in types for each, types in zip(record, _TYPES, strict=True)):
            found = ", ".join(type(each).__name__ for each in record)
            raise Damaged(what, "whole numbers and text, as they were written", found, _REMEDY)
        facts = (number, version, kind, at, question, request)
        body = _body(what, text)
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


def _body(what: str, text: str) -> dict[str, Any]:
    """The body, only if its text is the one text that this body has."""
    try:
        body = json.loads(text)
        same = isinstance(body, dict) and _text(body) == text
    except (ValueError, RecursionError):
        same = False
    if not same:
        raise Damaged(what, "a canonical JSON object", f"{text[:60]!r}", _REMEDY)
    return body  # type: ignore[no-any-return]  # a dictionary, as was just checked


def _check_parts(kind: str, question: object, request: object) -> None:
    if kind not in KINDS:
        raise InvalidInput("kind", kind, f"one of {', '.join(KINDS)}")
    if question is not None and not (isinstance(question, str) and _QUESTION.fullmatch(question)):
        raise InvalidInput("question", question, "a key of 1 to 128 hexadecimal digits, or None")
    if request is not None and not (
        isinstance(request, str) and 1 <= len(request) <= _LONGEST_REQUEST and request.isprintable()
    ):
        allowed = f"1 to {_LONGEST_REQUEST} printable characters"
        raise InvalidInput("request", request, allowed)


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
