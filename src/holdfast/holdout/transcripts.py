"""Transcripts: every question that was answered, with its answer, from the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from holdfast.holdout.door import Door
from holdfast.holdout.records import read_result
from holdfast.ledger.ledger import Ledger, Receipt, Row

__all__ = ["audit_of", "transcript_of"]

_AT_ONCE = 500


def transcript_of(door: Door, after: int, limit: int | None) -> list[dict[str, Any]]:
    """The answers in rows after one of the ledger, at most so many, the oldest first."""
    found: list[dict[str, Any]] = []
    ledger = door.ledger
    for row in _pages(ledger, after):
        if row.kind != "recorded" or row.body["answer"] is None:
            continue
        if limit is not None and len(found) >= limit:
            break
        receipt = str(Receipt(ledger.holdout, row.number, row.digest))
        entry = {
            "number": row.number,
            "at": row.at,
            "question": row.body["question"],
            "answer": read_result(row.body["answer"], receipt, cached=False).to_dict(),
            "asker": row.body.get("asker"),
            "receipt": receipt,
        }
        found.append(entry)
    door.head()
    return found


def audit_of(door: Door, after: int, limit: int) -> list[dict[str, Any]]:
    """Who did what, row by row: everything but hashes of tokens and what answers said."""
    found = [_audited(row) for row in islice(_pages(door.ledger, after), limit)]
    door.head()
    return found


def _pages(ledger: Ledger, after: int) -> Iterator[Row]:
    """The rows after one, read some at a time: a long ledger is never all in memory.

    After one that is still to come, which a reader may name, there are none.
    """
    while after < ledger.head().number:
        rows = ledger.rows(after, _AT_ONCE)
        yield from rows
        after = rows[-1].number


def _audited(row: Row) -> dict[str, Any]:
    facts: dict[str, Any] = {"number": row.number, "at": row.at, "kind": row.kind}
    if row.kind in ("reserved", "recorded"):
        body = row.body
        facts |= {"asker": body.get("asker"), "set": body["set"], "question": body["question"]}
        facts["request"] = row.request
        facts["answered"] = row.kind == "recorded" and body["answer"] is not None
    elif row.kind == "noted":
        notes = {name: note for name, note in row.body.items() if isinstance(note, dict)}
        facts["note"] = {
            name: {key: value for key, value in note.items() if key != "hash"}
            for name, note in notes.items()
        }
    return facts
