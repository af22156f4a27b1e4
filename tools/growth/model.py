"""The cost model: what creation and a question move, hold and write, for so many rows.

What is counted follows from the design and is exact; what takes time is a count divided by a rate,
and the rates are measured. docs/explanation/growth.md says why each term is what it is.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Cost", "Rates", "Table", "cost"]

_NUMBER = 8  # bytes of a float or an integer in memory
_KEY = 16  # … of a unit's place in the random order
_TASK = 2_000  # … of what the driver and the scheduler keep of a task
_COMMITS = 2  # of the ledger, for a question: its worst case, and its answer


@dataclass(frozen=True)
class Table:
    """A table of numbers, and how it is sealed."""

    rows: int
    columns: int
    asked: int
    """Columns that a question names."""
    row_bytes: float
    """Of one row in the sealed files."""
    asked_bytes: float
    """… of the columns that a question reads."""
    blocks: int
    shards: int


@dataclass(frozen=True)
class Rates:
    """What one worker does in a second."""

    scanned: float
    """Bytes of sealed files that a question reads, with what a shard costs beside its rows."""
    shuffled: float
    """Bytes in memory that go from input to sealed files."""


@dataclass(frozen=True)
class Cost:
    """Bytes, seconds and commits."""

    shuffled: float
    written: float
    creation_seconds: float
    scanned: float
    driver: float
    tasks: int
    question_seconds: float
    commits: int = _COMMITS


def cost(table: Table, rates: Rates, workers: int) -> Cost:
    """What it costs on so many workers of one thread each.

    >>> table = Table(10**9, 3, 1, row_bytes=20.0, asked_bytes=8.0, blocks=1_000, shards=500)
    >>> found = cost(table, Rates(2e8, 2e7), workers=10)
    >>> found.scanned, found.tasks, found.driver < 1e7
    (8000000000.0, 500, True)
    """
    shuffled = table.rows * float(_NUMBER * (table.columns + 1) + _KEY)
    scanned = table.rows * table.asked_bytes
    # The workers share the shards: the last round of tasks may leave some of them idle.
    rounds = -(-table.shards // workers)
    shard_seconds = scanned / table.shards / rates.scanned
    return Cost(
        shuffled=shuffled,
        written=table.rows * table.row_bytes,
        creation_seconds=shuffled / (workers * rates.shuffled),
        scanned=scanned,
        driver=float(_NUMBER * table.blocks + _TASK * table.shards),
        tasks=table.shards,
        question_seconds=rounds * shard_seconds,
    )
