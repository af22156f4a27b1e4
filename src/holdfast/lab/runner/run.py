"""Run experiments: measure what is not measured yet, keep it, and make tables, figures, findings.

In OUTPUT/NAME/full, or OUTPUT/NAME/quick:

journal.jsonl    finished cells, as they came; what a run continues from
results.parquet  the tidy table; results.csv is the same
run.json         parameters, seed, versions, date, the command that made it
findings.json    what the results show; the figures are beside it, as SVG and PNG
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from holdfast.errors import HoldfastError, whole_number
from holdfast.lab.experiments.base import Cell
from holdfast.lab.runner.catalogue import Experiment
from holdfast.lab.runner.cells import cells_of, identity_of
from holdfast.lab.runner.journal import Done, Journal, Maker
from holdfast.lab.runner.pictures import Pictured, picture
from holdfast.lab.runner.place import Place
from holdfast.lab.runner.pool import measure_all
from holdfast.lab.runner.reach import digest_of
from holdfast.lab.runner.record import run_record
from holdfast.lab.runner.results import table_of, write_table
from holdfast.lab.runner.worker import Failure, Job

__all__ = ["Failed", "Outcome", "Watch", "run_experiments"]


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
    jobs = _jobs(runs.values())
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


def _jobs(runs: Iterable[_Run]) -> list[Job]:
    return [
        Job(run.experiment.name, run.experiment.source, run.code, cell)
        for run in runs
        for cell in run.missing
    ]
