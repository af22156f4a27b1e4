"""Rows: facts in a chain. Each carries the digest of the one before it.

A row's meaning never changes: new meaning is a new version. A row of a kind or version that this
code does not know is refused, never skipped, for it may be a charge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from holdfast.errors import Damaged, InvalidInput
from holdfast.ledger.receipts import Receipt, holdout_id

__all__ = ["KINDS", "VERSION", "Row", "canonical", "genesis", "linked", "verify_chain"]

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
