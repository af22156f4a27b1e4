"""The SQL engine: one GROUP BY for all blocks, in a process that can be killed.

If the evaluation of all blocks fails, takes too long or kills the process, every block is evaluated
again by itself, and only those that fail again are failures: that some other block failed, or that
anything failed at all, is seen by nobody. A block of which no word came may have failed by the
machine, by a disk that does not answer or for want of memory. So a control counts its rows, in a
time that depends on nobody's limits: if it cannot, that is an error; if it can, the block is
evaluated once more.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.concurrency import BatchedTask, Batcher
from holdfast.engines.process import Worker, WorkerDied, WorkerTimeout
from holdfast.engines.sql.estimator import SqlEstimator, SqlTerm, sum_of, value_of
from holdfast.engines.sql.worker import LENGTH, UNREADABLE, Number, Query, SqlSetup
from holdfast.errors import Damaged, InvalidInput, Unavailable, real_number, whole_number
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds

if TYPE_CHECKING:
    from holdfast.store.blocks import BlockStore

__all__ = ["SqlEngine"]

_BATCH = 2**16  # blocks at once: DuckDB groups so many by their number
# Distinct values are counted by hashing, which may split a group in two if there are many groups.
_DISTINCT_BATCH = 2**10
_TERMS_BATCH = 2**22  # units at once, of which each has its number
_BEYOND_DUCKDB = 2**29  # bytes that libraries and threads may take beside DuckDB's own limit
_STARTS = 3
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}  # NumPy only carries numbers there
# A store of so many bytes of numbers is kept in memory, and read in a moment: then most of the time
# is the way to the process and back, and the questions that wait go there together.
_SMALL = 2**22
_TOGETHER = 16

Progress = Callable[[int, int], None]
Tick = Callable[[], None]
Task = tuple[Query, float, Tick | None]  # within how many seconds, and what to call meanwhile


class _Failed(Enum):
    ERROR = "DuckDB has said so"
    SILENCE = "the process was late, or died"


Found = NDArray[np.generic] | _Failed
_CONTROL = Number("count(*)", integer=True)
# Much longer than it takes: who asks can choose limits at which some data are late, but none at
# which they would be an error.
_CONTROL_SECONDS = 120.0


class SqlEngine:
    """Evaluates SQL estimators on the blocks of a store. Safe to share between threads.

    `memory_limit` is in bytes, the time limits in seconds. `fallbacks` counts the evaluations that
    were done again block by block: it depends on the data, and is for tests and custodians.
    """

    def __init__(
        self,
        store: BlockStore,
        *,
        memory_limit: int = 4 * 2**30,
        threads: int | None = None,
        time_limit: float = 600.0,
        block_time_limit: float = 10.0,
    ) -> None:
        memory = whole_number("memory_limit", memory_limit, 2**26, 2**50)
        threads = whole_number("threads", threads or os.cpu_count() or 1, 1, 1024)
        columns = tuple((each.name, each.kind) for each in store.schema.columns)
        self._paths = {each: str(store.place(each).absolute()) for each in store.shards}
        # Whether there is little of it, whatever is in it: a text can be of any length.
        texts = "text" in dict(columns).values()
        small = not texts and 8 * store.manifest.block_rows * (len(columns) + 3) <= _SMALL
        paths = tuple(self._paths.values())
        self._setup = SqlSetup(paths, columns, 1 if small else threads, memory, in_memory=small)
        self._store = store
        self._seconds = real_number("time_limit", time_limit, 0, open_low=True)
        self._block_seconds = real_number("block_time_limit", block_time_limit, 0, open_low=True)
        self._worker: Worker | None = None
        self._lock = threading.RLock()  # held while the process works
        self._counting = threading.Lock()
        self._tasks: Batcher[Task, Found] = Batcher(_TOGETHER if small else 1)
        self.fallbacks = 0

    def values(
        self,
        estimator: SqlEstimator,
        start: int = 0,
        stop: int | None = None,
        *,
        progress: Progress | None = None,
    ) -> NDArray[np.float64]:
        """The value on each of the blocks start, …, stop − 1; NaN is a failure.

        `progress(done, total)` is called while blocks are evaluated. If it raises, no more are, and
        the exception is the caller's.
        """
        batch = _DISTINCT_BATCH if estimator.distinct else _BATCH
        number = value_of(estimator)
        return self._all(number, start, stop, batch, progress).astype(np.float64)

    def sums(
        self,
        term: SqlTerm | None,
        where: SqlTerm | None = None,
        start: int = 0,
        stop: int | None = None,
        *,
        bounds: Bounds = UNIT,
        progress: Progress | None = None,
        terms: bool = False,
    ) -> NDArray[np.int64]:
        """For each of the blocks the sum of its units' terms in parts of 2⁻¹⁶; None is the term 1.

        `where`, a condition as a term, holds of what is summed. A term is cut to its bounds and
        scaled from them to [0, 1]. With `terms`, what is added up, of one unit after another; 0 for
        those not summed.
        """
        if where is not None and not where.boolean:
            raise InvalidInput("where", where.text, "a condition", "Write one such as x > 0.")
        units = self._store.units
        if term is None and where is None:
            first, last = self._range(start, stop)
            width = units if terms else 1
            return np.full((last - first) * width, units // width * WEIGHT_SCALE, np.int64)
        single = self._store.manifest.one_row_units
        each = units if terms else None
        number = sum_of(term, where, bounds, one_row_units=single, units=each)
        batch = max(1, _TERMS_BATCH // units) if terms else _BATCH
        return self._all(number, start, stop, batch, progress).astype(np.int64)

    def close(self) -> None:
        """End the process; the next question starts another."""
        with self._lock:
            if self._worker is not None:
                self._worker.kill()
            self._worker = None

    def _all(
        self, number: Number, start: int, stop: int | None, batch: int, progress: Progress | None
    ) -> NDArray[np.generic]:
        """The number of each block. A query is about blocks of one file, wherever that is asked."""
        first, last = self._range(start, stop)
        parts: list[NDArray[np.generic]] = []
        for shard in self._store.shards:
            path, begin, end = self._paths[shard], max(first, shard.first), min(last, shard.stop)
            if begin >= end:
                continue
            with self._store.held(shard):
                if not self._setup.in_memory:  # there the process has read it, or cannot start
                    self._store.check_there(shard)  # without it every value would be a failure
                for low in range(begin, end, batch):
                    high = min(low + batch, end)
                    whole = (low, high) == (shard.first, shard.stop)
                    tick = (
                        None if progress is None else partial(progress, low - first, last - first)
                    )
                    query = Query(number, path, low, high, whole)
                    found = self._do(query, self._seconds, tick)
                    if isinstance(found, _Failed):
                        with self._counting:
                            self.fallbacks += 1
                        parts += self._one_by_one(query, tick)
                    else:
                        parts.append(found)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _range(self, start: int, stop: int | None) -> tuple[int, int]:
        last = self._store.blocks if stop is None else stop
        if not 0 <= start < last <= self._store.blocks:
            raise InvalidInput("blocks", (start, last), f"between 0 and {self._store.blocks:,}")
        return start, last

    def _one_by_one(self, query: Query, tick: Tick | None) -> Iterator[NDArray[np.generic]]:
        missing, units = 0 if query.number.integer else np.nan, query.number.units or 1
        failure: NDArray[np.generic] = np.full(units, missing)
        for block in range(query.start, query.stop):
            whole = query.whole and query.stop == query.start + 1
            alone = replace(query, start=block, stop=block + 1, whole=whole)
            found = self._do(alone, self._block_seconds, tick)
            if found is _Failed.SILENCE:
                self._require_readable(alone, tick)
                found = self._do(alone, self._block_seconds, tick)
            yield failure if isinstance(found, _Failed) else found

    def _require_readable(self, query: Query, tick: Tick | None) -> None:
        control = replace(query, number=_CONTROL)
        if isinstance(self._do(control, _CONTROL_SECONDS, tick), _Failed):
            needed = f"blocks whose rows can be counted within {_CONTROL_SECONDS:g} seconds"
            remedy = "Look at the machine, its memory and the disk of the blocks, and ask again."
            raise Unavailable(
                "Evaluating SQL", needed, "there is one with which it was not", remedy
            )

    def _do(self, query: Query, seconds: float, tick: Tick | None) -> Found:
        if tick is not None:
            tick()
        return self._tasks.do(self._run_all, (query, seconds, tick))

    def _run_all(self, jobs: list[BatchedTask[Task, Found]]) -> None:
        """The queries of several threads in one message; if that fails, each by itself."""
        with self._lock:
            # Queries that go together are short, one must not end the others, and each tick is for
            # its own thread.
            found = self._run(jobs, jobs[0].task[2] if len(jobs) == 1 else None)
            if found is None and len(jobs) > 1:
                alone = [self._run([job], None) for job in jobs]
                found = [_Failed.SILENCE if each is None else each[0] for each in alone]
        for job, outcome in zip(jobs, found or [_Failed.SILENCE], strict=True):
            if isinstance(outcome, Damaged):
                job.fail(outcome)
            else:
                job.succeed(outcome)

    def _run(
        self, jobs: list[BatchedTask[Task, Found]], tick: Tick | None
    ) -> list[Found | Damaged] | None:
        """What the worker says of each query, or None if it did not say it in time."""
        worker = self._ready()
        queries, seconds = [], math.inf
        for job in jobs:
            query, most, _ = job.task
            queries.append(query)
            seconds = min(seconds, most)
        try:
            reply = worker.call(queries, seconds, tick)
        except (WorkerDied, WorkerTimeout):
            return None
        return _divided(reply, queries)

    def _ready(self) -> Worker:
        """A worker that is alive. That none can be started does not depend on the data."""
        for attempt in range(_STARTS):
            if self._worker is not None and self._worker.alive:
                return self._worker
            memory = self._setup.memory_limit + _BEYOND_DUCKDB
            try:
                self._worker = Worker(
                    "holdfast.engines.sql.worker",
                    self._setup,
                    memory_limit=memory,
                    environment=_ENVIRONMENT,
                )
                self._worker.ready()
            except (WorkerDied, WorkerTimeout, OSError):  # it ended, or there can be no process
                time.sleep(0.1 * attempt)
        remedy = "Look at the machine's memory and processes, and at the file of the blocks."
        needed = "a process with DuckDB"
        raise Unavailable("Starting the SQL engine", needed, f"{_STARTS} have failed", remedy)


def _divided(reply: bytes, queries: Sequence[Query]) -> list[Found | Damaged] | None:
    """The numbers of each query, if it has not failed; None if the reply is not made so."""
    start = LENGTH.size * len(queries)
    if len(reply) < start:
        return None
    found: list[Found | Damaged] = []
    for query, (length,) in zip(queries, LENGTH.iter_unpack(reply[:start]), strict=True):
        if length == UNREADABLE:
            remedy = "Restore the holdout from a copy."
            found.append(Damaged(query.path, "a file that can be read", "another", remedy))
            continue
        expected = LENGTH.size * query.count
        if length not in (0, expected) or start + length > len(reply):
            return None
        kind = np.int64 if query.number.integer else np.float64
        numbers = np.frombuffer(reply, kind, length // LENGTH.size, start)
        found.append(numbers if length else _Failed.ERROR)
        start += length
    return found if start == len(reply) else None
