"""The worker: a process that holds blocks and forks others to evaluate functions on them.

No function of a user ever runs in it, so that what it holds stays as it was read: frames and arrays
of earlier questions are kept, within limits, and the next question starts from them. See processes
for the conversation with the parent, supervisor for the forks.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import mmap
import os
import select
import signal
import sys
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.python.estimator import (
    Job,
    Part,
    block_sum,
    block_value,
    block_values,
    even_sums,
    farthest_outside,
    row_numbers,
)
from holdfast.engines.python.sandbox import (
    CHANNEL,
    Traces,
    adopt_orphans,
    confine,
    left_processes,
    same_randomness,
)
from holdfast.errors import Damaged, Unavailable
from holdfast.protocols.source import UNIT, unit_terms

__all__ = [
    "LOADED",
    "NO_MEMORY",
    "READY",
    "ROWS",
    "UNREADABLE",
    "Board",
    "Chunk",
    "Chunks",
    "Control",
    "Item",
    "Question",
    "Range",
    "Reading",
    "Result",
    "Setup",
    "Status",
    "Trial",
    "batch_blocks",
    "column_array",
    "evaluate",
    "loads",
    "make_chunk",
    "run",
    "single_items",
    "some_columns",
    "start",
    "too_large",
    "unreadable",
]


# The board: memory that a worker shares with the process that evaluates blocks for it.
#
# The evaluating process writes how far it has come and by when it must have gone on; the worker
# reads
# that when the process is gone, or too late. What is on the board survives the process.


_HEADER = 64
_TEXT = 2_000


class Status(IntEnum):
    """How far the process has come, as it says itself."""

    STARTED = 0
    LOADED = 1
    FINISHED = 2
    LEFT = 3  # something stays behind after a block: the next one starts afresh
    CHANGED = 4  # the first block gave another value when it was asked again
    UNLOADABLE = 5


class Board:
    """Values of some items, each of one or more blocks, and the state of who computes them."""

    def __init__(self, blocks: int, items: int) -> None:
        self._memory = mmap.mmap(-1, _HEADER + 8 * blocks + items + _TEXT)
        self._deadline = np.frombuffer(self._memory, np.float64, 1)
        self._state = np.frombuffer(self._memory, np.int64, 2, 8)
        self.values = np.frombuffer(self._memory, np.float64, blocks, _HEADER)
        self.failed = np.frombuffer(self._memory, np.bool_, items, _HEADER + 8 * blocks)
        self._text = _HEADER + 8 * blocks + items

    @property
    def deadline(self) -> float:
        """When the present step must have ended, by the monotonic clock."""
        return float(self._deadline[0])

    @deadline.setter
    def deadline(self, moment: float) -> None:
        self._deadline[0] = moment

    @property
    def status(self) -> Status:
        """What the process said last."""
        return Status(int(self._state[0]))

    @status.setter
    def status(self, status: Status) -> None:
        self._state[0] = int(status)

    @property
    def done(self) -> int:
        """How many items the process has finished."""
        return int(self._state[1])

    @done.setter
    def done(self, items: int) -> None:
        self._state[1] = items

    @property
    def text(self) -> str:
        """Why the first failure happened; written on public data only."""
        data = self._memory[self._text : self._text + _TEXT]
        return data.rstrip(b"\0").decode("utf-8", "replace")

    @text.setter
    def text(self, text: str) -> None:
        data = text.encode("utf-8", "replace")[:_TEXT]
        self._memory[self._text : self._text + len(data)] = data


# Blocks in the form that a function wants: a chunk of whole blocks is turned once, then cut.
#
# The form of a block depends on the schema alone, never on the values of its neighbours: numbers
# are
# float64 with NaN for NULL in pandas and numpy, whether or not a NULL occurs; booleans are pandas'
# nullable kind, or float64 in numpy; text is text; dates and times are datetime64.


_TEXT_BYTES = 64  # a Python text in an array of objects, roughly


@dataclass(frozen=True)
class Chunk:
    """Rows of whole blocks, in one form."""

    kind: str
    data: Any
    rows: NDArray[np.int64]
    """The first row of every block in the chunk, and the number of rows."""
    size: int
    """Bytes, roughly."""

    @property
    def blocks(self) -> int:
        """How many blocks the chunk has."""
        return len(self.rows) - 1

    def between(self, first: int, last: int) -> Any:
        """The rows first, …, last − 1 as something that may be written to."""
        if self.kind == "pandas":
            import pandas as pd

            frame = self.data.iloc[first:last].copy()
            frame.index = pd.RangeIndex(last - first)
            return frame
        if self.kind == "numpy":
            return {name: array[first:last].copy() for name, array in self.data.items()}
        rows = self.data.slice(first, last - first)
        if self.kind == "polars":
            import polars as pl

            return pl.from_arrow(rows)
        return rows

    def rectangle(self, first: int, last: int, units: int) -> dict[str, NDArray[Any]]:
        """Columns of the rows first, …, last − 1 as (blocks, units) arrays, not copied."""
        return {name: array[first:last].reshape(-1, units) for name, array in self.data.items()}


def make_chunk(table: Any, kind: str, rows: NDArray[np.int64], units: int) -> Chunk:
    """A chunk from an Arrow table of whole blocks; units are numbered within their blocks."""
    if "__unit" in table.column_names:
        unit = column_array(table.column("__unit")).astype(np.int64) % units
        table = table.set_column(table.column_names.index("__unit"), "__unit", [_arrow(unit)])
    if kind == "numpy":
        data: Any = {name: column_array(table.column(name)) for name in table.column_names}
        size = sum(_bytes(array) for array in data.values())
    elif kind == "pandas":
        data = _frame(_plain_text(table))
        size = int(data.memory_usage(index=False).sum())
    else:
        data = _plain_text(table).combine_chunks()
        size = int(data.nbytes)
    return Chunk(kind, data, rows - rows[0], size)


def some_columns(block: Any, kind: str, columns: Sequence[str]) -> Any:
    """Some columns of a block."""
    if kind == "numpy":
        return {name: block[name] for name in columns}
    return block[list(columns)] if kind == "pandas" else block.select(list(columns))


def _arrow(array: NDArray[Any]) -> Any:
    import pyarrow as pa

    return pa.array(array)


def _plain_text(table: Any) -> Any:
    """Text as text: whether it is stored by a dictionary is nobody's business."""
    import pyarrow as pa

    for place, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(place, column.name, table.column(place).cast(pa.string()))
    return table


