"""Which data this user has already made a holdout of: fingerprints, and where each was used."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from holdfast.engines.store.state import state_folder
from holdfast.errors import Damaged

__all__ = ["Known", "known", "remember"]

_FILE = "fingerprints.sqlite"
_TABLE = """
CREATE TABLE IF NOT EXISTS holdouts (
    fingerprint TEXT NOT NULL,
    holdout_id TEXT NOT NULL,
    path TEXT NOT NULL,
    date TEXT NOT NULL,
    UNIQUE (fingerprint, holdout_id)
) STRICT
"""


@dataclass(frozen=True)
class Known:
    """A holdout that was made of data with a fingerprint, and when (UTC)."""

    holdout_id: str
    path: Path
    date: str


@contextmanager
def _opened() -> Iterator[sqlite3.Connection]:
    file = state_folder() / _FILE
    os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))  # before SQLite makes it readable
    try:
        with closing(sqlite3.connect(file, timeout=60)) as connection, connection:
            connection.execute(_TABLE)
            yield connection
    except sqlite3.DatabaseError as error:
        remedy = "Move the file away: Holdfast starts a new list, without the old fingerprints."
        raise Damaged(str(file), "a list of fingerprints", str(error), remedy) from error


def known(fingerprint: str) -> list[Known]:
    """The holdouts made of data with this fingerprint, the oldest first."""
    query = "SELECT holdout_id, path, date FROM holdouts WHERE fingerprint = ? ORDER BY rowid"
    with _opened() as connection:
        found = connection.execute(query, (fingerprint,)).fetchall()
    return [Known(holdout_id, Path(path), date) for holdout_id, path, date in found]


def remember(fingerprint: str, holdout_id: str, path: Path) -> None:
    """Write down that a holdout was made; the same one again changes nothing."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    row = (fingerprint, holdout_id, os.fspath(path.absolute()), date)
    with _opened() as connection:
        connection.execute("INSERT OR IGNORE INTO holdouts VALUES (?, ?, ?, ?)", row)
