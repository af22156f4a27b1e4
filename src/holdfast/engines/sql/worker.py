"""What runs in the SQL engine's process: DuckDB on some files, with everything else locked.

The message is a list of queries, each a number for a range of blocks, or for each of their units.
The reply has 8 bytes for each number, or nothing for a query with which anything went wrong, and in
front how long each of them is, or that its file could not be read. No word of an error leaves the
process: it may carry rows. Little is imported here: a process starts for every holdout.

Several numbers of the same rows can be asked in one statement, which DuckDB plans for longer than
it runs, and each has the bits that it has alone. What DuckDB would do otherwise beside others is
switched off, see `_REWRITERS`, or outwitted: it adds up constants in a way of its own, but only if
all that it adds up are constants. Which they never are: the block's own number, taken as a smallest
one, is among them.
"""

from __future__ import annotations

import gc
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BLOCKS_VIEW",
    "LENGTH",
    "UNREADABLE",
    "Number",
    "Query",
    "SqlSetup",
    "start",
    "statement",
]

LENGTH = struct.Struct("<Q")  # of a query's part of the reply, in bytes
UNREADABLE = 2**64 - 1  # in its place: the file could not be read, which is no failure

BLOCKS_VIEW = "blocks"
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
# DuckDB's optimizers that make an aggregate of others, as avg of sum and count beside it.
_REWRITERS = ("aggregate_function_rewriter", "aggregate_reuse")
# There are no joins to put in order, and few groups to make smaller: neither changes a value.
_IDLE = ("compressed_materialization", "join_order")
_STATEMENT = 1_000  # characters: planning is shared by short questions, memory by all

# Dates outside these years would make some functions fail, on some values.
_VIEWS = {
    "number": "CAST({0} AS DOUBLE)",
    "boolean": "CAST({0} AS BOOLEAN)",
    "text": "CAST({0} AS VARCHAR)",
    "date": "CASE WHEN {0} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {0} END",
    "timestamp": (
        "CASE WHEN {0} BETWEEN TIMESTAMP '0001-01-01 00:00:00'"
        " AND TIMESTAMP '9999-12-31 23:59:59.999999' THEN {0} END"
    ),
}


@dataclass(frozen=True)
class SqlSetup:
    """The files, their columns as (name, kind), the limits, and whether to keep one in memory."""

    paths: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    threads: int
    memory_limit: int
    in_memory: bool = False


@dataclass(frozen=True)
class Number:
    """What is asked of every block: an aggregate, as SQL, and the rows that it is of.

    Or of every unit, of which these rows then have one each, and so many come from a block.
    """

    aggregate: str
    rows: str = BLOCKS_VIEW
    integer: bool = False
    alone: bool = False
    """Whether nothing else may be asked in its statement: what is distinct is grouped apart."""
    units: int | None = None


@dataclass(frozen=True)
class Query:
    """A number for each of the blocks start, …, stop − 1 of a file: `whole` if it has no others."""

    number: Number
    path: str
    start: int
    stop: int
    whole: bool

    @property
    def count(self) -> int:
        """How many numbers that is."""
        return (self.stop - self.start) * (self.number.units or 1)


def _quoted(name: str) -> str:
    """A name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def start(setup: SqlSetup) -> Callable[[list[Query]], bytes]:
    """DuckDB, ready and locked."""
    session = _Session(setup)
    if len(setup.paths) == 1:  # of several, some may not be here yet
        session.open(setup.paths[0])
    gc.freeze()  # what is loaded stays, and need not be searched again and again
    return session.answer_all


class _Session:
    def __init__(self, setup: SqlSetup) -> None:
        self._setup = setup
        self._connection: Any = None
        self._path = ""  # of the file that is looked at

    def open(self, path: str) -> Any:
        """The connection, a new one after any error: DuckDB may be unusable after some."""
        if self._connection is None:
            self._connection, self._path = _connect(self._setup), ""
        if path != self._path:
            self._connection.execute(_view(path, self._setup))
            self._path = path
        return self._connection

    def answer_all(self, queries: list[Query]) -> bytes:
        """The numbers of every query: none sees another's errors."""
        replies: dict[Query, bytes | None] = {}
        for group in _groups(queries):
            replies.update(zip(group, self._answer(group), strict=True))
        found = [replies[query] for query in queries]
        lengths = (UNREADABLE if each is None else len(each) for each in found)
        return b"".join([*map(LENGTH.pack, lengths), *(each or b"" for each in found)])

    def _answer(self, group: list[Query]) -> Sequence[bytes | None]:
        """The numbers of each query, nothing if it failed, None if the file cannot be read.

        They go in one statement. If that fails, each is asked by itself.
        """
        import duckdb

        try:
            connection = self.open(group[0].path)
        except Exception:  # no question has been near it: that says nothing of the data
            self._close()
            return [None] * len(group)
        try:
            return [each.tobytes() for each in _numbers(connection, group)]
        except Exception as error:
            self._close()
            if len(group) > 1:
                return [reply for query in group for reply in self._answer([query])]
            return [None if isinstance(error, duckdb.IOException) else b""]

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except Exception:
                return