def _frame(table: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    for place, column in enumerate(table.schema):
        if pa.types.is_integer(column.type):
            doubles = table.column(place).cast(pa.float64())
            table = table.set_column(place, column.name, doubles)
    nullable = {pa.bool_(): pd.BooleanDtype()}
    return table.to_pandas(use_threads=False, date_as_object=False, types_mapper=nullable.get)


def column_array(column: Any) -> NDArray[Any]:
    """One Arrow column as an array of its own: float64, datetime64 or text and None."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_dictionary(kind):
        column = column.cast(pa.string())
    array = np.asarray(column.to_numpy())
    wanted = array.dtype if array.dtype.kind in "fM" else np.dtype(object)
    result = np.empty(len(array), np.float64 if wanted.kind == "f" else wanted)
    result[:] = array
    return result


def _bytes(array: NDArray[Any]) -> int:
    return len(array) * _TEXT_BYTES if array.dtype.hasobject else array.nbytes


# What runs in a process forked from a worker: load the function, ask it of one item after another.
#
# An item is one block, or many blocks at once for a vectorised function and for terms, each of
# which
# depends on one row alone. Whatever the function raises is a failure of the item. The process
# says on
# the board how far it has come; if it dies, the worker knows where. It never returns: it ends
# without
# cleaning up, for nothing here is its own.


Item = tuple[int, int]
Chunks = Mapping[str, Chunk]
READY = b"."
ROWS = "rows"  # beside the kinds: where every block begins and, if need be, the rows' units

_FRESH = 2**18  # bytes of pickle: larger ones are loaded once a process, not once a block


def run(job: Job, chunks: Chunks, items: Sequence[Item], board: Board, signalled: int) -> NoReturn:
    """Evaluate items in their order, say so if nothing is left behind, and end the process."""
    try:
        channel = os.dup2(signalled, CHANNEL)
        confine(job.limits.memory)
        sys.path[:] = job.path
        os.chdir(job.folder)
        Runner(job, chunks, board).run(items)
        if not left_processes():
            os.write(channel, READY)
    finally:
        os._exit(0)


class Runner:
    """One process's work."""

    def __init__(self, job: Job, chunks: Chunks, board: Board) -> None:
        self._job, self._chunks, self._board = job, chunks, board
        self._process = os.getpid()
        self._functions: tuple[Any, ...] = ()
        self._small = sum(len(payload or b"") for payload in job.payloads) <= _FRESH

    def run(self, items: Sequence[Item]) -> None:
        """Load, evaluate, look for traces, ask the first item again."""
        board, job = self._board, self._job
        board.deadline = time.monotonic() + job.limits.load_seconds
        try:
            self._functions = _load(job)
        except BaseException as error:
            self._explain(error)
            board.status = Status.UNLOADABLE
            return
        board.status = Status.LOADED
        # That batches keep nothing is assumed: single blocks alone are watched.
        watched = len(items) > 1 and items[0][1] - items[0][0] == 1
        traces = Traces(job.packages) if watched else None
        for number, item in enumerate(items):
            stopped = self._one(number, item)
            if stopped is not None:
                board.status = stopped
                return
            if traces is not None and number + 1 < len(items) and traces.found():
                board.status = Status.LEFT
                return
        first = self._first(items) if watched else None
        same = first is None or self._same(items[first])
        board.status = Status.FINISHED if same else Status.CHANGED

    def _one(self, number: int, item: Item) -> Status | None:
        """Evaluate an item; a status if that must be done again, in a process of its own.

        That the function cannot be loaded anew is laid to no item's charge: the items before may
        have seen to it, or the machine.
        """
        board, (start, stop) = self._board, item
        board.status = Status.STARTED
        board.deadline = time.monotonic() + self._job.limits.load_seconds
        error = self._renew()
        if error is not None:
            self._explain(error)
            return Status.LEFT if number else Status.UNLOADABLE
        board.status = Status.LOADED
        limit = self._limit(item)
        began = time.monotonic()
        board.deadline = began + limit
        values, error = self._evaluate(item)
        late = time.monotonic() - began > limit
        if isinstance(error, MemoryError) and number:
            return Status.LEFT  # the items before may have taken it
        board.failed[number] = failed = values is None or late
        board.values[start:stop] = np.nan if failed else values
        board.deadline = time.monotonic() + limit  # for what comes between two items
        board.done = number + 1
        if error is not None:
            self._explain(error)
        return None

    def _limit(self, item: Item) -> float:
        limits = self._job.limits
        return limits.block_seconds if item[1] - item[0] == 1 else limits.batch_seconds

    def _first(self, items: Sequence[Item]) -> int | None:
        """A block that gave a value, to be asked again; none if there is nothing to compare."""
        given = np.flatnonzero(~self._board.failed[: len(items)])
        return int(given[0]) if len(given) else None

    def _same(self, item: Item) -> bool:
        """Whether an item has, at the end, the values that it had at the beginning."""
        self._board.deadline = time.monotonic() + self._limit(item)
        again = None if self._renew() is not None else self._evaluate(item)[0]
        before = self._board.values[item[0] : item[1]]
        return again is not None and np.array_equal(again, before, equal_nan=True)

    def _renew(self) -> BaseException | None:
        """The same randomness as for every item, and the function anew; why, if it cannot be."""
        error: BaseException | None = None
        try:
            with _silently():
                same_randomness()
                if self._small:
                    self._functions = _load(self._job)
        except BaseException as raised:
            error = raised
        self._end_copies()
        return error

    def _evaluate(self, item: Item) -> tuple[NDArray[np.float64] | None, BaseException | None]:
        """The values of an item's blocks, or None and why."""
        values: NDArray[np.float64] | None = None
        error: BaseException | None = None
        try:
            with _silently():
                values = self._sums(item) if self._job.sums else self._values(item)
        except BaseException as raised:
            error = raised
        self._end_copies()
        return values, error

    def _end_copies(self) -> None:
        """End the process if the function has forked, and this is the copy."""
        if os.getpid() != self._process:
            os._exit(0)

    def _call(self, place: int, part: Part, item: Item) -> object:
        rows = self._chunks[part.kind].rows
        return self._called(place, part, int(rows[item[0]]), int(rows[item[1]]), self._job.units)

    def _called(self, place: int, part: Part, first: int, last: int, units: int) -> object:
        """What the function gives for rows, of so many units a block."""
        chunk = self._chunks[part.kind]
        if part.vectorised:
            arrays = chunk.rectangle(first, last, units)
            return self._functions[place]({name: arrays[name] for name in part.columns})
        block = chunk.between(first, last)
        if part.columns != self._job.needs[part.kind]:
            block = some_columns(block, part.kind, part.columns)
        return self._functions[place](block)

    def _values(self, item: Item) -> NDArray[np.float64] | None:
        (part,) = self._job.parts
        assert part is not None
        result = self._call(0, part, item)
        if part.vectorised:
            values = block_values(result, item[1] - item[0])
            if values is None:
                raise TypeError(f"the result must have shape ({item[1] - item[0]},)")
            return values
        return np.array([block_value(result)])

    def _sums(self, item: Item) -> NDArray[np.float64]:
        start, stop = item
        rows = self._chunks[ROWS].rows
        count = int(rows[stop] - rows[start])
        terms, kept = (
            None if part is None else self._terms(place, part, item, count)
            for place, part in enumerate(self._job.parts)
        )
        cuts, bounds = rows[start : stop + 1] - rows[start], self._job.bounds
        if self._job.outside:
            assert terms is not None
            return np.array([farthest_outside(terms[a:b], bounds) for a, b in pairwise(cuts)])
        if terms is None:
            terms = np.ones(count)
        else:
            failed = bounds[0] + self._job.failure * (bounds[1] - bounds[0])
            terms = unit_terms(np.where(np.isnan(terms), failed, terms), bounds)
        kept = None if kept is None else unit_terms(kept, UNIT)
        unit = self._units(item)
        if kept is None and unit is None and np.ptp(np.diff(cuts)) == 0:
            return even_sums(terms, stop - start)
        sums = [
            block_sum(
                terms[a:b],
                None if kept is None else kept[a:b],
                None if unit is None else unit[a:b],
            )
            for a, b in pairwise(cuts)
        ]
        return np.array(sums, np.float64)

    def _terms(self, place: int, part: Part, item: Item, rows: int) -> NDArray[np.float64]:
        """One number for each row, NaN for a row on which the function fails.

        Where a call of one block fails, or gives too many numbers or too few, each of its rows is
        asked for alone: a row takes no other along. Where it is strict, another number of them is a
        failure, and so is that most are none.
        """
        error: BaseException = TypeError("most of its terms are no numbers")
        strict, result = self._job.strict, None
        try:
            result = self._call(place, part, item)
            numbers = row_numbers(result, rows)
        except MemoryError:
            raise
        except BaseException as raised:
            if item[1] - item[0] > 1 or (strict and result is not None):
                raise
            self._explain(raised)
            numbers, error = self._row_by_row(place, part, item, rows), raised
        if strict and 2 * np.count_nonzero(np.isnan(numbers)) > rows:
            raise error
        return numbers

    def _row_by_row(self, place: int, part: Part, item: Item, rows: int) -> NDArray[np.float64]:
        numbers = np.full(rows, np.nan)
        if rows == 1:  # it has failed already
            return numbers
        first = int(self._chunks[part.kind].rows[item[0]])
        for row in range(rows):
            self._end_copies()
            with contextlib.suppress(Exception, SystemExit, KeyboardInterrupt, GeneratorExit):
                result = self._called(place, part, first + row, first + row + 1, 1)
                numbers[row] = row_numbers(result, 1)[0]
        return numbers

    def _units(self, item: Item) -> NDArray[np.int64] | None:
        if not self._job.grouped:
            return None
        chunk = self._chunks[ROWS]
        numbers = chunk.data["__unit"][chunk.rows[item[0]] : chunk.rows[item[1]]]
        return np.asarray(numbers, np.int64)

    def _explain(self, error: BaseException) -> None:
        if self._job.explain and not self._board.text:
            self._board.text = f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _silently() -> Iterator[None]:
    """A warning too may depend on the data."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _load(job: Job) -> tuple[Any, ...]:
    """The functions, new: what an earlier copy of them has changed in itself is gone."""
    import cloudpickle
    from cloudpickle import cloudpickle as inner

    # Classes that travel by value are remembered by cloudpickle: forget those of earlier copies.
    remembered = getattr(inner, "_DYNAMIC_CLASS_TRACKER_BY_ID", None)
    if remembered is not None:
        remembered.clear()
    return tuple(
        None if part is None else cloudpickle.loads(payload)[int(part.vectorised)]
        for payload, part in zip(job.payloads, job.parts, strict=True)
    )


# The worker's side of evaluation: fork, watch, and begin again after what went wrong.
#
#     items 0 … n−1 in one process ──▶ all finished
#                               ├─▶ left: item k left a trace; go on at k + 1 in a new one
#                               ├─▶ died or was late at item k: begin at k in a new one; if k was
#                               │   the first of its process, it has failed: go on at k + 1
#                               └─▶ changed: the first or last block has another value when it is
#                                   asked again; every item anew, each in a process of its own
#
# Only what happens to the first item of a process is laid to its charge, so that no block's value
# depends on those before it. A function that cannot be loaded is laid to no block's charge here:
# what is to be made of it, the parent decides by a control (see seats).


_PATIENCE = 1.0  # seconds between two looks at the board
_TRIES = 2  # of loading a function in a process that dies
_DIVIDED = 16  # parts of a batch that has failed


@dataclass
class Result:
    """What came of an evaluation."""

    values: NDArray[np.float64]
    told: str = ""
    """Why the first failure happened, if that may be told."""
    changed: bool = False
    """Whether a block gave another value after others than before them."""
    loaded: bool = True
    """Whether the function could be loaded each time; else the blocks that were left have NaN."""


def single_items(blocks: int) -> list[Item]:
    """Every block by itself."""
    return [(block, block + 1) for block in range(blocks)]


def evaluate(
    job: Job, chunks: Chunks, items: Sequence[Item], blocks: int, *, isolated: bool = False
) -> Result:
    """One value per block, NaN for failures."""
    result = Result(np.full(blocks, np.nan))
    _evaluate(job, chunks, list(items), result, isolated=isolated)
    return result


def loads(job: Job) -> bool:
    """Whether the function can be loaded in a process that is to ask it of nothing."""
    for _ in range(_TRIES):
        status = _process(job, {}, [], 0).status
        if status != Status.STARTED:
            return status != Status.UNLOADABLE
    return False


def _evaluate(
    job: Job, chunks: Chunks, items: list[Item], result: Result, *, isolated: bool
) -> None:
    position, deaths, values = 0, 0, result.values
    while position < len(items):
        group = items[position : position + 1] if isolated else items[position:]
        board = _process(job, chunks, group, len(values))
        result.told = result.told or board.text
        status, done = board.status, board.done
        if _state_kept(job, chunks, group, board):
            result.changed = True
            _evaluate(job, chunks, group, result, isolated=True)
            return
        deaths = deaths + 1 if status == Status.STARTED and done == 0 else 0
        if status == Status.UNLOADABLE or deaths == _TRIES:
            result.loaded = False
            return
        if status == Status.LOADED and done == 0:  # it died, or was killed, at its first item
            board.failed[0], done = True, 1
        for number in range(done):
            start, stop = group[number]
            values[start:stop] = np.nan if board.failed[number] else board.values[start:stop]
            if board.failed[number] and stop - start > 1:
                _evaluate(job, chunks, _divided(start, stop), result, isolated=isolated)
        position += done


def _divided(start: int, stop: int) -> list[Item]:
    """The blocks of a batch that has failed, in smaller ones: soon each that fails is alone."""
    size = -(-(stop - start) // _DIVIDED)
    return [(first, min(first + size, stop)) for first in range(start, stop, size)]


def _state_kept(job: Job, chunks: Chunks, items: Sequence[Item], board: Board) -> bool:
    """Whether blocks that shared a process are seen to have changed each other's values.

    The process itself has asked the first block again at its end. The last one is asked again here,
    in a process that has seen no other.
    """
    status, done = board.status, board.done
    if status == Status.CHANGED or (status == Status.LOADED and 1 < len(items) == done):
        return True
    start, stop = items[max(0, done - 1)]
    if done < 2 or stop - start > 1:
        return False
    alone = _process(job, chunks, [(start, stop)], len(board.values))
    failed = alone.done == 0 or bool(alone.failed[0])
    if failed or board.failed[done - 1]:
        return failed != bool(board.failed[done - 1])
    return not _same(float(board.values[start]), float(alone.values[start]))


def _same(one: float, two: float) -> bool:
    return one == two or (one != one and two != two)


def _process(job: Job, chunks: Chunks, items: Sequence[Item], blocks: int) -> Board:
    """The board that a process for these items has left."""
    _reap()
    board = Board(blocks, len(items))
    board.deadline = time.monotonic() + job.limits.load_seconds
    ready, signalled = os.pipe()
    pid = os.fork()
    if pid == 0:
        run(job, chunks, items, board, signalled)
    os.close(signalled)
    clean = False
    try:
        clean = _watch(pid, ready, board)
    finally:
        os.close(ready)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if not clean:
            os.waitpid(pid, 0)
            _sweep()
    return board


def _watch(pid: int, ready: int, board: Board) -> bool:
    """Wait until the process is ready, has ended, or is late; True if it leaves nothing behind.

    Who is ready need not be waited for: to tear down a process takes longer than many questions.
    """
    descriptor = os.pidfd_open(pid)
    try:
        waiting = select.poll()
        for each in (descriptor, ready):
            waiting.register(each, select.POLLIN)
        while True:
            left = board.deadline - time.monotonic()
            if left <= 0:
                return False
            seen = dict(waiting.poll(1000 * min(left, _PATIENCE) + 1))
            if seen.get(ready, 0) & select.POLLIN:
                return os.read(ready, 1) == READY
            if descriptor in seen:
                return False
            if ready in seen:  # closed without a word: the end of the process will be seen
                waiting.unregister(ready)
    finally:
        os.close(descriptor)


def _reap() -> None:
    """Let go of processes that have ended since."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _sweep() -> None:
    """End whatever the process has started: orphans come to the worker."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            for each in _children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            time.sleep(0.001)


def _children() -> list[int]:
    lists = Path("/proc/self/task").glob("*/children")
    return [int(pid) for each in lists for pid in each.read_text("ascii").split()]


LOADED = b"+"  # before values: the function could be loaded each time; anything else: it could not
UNREADABLE = b"?"  # in place of values: the blocks could not be read
NO_MEMORY = b"!"  # … for want of memory
_UNLOADED = b"-"
_BATCH_CELLS = 2**15  # of one column: what a function makes of them stays in memory that it has
_TERM_ROWS = 2**12  # of one call for terms: several workers share few rows, and progress shows


@dataclass(frozen=True)
class Setup:
    """What a worker is started with."""

    store: Any
    cache: int
    """Bytes of blocks to keep between questions."""


@dataclass(frozen=True)
class Question:
    """A job that will be asked of ranges of blocks."""

    job: Job


@dataclass(frozen=True)
class Range:
    """The blocks start, …, stop − 1, to be asked the question given last."""

    start: int
    stop: int
    isolated: bool


@dataclass(frozen=True)
class Reading:
    """The same blocks, to be read alone: no function comes near them."""

    start: int
    stop: int


@dataclass(frozen=True)
class Control:
    """A job to be loaded and asked of nothing, in a worker that has held no block."""

    job: Job


@dataclass(frozen=True)
class Trial:
    """A job to be asked of public blocks, which come along."""

    job: Job
    table: bytes
    rows: tuple[int, ...]
    items: tuple[Item, ...] | None
    isolated: bool


def unreadable() -> Damaged:
    """That blocks could not be read: no function was near them."""
    remedy = "Restore the holdout from a copy."
    return Damaged("The sealed blocks", "files that can be read", "others", remedy)


def too_large(given: str) -> Unavailable:
    """That blocks could not be read for want of memory."""
    needed = "memory for the blocks, with the columns that the function gets"
    remedy = "Ask with fewer workers or columns, or on a machine with more memory."
    return Unavailable("Reading sealed blocks", needed, given, remedy)


def batch_blocks(units: int, *, sums: bool = False) -> int:
    """How many blocks a vectorised function, or one for terms, gets at once."""
    return max(1, (_TERM_ROWS if sums else _BATCH_CELLS) // units)


def start(setup: Setup) -> Callable[[Any], bytes]:
    """Called by the process when it starts; what it returns answers the parent's messages."""
    adopt_orphans()
    for name in ("cloudpickle", "pandas", "pyarrow"):  # forks then have them already
        importlib.import_module(name)
    return _Desk(setup).handle


class _Desk:
    """What the worker keeps: the store, the question, and blocks in the form last asked for."""

    def __init__(self, setup: Setup) -> None:
        self._store = setup.store
        self._job: Job | None = None
        self._kept = _Kept(setup.cache)

    def handle(self, message: Question | Range | Reading | Control | Trial) -> bytes:
        if isinstance(message, Question):
            self._job = message.job
            _preload(self._job)
            return b""
        if isinstance(message, Range | Reading):
            return self._range(message)
        if isinstance(message, Control):
            _preload(message.job)
            return LOADED if loads(message.job) else _UNLOADED
        return _trial(message)

    def _range(self, asked: Range | Reading) -> bytes:
        job, blocks = self._job, asked.stop - asked.start
        assert job is not None
        try:
            chunks = self._chunks(job, asked.start, asked.stop)
        except MemoryError:
            return NO_MEMORY
        except Exception:  # that a file cannot be read is no failure of the function
            return UNREADABLE
        if isinstance(asked, Reading):
            return b""
        gc.collect()
        gc.freeze()  # a fork that collects garbage would copy every page
        batched = job.vectorised or (job.sums and not asked.isolated)
        items = _batches(job, blocks) if batched else single_items(blocks)
        result = evaluate(job, chunks, items, blocks, isolated=asked.isolated)
        return (LOADED if result.loaded else _UNLOADED) + result.values.tobytes()

    def _chunks(self, job: Job, start: int, stop: int) -> dict[str, Chunk]:
        chunks = {
            kind: self._chunk(kind, columns, start, stop) for kind, columns in job.needs.items()
        }
        unit = ("__unit",) if job.grouped else ()
        chunks[ROWS] = self._chunk("numpy", unit, start, stop)
        return chunks

    def _chunk(self, kind: str, columns: tuple[str, ...], start: int, stop: int) -> Chunk:
        rows = self._store.cuts(start, stop)
        place = (start, stop)
        if kind != "numpy":
            read = partial(self._read, kind, columns, start, stop, rows)
            return self._kept.get((kind, columns, place), read)
        arrays = {}  # each column by itself: the next question may take others
        for name in columns:
            read = partial(self._read, kind, (name,), start, stop, rows)
            arrays[name] = self._kept.get((kind, name, place), read).data[name]
        return Chunk(kind, arrays, rows, 0)

    def _read(
        self, kind: str, columns: tuple[str, ...], start: int, stop: int, rows: NDArray[np.int64]
    ) -> Chunk:
        hidden = any(name.startswith("__") for name in columns)
        data = [name for name in columns if not name.startswith("__")]
        table = self._store.table(start, stop, data, hidden=hidden).select(list(columns))
        chunk = make_chunk(table, kind, rows, self._store.units)
        del table
        _release()
        return chunk


def _release() -> None:
    """Give back what reading has taken: every fork would have to copy its page tables."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


class _Kept:
    """Chunks of earlier questions; those not used for longest go first."""

    def __init__(self, limit: int) -> None:
        self._limit, self._chunks = limit, OrderedDict[Any, Chunk]()

    def get(self, key: object, make: Callable[[], Chunk]) -> Chunk:
        chunk = self._chunks.pop(key, None)
        chunk = make() if chunk is None else chunk
        self._chunks[key] = chunk
        while len(self._chunks) > 1 and self._size() > self._limit:
            self._chunks.popitem(last=False)
        return chunk

    def _size(self) -> int:
        return sum(chunk.size for chunk in self._chunks.values())


def _batches(job: Job, blocks: int) -> list[Item]:
    size = batch_blocks(job.units, sums=job.sums)
    return [(first, min(blocks, first + size)) for first in range(0, blocks, size)]


def _preload(job: Job) -> None:
    """Load the packages that the function names: every fork then has them."""
    kinds = {"polars"} & set(job.needs)
    for name in (*job.packages, *kinds):
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _trial(trial: Trial) -> bytes:
    """Whether it could be loaded and whether a value changed, the values, and why the first
    failure happened: all is public.
    """
    import pyarrow as pa

    job = trial.job
    _preload(job)
    table = pa.ipc.open_stream(trial.table).read_all()
    rows = np.array(trial.rows, np.int64)
    blocks = len(rows) - 1
    chunks = {
        kind: make_chunk(table.select(list(columns)), kind, rows, job.units)
        for kind, columns in job.needs.items()
    }
    unit: Sequence[str] = ("__unit",) if job.grouped else ()
    chunks[ROWS] = make_chunk(table.select(list(unit)), "numpy", rows, job.units)
    items = single_items(blocks) if trial.items is None else trial.items
    result = evaluate(job, chunks, items, blocks, isolated=trial.isolated)
    flags = (LOADED if result.loaded else _UNLOADED) + bytes([result.changed])
    return flags + result.values.tobytes() + result.told.encode("utf-8")
