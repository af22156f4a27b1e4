"""What an error of Postgres means; without a Postgres."""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from holdfast.errors import Damaged
from holdfast.ledger.postgres import explained

URL = "postgresql://db.example/holdouts"


def explain(error: psycopg.Error, *, closed: bool = False) -> None:
    connection: Any = SimpleNamespace(closed=closed)
    with explained(connection, URL, 60.0):
        raise error


@pytest.mark.parametrize(
    ("kind", "number", "words"),
    [
        (psycopg.errors.DiskFull, errno.ENOSPC, "Make room and ask again"),
        (psycopg.errors.OutOfMemory, errno.ENOMEM, "Make room and ask again"),
        (psycopg.errors.TooManyConnections, errno.EAGAIN, "End some and ask again"),
        (psycopg.errors.ReadOnlySqlTransaction, errno.EROFS, "URL of the primary"),
        (psycopg.errors.InsufficientPrivilege, errno.EACCES, "Grant it what the ledger needs"),
        (psycopg.errors.SerializationFailure, errno.EAGAIN, "wrote first. Ask again"),
        (psycopg.errors.UniqueViolation, errno.EAGAIN, "wrote first. Ask again"),
        (psycopg.errors.QueryCanceled, errno.EINTR, "Ask again"),
        (psycopg.errors.IoError, errno.EIO, "Check it and ask again"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_can_be_helped_says_how(kind: type[psycopg.Error], number: int, words: str) -> None:
    with pytest.raises(OSError, match=words) as caught:
        explain(kind("what Postgres\n\tsaid"))
    assert caught.value.errno == number
    assert caught.value.filename == URL
    assert "what was not acknowledged is not in it (what Postgres said)" in str(caught.value)


@pytest.mark.parametrize("kind", [psycopg.OperationalError, psycopg.errors.AdminShutdown])
def test_a_lost_connection_says_nothing_of_what_is_not_known(kind: type[psycopg.Error]) -> None:
    with pytest.raises(ConnectionResetError, match="Ask again with the same key") as caught:
        explain(kind("gone"), closed=True)
    assert "is not in it" not in str(caught.value)


@pytest.mark.parametrize(
    "kind",
    [psycopg.errors.DataCorrupted, psycopg.errors.UndefinedTable, psycopg.errors.IndexCorrupted],
)
def test_what_postgres_cannot_explain_is_damage(kind: type[psycopg.Error]) -> None:
    with pytest.raises(Damaged, match="sound tables, found odd"):
        explain(kind("odd"))


def test_a_wait_that_ended_is_a_timeout() -> None:
    with pytest.raises(TimeoutError, match=r"more than 60 seconds.*Nothing was written"):
        explain(psycopg.errors.LockNotAvailable("waited"))
