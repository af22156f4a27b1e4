"""The local engine: Python functions on the blocks of a store, each block by itself."""

from __future__ import annotations

import contextlib
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from holdfast.concurrency import Closing
from holdfast.engines.process import Worker, WorkerDied, WorkerTimeout
from holdfast.engines.python.admission import (
    CONTROLS,
    Admission,
    Attempts,
    FailsOnMost,
    TrialBlocks,
    drawn_blocks,
    trial_blocks,
)
from holdfast.engines.python.estimator import (
    FunctionCall,
    FunctionJob,
    LocalEstimator,
    failed_share,
    failed_sum,
    packages,
    stored_columns,
    surroundings,
)
from holdfast.engines.python.worker import (
    LOADED,
    NO_MEMORY,
    UNREADABLE,
    AskRange,
    Control,
    GivenJob,
    ReadRange,
    WorkerSetup,
    batch_blocks,
    too_large,
    unreadable,
)
from holdfast.errors import HoldfastError, Unavailable, real_number, whole_number
from holdfast.protocols.source import UNIT, Bounds

__all__ = ["Admission", "LocalEngine"]

Progress = Callable[[int, int], None]

_WORKER = "holdfast.engines.python.worker"
_LOAD_SECONDS = 60.0  # for a function and the packages that it names
_CACHE = 2 * 2**30  # bytes of blocks that workers keep together
_STARTS = 3  # of a worker, before it is given up
_GIVES = 2  # of a question to a worker that dies of it: the second is new, and holds no block
_READ_SECONDS = 600.0  # for blocks to be read: what a worker itself may take, beside the function
# One thread in each process, and sets in the same order in all: values depend on neither.
_ENVIRONMENT = {
    "LOKY_MAX_CPU_COUNT": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "PYTHONHASHSEED": "0",
}

_MOST_WORKERS = 4
_MOST_BLOCKS = 512  # in one process: what is found wrong at its end is done again
_MOST_ROWS = 2**18  # in one range of blocks
_MOST_BATCHES = 1024  # in one range of blocks
_MOST_TERMS = 2**24  # in one range of blocks
_RANGES = 4  # for each worker, so that progress shows
_FEWEST_BLOCKS = 8  # in one range: a process costs more than most blocks


