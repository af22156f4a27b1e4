"""What runs in the SQL engine's process: DuckDB on some files, with everything else locked.

The message is a list of queries of `queries`, each with a range of blocks. The reply has one 8-byte
number for each block of each, or nothing for a query with which anything went wrong, and in front
how long each of them is, or that its file could not be read. No word of an error leaves the
process: it may carry rows.
"""

from __future__ import annotations

import gc
import itertools
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.sql.estimator import COMPANY, Number, statement, view

__all__ = ["LENGTH", "UNREADABLE", "Query", "Setup", "start"]

LENGTH = struct.Struct("<Q")  # of a query's part of the reply, in bytes
UNREADABLE = 2**64 - 1  # in its place: the file could not be read, which is no failure

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

# There are no joins to put in order, and few groups to make smaller: neither changes a value.
_IDLE = ("compressed_materialization", "join_order")
_STATEMENT = 1_000  # characters: planning is shared by short questions, memory by all


@dataclass(frozen=True)
class Setup:
    """The files, their columns as (name, kind), the limits, and whether to keep one in memory."""

    paths: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    threads: int
    memory_limit: int
    in_memory: bool = False


@dataclass(frozen=True)
class Query:
    """A number for each of the blocks start, …, stop − 1 of a file: `whole` if it has no others."""

    number: Number
    path: str
    start: int
    stop: int
    whole: bool

    @property
    def where(self) -> str:
        """The range of blocks, as a condition."""
        return "" if self.whole else f"WHERE __block BETWEEN {self.start} AND {self.stop - 1}"


def start(setup: Setup) -> Callable[[list[Query]], bytes]:
    """DuckDB, ready and locked."""
    session = _Session(setup)
    if len(setup.paths) == 1:  # of several, some may not be here yet
        session.open(setup.paths[0])
    gc.freeze()  # what is loaded stays, and need not be searched again and again
    return session.answer_all


class _Session:
    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._connection: Any = None
        self._path = ""  # of the file that is looked at

    def open(self, path: str) -> Any:
        """The connection, a new one after any error: DuckDB may be unusable after some."""
        setup = self._setup
        if self._connection is None:
            self._connection, self._path = _connect(setup), ""
        if path != self._path:
            # As a table the same rows come in the same order, and nothing is read again.
            self._connection.execute(view(path, setup.columns, kept=setup.in_memory))
            self._path = path
        return self._connection

    def answer_all(self, queries: list[Query]) -> bytes:
        """The numbers of every query: none sees another's errors."""
        companies: dict[object, list[Query]] = {}
        for query in dict.fromkeys(queries):
            companies.setdefault(_company(query), []).append(query)
        replies: dict[Query, bytes | None] = {}
        for company in itertools.chain.from_iterable(map(_portions, companies.values())):
            replies.update(zip(company, self.answer(company), strict=True))
        found = [replies[query] for query in queries]
        lengths = (UNREADABLE if each is None else len(each) for each in found)
        return b"".join([*map(LENGTH.pack, lengths), *(each or b"" for each in found)])

    def answer(self, company: list[Query]) -> Sequence[bytes | None]:
        """The numbers of each query, nothing if it failed, None if the file cannot be read.

        They go in one statement, which DuckDB plans for longer than it runs. If that fails, each
        is asked by itself.
        """
        import duckdb

        try:
            connection = self.open(company[0].path)
        except Exception:  # no question has been near it: that says nothing of the data
            self._close()
            return [None] * len(company)
        try:
            return [each.tobytes() for each in _numbers(connection, company)]
        except Exception as error:
            self._close()
            if len(company) > 1:
                return [reply for query in company for reply in self.answer([query])]
            return [None if isinstance(error, duckdb.IOException) else b""]

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
    idle = (*COMPANY, *_IDLE) if setup.in_memory else COMPANY
    connection.execute(f"SET disabled_optimizers = '{','.join(idle)}'")
    paths = ", ".join("'" + path.replace("'", "''") + "'" for path in setup.paths)
    connection.execute(f"SET allowed_paths = [{paths}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _company(query: Query) -> object:
    """What queries have in common that go in one statement; nothing with any other, if alone."""
    number = query.number
    blocks = (query.path, query.start, query.stop)
    return (*blocks, number.rows) if number.sociable else (*blocks, number)


def _portions(company: list[Query]) -> Iterator[list[Query]]:
    """The same queries, in statements none of which asks for more than a single one may."""
    portion: list[Query] = []
    length = 0
    for query in company:
        length += len(query.number.aggregate)
        if portion and length > _STATEMENT:
            yield portion
            portion, length = [], len(query.number.aggregate)
        portion.append(query)
    yield portion


def _numbers(connection: Any, company: list[Query]) -> Iterator[NDArray[np.generic]]:
    """One number for each block and query: NaN, or 0 for integers, where there is none."""
    first = company[0]
    sql = statement([query.number for query in company], first.where)
    found = connection.execute(sql).fetchnumpy()
    places = found["id"] - first.start
    for k, query in enumerate(company):
        kind, missing = (np.int64, 0) if query.number.integer else (np.float64, np.nan)
        numbers: NDArray[np.generic] = np.full(query.stop - query.start, missing, kind)
        numbers[places] = np.ma.filled(found[f"value{k}"], missing)
        yield numbers
