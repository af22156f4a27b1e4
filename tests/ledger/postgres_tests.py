"""What the tests of the ledger in Postgres share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg

from holdfast.ledger.ledger import Ledger
from holdfast.ledger.postgres import PostgresLedger
from tests.ledger import children

START = f"""{children.START}
from holdfast.ledger.postgres import PostgresLedger

url = sys.argv[1]

def opened():
    return PostgresLedger.open(url, "flights-1")
"""


def connect(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection of somebody else; `with` closes it."""
    return psycopg.connect(url, autocommit=True)


def note(ledger: Ledger, count: int = 1) -> None:
    """Append some rows, each in a transaction of its own."""
    for _ in range(count):
        with ledger.begin() as transaction:
            transaction.append("noted", {"text": "x" * 50})


def cut(ledger: PostgresLedger) -> None:
    """End the ledger's connection, as an administrator would, and wait until it has ended."""
    session = ledger._session
    assert session is not None
    pid = session._connection.info.backend_pid
    with connect(ledger.url) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 30000)", (pid,))


def start(url: str, program: str, *arguments: str) -> subprocess.Popen[str]:
    """A program in a process of its own, given the URL."""
    return subprocess.Popen(
        [sys.executable, "-c", START + program, url, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def together(*processes: subprocess.Popen[str]) -> list[str]:
    """What programs print after they have said `ready`, and were all let go at once."""
    try:
        for each in processes:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        for each in processes:
            assert each.stdin is not None
            each.stdin.write("\n")
            each.stdin.flush()
        told = [each.communicate(timeout=60) for each in processes]
    finally:
        for each in processes:
            each.kill()
            each.communicate()
    assert {errors for _, errors in told} == {""}
    return [printed for printed, _ in told]


def run(url: str, program: str) -> list[str]:
    """The lines that it prints."""
    process = start(url, program)
    try:
        printed, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert errors == ""
    return printed.splitlines()
