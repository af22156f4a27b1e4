"""What runs in the SQL engine's process: DuckDB on one file, with everything else locked.

The message is a query of `queries` and a range of blocks; the reply is one 8-byte number for each,
or nothing if anything went wrong. No word of an error leaves the process: it may carry rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.sql.queries import view

__all__ = ["Query", "Setup", "start"]

_SETTINGS = {
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "error_on_division_by_zero": "false",
    "max_expression_depth": "1000",  # of the written SQL; the question's own depth is bounded
    "max_temp_directory_size": "0KB",
    "parquet_metadata_cache": "true",
    # Groups by their number rather than by hashing: each thread then adds up whole blocks, and a
    # sum's last bits do not depend on how many threads or blocks there are.
    "perfect_ht_threshold": "17",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "TimeZone": "UTC",
}


@dataclass(frozen=True)
class Setup:
    """The file, its columns as (name, kind), and the limits."""

    path: str
    columns: tuple[tuple[str, str], ...]
    threads: int
    memory_limit: int


@dataclass(frozen=True)
class Query:
    """A query for the blocks start, …, stop − 1, of `blocks` in all."""

    sql: str
    start: int
    stop: int
    blocks: int
    integers: bool = False


def start(setup: Setup) -> Callable[[Query], bytes]:
    """DuckDB, ready and locked."""
    session = _Session(setup)
    session.open()
    return session.answer


class _Session:
    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._connection: Any = None

    def open(self) -> Any:
        """The connection, a new one after any error: DuckDB may be unusable after some."""
        if self._connection is None:
            self._connection = _connect(self._setup)
        return self._connection

    def answer(self, query: Query) -> bytes:
        try:
            return _numbers(self.open(), query).tobytes()
        except Exception:
            self._close()
            return b""

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except Exception:
                return


def _connect(setup: Setup) -> Any:
    import duckdb

    connection = duckdb.connect(":memory:", config={"threads": setup.threads})
    for name, value in _SETTINGS.items():
        connection.execute(f"SET {name} = '{value}'")
    connection.execute(f"SET memory_limit = '{setup.memory_limit // 2**10}KiB'")
    connection.execute(view(setup.path, setup.columns))
    path = setup.path.replace("'", "''")
    connection.execute(f"SET allowed_paths = ['{path}']")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _numbers(connection: Any, query: Query) -> NDArray[np.generic]:
    """One number for each block: NaN, or 0 for integers, where there is none."""
    whole = query.start == 0 and query.stop == query.blocks
    where = "" if whole else f"WHERE __block BETWEEN {query.start} AND {query.stop - 1}"
    found = connection.execute(query.sql.format(where=where)).fetchnumpy()
    kind, missing = (np.int64, 0) if query.integers else (np.float64, np.nan)
    numbers: NDArray[np.generic] = np.full(query.stop - query.start, missing, kind)
    numbers[found["id"] - query.start] = np.ma.filled(found["value"], missing)
    return numbers