class WorkerSlot:
    """A place for one worker, and what becomes of the blocks with which a worker ends.

    What fails with a block is the block's failure, and gives NaN; what fails without one is the
    machine's, and an error. Where it could be either, a control tells them apart:

        a worker ends with a range      each of its blocks is asked alone, in a new worker
        … while it reads a block        an error: no function was near it
        … with a block, alone again     NaN, if a control can load the function
        a function cannot be loaded     if a control can load it, the range is asked again; if that
                                        fails too, each of its blocks alone; then NaN
        a question ends its workers     an error: the last of them was new, and held no block

    A control is a new worker that reads nothing, loads the function and asks it of nothing. There
    is one when a block is first to be laid to its own charge, and one after the last: what is gone
    for good meanwhile is seen.

    That a control is made may depend on the data; what becomes of it does not, for the function has
    passed one when it was admitted, unless it is malicious: it can write no file and end nobody
    else where the kernel has Landlock (see sandbox), but it can leave marks that no Landlock
    forbids, as the times and modes of its files, and fail to load on them, or by the clock. The
    function is not called: one that ends its worker on public blocks too would turn each such end
    on sealed ones into an error that tells of them.
    """

    def __init__(self, setup: WorkerSetup) -> None:
        self._setup = setup
        self._worker: Worker | None = None
        self._job: FunctionJob | None = None
        self._controlled = False
        self._doubtful = False  # whether a failure that may be the machine's is a block's
        self._open = False
        self._lock = threading.Lock()

    def open(self) -> None:
        """Start a worker, and allow others to follow it; none is waited for."""
        with self._lock:
            self._open = True
            self._controlled = self._doubtful = False
        self._start()

    def kill(self) -> None:
        """End the worker; whoever waits for it gets none in its place."""
        with self._lock:
            self._open = False
            if self._worker is not None:
                self._worker.kill()

    def call(self, message: object, seconds: float) -> bytes:
        """What the worker replies."""
        for _ in range(_STARTS):
            worker = self._start()
            try:
                worker.ready()
            except (WorkerDied, WorkerTimeout):
                continue  # no function, and no block, has been near it: the machine is busy
            return worker.call(message, seconds + _READ_SECONDS)
        raise _unstarted("Try `python -c 'import holdfast, pandas, pyarrow, cloudpickle'`.")

    def ask(self, job: FunctionJob, ranges: Sequence[tuple[int, int]]) -> Generator[Any]:
        """The start of each range with its values, NaN for failures.

        A worker that dies is no failure yet. If blocks have failed that the machine may have failed
        since the first control, there is a last one.
        """
        for start, stop in ranges:
            values, loaded = self._range(job, start, stop)
            if values is not None and not loaded:
                self._control(job)
                values, loaded = self._range(job, start, stop)
            if values is None or not loaded:
                values = np.concatenate([self._alone(job, block) for block in range(start, stop)])
            if self._doubtful and (start, stop) == ranges[-1]:
                self._controlled = False
                self._control(job)
            yield start, values

    def _range(
        self, job: FunctionJob, start: int, stop: int
    ) -> tuple[NDArray[np.float64] | None, bool]:
        """What a worker says of these blocks, None if it ends; whether the function was loaded."""
        self._give(job)
        blocks = stop - start
        seconds = blocks * (3 * job.block_seconds + 3 * job.load_seconds + job.batch_seconds)
        with contextlib.suppress(WorkerDied, WorkerTimeout):
            reply = _readable(self.call(AskRange(start, stop), seconds))
            if len(reply) == 1 + 8 * blocks * job.width:
                values = np.frombuffer(reply[1:], np.float64).reshape(blocks, job.width)
                return values, reply[:1] == LOADED
        return None, False

    def _alone(self, job: FunctionJob, block: int) -> NDArray[np.float64]:
        """The value of a block with which a worker has ended; NaN if that happens again."""
        self._give(job)
        try:
            _readable(self.call(ReadRange(block, block + 1), 0.0))
        except (WorkerDied, WorkerTimeout):
            self._blame(too_large("the process that reads it was ended"))
        values, loaded = self._range(job, block, block + 1)
        if not loaded:
            self._control(job)
            self._doubtful = True
        return np.full((1, job.width), np.nan) if values is None else values

    def _start(self) -> Worker:
        """The worker, a new one if the last one has died."""
        with self._lock:  # none is started after the last one was killed
            if not self._open:
                needed, given = "an engine that stays open", "it was closed meanwhile"
                raise Unavailable("Evaluating Python functions", needed, given, "Ask again.")
            if self._worker is None or not self._worker.alive:
                self._worker = _started(self._setup)
                self._job = None
            return self._worker

    def _give(self, job: FunctionJob) -> None:
        """See that the worker has the question: a package that it names may end a process."""
        for _ in range(_GIVES):
            self._start()
            if self._job is job:
                return
            with contextlib.suppress(WorkerDied, WorkerTimeout):
                self.call(GivenJob(job), job.load_seconds)
                self._job = job
                return
        self._blame(_unloadable("processes end while they load the packages that it names"))

    def _control(self, job: FunctionJob) -> None:
        """Raise unless a new worker, which has held no block, can load the function.

        A thousand blocks that end their worker need not a thousand: the first and the last do.
        """
        if self._controlled:
            return
        for _ in range(CONTROLS):
            with self._lock:
                if self._worker is not None:
                    self._worker.kill()
            with contextlib.suppress(WorkerDied, WorkerTimeout):
                if self.call(Control(job), 3 * job.load_seconds) == LOADED:
                    self._controlled = True
                    return
        given = "it can no longer be loaded, in a process that holds no data either"
        self._blame(_unloadable(given))

    def _blame(self, error: HoldfastError) -> NoReturn:
        """Raise the error, or another if the workers have ended because the engine was closed."""
        self._start()
        raise error from None


