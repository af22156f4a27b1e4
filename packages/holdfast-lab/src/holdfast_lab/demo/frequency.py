"""How often: the two searches, on one fresh sample of the population after another."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast_lab.demo.sealed import Checked, Sealed, check_records, demo_plan, fresh_blocks
from holdfast_lab.demo.search import Finding, Naive, generator
from holdfast_lab.flights import Flights, load_flights

__all__ = ["SAMPLE", "Run", "Runs", "count_runs", "naive_findings"]

SAMPLE = 300_000

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Run:
    """One sample: what either search found in it."""

    naive: Finding
    holdfast: Finding
    checked: Checked


@dataclass(frozen=True)
class Runs:
    """Many samples."""

    questions: int
    runs: tuple[Run, ...]

    @property
    def missed(self) -> int:
        """How often the textbook's interval did not contain the population's value."""
        return sum(not run.naive.contains for run in self.runs)

    @property
    def contained(self) -> int:
        """How often Holdfast's bar did."""
        return sum(run.holdfast.contains for run in self.runs)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text."""
        return {
            "questions": self.questions,
            "runs": len(self.runs),
            "naive_missed": self.missed,
            "holdfast_contained": self.contained,
            "answers": sum(run.checked.answers for run in self.runs),
            "answers_kept": sum(run.checked.kept for run in self.runs),
            "each": [
                {
                    "naive": run.naive.to_dict(),
                    "holdfast": run.holdfast.to_dict(),
                    "promise": run.checked.to_dict(),
                }
                for run in self.runs
            ],
        }


def naive_findings(
    flights: Flights,
    chance: np.random.Generator,
    *,
    runs: int,
    questions: int,
    sample: int,
    progress: Progress | None = None,
) -> list[Finding]:
    """What naive reuse finds in fresh samples."""
    found = []
    for done in range(runs):
        naive = Naive(flights, flights.sample(sample, chance))
        found.append(naive.finding(naive.search(questions)))
        if progress is not None:
            progress(done + 1, runs)
    return found


def count_runs(
    runs: int,
    *,
    questions: int = 300,
    sample: int = SAMPLE,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Runs:
    """Both searches on so many fresh samples; their holdouts are thrown away."""
    flights, chance, made = load_flights(), generator(seed), demo_plan(questions)
    found = []
    with _scratch() as folder:
        for done in range(runs):
            rows = flights.sample(sample, chance)
            naive = Naive(flights, rows)
            own = None if seed is None else (seed + done) % 2**64
            sealed = Sealed.create(folder / f"{done}.holdfast", flights, rows, made, own)
            with sealed.holdout:
                hunted = sealed.search(questions)
                finding = sealed.finding(hunted.finding)
            fresh = fresh_blocks(flights, sealed.units, chance)
            checked = check_records(sealed.records, fresh)
            found.append(Run(naive.finding(naive.search(questions)), finding, checked))
            if progress is not None:
                progress(done + 1, runs)
    return Runs(questions, tuple(found))


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for holdouts that nobody will ask again, with a state folder that forgets them."""
    before = os.environ.get("HOLDFAST_STATE")
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        os.environ["HOLDFAST_STATE"] = str(Path(folder) / "state")
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ["HOLDFAST_STATE"]
            else:
                os.environ["HOLDFAST_STATE"] = before
