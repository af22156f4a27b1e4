"""The folder in which Holdfast remembers things between holdouts, and the secret of its account.

    secret   32 random bytes, made once

Whoever had a plain hash of rows, or of a file of them, could try out rows until one fits. What is
kept here of such hashes is keyed by the secret, which leaves the folder in no file and no message.
"""

from __future__ import annotations

import hmac
import json
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from holdfast import concurrency
from holdfast.errors import Damaged, InvalidInput
from holdfast.randomness import system_entropy
from holdfast.store.blocks import CONTENTS_FILE, Contents, StoredFile, check_files

__all__ = [
    "SECRET_FILE",
    "Known",
    "first_seen",
    "forget",
    "keyed",
    "known",
    "recognise",
    "remember",
    "state_folder",
    "verify_once",
]

SECRET_FILE = "secret"
_SECRET_WORDS = 4  # of 64 bits


def state_folder() -> Path:
    """The user's own folder, made with mode 0700 if it is not there.

    `$HOLDFAST_STATE`, else `$XDG_STATE_HOME/holdfast`, else `~/.local/state/holdfast`.
    """
    own, shared = os.environ.get("HOLDFAST_STATE"), os.environ.get("XDG_STATE_HOME")
    if own:
        folder = Path(own).expanduser()
    elif shared and Path(shared).is_absolute():  # the XDG rules: a relative one is ignored
        folder = Path(shared) / "holdfast"
    else:
        folder = Path.home() / ".local" / "state" / "holdfast"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        hint = f"{error.strerror}: set HOLDFAST_STATE to a folder of yours."
        allowed = "a folder that can be made"
        raise InvalidInput("the state folder", str(folder), allowed, hint) from None
    return folder


def keyed(text: str) -> str:
    """HMAC-SHA-256 under the account's secret: without it nobody can compare the text with it."""
    return hmac.new(_secret(), text.encode("utf-8"), "sha256").hexdigest()


def _secret() -> bytes:
    """The secret of this account; whoever needs it first makes it."""
    file = state_folder() / SECRET_FILE
    with suppress(FileNotFoundError):
        return file.read_bytes()
    draft = file.with_name(f"{SECRET_FILE}.{uuid.uuid4().hex}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(system_entropy().words(_SECRET_WORDS).tobytes())
            stream.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):  # another process was first: its secret counts
            os.link(draft, file)
    finally:
        draft.unlink()
    return file.read_bytes()


# What this account knows of holdouts: of which data it has made some, and what was in each.
#
#     holdouts.sqlite   each holdout, where it was seen and when; digests of its data and contents
#
# A fingerprint of data, and the contents of a holdout's files, are functions of its rows. So only
# digests under the account's secret are kept, only here, and no message, page or ledger tells
# them.
# An account that opens a holdout which another has made keeps what it finds there the first time.


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


# Which files were found to be as they were written, so that they are not read through each time.
#
# A changed file would give failures, or other values, and nobody would see it in an answer. So the
# files are hashed before the first question, and again whenever the file system says that anything
# about them has changed.


_found: dict[tuple[str, str], list[tuple[object, ...]]] = {}  # by folder and name: sound so


def verify_once(folder: Path, files: Sequence[StoredFile], name: str) -> None:
    """Raise `Damaged` unless the files are as they were written; `name` is theirs, together."""
    key, quick = (str(folder), name), _quick_marks(folder, files)
    if quick is not None and _found.get(key) == quick:
        return
    _found.pop(key, None)
    sound = concurrency.elsewhere(partial(_verify_noted, folder, files, name))
    if sound and quick == _quick_marks(folder, files):
        assert quick is not None
        _found[key] = quick


def _verify_noted(folder: Path, files: Sequence[StoredFile], name: str) -> bool:
    """Whether the files are sound and stayed so while they were looked at."""
    note = state_folder() / "verified" / name
    seen = _marks(folder, files)
    if seen is not None and _noted(note) == seen:
        return True
    check_files(folder, files)
    if seen is None or seen != _marks(folder, files):
        return False  # it changed while it was read: look again next time
    note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = note.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    draft.write_text(seen, "ascii")
    draft.replace(note)
    return True


def _marks(folder: Path, files: Sequence[StoredFile]) -> str | None:
    """What the file system says of each file; its owner cannot set back the time of change."""
    found: list[list[object]] = []
    for file in files:
        path = folder / file.name
        try:
            state = path.stat()
        except OSError:
            return None
        times = [state.st_mtime_ns, state.st_ctime_ns]
        found.append([str(path.resolve()), state.st_ino, state.st_size, *times, file.sha256])
    return keyed(json.dumps(found))  # sizes and hashes are functions of the rows


def _quick_marks(folder: Path, files: Sequence[StoredFile]) -> list[tuple[object, ...]] | None:
    """The same for whoever has looked at these very files before, in less time."""
    try:
        states = [((folder / file.name).stat(), file.sha256) for file in files]
    except OSError:
        return None
    return [
        (each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns, digest)
        for each, digest in states
    ]


def _noted(note: Path) -> str | None:
    try:
        return note.read_text("ascii")
    except (OSError, ValueError):
        return None
