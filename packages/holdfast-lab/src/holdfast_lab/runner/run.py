"""Run experiments: measure what is not measured yet, keep it, and make tables, figures, findings.

In OUTPUT/NAME/full, or OUTPUT/NAME/quick:

journal.jsonl    finished cells, as they came; what a run continues from
results.parquet  the tidy table; results.csv is the same
run.json         parameters, seed, versions, date, the command that made it
findings.json    what the results show; the figures are beside it, as SVG and PNG
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from multiprocessing import connection, parent_process
from pathlib import Path
from types import ModuleType
from typing import Protocol

import numpy as np

from holdfast.errors import HoldfastError, whole_number
from holdfast_lab.experiments.base import Cell
from holdfast_lab.runner.experiment import Experiment, digest_of, load_module
from holdfast_lab.runner.results import (
    Done,
    Journal,
    Maker,
    Pictured,
    Place,
    cells_of,
    identity_of,
    picture,
    run_record,
    table_of,
    write_table,
)

# What a worker process does: measure one cell, and say what came of it.


@dataclass(frozen=True)
class Job:
    """A cell to measure, the file of the module that measures it, and the digest of its code."""

    experiment: str
    source: Path
    code: str
    cell: Cell


@dataclass(frozen=True)
class Failure:
    """Why there are no rows: a traceback, as text, which every process can read."""

    text: str


def start_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it, whatever ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent cannot stop its workers, and they would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def measure_cell(job: Job) -> Done | Failure:
    """Measure a cell. No exception leaves: one cell must not stop the others."""
    begin = time.perf_counter()
    try:
        measured = _module(job.source, job.code).measure(job.cell)
        taken = {*job.cell.parameters, "repeat"}
        rows = []
        for row in measured:
            both = taken & set(row)
            if both:
                raise ValueError(f"a row names {sorted(both)}, which the cell names already")
            rows.append({str(name): _plain(name, value) for name, value in row.items()})
    except Exception:
        return Failure(traceback.format_exc())
    seconds = round(time.perf_counter() - begin, 4)
    return Done(rows, seconds, datetime.now(UTC).isoformat(timespec="seconds"))


@cache
def _module(source: Path, code: str) -> ModuleType:
    """The module, loaded once: of the code that the journal names, and no other."""
    module = load_module(source)
    if digest_of(source) != code:
        raise HoldfastError(f"{source} has changed since the run began. Run it again.")
    return module


def _plain(name: str, value: object) -> object:
    """A value that a table can hold: a number, a boolean, text, or nothing."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    kind = type(value).__name__
    raise TypeError(f"a row's {name!r} is a {kind}, not a number, a boolean, text or None")


# Cells measured in parallel: finished ones come out as they are finished.


Finished = tuple[Job, Done | Failure]

# Workers share the machine: each with as many threads as there are cores would only be slower.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_AHEAD = 2  # cells handed out for each worker, so that none waits while results are written
_DIED = "The process that measured this cell died: killed, or out of memory.\n"


def measure_all(jobs: Iterable[Job], workers: int) -> Generator[Finished]:
    """Measure every cell, in as many processes as there are workers; in this one if there are none.

    Closing the iterator, or an exception in it, ends the workers at once.
    """
    if not workers:
        for job in jobs:
            yield job, measure_cell(job)
        return
    queue = _Queue(jobs)
    while queue:  # a pool whose process died is of no more use
        with spawned(workers) as executor:
            yield from queue.drain(executor, workers)


class _Queue:
    """Cells to measure. Those in flight when a process died are tried again, one at a time."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._waiting = deque(jobs)
        self._suspects: deque[Job] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting or self._suspects)

    def drain(self, executor: ProcessPoolExecutor, workers: int) -> Iterator[Finished]:
        """Until all is done, or a process dies."""
        running: dict[Future[Done | Failure], Job] = {}
        while self or running:
            self._hand_out(executor, workers, running)
            if not running:  # the pool broke while nothing was in flight
                return
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            lost = []
            for future in finished:
                job, problem = running.pop(future), future.exception()
                if isinstance(problem, BrokenProcessPool):
                    lost.append(job)
                else:
                    yield job, Failure(repr(problem)) if problem else future.result()
            if lost:
                lost += running.values()
                if len(lost) == 1:
                    yield lost[0], Failure(_DIED)
                else:
                    self._suspects.extend(lost)
                return

    def _hand_out(
        self,
        executor: ProcessPoolExecutor,
        workers: int,
        running: dict[Future[Done | Failure], Job],
    ) -> None:
        queue, most = (self._suspects, 1) if self._suspects else (self._waiting, _AHEAD * workers)
        while queue and len(running) < most:
            try:
                future = executor.submit(measure_cell, queue[0])
            except BrokenProcessPool:  # it shows in what is running
                return
            running[future] = queue.popleft()


@contextmanager
def spawned(workers: int) -> Iterator[ProcessPoolExecutor]:
    """So many processes, each with one thread; an exception ends them at once."""
    before = set(multiprocessing.active_children())
    with environment(**dict.fromkeys(_THREADS, "1")):  # read by the workers as they import numpy
        # Spawned, not forked: the parent has threads, and locks that a copy would hold for ever.
        context = multiprocessing.get_context("spawn")
        executor = ProcessPoolExecutor(workers, context, initializer=start_worker)
        try:
            yield executor
        except BaseException:
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
            raise
        finally:
            executor.shutdown(wait=True, cancel_futures=True)


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """These variables, for this process and those that it starts; then what they were before."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class Watch(Protocol):
    """Whoever is told how a run goes."""

    def begin(self, cells: int) -> None:
        """So many cells are to be measured."""

    def advance(self, experiment: str) -> None:
        """One of them is done."""

    def note(self, text: str) -> None:
        """Something that a person should know."""


