"""The folder in which Holdfast remembers things between holdouts, and the secret of its account.

    secret            32 random bytes, made once
    holdouts.sqlite   each holdout, where it was seen and when; digests of its data and contents
    verified/         which files were found to be as they were written

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
from pathlib import Path

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
    file = state_folder() / SECRET_FILE
    if not file.exists():
        _make_secret(file)
    return hmac.new(file.read_bytes(), text.encode("utf-8"), "sha256").hexdigest()


def _make_secret(file: Path) -> None:
    """Whoever needs the secret first makes it."""
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


# What this account knows of holdouts: of which data it has made some, and what was in each. The
# fingerprint of data and the contents of a holdout's files are functions of its rows, so only
# digests under the account's secret are kept, only here, and no message, page or ledger tells them.
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


def _found(account: sqlite3.Connection, where: str, *values: str) -> list[Known]:
    query = f"SELECT holdout_id, path, date, fingerprint FROM holdouts WHERE {where}"
    rows = account.execute(f"{query} ORDER BY rowid", values).fetchall()
    return [Known(each, Path(path), date, mark is not None) for each, path, date, mark in rows]


def _check(account: sqlite3.Connection, holdout_id: str, contents: Contents) -> None:
    """Refuse other contents than those that were seen of this holdout."""
    other = _found(account, "holdout_id = ? AND contents <> ?", holdout_id, keyed(contents.text()))
    if other:
        remedy = "Restore the holdout from a copy; answers from others would not be certified."
        what, expected = CONTENTS_FILE, f"what this account saw at {other[0].path}"
        raise Damaged(what, expected, "something else", remedy)


def _add(
    account: sqlite3.Connection,
    holdout_id: str,
    path: Path,
    contents: Contents,
    fingerprint: str | None = None,
) -> None:
    date = datetime.now(UTC).isoformat(timespec="seconds")
    data = None if fingerprint is None else keyed(fingerprint)
    row = (holdout_id, os.fspath(path.absolute()), date, _facts(contents))
    account.execute(
        "INSERT OR IGNORE INTO holdouts VALUES (?, ?, ?, ?, ?, ?)",
        (*row, keyed(contents.text()), data),
    )


@contextmanager
def _opened() -> Iterator[sqlite3.Connection]:
    """The list of this account, inside a transaction."""
    file = state_folder() / _FILE
    os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))  # before SQLite makes it readable
    try:
        with closing(sqlite3.connect(file, timeout=60)) as account, account:
            account.executescript(_TABLES)
            account.execute("BEGIN IMMEDIATE")
            # Another secret than that of the list would know nothing, and say so of all.
            mark = keyed(_FILE)
            rows = account.execute("SELECT mark FROM account").fetchall()
            if not rows:
                account.execute("INSERT INTO account VALUES (?)", (mark,))
            elif rows != [(mark,)]:
                remedy = (
                    f"Put back the one that was there. If it is lost, move {_FILE} away: Holdfast "
                    "starts a new list, and no longer knows old data."
                )
                secret = str(file.with_name(SECRET_FILE))
                raise Damaged(secret, f"the secret of {_FILE}", "another", remedy)
            yield account
    except sqlite3.DatabaseError as error:
        remedy = "Move the file away: Holdfast starts a new list, and no longer knows old data."
        raise Damaged(str(file), "a list of holdouts", str(error), remedy) from error


def known(fingerprint: str) -> list[Known]:
    """The holdouts that this account made of data with this fingerprint, the oldest first."""
    with _opened() as account:
        return _found(account, "fingerprint = ?", keyed(fingerprint))


def remember(holdout_id: str, path: Path, contents: Contents, fingerprint: str) -> None:
    """Write down that a holdout is made of these data."""
    with _opened() as account:
        _add(account, holdout_id, path, contents, fingerprint)


def forget(holdout_id: str) -> None:
    """Take back what was remembered of a holdout that was not made after all."""
    with _opened() as account:
        account.execute("DELETE FROM holdouts WHERE holdout_id = ?", (holdout_id,))


def recognise(holdout_id: str, path: Path, contents: Contents, earlier: Sequence[str]) -> None:
    """Remember a holdout that is opened; refuse one that took the place of another.

    That is one with other contents than were seen of it before, or one that this account has not
    made, at the path of another of as many units and the same columns, which it does not name among
    its `earlier` ones.
    """
    with _opened() as account:
        _check(account, holdout_id, contents)
        seen = _found(account, "holdout_id = ?", holdout_id)
        if not any(each.made_here for each in seen):
            alike = _found(account, "path = ? AND facts = ?", os.fspath(path), _facts(contents))
            for other in alike:
                if other.holdout_id not in (holdout_id, *earlier):
                    expected, found = f"holdout {other.holdout_id}", f"holdout {holdout_id}"
                    remedy = (
                        "Its ledger was written anew: put back the newest copy of the folder. If "
                        "this is a holdout of other data, give it another path."
                    )
                    raise Damaged(str(path), expected, found, remedy)
        _add(account, holdout_id, path, contents)


def first_seen(holdout_id: str, contents: Contents) -> Known | None:
    """When this account made or first saw a holdout, if it did; refuse other contents than then."""
    if not (state_folder() / _FILE).exists():
        return None
    with _opened() as account:
        _check(account, holdout_id, contents)
        return next(iter(_found(account, "holdout_id = ?", holdout_id)), None)


def _facts(contents: Contents) -> str:
    return json.dumps(contents.data_facts())


# Which files were found to be as they were written, so that they are not read through each time. A
# changed file would give failures, or other values, and nobody would see it in an answer. So the
# files are hashed before the first question, and again whenever the file system says that anything
# about them has changed; its owner cannot set back the time of change.

_sound: dict[tuple[str, str], list[tuple[object, ...]]] = {}  # by folder and name: sound so


def verify_once(folder: Path, files: Sequence[StoredFile], name: str) -> None:
    """Raise `Damaged` unless the files are as they were written; `name` is theirs, together."""
    key, seen = (str(folder), name), _marks(folder, files)
    if seen is not None and _sound.get(key) == seen:
        return
    _sound.pop(key, None)
    note = state_folder() / "verified" / name
    # Sizes and hashes are functions of the rows.
    kept = keyed(json.dumps([str(folder.resolve()), seen or []]))
    noted = None
    with suppress(OSError, ValueError):
        noted = note.read_text("ascii")
    if seen is None or noted != kept:
        check_files(folder, files)
        if seen is None or seen != _marks(folder, files):
            return  # it changed while it was read: look again next time
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = note.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        draft.write_text(kept, "ascii")
        draft.replace(note)
    _sound[key] = seen


def _marks(folder: Path, files: Sequence[StoredFile]) -> list[tuple[object, ...]] | None:
    """What the file system says of each file, and the hash that it should have.

    But not on which device it is, which may have another number tomorrow.
    """
    found: list[tuple[object, ...]] = []
    for file in files:
        try:
            each = (folder / file.name).stat()
        except OSError:
            return None
        times = each.st_mtime_ns, each.st_ctime_ns
        found.append((each.st_ino, each.st_size, *times, file.sha256))
    return found