def _readable(reply: bytes) -> bytes:
    """The reply, unless it says that the blocks could not be read: no function was near them."""
    if reply == UNREADABLE:
        raise unreadable()
    if reply == NO_MEMORY:
        raise too_large("there is not enough of it")
    return reply


def _started(setup: WorkerSetup) -> Worker:
    """A new worker. There may be no room for a process just now: then a little later."""
    for attempt in range(_STARTS):
        time.sleep(0.1 * attempt)
        with contextlib.suppress(OSError):
            return Worker(_WORKER, setup, environment=_ENVIRONMENT)
    raise _unstarted("Look at the machine: memory, and how many processes it allows.")


def _unstarted(remedy: str) -> Unavailable:
    needed, given = "a Python process that starts", f"{_STARTS} of them did not"
    return Unavailable("Evaluating Python functions", needed, given, remedy)


def _unloadable(given: str) -> Unavailable:
    needed = "a function that can be loaded, as when it was tried"
    remedy = "Look at the machine: memory, and the packages and files that the function needs."
    return Unavailable("Evaluating Python functions", needed, given, remedy)


class LocalEngine(Closing):
    """Evaluates Python functions on blocks, in worker processes that outlive a question.

    A function that raises, returns no number, runs for longer than `block_time_limit` seconds on a
    block, takes more than `memory_limit` bytes or ends its process has failed on that block, and
    on no other. No exception of it is ever seen, no warning, and nothing that it prints.

    Blocks share a process as long as none of them is seen to leave anything behind. One question at
    a time.
    """

    def __init__(
        self,
        store: Any,
        *,
        workers: int | None = None,
        memory_limit: int = 2 * 2**30,
        block_time_limit: float = 10.0,
        batch_time_limit: float = 60.0,
    ) -> None:
        count = min(_MOST_WORKERS, os.cpu_count() or 1) if workers is None else workers
        count = whole_number("workers", count, 1, 1024)
        self._store = store
        self._limits: dict[str, Any] = {
            "block_seconds": real_number("block_time_limit", block_time_limit, 0, open_low=True),
            "batch_seconds": real_number("batch_time_limit", batch_time_limit, 0, open_low=True),
            "load_seconds": _LOAD_SECONDS,
            "memory": whole_number("memory_limit", memory_limit, 2**20, 2**62),
        }
        setup = WorkerSetup(store, _CACHE // count)
        self._slots = [WorkerSlot(setup) for _ in range(count)]
        self._public = WorkerSlot(setup)  # for trials and controls: it never holds a sealed block
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._last: tuple[Any, FunctionJob] | None = None

    def close(self) -> None:
        """End the workers; a later question starts new ones."""
        if os.getpid() == self._owner:
            for slot in (self._public, *self._slots):
                slot.kill()

    def values(
        self,
        estimator: LocalEstimator,
        start: int = 0,
        stop: int | None = None,
        *,
        progress: Progress | None = None,
    ) -> NDArray[np.float64]:
        """The estimator's value on the blocks start, …, stop − 1, in that order.

        NaN for failures, or what the estimator says that they are.

        `progress(done, total)` is called as blocks come back. The time is at most about
        2 · blocks · `block_time_limit` / workers, whatever the function does.
        """
        values = self._ask(self._job((estimator,), sums=False), start, stop, progress)
        failure = estimator.failure
        return values if math.isnan(failure) else np.where(np.isnan(values), failure, values)

    def sums(
        self,
        function: LocalEstimator | None,
        where: LocalEstimator | None = None,
        start: int = 0,
        stop: int | None = None,
        *,
        bounds: Bounds = UNIT,
        progress: Progress | None = None,
        terms: bool = False,
    ) -> NDArray[np.int64]:
        """For every block the sum over its units of ⌊2¹⁶·function + 1/2⌋; see protocols.source.

        A function gives one number for each row, which is cut to the bounds and scaled from them to
        [0, 1], a filter true or false for each. The term of a unit of several rows is the average
        over those kept. None stands for 1. With `terms`, what is added up, of one unit after
        another; 0 for those not summed.
        """
        job = self._job((function, where), sums=True, terms=terms, bounds=bounds)
        values = self._ask(job, start, stop, progress)
        failed = failed_sum(function, 1 if terms else self._store.units)
        return np.where(np.isnan(values), failed, values).astype(np.int64)

    def admit(
        self,
        estimator: LocalEstimator,
        *,
        rows: bool = False,
        symmetric: bool = False,
        bounds: Bounds = UNIT,
    ) -> Admission:
        """Refuse a function that mixes blocks, keeps a state or draws at random; see admission.

        With `rows=True`, a function for `sums`: each row's term must depend on that row alone, as
        for a bounded mean, and lie within the bounds on open rows. With `symmetric=True` the order
        of a block's rows must not matter.
        """
        job = self._public_job(estimator, sums=rows, bounds=bounds)
        if estimator.built_in:  # nothing of the user's runs: there is nothing to try
            return Admission(False, 0, estimator.assumes)
        made_up = estimator.sealed_only
        blocks = trial_blocks(self._store, job, estimator.examples, made_up=made_up)
        how = {"rows": rows or estimator.bounded_mean, "symmetric": symmetric}
        try:
            return self._admitted(estimator, job, blocks, **how)
        except FailsOnMost:  # on made-up blocks, perhaps, of which the data have nothing
            drawn = None if blocks.is_open or made_up else drawn_blocks(self._store, job)
            if drawn is None:
                raise
        return self._admitted(estimator, job, drawn, **how)

    def _admitted(
        self, estimator: LocalEstimator, job: FunctionJob, blocks: TrialBlocks, **how: bool
    ) -> Admission:
        if estimator.tried is not None:
            predictions = self._public_job(estimator.tried(), sums=False)
            Attempts(self._try, estimator.name, predictions, blocks).admit_predictions()
        found = Attempts(self._try, estimator.name, job, blocks).admit(**how)
        return Admission(found.is_open, found.blocks, (*found.assumptions, *estimator.assumes))

    def public_blocks(
        self, estimator: LocalEstimator, *, sums: bool, made_up: bool = False
    ) -> TrialBlocks:
        """Blocks on which anybody may see what it gives."""
        job = self._public_job(estimator, sums=sums)
        made_up = made_up or estimator.sealed_only
        return trial_blocks(self._store, job, estimator.examples, made_up=made_up)

    def attempts(
        self, estimator: LocalEstimator, blocks: TrialBlocks, *, sums: bool, bounds: Bounds = UNIT
    ) -> Attempts:
        """An estimator on public blocks."""
        job = self._public_job(estimator, sums=sums, bounds=bounds)
        return Attempts(self._try, estimator.name, job, blocks)

    def _try(self, message: object, seconds: float) -> bytes:
        """One message to the worker that functions are tried in."""
        with self._lock:
            for slot in (self._public, *self._slots):
                slot.open()  # whoever tries will ask: they import meanwhile
            return self._public.call(message, seconds)

    def _public_job(
        self, estimator: LocalEstimator, *, sums: bool, bounds: Bounds = UNIT
    ) -> FunctionJob:
        functions = (estimator, None) if sums else (estimator,)
        return self._job(functions, sums=sums, explain=True, bounds=bounds)

    def _job(
        self,
        functions: tuple[LocalEstimator | None, ...],
        *,
        sums: bool,
        terms: bool = False,
        explain: bool = False,
        bounds: Bounds = UNIT,
    ) -> FunctionJob:
        """The question as a worker takes it; the same object for the same question again."""
        path, folder = surroundings()
        key = (functions, sums, terms, explain, bounds, path, folder)
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        even = self._store.manifest.one_row_units
        calls = []
        for each in functions:
            call = None
            if each is not None:
                vectorised = each.batched is not None and even
                kind = "numpy" if vectorised else each.block
                call = FunctionCall(kind, stored_columns(each, self._store), vectorised)
            calls.append(call)
        payloads = tuple(None if each is None else each.payload for each in functions)
        job = FunctionJob(
            payloads=payloads,
            calls=tuple(calls),
            sums=sums,
            units=self._store.units,
            grouped=sums and not even,
            **self._limits,
            path=path,
            folder=folder,
            packages=packages(payloads),
            explain=explain,
            bounds=bounds,
            failure=failed_share(functions[0]) if sums else 0.0,
            terms=terms,
        )
        self._last = key, job
        return job

    def _ask(
        self, job: FunctionJob, start: int, stop: int | None, progress: Progress | None
    ) -> NDArray[np.float64]:
        """The numbers of one block after another.

        Each range goes to a fixed worker, which may still hold its blocks from before.
        """
        blocks, count = self._store.blocks, len(self._slots)
        stop = whole_number("stop", blocks if stop is None else stop, 1, blocks)
        start = whole_number("start", start, 0, stop - 1)
        for shard in self._store.overlapping(start, stop):
            self._store.check_there(shard)  # without it every value would be a failure
        size, done = self._range_blocks(job, stop - start), 0
        ranges = [(first, min(stop, first + size)) for first in range(start, stop, size)]
        values = np.full((stop - start, job.width), np.nan)
        with self._lock:
            shares = {self._slots[k]: ranges[k::count] for k in range(min(count, len(ranges)))}
            for slot in shares:
                slot.open()  # here, all at once: they import while none is waited for
            with contextlib.closing(self._gather(job, shares)) as gathered:
                for first, got in gathered:
                    values[first - start : first - start + len(got)] = got
                    done += len(got)
                    if progress is not None:
                        progress(done, stop - start)
        return values.reshape(-1)

    def _gather(
        self, job: FunctionJob, shares: dict[WorkerSlot, list[tuple[int, int]]]
    ) -> Generator[tuple[int, NDArray[np.float64]]]:
        """Values as they come, one thread to a worker; an interruption kills the workers."""
        results: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def work(slot: WorkerSlot) -> None:
            try:
                for found in slot.ask(job, shares[slot]):
                    results.put(found)
            except BaseException as error:
                results.put((0, error))

        threads = [threading.Thread(target=work, args=(slot,), daemon=True) for slot in shares]
        for thread in threads:
            thread.start()
        try:
            for _ in range(sum(map(len, shares.values()))):
                start, got = results.get()
                if isinstance(got, BaseException):
                    raise got
                yield start, got
        except BaseException:
            for slot in shares:
                slot.kill()
            raise
        finally:
            for thread in threads:
                thread.join()

    def _range_blocks(self, job: FunctionJob, blocks: int) -> int:
        """How many blocks go to a worker at once."""
        workers = len(self._slots)
        if job.sums or job.vectorised:
            batch = batch_blocks(job.units, sums=job.sums)
            shares = workers * (_RANGES if job.sums else 1)
            share = -(-blocks // (shares * batch)) * batch
            most = _MOST_BATCHES * batch
            if job.terms:
                most = min(most, max(1, _MOST_TERMS // job.units))  # more than one call takes
            return min(share, most)  # whole batches, however many workers
        rows = self._store.manifest.block_rows / self._store.blocks
        share = max(_FEWEST_BLOCKS, -(-blocks // (workers * _RANGES)))
        return max(1, min(share, _MOST_BLOCKS, int(_MOST_ROWS / rows)))
