"""Where a holdout's ledger is: in its folder, or in a database that the folder names.

    ledger.sqlite   the ledger itself
    ledger.json     {"holdout": id, "ledger": "postgresql://host/database"}: the ledger is there

A folder has one of the two. No password is ever written: Postgres takes it from the environment.
"""

from __future__ import annotations

import json
import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import Damaged, HoldfastError, InvalidInput
from holdfast.ledger.ledger import Ledger, holdout_id
from holdfast.ledger.sqlite import SqliteLedger

if TYPE_CHECKING:
    from holdfast.ledger.postgres import PostgresLedger

__all__ = [
    "ADDRESS",
    "LEDGER",
    "create_ledger",
    "has_ledger",
    "masked",
    "open_ledger",
    "prepare_ledger",
]


# What may be shown of the address of a ledger that was not accepted.


def masked(url: object) -> str:
    """Its scheme at most: where a password begins and ends is not known in what is no URL.

    >>> masked("mysql://me:sesame@host/db")
    'mysql://…'
    >>> masked("host=db password=sesame")
    '…'
    """
    scheme = re.match(r"\s*([a-z][a-z0-9+.-]*://)", str(url), re.IGNORECASE)
    return f"{scheme[1]}…" if scheme else "…"


LEDGER = "ledger.sqlite"
ADDRESS = "ledger.json"

_SCHEMES = ("postgresql://", "postgres://")


def has_ledger(folder: Path) -> bool:
    """Whether this is the folder of a holdout."""
    return (folder / LEDGER).is_file() or (folder / ADDRESS).is_file()


def create_ledger(folder: Path, url: str | None, holdout: str, body: dict[str, Any]) -> None:
    """A new ledger with its first row: in the folder, or in the database that the URL names."""
    if url is None:
        SqliteLedger.create(folder / LEDGER, holdout, body).close()
        return
    ledgers = _postgres(url)
    ledgers.prepare(url)  # refuses a URL with a password, before it is written
    path = folder / ADDRESS
    _write(path, {"holdout": holdout_id(holdout), "ledger": url})
    try:
        ledgers.create(url, holdout, body).close()
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def open_ledger(folder: Path, url: str | None = None) -> Ledger:
    """The ledger of the holdout in this folder.

    With a URL, where its database is now: for one that has moved since the holdout was made.
    """
    if (folder / LEDGER).is_file():
        if (folder / ADDRESS).is_file():
            remedy = "Two histories of a holdout are two budgets. Put away the one that is not it."
            raise Damaged(str(folder), f"{LEDGER} or {ADDRESS}", "both", remedy)
        if url is not None:
            hint = f"The ledger of this holdout is {LEDGER}, in its folder."
            raise InvalidInput("ledger", masked(url), "left out", hint)
        return SqliteLedger.open(folder / LEDGER)
    stored, holdout = _read(folder / ADDRESS)
    found = stored if url is None else url
    return _postgres(found).open(found, holdout)


def prepare_ledger(url: str | None) -> None:
    """Refuse a database that cannot keep a ledger before anything else is done."""
    if url is not None:
        _postgres(url).prepare(url)


def _postgres(url: str) -> type[PostgresLedger]:
    """The ledgers that the URL stands for; their library is loaded only now."""
    if not str(url).startswith(_SCHEMES):
        hint = "Left out, the ledger is a file in the folder of the holdout."
        raise InvalidInput("ledger", masked(url), "a URL: postgresql://host/database", hint)
    if find_spec("psycopg") is None:
        raise HoldfastError("A ledger in Postgres needs psycopg: pip install 'psycopg[binary]'.")
    from holdfast.ledger.postgres import PostgresLedger

    return PostgresLedger


def _read(path: Path) -> tuple[str, str]:
    """The address of a ledger, and the id of its holdout."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        hint = "Is it the folder of a holdout?"
        raise InvalidInput("path", str(path.parent), "a folder with a ledger", hint) from None
    try:
        found = json.loads(content.decode("utf-8"))
        return str(found["ledger"]), holdout_id(found["holdout"])
    except (KeyError, RecursionError, TypeError, ValueError):
        remedy = "Put back the copy that was made with the holdout."
        expected = 'a line like {"holdout": "…", "ledger": "postgresql://…"}'
        # Not what was found: it may be a URL with a password.
        raise Damaged(str(path), expected, "something else", remedy) from None


def _write(path: Path, address: dict[str, str]) -> None:
    """Write the file; whoever makes the folder syncs it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"{json.dumps(address)}\n")
        file.flush()
        os.fsync(descriptor)
