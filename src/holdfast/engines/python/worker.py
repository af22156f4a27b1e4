"""The worker: a process that holds blocks and forks others to evaluate functions on them.

No function of a user ever runs in it, so that what it holds stays as it was read: frames and arrays
of earlier questions are kept, within limits, and the next question starts from them. A fork loads
the function and asks it of one item after another:

    items 0 … n−1 in one fork ──▶ all finished
                           ├─▶ left: item k left a trace; go on at k + 1 in a new fork
                           ├─▶ died or was late at item k: begin at k in a new one; if k was the
                           │   first of its fork, it has failed: go on at k + 1
                           └─▶ changed: the first or last block has another value when it is
                               asked again; every item anew, each in a fork of its own

Only what happens to the first item of a fork is laid to its charge, so that no block's value
depends on those before it. A function that cannot be loaded is laid to no block's charge here: what
is to be made of it, the parent decides by a control (see `WorkerSlot`).
"""

from __future__ import annotations

import contextlib
import ctypes
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.python.estimator import (
    FunctionCall,
    FunctionJob,
    block_value,
    block_values,
    column_array,
    farthest_outside,
    row_numbers,
    unit_parts,
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

__all__ = ["start"]

LOADED = b"+"  # before values: the function could be loaded each time; anything else: it could not
UNREADABLE = b"?"  # in place of values: the blocks could not be read
NO_MEMORY = b"!"  # … for want of memory
_UNLOADED = b"-"
_READY = b"."  # what a fork that leaves nothing behind says at its end

_ROWS = "rows"  # beside the kinds of chunks: where every block begins and, if need be, the units
_TEXT = 2_000  # bytes of an explanation
_TEXT_BYTES = 64  # a Python text in an array of objects, roughly
_FRESH = 2**18  # bytes of pickle: larger ones are loaded once a fork, not once a block
_PATIENCE = 1.0  # seconds between two looks at how far a fork has come
_TRIES = 2  # of loading a function in a fork that dies
_DIVIDED = 16  # parts of a batch that has failed
_BATCH_CELLS = 2**15  # of one column: what a function makes of them stays in memory that it has
_TERM_ROWS = 2**12  # of one call for terms: several workers share few rows, and progress shows

Item = tuple[int, int]
"""One block, or many at once: for a vectorised function, and for terms, each of one row alone."""
Chunks = Mapping[str, "Chunk"]
"""Blocks by the kinds in which functions want them, and `_ROWS`."""


class WorkerSetup(NamedTuple):
    """What a worker is started with."""

    store: Any
    cache: int
    """Bytes of blocks to keep between questions."""


class GivenJob(NamedTuple):
    """A job that will be asked of ranges of blocks."""

    job: FunctionJob


class AskRange(NamedTuple):
    """The blocks start, …, stop − 1, to be asked the question given last."""

    start: int
    stop: int


class ReadRange(NamedTuple):
    """The same blocks, to be read alone: no function comes near them."""

    start: int
    stop: int


class Control(NamedTuple):
    """A job to be loaded and asked of nothing, in a worker that has held no block."""

    job: FunctionJob


class Trial(NamedTuple):
    """A job to be asked of public blocks, which come along."""

    job: FunctionJob
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


def start(setup: WorkerSetup) -> Callable[[Any], bytes]:
    """Called by the process when it starts; what it returns answers the parent's messages."""
    adopt_orphans()
    for name in ("cloudpickle", "pandas", "pyarrow"):  # forks then have them already
        importlib.import_module(name)
    return _Worker(setup).handle


class _Worker:
    """What the worker keeps: the store, the question, and blocks in the forms last asked for."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._store, self._limit = setup
        self._job: FunctionJob | None = None
        self._kept = OrderedDict[Any, Chunk]()  # those not used for longest go first

    def handle(self, message: GivenJob | AskRange | ReadRange | Control | Trial) -> bytes:
        if isinstance(message, AskRange | ReadRange):
            return self._range(message)
        job = message.job
        for name in (*job.packages, *({"polars"} & set(job.needs))):  # every fork then has them
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        if isinstance(message, Trial):
            return _trial(message)
        if isinstance(message, Control):
            return LOADED if loads(job) else _UNLOADED
        self._job = job
        return b""

    def _range(self, asked: AskRange | ReadRange) -> bytes:
        job, blocks = self._job, asked.stop - asked.start
        assert job is not None
        try:
            chunks = _chunks(job, partial(self._chunk, asked.start, asked.stop))
        except MemoryError:
            return NO_MEMORY
        except Exception:  # that a file cannot be read is no failure of the function
            return UNREADABLE
        if isinstance(asked, ReadRange):
            return b""
        gc.collect()
        gc.freeze()  # a fork that collects garbage would copy every page
        items = single_items(blocks)
        if job.vectorised or job.sums:
            size = batch_blocks(job.units, sums=job.sums)
            items = [(first, min(blocks, first + size)) for first in range(0, blocks, size)]
        result = evaluate(job, chunks, items, blocks)
        return (LOADED if result.loaded else _UNLOADED) + result.values.tobytes()

    def _chunk(self, start: int, stop: int, kind: str, columns: tuple[str, ...]) -> Chunk:
        if kind != "numpy":
            return self._read(kind, columns, start, stop)
        arrays = {}  # each column by itself: the next question may take others
        for name in columns:
            arrays[name] = self._read(kind, (name,), start, stop).data[name]
        return Chunk(kind, arrays, self._store.cuts(start, stop), 0)

    def _read(self, kind: str, columns: tuple[str, ...], start: int, stop: int) -> Chunk:
        """Blocks as they were read before, or are read now."""
        import pyarrow as pa

        key = (kind, columns, start, stop)
        chunk = self._kept.pop(key, None)
        if chunk is None:
            data = [name for name in columns if not name.startswith("__")]
            hidden = len(data) < len(columns)
            table = self._store.table(start, stop, data, hidden=hidden).select(list(columns))
            chunk = make_chunk(table, kind, self._store.cuts(start, stop), self._store.units)
            del table
            pa.default_memory_pool().release_unused()  # each fork would copy its page tables
        self._kept[key] = chunk
        while len(self._kept) > 1 and sum(c.size for c in self._kept.values()) > self._limit:
            self._kept.popitem(last=False)
        return chunk


def _chunks(job: FunctionJob, chunk: Callable[[str, tuple[str, ...]], Chunk]) -> Chunks:
    """All that a question's functions need."""
    unit = ("__unit",) if job.grouped else ()
    needed = {kind: chunk(kind, columns) for kind, columns in job.needs.items()}
    return {**needed, _ROWS: chunk("numpy", unit)}


def _trial(trial: Trial) -> bytes:
    """Whether it could be loaded and whether a value changed, the values, and why the first
    failure happened: all is public.
    """
    import pyarrow as pa

    job = trial.job
    table = pa.ipc.open_stream(trial.table).read_all()
    rows = np.array(trial.rows, np.int64)
    blocks = len(rows) - 1

    def chunk(kind: str, columns: tuple[str, ...]) -> Chunk:
        return make_chunk(table.select(list(columns)), kind, rows, job.units)

    chunks = _chunks(job, chunk)
    items = single_items(blocks) if trial.items is None else trial.items
    result = evaluate(job, chunks, items, blocks, isolated=trial.isolated)
    flags = (LOADED if result.loaded else _UNLOADED) + bytes([result.changed])
    return flags + result.values.tobytes() + result.told.encode("utf-8")


@dataclass(frozen=True)
class Chunk:
    """Rows of whole blocks in the form that a function wants: turned once, then cut.

    The form depends on the schema alone, never on the values of other blocks: numbers are float64
    with NaN for NULL in pandas and numpy, whether or not a NULL occurs; booleans are pandas'
    nullable kind, or float64 in numpy; text is text; dates and times are datetime64.
    """

    kind: str
    data: Any
    rows: NDArray[np.int64]
    """The first row of every block in the chunk, and the number of rows."""
    size: int
    """Bytes, roughly."""

    def between(self, first: int, last: int, columns: Sequence[str] | None) -> Any:
        """The rows first, …, last − 1 as something that may be written to; some columns, or all."""
        if self.kind == "numpy":
            return {name: self.data[name][first:last].copy() for name in columns or self.data}
        if self.kind == "pandas":
            import pandas as pd

            frame = self.data.iloc[first:last].copy()
            frame.index = pd.RangeIndex(last - first)
            return frame if columns is None else frame[list(columns)]
        rows = self.data.slice(first, last - first)
        rows = rows if columns is None else rows.select(list(columns))
        if self.kind == "polars":
            import polars as pl

            return pl.from_arrow(rows)
        return rows


def make_chunk(table: Any, kind: str, rows: NDArray[np.int64], units: int) -> Chunk:
    """A chunk from an Arrow table of whole blocks; units are numbered within their blocks."""
    import pyarrow as pa

    if "__unit" in table.column_names:
        unit = column_array(table.column("__unit")).astype(np.int64) % units
        table = table.set_column(table.column_names.index("__unit"), "__unit", [pa.array(unit)])
    if kind == "numpy":
        arrays = {name: column_array(table.column(name)) for name in table.column_names}
        sizes = [len(a) * _TEXT_BYTES if a.dtype.hasobject else a.nbytes for a in arrays.values()]
        return Chunk(kind, arrays, rows - rows[0], sum(sizes))
    for place, column in enumerate(table.schema):
        wanted = pa.string() if pa.types.is_dictionary(column.type) else None
        if kind == "pandas" and pa.types.is_integer(column.type):
            wanted = pa.float64()
        if wanted is not None:
            table = table.set_column(place, column.name, table.column(place).cast(wanted))
    if kind != "pandas":
        return Chunk(kind, table.combine_chunks(), rows - rows[0], int(table.nbytes))
    import pandas as pd

    nullable = {pa.bool_(): pd.BooleanDtype()}
    frame = table.to_pandas(use_threads=False, date_as_object=False, types_mapper=nullable.get)
    return Chunk(kind, frame, rows - rows[0], int(frame.memory_usage(index=False).sum()))


@dataclass
class Result:
    """What came of an evaluation."""

    values: NDArray[np.float64]
    """Of every block the number, or the numbers of its units."""
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
    job: FunctionJob, chunks: Chunks, items: Sequence[Item], blocks: int, *, isolated: bool = False
) -> Result:
    """One row of values per block, NaN for failures."""
    result = Result(np.full((blocks, job.width), np.nan))
    _evaluate(job, chunks, items, result, isolated=isolated)
    return result