@dataclass(frozen=True)
class Failed:
    """A cell without rows, and why."""

    cell: Cell
    traceback: str


@dataclass(frozen=True)
class Outcome:
    """What came of an experiment: how many cells there are, were measured now, and failed."""

    experiment: Experiment
    place: Place
    seed: int
    cells: int
    done: int
    measured: int
    failed: tuple[Failed, ...]
    pictured: Pictured
    set_aside: Path | None

    @property
    def good(self) -> bool:
        """Whether nothing went wrong."""
        return not self.failed and not self.pictured.problems


class _Run:
    """One experiment while it is measured."""

    def __init__(self, experiment: Experiment, place: Place, seed: int, watch: Watch) -> None:
        self.experiment, self.place, self.seed = experiment, place, seed
        self.mode = experiment.config.modes[place.mode]
        experiment.module()  # what cannot be imported is found out before anything is measured
        self.code = digest_of(experiment.source)
        maker = Maker(experiment.name, seed, self.code)
        aside = place.set_aside(maker)
        if aside is not None:
            watch.note(
                f"{experiment.name}: earlier results are not used, because {aside[1]}; "
                f"they are kept in {aside[0]}"
            )
        self.set_aside = None if aside is None else aside[0]
        self.journal = Journal(place.journal, maker)
        cells = {identity_of(cell): cell for cell in cells_of(self.mode, seed)}
        self.cells = list(cells)
        self.missing = [cell for key, cell in cells.items() if key not in self.journal.done]
        self.open = len(self.missing)
        self.failed: list[Failed] = []

    def keep(self, cell: Cell, result: Done | Failure) -> None:
        self.open -= 1
        if isinstance(result, Failure):
            self.failed.append(Failed(cell, result.text))
        else:
            self.journal.add(cell, result)

    def gather(self) -> int:
        """Write the table of what is done, and how it came to be."""
        kept = self.journal.done
        found = {key: kept[key] for key in self.cells if key in kept}  # others are of older configs
        if not found:
            return 0
        write_table(table_of(self.mode, found), self.place.folder)
        everything = len(self.cells)
        record = run_record(self.experiment, self.place.mode, self.seed, found.values(), everything)
        self.place.write_json("run.json", record)
        return len(found)

    def outcome(self) -> Outcome:
        try:
            done = self.gather()
            pictured = picture(self.experiment, self.place) if done else Pictured()
        except HoldfastError as wrong:  # rows that make no table: the other experiments go on
            done, pictured = 0, Pictured(problems=(str(wrong),))
        return Outcome(
            experiment=self.experiment,
            place=self.place,
            seed=self.seed,
            cells=len(self.cells),
            done=done,
            measured=len(self.missing) - len(self.failed),
            failed=tuple(self.failed),
            pictured=pictured,
            set_aside=self.set_aside,
        )


def run_experiments(
    experiments: Sequence[Experiment],
    *,
    mode: str,
    output: Path,
    workers: int,
    seed: int | None,
    watch: Watch,
) -> list[Outcome]:
    """Run them all on one set of workers; an exception or Ctrl-C leaves what is finished."""
    workers = whole_number("workers", workers, 0, 1024)
    with ExitStack() as stack:
        runs: dict[str, _Run] = {}
        for experiment in experiments:
            place = Place(output, experiment.name, mode)
            stack.enter_context(place.held())
            own = experiment.config.seed if seed is None else seed
            run = _Run(experiment, place, own, watch)
            stack.enter_context(run.journal)
            runs[experiment.name] = run
        watch.begin(sum(run.open for run in runs.values()))
        return _measure(runs, workers, watch)


def _measure(runs: dict[str, _Run], workers: int, watch: Watch) -> list[Outcome]:
    outcomes = {name: run.outcome() for name, run in runs.items() if not run.open}
    jobs = [
        Job(run.experiment.name, run.experiment.source, run.code, cell)
        for run in runs.values()
        for cell in run.missing
    ]
    try:
        with closing(measure_all(jobs, min(workers, len(jobs)))) as finished:
            for job, result in finished:
                run = runs[job.experiment]
                run.keep(job.cell, result)
                watch.advance(job.experiment)
                if not run.open:
                    outcomes[job.experiment] = run.outcome()
    except BaseException:
        for name in runs.keys() - outcomes.keys():
            with suppress(HoldfastError):
                runs[name].gather()
        raise
    return [outcomes[name] for name in runs]
