"""The SQL of a ledger in SQLite: its tables, its triggers, and what is asked of them."""

from __future__ import annotations

from functools import cache

__all__ = [
    "APPLICATION_ID",
    "FORMAT",
    "INSERT_IDENTITY",
    "SCHEMA",
    "SELECT_AFTER",
    "SELECT_HEAD",
    "SELECT_ROW",
    "SELECT_SOME",
    "insert",
    "select_recorded",
    "select_requested",
]

APPLICATION_ID = 0x486F4C44  # "HoLD", in the header of the file
FORMAT = 1  # user_version; migrations.py leads from one to the next

COLUMNS = "number, version, kind, at, question, request, body, previous, digest"


def _refuse(table: str, event: str, condition: str = "") -> str:
    return (
        f"CREATE TRIGGER {table}_{event.lower()} BEFORE {event} ON {table} {condition} "
        f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    )


# The triggers stop mistakes, not an attacker: that is what the chain and the receipts are for. That
# of an insertion also stops INSERT OR REPLACE, which deletes without asking the other trigger.
SCHEMA = (
    "CREATE TABLE identity (one INTEGER PRIMARY KEY CHECK (one = 1), holdout TEXT NOT NULL) STRICT",
    "CREATE TABLE ledger (number INTEGER PRIMARY KEY, version INTEGER NOT NULL, "
    "kind TEXT NOT NULL, at TEXT NOT NULL, question TEXT, request TEXT, body TEXT NOT NULL, "
    "previous TEXT NOT NULL, digest TEXT NOT NULL) STRICT",
    "CREATE INDEX answers ON ledger (question, number) WHERE kind = 'recorded'",
    "CREATE INDEX requests ON ledger (request, number) WHERE request IS NOT NULL",
    _refuse("identity", "INSERT", "WHEN EXISTS (SELECT 1 FROM identity)"),
    _refuse("identity", "UPDATE"),
    _refuse("identity", "DELETE"),
    _refuse(
        "ledger",
        "INSERT",
        "WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM ledger)",
    ),
    _refuse("ledger", "UPDATE"),
    _refuse("ledger", "DELETE"),
)

INSERT_IDENTITY = "INSERT INTO identity VALUES (1, ?)"
SELECT_HEAD = "SELECT number, digest FROM ledger ORDER BY number DESC LIMIT 1"
SELECT_ROW = f"SELECT {COLUMNS} FROM ledger WHERE number = ?"
SELECT_AFTER = f"SELECT {COLUMNS} FROM ledger WHERE number >= ? ORDER BY number"
SELECT_SOME = f"{SELECT_AFTER} LIMIT ?"


@cache
def insert(rows: int) -> str:
    """The insertion of so many rows."""
    row = f"({', '.join('?' * len(COLUMNS.split()))})"
    return f"INSERT INTO ledger ({COLUMNS}) VALUES {', '.join([row] * rows)}"


@cache
def select_recorded(questions: int) -> str:
    """The records of so many questions, in no order."""
    among = ", ".join("?" * questions)
    return f"SELECT {COLUMNS} FROM ledger WHERE kind = 'recorded' AND question IN ({among})"


@cache
def select_requested(requests: int) -> str:
    """The rows of so many idempotency keys, in no order."""
    return f"SELECT {COLUMNS} FROM ledger WHERE request IN ({', '.join('?' * requests)})"
