"""The worker: a process that holds blocks and forks others to evaluate functions on them.

No function of a user ever runs in it, so that what it holds stays as it was read: frames and arrays
of earlier questions are kept, within limits, and the next question starts from them. See processes
for the conversation with the parent, supervisor for the forks.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.local.confinement import adopt_orphans
from holdfast.engines.local.frames import Chunk, make_chunk
from holdfast.engines.local.jobs import Job
from holdfast.engines.local.runner import ROWS, Item
from holdfast.engines.local.supervisor import evaluate, loads, single_items

__all__ = [
    "LOADED",
    "NO_MEMORY",
    "UNREADABLE",
    "Control",
    "Question",
    "Range",
    "Reading",
    "Setup",
    "Trial",
    "batch_blocks",
    "start",
]

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
