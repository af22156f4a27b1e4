"""The local engine: Python functions on the blocks of a store, each block by itself."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.closing import Closing
from holdfast.engines.local.admission import (
    Admission,
    FailsOnMost,
    Wanted,
    admit,
    admit_predictions,
)
from holdfast.engines.local.attempts import Attempts
from holdfast.engines.local.estimators import HIDDEN, LocalEstimator, local_estimator
from holdfast.engines.local.jobs import Job, Limits, Part, packages, surroundings
from holdfast.engines.local.pool import Pool, Progress
from holdfast.engines.local.terms import failed_share, failed_sum
from holdfast.engines.local.trials import TrialBlocks, drawn_blocks, trial_blocks
from holdfast.engines.local.worker import Setup, batch_blocks
from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.protocols.source import UNIT, Bounds

__all__ = ["LocalEngine"]

_MOST_WORKERS = 4
_MOST_BLOCKS = 512  # in one process: what is found wrong at its end is done again
_MOST_ROWS = 2**18  # in one range of blocks
_MOST_BATCHES = 1024  # in one range of blocks
_RANGES = 4  # for each worker, so that progress shows
_FEWEST_BLOCKS = 8  # in one range: a process costs more than most blocks


class LocalEngine(Closing):
    """Evaluates Python functions on blocks, in worker processes that outlive a question.

    A function that raises, returns no number, runs for longer than `block_time_limit` seconds on a
    block, takes more than `memory_limit` bytes or ends its process has failed on that block, and
    on no other. No exception of it is ever seen, no warning, and nothing that it prints.

    With `isolated=True` every block has a process of its own; otherwise blocks share one as long as
    none of them is seen to leave anything behind.
    """

    def __init__(
        self,
        store: Any,
        *,
        workers: int | None = None,
        memory_limit: int = 2 * 2**30,
        block_time_limit: float = 10.0,
        batch_time_limit: float = 60.0,
        load_time_limit: float = 60.0,
        cache: int = 2 * 2**30,
        isolated: bool = False,
    ) -> None:
        count = min(_MOST_WORKERS, os.cpu_count() or 1) if workers is None else workers
        count = whole_number("workers", count, 1, 1024)
        self._store, self._isolated = store, isolated
        self._limits = Limits(
            block_seconds=real_number("block_time_limit", block_time_limit, 0, open_low=True),
            batch_seconds=real_number("batch_time_limit", batch_time_limit, 0, open_low=True),
            load_seconds=real_number("load_time_limit", load_time_limit, 0, open_low=True),
            memory=whole_number("memory_limit", memory_limit, 2**20, 2**62),
        )
        self._pool = Pool(Setup(store, whole_number("cache", cache, 0, 2**62) // count), count)
        self._last: tuple[Any, Job] | None = None

    @property
    def pool(self) -> Pool:
        """The workers, for whoever tries a function without a question."""
        return self._pool

    def close(self) -> None:
        """End the workers; a later question starts new ones."""
        self._pool.close()

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
        values = self._ask(self.job((estimator,), sums=False), start, stop, progress)
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
    ) -> NDArray[np.int64]:
        """For every block the sum over its units of ⌊2¹⁶·function + 1/2⌋; see protocols.source.

        A function gives one number for each row, which is cut to the bounds and scaled from them to
        [0, 1], a filter true or false for each. The term of a unit of several rows is the average
        over those kept. None stands for 1.
        """
        job = self.job((function, where), sums=True, bounds=bounds)
        values = self._ask(job, start, stop, progress)
        failed = failed_sum(function, self._store.units)
        return np.where(np.isnan(values), failed, values).astype(np.int64)

    def admit(
        self,
        estimator: LocalEstimator,
        open_table: Any = None,
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
        functions = (estimator, None) if rows else (estimator,)
        job = self.job(functions, sums=rows, explain=True, bounds=bounds)
        if estimator.built_in:  # nothing of the user's runs: there is nothing to try
            return Admission(False, 0, None, estimator.assumes)
        try:
            blocks = trial_blocks(self._store, job, open_table, estimator.examples)
            return self._admitted(estimator, job, blocks, rows, symmetric)
        except FailsOnMost:  # on made-up blocks, perhaps, of which the data have nothing
            drawn = None if blocks.is_open else drawn_blocks(self._store, job)
            if drawn is None:
                raise
        return self._admitted(estimator, job, drawn, rows, symmetric)

    def _admitted(
        self,
        estimator: LocalEstimator,
        job: Job,
        blocks: TrialBlocks,
        rows: bool,
        symmetric: bool,
    ) -> Admission:
        attempts = Attempts(self._pool, estimator.name)
        if estimator.tried is not None:
            tried = self.job((estimator.tried(),), sums=False, explain=True)
            admit_predictions(tried, blocks, attempts)
        return admit(
            job,
            blocks,
            attempts,
            Wanted(self._isolated, rows or estimator.bounded_mean, symmetric, estimator.assumes),
        )

    def check(self, estimator: object) -> LocalEstimator:
        """An estimator that fits the store: its columns exist, its blocks can be made."""
        if not isinstance(estimator, LocalEstimator):
            estimator = local_estimator(estimator)
        self._columns(estimator)
        rows = self._store.manifest.rows
        if estimator.rows is not None and estimator.rows != rows:
            allowed = f"{rows:,} predictions, one for each row of the data"
            raise InvalidInput("model", f"{estimator.rows:,} predictions", allowed)
        if estimator.function is None and not self._store.manifest.one_row_units:
            hint = "Here units have several rows: write it for one block, and leave vectorised out."
            allowed = "a function of one block where units have several rows"
            raise InvalidInput("estimator", estimator.name, allowed, hint)
        return estimator

    def job(
        self,
        functions: tuple[LocalEstimator | None, ...],
        *,
        sums: bool,
        explain: bool = False,
        bounds: Bounds = UNIT,
    ) -> Job:
        """The question as a worker takes it; the same object for the same question again."""
        key = (functions, sums, explain, bounds, surroundings())
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        checked = [None if each is None else self.check(each) for each in functions]
        called = [None if each is None else self._part(each) for each in checked]
        payloads = tuple(None if each is None else each.payload for each in checked)
        path, folder = surroundings()
        job = Job(
            payloads=payloads,
            parts=tuple(called),
            sums=sums,
            units=self._store.units,
            grouped=sums and not self._store.manifest.one_row_units,
            limits=self._limits,
            path=path,
            folder=folder,
            packages=packages(payloads),
            explain=explain,
            bounds=bounds,
            failure=failed_share(checked[0]) if sums else 0.0,
        )
        self._last = key, job
        return job

    def _part(self, estimator: LocalEstimator) -> Part:
        rectangular = self._store.manifest.one_row_units
        vectorised = estimator.batched is not None and rectangular
        kind = "numpy" if vectorised else estimator.block
        return Part(kind, self._columns(estimator), vectorised)

    def _columns(self, estimator: LocalEstimator) -> tuple[str, ...]:
        schema = self._store.schema
        if estimator.columns is None:
            return tuple(schema.names)
        hidden = HIDDEN if estimator.rows is not None else ()  # predictions are found by row
        return tuple(
            name if name in hidden else _column(schema, name) for name in estimator.columns
        )

    def _ask(
        self, job: Job, start: int, stop: int | None, progress: Progress | None
    ) -> NDArray[np.float64]:
        blocks = self._store.blocks
        stop = whole_number("stop", blocks if stop is None else stop, 1, blocks)
        start = whole_number("start", start, 0, stop - 1)
        for shard in self._store.overlapping(start, stop):
            self._store.check_there(shard)  # without it every value would be a failure
        size = self._range_blocks(job, stop - start)
        ranges = [(first, min(stop, first + size)) for first in range(start, stop, size)]
        return self._pool.ask(job, ranges, isolated=self._isolated, progress=progress)

    def _range_blocks(self, job: Job, blocks: int) -> int:
        """How many blocks go to a worker at once."""
        if job.batched:
            batch = batch_blocks(job.units, sums=job.sums)
            shares = self._pool.workers * (_RANGES if job.sums else 1)
            share = -(-blocks // (shares * batch)) * batch
            return min(share, _MOST_BATCHES * batch)  # whole batches, however many workers
        rows = self._store.manifest.block_rows / self._store.blocks
        share = max(_FEWEST_BLOCKS, -(-blocks // (self._pool.workers * _RANGES)))
        return max(1, min(share, _MOST_BLOCKS, int(_MOST_ROWS / rows)))


def _column(schema: Any, name: str) -> str:
    column = schema.find(name)
    if column is None or column.name != name:  # Python tells upper from lower case
        names = ", ".join(schema.names[:12]) + (", …" if len(schema.names) > 12 else "")
        hint = "" if column is None else f"Did you mean {column.name!r}?"
        raise InvalidInput("columns", name, f"columns of the holdout: {names}", hint)
    return name