def loads(job: FunctionJob) -> bool:
    """Whether the function can be loaded in a fork that is to ask it of nothing."""
    for _ in range(_TRIES):
        status = _fork(job, {}, [], 0).status
        if status != ForkStatus.STARTED:
            return status != ForkStatus.UNLOADABLE
    return False


def _evaluate(
    job: FunctionJob, chunks: Chunks, items: Sequence[Item], result: Result, *, isolated: bool
) -> None:
    position, deaths, values = 0, 0, result.values
    while position < len(items):
        group = items[position : position + 1] if isolated else items[position:]
        shared = _fork(job, chunks, group, len(values))
        result.told = result.told or shared.told.decode("utf-8", "replace")
        status, done = shared.status, shared.done
        if _state_kept(job, chunks, group, shared):
            result.changed = True
            _evaluate(job, chunks, group, result, isolated=True)
            return
        deaths = deaths + 1 if status == ForkStatus.STARTED and done == 0 else 0
        if status == ForkStatus.UNLOADABLE or deaths == _TRIES:
            result.loaded = False
            return
        if status == ForkStatus.LOADED and done == 0:  # it died, or was killed, at its first item
            shared.failed[0], done = True, 1
        for number in range(done):
            start, stop = group[number]
            values[start:stop] = np.nan if shared.failed[number] else shared.values[start:stop]
            if shared.failed[number] and stop - start > 1:
                # In smaller batches: soon each block that fails is alone.
                size = -(-(stop - start) // _DIVIDED)
                smaller = [(low, min(low + size, stop)) for low in range(start, stop, size)]
                _evaluate(job, chunks, smaller, result, isolated=isolated)
        position += done


def _state_kept(
    job: FunctionJob, chunks: Chunks, items: Sequence[Item], shared: SharedResults
) -> bool:
    """Whether blocks that shared a fork are seen to have changed each other's values.

    The fork itself has asked the first block again at its end. The last one is asked again here, in
    a fork that has seen no other.
    """
    status, done = shared.status, shared.done
    if status == ForkStatus.CHANGED or (status == ForkStatus.LOADED and 1 < len(items) == done):
        return True
    start, stop = items[max(0, done - 1)]
    if done < 2 or stop - start > 1:
        return False
    alone = _fork(job, chunks, [(start, stop)], len(shared.values))
    failed = alone.done == 0 or bool(alone.failed[0])
    if failed or shared.failed[done - 1]:
        return failed != bool(shared.failed[done - 1])
    return not np.array_equal(shared.values[start:stop], alone.values[start:stop], equal_nan=True)


def _fork(job: FunctionJob, chunks: Chunks, items: Sequence[Item], blocks: int) -> SharedResults:
    """What a fork for these items has left."""
    with contextlib.suppress(ChildProcessError):  # let go of forks that have ended since
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    shared = SharedResults.make(blocks, len(items), job.width)
    shared.deadline = time.monotonic() + job.load_seconds
    ready, signalled = os.pipe()
    pid = os.fork()
    if pid == 0:
        _run(job, chunks, items, shared, signalled)
    os.close(signalled)
    clean = False
    try:
        clean = _watch(pid, ready, shared)
    finally:
        os.close(ready)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if not clean:
            os.waitpid(pid, 0)
            _end_orphans()
    return shared


def _watch(pid: int, ready: int, shared: SharedResults) -> bool:
    """Wait until the fork is ready, has ended, or is late; True if it leaves nothing behind.

    Who is ready need not be waited for: to tear down a process takes longer than many questions.
    """
    descriptor = os.pidfd_open(pid)
    try:
        waiting = select.poll()
        for each in (descriptor, ready):
            waiting.register(each, select.POLLIN)
        while True:
            left = shared.deadline - time.monotonic()
            if left <= 0:
                return False
            seen = dict(waiting.poll(1000 * min(left, _PATIENCE) + 1))
            if seen.get(ready, 0) & select.POLLIN:
                return os.read(ready, 1) == _READY
            if descriptor in seen:
                return False
            if ready in seen:  # closed without a word: the end of the fork will be seen
                waiting.unregister(ready)
    finally:
        os.close(descriptor)


def _end_orphans() -> None:
    """End whatever a fork has started: orphans come to the worker."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            for each in Path("/proc/self/task").glob("*/children"):
                for child in each.read_text("ascii").split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(child), signal.SIGKILL)
            time.sleep(0.001)


class ForkStatus(IntEnum):
    """How far a fork has come, as it says itself."""

    STARTED = 0
    LOADED = 1
    FINISHED = 2
    LEFT = 3  # something stays behind after a block: the next one starts afresh
    CHANGED = 4  # the first block gave another value when it was asked again
    UNLOADABLE = 5


class SharedResults(ctypes.Structure):
    """Memory that a worker shares with a fork, and that survives it.

    The fork writes how far it has come and by when it must have gone on; the worker reads that when
    the fork is gone, or too late.
    """

    _fields_ = (
        ("deadline", ctypes.c_double),
        ("status", ctypes.c_int64),
        ("done", ctypes.c_int64),
        ("told", ctypes.c_char * _TEXT),
    )
    deadline: float
    """When the present step must have ended, by the monotonic clock."""
    status: int
    done: int
    """How many items are finished."""
    told: bytes
    """Why the first failure happened; written on public data only."""
    values: NDArray[np.float64]
    """Of every block, as many as the job wants."""
    failed: NDArray[np.bool_]
    """Of every item."""

    @classmethod
    def make(cls, blocks: int, items: int, width: int = 1) -> SharedResults:
        """New memory, all 0."""
        head, count = ctypes.sizeof(cls), blocks * width
        memory = mmap.mmap(-1, head + 8 * count + items)
        made = cls.from_buffer(memory)
        made.values = np.frombuffer(memory, np.float64, count, head).reshape(blocks, width)
        made.failed = np.frombuffer(memory, np.bool_, items, head + 8 * count)
        return made


def _run(
    job: FunctionJob, chunks: Chunks, items: Sequence[Item], shared: SharedResults, signalled: int
) -> NoReturn:
    """What a fork does: evaluate items in their order, and say so if nothing is left behind.

    It ends without cleaning up, for nothing here is its own.
    """
    try:
        channel = os.dup2(signalled, CHANNEL)
        confine(job.memory)
        sys.path[:] = job.path
        os.chdir(job.folder)
        Runner(job, chunks, shared).run(items)
        if not left_processes():
            os.write(channel, _READY)
    finally:
        os._exit(0)


class Runner:
    """The work of one fork. Whatever the function raises is a failure of the item."""

    def __init__(self, job: FunctionJob, chunks: Chunks, shared: SharedResults) -> None:
        self._job, self._chunks, self._shared = job, chunks, shared
        self._needs, self._process = job.needs, os.getpid()
        self._functions: tuple[Any, ...] = ()
        self._small = sum(len(payload or b"") for payload in job.payloads) <= _FRESH

    def run(self, items: Sequence[Item]) -> None:
        """Load, evaluate, look for traces, ask the first item again."""
        shared, job = self._shared, self._job
        shared.deadline = time.monotonic() + job.load_seconds
        try:
            self._functions = _load(job)
        except BaseException as error:
            self._explain(error)
            shared.status = ForkStatus.UNLOADABLE
            return
        shared.status = ForkStatus.LOADED
        # That batches keep nothing is assumed: single blocks alone are watched.
        watched = len(items) > 1 and items[0][1] - items[0][0] == 1
        traces = Traces(job.packages) if watched else None
        for number, item in enumerate(items):
            stopped = self._one(number, item)
            if stopped is not None:
                shared.status = stopped
                return
            if traces is not None and number + 1 < len(items) and traces.found():
                shared.status = ForkStatus.LEFT
                return
        given = np.flatnonzero(~shared.failed).tolist() if watched else []
        same = not given or self._same(items[given[0]])
        shared.status = ForkStatus.FINISHED if same else ForkStatus.CHANGED

    def _one(self, number: int, item: Item) -> ForkStatus | None:
        """Evaluate an item; a status if that must be done again, in a fork of its own.

        That the function cannot be loaded anew is laid to no item's charge: the items before may
        have seen to it, or the machine.
        """
        shared, (start, stop) = self._shared, item
        shared.status = ForkStatus.STARTED
        shared.deadline = time.monotonic() + self._job.load_seconds
        _, error = self._guarded(self._renew)
        if error is not None:
            self._explain(error)
            return ForkStatus.LEFT if number else ForkStatus.UNLOADABLE
        shared.status = ForkStatus.LOADED
        limit = self._limit(item)
        began = time.monotonic()
        shared.deadline = began + limit
        values, error = self._guarded(partial(self._evaluate, item))
        late = time.monotonic() - began > limit
        if isinstance(error, MemoryError) and number:
            return ForkStatus.LEFT  # the items before may have taken it
        shared.failed[number] = failed = values is None or late
        shared.values[start:stop] = np.nan if failed else values
        shared.deadline = time.monotonic() + limit  # for what comes between two items
        shared.done = number + 1
        if error is not None:
            self._explain(error)
        return None

    def _limit(self, item: Item) -> float:
        return self._job.block_seconds if item[1] - item[0] == 1 else self._job.batch_seconds

    def _same(self, item: Item) -> bool:
        """Whether an item has, at the end, the values that it had at the beginning."""
        self._shared.deadline = time.monotonic() + self._limit(item)
        if self._guarded(self._renew)[1] is not None:
            return False
        again, _ = self._guarded(partial(self._evaluate, item))
        before = self._shared.values[item[0] : item[1]]
        return again is not None and np.array_equal(again, before, equal_nan=True)

    def _renew(self) -> None:
        """The same randomness as for every item, and the function anew."""
        same_randomness()
        if self._small:
            self._functions = _load(self._job)

    def _evaluate(self, item: Item) -> NDArray[np.float64]:
        """The values of an item's blocks."""
        values = self._sums(item) if self._job.sums else self._values(item)
        return values.reshape(item[1] - item[0], self._job.width)

    def _guarded(self, act: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        """What it gives, or None and what it raises; without a warning, which depends on data."""
        result: Any = None
        error: BaseException | None = None
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = act()
        except BaseException as raised:
            error = raised
        self._end_copies()
        return result, error

    def _end_copies(self) -> None:
        """End the process if the function has forked, and this is the copy."""
        if os.getpid() != self._process:
            os._exit(0)

    def _called(self, place: int, call: FunctionCall, first: int, last: int, units: int) -> object:
        """What a function gives for rows, of so many units a block."""
        chunk = self._chunks[call.kind]
        if not call.vectorised:
            some = None if call.columns == self._needs[call.kind] else call.columns
            return self._functions[place](chunk.between(first, last, some))
        arrays = {name: chunk.data[name][first:last].reshape(-1, units) for name in call.columns}
        return self._functions[place](arrays)  # not copied: no other fork sees them

    def _values(self, item: Item) -> NDArray[np.float64]:
        (call,) = self._job.calls
        assert call is not None
        first, last = self._chunks[call.kind].rows[list(item)].tolist()
        result = self._called(0, call, first, last, self._job.units)
        if call.vectorised:
            return block_values(result, item[1] - item[0])
        return np.array([block_value(result)])

    def _sums(self, item: Item) -> NDArray[np.float64]:
        start, stop = item
        chunk, bounds = self._chunks[_ROWS], self._job.bounds
        cuts = chunk.rows[start : stop + 1] - chunk.rows[start]
        terms, kept = (
            None if call is None else self._terms(place, call, item)
            for place, call in enumerate(self._job.calls)
        )
        if self._job.outside:
            assert terms is not None
            return np.array([farthest_outside(terms[a:b], bounds) for a, b in pairwise(cuts)])
        if terms is None:
            terms = np.ones(int(cuts[-1]))
        else:
            failed = bounds[0] + self._job.failure * (bounds[1] - bounds[0])
            terms = unit_terms(np.where(np.isnan(terms), failed, terms), bounds)
        kept = None if kept is None else unit_terms(kept, UNIT)
        unit: NDArray[np.int64] | None = None
        if self._job.grouped:
            unit = chunk.data["__unit"][chunk.rows[start] : chunk.rows[stop]].astype(np.int64)
        if unit is None and np.ptp(np.diff(cuts)) == 0:
            parts = unit_parts(terms, kept).reshape(stop - start, -1)
            return parts if self._job.terms else np.asarray(parts.sum(axis=1))
        several = [
            unit_parts(
                terms[a:b], None if kept is None else kept[a:b], None if unit is None else unit[a:b]
            )
            for a, b in pairwise(cuts)
        ]
        return np.array(several if self._job.terms else [each.sum() for each in several])

    def _terms(self, place: int, call: FunctionCall, item: Item) -> NDArray[np.float64]:
        """One number for each row, NaN for a row on which the function fails.

        Where a call of one block fails, or gives too many numbers or too few, each of its rows is
        asked for alone: a row takes no other along. Where it is strict, another number of them is a
        failure, and so is that most are none.
        """
        error: BaseException = TypeError("most of its terms are no numbers")
        strict, result = self._job.strict, None
        first, last = self._chunks[call.kind].rows[list(item)].tolist()
        try:
            result = self._called(place, call, first, last, self._job.units)
            numbers = row_numbers(result, last - first)
        except MemoryError:
            raise
        except BaseException as raised:
            if item[1] - item[0] > 1 or (strict and result is not None):
                raise
            self._explain(raised)
            numbers, error = np.full(last - first, np.nan), raised
            for row in range(last - first if last - first > 1 else 0):  # one has failed already
                self._end_copies()
                with contextlib.suppress(Exception, SystemExit, KeyboardInterrupt, GeneratorExit):
                    alone = self._called(place, call, first + row, first + row + 1, 1)
                    numbers[row] = row_numbers(alone, 1)[0]
        if strict and 2 * np.count_nonzero(np.isnan(numbers)) > last - first:
            raise error
        return numbers

    def _explain(self, error: BaseException) -> None:
        if self._job.explain and not self._shared.told:
            text = f"{type(error).__name__}: {error}"
            self._shared.told = text.encode("utf-8", "replace")[:_TEXT]


def _load(job: FunctionJob) -> tuple[Any, ...]:
    """The functions, new: what an earlier copy of them has changed in itself is gone."""
    import cloudpickle
    from cloudpickle import cloudpickle as inner

    # Classes that travel by value are remembered by cloudpickle: forget those of earlier copies.
    remembered = getattr(inner, "_DYNAMIC_CLASS_TRACKER_BY_ID", None)
    if remembered is not None:
        remembered.clear()
    return tuple(
        None if call is None else cloudpickle.loads(payload)[int(call.vectorised)]
        for payload, call in zip(job.payloads, job.calls, strict=True)
    )
