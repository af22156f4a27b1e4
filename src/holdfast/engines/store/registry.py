"""What this account knows of holdouts: of which data it has made some, and what was in each.

    holdouts.sqlite   each holdout, where it was seen and when; digests of its data and contents

A fingerprint of data, and the contents of a holdout's files, are functions of its rows. So only
digests under the account's secret are kept, only here, and no message, page or ledger tells them.
An account that opens a holdout which another has made keeps what it finds there the first time.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from holdfast.engines.store.manifest import CONTENTS_FILE, Contents
from holdfast.engines.store.state import SECRET_FILE, keyed, state_folder
from holdfast.errors import Damaged

__all__ = ["Known", "first_seen", "forget", "known", "recognise", "remember"]

_FILE = "holdouts.sqlite"
_TABLES = """
CREATE TABLE IF NOT EXISTS account (mark TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS holdouts (
    holdout_id TEXT NOT NULL,
    path TEXT NOT NULL,
    date TEXT NOT NULL,
    facts TEXT NOT NULL,
    contents TEXT NOT NULL,
    fingerprint TEXT,
    UNIQUE (holdout_id, path)
) STRICT;
"""


@dataclass(frozen=True)
class Known:
    """A holdout that this account has seen: where and when (UTC), and whether it has made it."""

    holdout_id: str
    path: Path
    date: str
    made_here: bool


class _Account:
    """The list of this account, while it is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def found(self, where: str, *values: str) -> list[Known]:
        query = f"SELECT holdout_id, path, date, fingerprint FROM holdouts WHERE {where}"
        rows = self.connection.execute(f"{query} ORDER BY rowid", values).fetchall()
        return [Known(each, Path(path), date, mark is not None) for each, path, date, mark in rows]

    def check(self, holdout_id: str, contents: Contents) -> None:
        """Refuse other contents than those that were seen of this holdout."""
        other = self.found("holdout_id = ? AND contents <> ?", holdout_id, keyed(contents.text()))
        if other:
            remedy = "Restore the holdout from a copy; answers from others would not be certified."
            what, expected = CONTENTS_FILE, f"what this account saw at {other[0].path}"
            raise Damaged(what, expected, "something else", remedy)

    def add(
        self, holdout_id: str, path: Path, contents: Contents, fingerprint: str | None = None
    ) -> None:
        date = datetime.now(UTC).isoformat(timespec="seconds")
        data = None if fingerprint is None else keyed(fingerprint)
        row = (holdout_id, os.fspath(path.absolute()), date, _facts(contents))
        self.connection.execute(
            "INSERT OR IGNORE INTO holdouts VALUES (?, ?, ?, ?, ?, ?)",
            (*row, keyed(contents.text()), data),
        )


@contextmanager
def _opened() -> Iterator[_Account]:
    file = state_folder() / _FILE
    os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))  # before SQLite makes it readable
    try:
        with closing(sqlite3.connect(file, timeout=60)) as connection, connection:
            connection.executescript(_TABLES)
            account = _Account(connection)
            connection.execute("BEGIN IMMEDIATE")
            _check_mark(account, file)
            yield account
    except sqlite3.DatabaseError as error:
        remedy = "Move the file away: Holdfast starts a new list, and no longer knows old data."
        raise Damaged(str(file), "a list of holdouts", str(error), remedy) from error


def _check_mark(account: _Account, file: Path) -> None:
    """Refuse a secret that is not the one of the list: it would know nothing, and say so of all."""
    mark = keyed(_FILE)
    rows = account.connection.execute("SELECT mark FROM account").fetchall()
    if not rows:
        account.connection.execute("INSERT INTO account VALUES (?)", (mark,))
    elif rows != [(mark,)]:
        remedy = (
            f"Put back the one that was there. If it is lost, move {_FILE} away: Holdfast starts a "
            "new list, and no longer knows old data."
        )
        raise Damaged(str(file.with_name(SECRET_FILE)), f"the secret of {_FILE}", "another", remedy)


def known(fingerprint: str) -> list[Known]:
    """The holdouts that this account made of data with this fingerprint, the oldest first."""
    with _opened() as account:
        return account.found("fingerprint = ?", keyed(fingerprint))


def remember(holdout_id: str, path: Path, contents: Contents, fingerprint: str) -> None:
    """Write down that a holdout is made of these data."""
    with _opened() as account:
        account.add(holdout_id, path, contents, fingerprint)


def forget(holdout_id: str) -> None:
    """Take back what was remembered of a holdout that was not made after all."""
    with _opened() as account:
        account.connection.execute("DELETE FROM holdouts WHERE holdout_id = ?", (holdout_id,))


def recognise(holdout_id: str, path: Path, contents: Contents, earlier: Sequence[str]) -> None:
    """Remember a holdout that is opened; refuse one that took the place of another.

    That is one with other contents than were seen of it before, or one that this account has not
    made, at the path of another of as many units and the same columns, which it does not name among
    its `earlier` ones.
    """
    with _opened() as account:
        account.check(holdout_id, contents)
        seen = account.found("holdout_id = ?", holdout_id)
        if not any(each.made_here for each in seen):
            alike = account.found("path = ? AND facts = ?", os.fspath(path), _facts(contents))
            for other in alike:
                if other.holdout_id not in (holdout_id, *earlier):
                    expected, found = f"holdout {other.holdout_id}", f"holdout {holdout_id}"
                    remedy = (
                        "Its ledger was written anew: put back the newest copy of the folder. If "
                        "this is a holdout of other data, give it another path."
                    )
                    raise Damaged(str(path), expected, found, remedy)
        account.add(holdout_id, path, contents)


def first_seen(holdout_id: str, contents: Contents) -> Known | None:
    """When this account made or first saw a holdout, if it did; refuse other contents than then."""
    if not (state_folder() / _FILE).exists():
        return None
    with _opened() as account:
        account.check(holdout_id, contents)
        return next(iter(account.found("holdout_id = ?", holdout_id)), None)


def _facts(contents: Contents) -> str:
    return json.dumps(contents.data_facts())
