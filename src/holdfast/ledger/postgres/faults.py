"""What an error of Postgres means for the ledger."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from holdfast.errors import Damaged, InvalidInput

__all__ = ["LOST", "changed", "explained", "unconfirmed", "unreachable"]

LOST = (
    "The connection to the ledger was lost. What was acknowledged is in it. Ask again with the "
    "same key: what was recorded before is found, and free"
)
_FIRST = (errno.EAGAIN, "Another program wrote first. Ask again")
_RIGHTS = (errno.EACCES, "This role may not do that. Grant it what the ledger needs")

# https://www.postgresql.org/docs/current/errcodes-appendix.html
_ADVICE = {
    "23505": _FIRST,  # the number of the row was taken: somebody wrote without the lock
    "25006": (errno.EROFS, "The database cannot be written. Give the URL of the primary"),
    "40001": _FIRST,
    "40P01": _FIRST,
    "42501": _RIGHTS,
    "53100": (errno.ENOSPC, "The disk of the database is full. Make room and ask again"),
    "53200": (errno.ENOMEM, "The database has too little memory. Make room and ask again"),
    "53300": (errno.EAGAIN, "The database has too many connections. End some and ask again"),
    "57014": (errno.EINTR, "It was interrupted. Ask again"),
    "58030": (errno.EIO, "The disk of the database reports an error. Check it and ask again"),
    "P0001": _FIRST,  # the trigger: the row does not follow the last one any more
}


@contextmanager
def explained(connection: psycopg.Connection, address: str, patience: float) -> Iterator[None]:
    """Turn an error of Postgres into one that says what it means for the ledger."""
    try:
        yield
    except psycopg.errors.LockNotAvailable as error:
        message = (
            f"Another process has held the ledger in {address} for more than {patience:g} seconds. "
            "It may be stopped: let it go on, or end it. Nothing was written."
        )
        raise TimeoutError(message) from error
    except psycopg.Error as error:
        said = _said(error)
        if connection.closed:
            raise OSError(errno.ECONNRESET, f"{LOST} ({said})", address) from error
        # The statements are right: what else cannot be read or written is not as it was made.
        number, advice = _ADVICE.get(error.sqlstate or "", (0, ""))
        if not advice:
            remedy = (
                "Ask nothing more of this holdout. Restore the newest state of the database and "
                "check it against the last receipt."
            )
            raise Damaged(f"The ledger in {address}", "sound tables", said, remedy) from error
        message = f"{advice}: what was not acknowledged is not in it ({said})"
        raise OSError(number, message, address) from error


def unreachable(error: psycopg.Error, address: str) -> OSError:
    """A connection that was not made."""
    message = (
        "The database of the ledger cannot be reached. Check that it runs, its address, and the "
        f"password (PGPASSWORD, ~/.pgpass); then ask again ({_said(error)})"
    )
    return OSError(errno.ECONNREFUSED, message, address)


def unconfirmed(said: str, address: str) -> OSError:
    """A commit of which Postgres says that it may be lost with its machine."""
    message = (
        "The commit was not confirmed by the replica. Nothing was told. See that the replica runs, "
        f"then ask again with the same key ({said})"
    )
    return OSError(errno.EIO, message, address)


def changed(error: InvalidInput, address: str) -> OSError:
    """Tables that were there, and cannot be used any more: no fault of whoever asks."""
    message = f"The database of the ledger is not as it was. {error.hint}"
    return OSError(errno.ECONNREFUSED, message, address)


def _said(error: psycopg.Error) -> str:
    """The words of Postgres, on one line."""
    return " ".join(str(error).split())
