"""What a durable row costs, as a ratio to the same insertion without a ledger."""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.ledger.sqlite import SqliteLedger

__all__ = ["Speed", "measure"]

_BODY = {"drawn": 0.125, "text": "x" * 300}
_BATCH = 100


@dataclass(frozen=True)
class Speed:
    """Commits a second, and how many times as long a row of the ledger takes."""

    bare: float
    ledger: float
    ratio: float
    verify: float  # rows a second


def measure(batches: int = 20) -> Speed:
    """Take turns between a bare table and a ledger on the same disk; medians."""
    with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as name:
        folder = Path(name)
        bare = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
        bare.execute("PRAGMA journal_mode = WAL")
        bare.execute("PRAGMA synchronous = FULL")
        bare.execute("CREATE TABLE t (number INTEGER PRIMARY KEY, body TEXT)")

        def insert() -> None:
            bare.execute("BEGIN IMMEDIATE")
            bare.execute("INSERT INTO t (body) VALUES (?)", (str(_BODY) + "x" * 250,))
            bare.execute("COMMIT")

        with SqliteLedger.create(folder / "ledger.sqlite", "speed", {}) as ledger:

            def append() -> None:
                with ledger.begin() as transaction:
                    transaction.append("recorded", _BODY, question="ab" * 32, request="r")

            pairs = [(_seconds(insert), _seconds(append)) for _ in range(batches)]
            start = time.perf_counter()
            rows = ledger.verify().number
            verify = rows / (time.perf_counter() - start)
        bare.close()
    plain, chained = (statistics.median(each) for each in zip(*pairs, strict=True))
    ratio = statistics.median(b / a for a, b in pairs)
    return Speed(1 / plain, 1 / chained, ratio, verify)


def _seconds(work: Callable[[], None]) -> float:
    """The mean of a batch."""
    start = time.perf_counter()
    for _ in range(_BATCH):
        work()
    return (time.perf_counter() - start) / _BATCH