def _connect(setup: SqlSetup) -> Any:
    import duckdb

    connection = duckdb.connect(":memory:", config={"threads": setup.threads})
    for name, value in _SETTINGS.items():
        connection.execute(f"SET {name} = '{value}'")
    connection.execute(f"SET memory_limit = '{setup.memory_limit // 2**10}KiB'")
    idle = (*_REWRITERS, *_IDLE) if setup.in_memory else _REWRITERS
    connection.execute(f"SET disabled_optimizers = '{','.join(idle)}'")
    paths = ", ".join("'" + path.replace("'", "''") + "'" for path in setup.paths)
    connection.execute(f"SET allowed_paths = [{paths}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _view(path: str, setup: SqlSetup) -> str:
    """The statement that makes the file's columns a view, each of the type that it has here.

    As a table, in memory, the same rows come in the same order, and nothing is read again.
    """
    columns = setup.columns
    parts = [f"{_VIEWS[kind].format(_quoted(name))} AS {_quoted(name)}" for name, kind in columns]
    source = "'" + path.replace("'", "''") + "'"
    every = ", ".join(["__block", "__unit", *parts])
    what = "TABLE" if setup.in_memory else "VIEW"
    return f"CREATE OR REPLACE {what} {BLOCKS_VIEW} AS SELECT {every} FROM read_parquet({source})"


def _groups(queries: list[Query]) -> Iterator[list[Query]]:
    """Queries that go in one statement: of the same rows, and no longer than a single one may be.

    What must be alone has nothing in common with any other.
    """
    alike: dict[object, list[Query]] = {}
    for query in dict.fromkeys(queries):
        number = query.number
        rows = number if number.alone else (number.rows, number.units)
        alike.setdefault((query.path, query.start, query.stop, rows), []).append(query)
    for together in alike.values():
        group: list[Query] = []
        length = 0
        for query in together:
            length += len(query.number.aggregate)
            if group and length > _STATEMENT:
                yield group
                group, length = [], len(query.number.aggregate)
            group.append(query)
        yield group


def statement(queries: Sequence[Query]) -> str:
    """Of every block or unit `id` the numbers `value0`, `value1`, …, all of the same rows."""
    first = queries[0]
    values = ", ".join(f"{each.number.aggregate} AS value{k}" for k, each in enumerate(queries))
    some = f"WHERE __block BETWEEN {first.start} AND {first.stop - 1}"
    where = "" if first.whole else some
    if first.number.units is not None:
        return f"SELECT __unit AS id, {values} FROM {first.number.rows} {where}"
    return f"SELECT min(__block) AS id, {values} FROM {first.number.rows} {where} GROUP BY __block"


def _numbers(connection: Any, group: list[Query]) -> Iterator[NDArray[np.generic]]:
    """One number for each block or unit, and query: NaN, or 0 for integers, where there is none."""
    found = connection.execute(statement(group)).fetchnumpy()
    places = found["id"] - group[0].start * (group[0].number.units or 1)
    for k, query in enumerate(group):
        kind, missing = (np.int64, 0) if query.number.integer else (np.float64, np.nan)
        numbers: NDArray[np.generic] = np.full(query.count, missing, kind)
        numbers[places] = np.ma.filled(found[f"value{k}"], missing)
        yield numbers
