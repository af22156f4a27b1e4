"""The SQL of a ledger in Postgres: its tables, its triggers, and what is asked of them."""

from __future__ import annotations

from functools import cache
from hashlib import sha256

__all__ = [
    "FOLLOW",
    "FORMAT",
    "REFUSE",
    "SCHEMA",
    "SELECT_AFTER",
    "SELECT_HEAD",
    "SELECT_RECORDED",
    "SELECT_REQUESTED",
    "SELECT_ROW",
    "SELECT_SOME",
    "begin",
    "insert",
    "key",
]

FORMAT = 1  # of the schema `holdfast`; formats.py leads from one to the next

COLUMNS = "number, version, kind, at, question, request, body, previous, digest"

REFUSE = " BEGIN RAISE EXCEPTION 'the ledger is append-only'; END "
FOLLOW = """
BEGIN
    IF NEW.number IS DISTINCT FROM (
        SELECT coalesce(max(number), 0) + 1 FROM holdfast.ledger WHERE holdout = NEW.holdout
    ) THEN
        RAISE EXCEPTION 'the ledger is append-only';
    END IF;
    RETURN NEW;
END
"""

# The triggers stop mistakes, not an attacker: that is what the chain and the receipts are for.
# "C" orders text by its bytes: no update of the system's languages can disorder an index.
SCHEMA = (
    "CREATE SCHEMA holdfast",
    "CREATE TABLE holdfast.format (one int PRIMARY KEY CHECK (one = 1), version int NOT NULL)",
    f"INSERT INTO holdfast.format VALUES (1, {FORMAT})",
    'CREATE TABLE holdfast.ledger (holdout text COLLATE "C" NOT NULL, number bigint NOT NULL, '
    'version int NOT NULL, kind text COLLATE "C" NOT NULL, at text NOT NULL, '
    'question text COLLATE "C", request text COLLATE "C", body text NOT NULL, '
    "previous text NOT NULL, digest text NOT NULL, PRIMARY KEY (holdout, number))",
    "CREATE INDEX answers ON holdfast.ledger (holdout, question, number) WHERE kind = 'recorded'",
    "CREATE INDEX requests ON holdfast.ledger (holdout, request, number) WHERE request IS NOT NULL",
    f"CREATE FUNCTION holdfast.refuse() RETURNS trigger LANGUAGE plpgsql AS $${REFUSE}$$",
    f"CREATE FUNCTION holdfast.follow() RETURNS trigger LANGUAGE plpgsql AS $${FOLLOW}$$",
    "CREATE TRIGGER ledger_insert BEFORE INSERT ON holdfast.ledger "
    "FOR EACH ROW EXECUTE FUNCTION holdfast.follow()",
    "CREATE TRIGGER ledger_change BEFORE UPDATE OR DELETE OR TRUNCATE ON holdfast.ledger "
    "FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse()",
)

_OWN = "FROM holdfast.ledger WHERE holdout = %s"
SELECT_HEAD = f"SELECT number, digest {_OWN} ORDER BY number DESC LIMIT 1"
SELECT_ROW = f"SELECT {COLUMNS} {_OWN} AND number = %s"
SELECT_AFTER = f"SELECT {COLUMNS} {_OWN} AND number >= %s ORDER BY number"
SELECT_SOME = f"{SELECT_AFTER} LIMIT %s"
SELECT_RECORDED = f"SELECT {COLUMNS} {_OWN} AND kind = 'recorded' AND question = ANY(%s)"
SELECT_REQUESTED = f"SELECT {COLUMNS} {_OWN} AND request = ANY(%s)"


def key(*words: str) -> int:
    """The number of an advisory lock: all programs that use the database share them.

    >>> key("writer", "flights-1")
    -6650190943949076220
    """
    digest = sha256(" ".join(("holdfast", *words)).encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


@cache
def begin(holdout: str) -> str:
    """One message: begin, wait for all other writers, and read the head.

    The lock ends with the transaction, after its commit is durable and seen. Each statement sees
    what was committed before it; behind the lock that does not change any more. SERIALIZABLE would
    add nothing to that, and fail: it takes two holdouts on one page of an index for a conflict.
    """
    head = SELECT_HEAD.replace("%s", f"'{holdout}'")  # an id: letters, digits, - and _
    lock = f"SELECT pg_advisory_xact_lock({key('writer', holdout)})"
    return f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {lock}; {head}"


@cache
def insert(rows: int) -> str:
    """The insertion of so many rows."""
    row = f"({', '.join(['%s'] * (1 + len(COLUMNS.split())))})"
    return f"INSERT INTO holdfast.ledger (holdout, {COLUMNS}) VALUES {', '.join([row] * rows)}"
