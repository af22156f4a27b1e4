"""What all tasks of a creation share, and those that only read.

A task that fails says so in its result: an exception would be logged with the task's arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.engines.dask.creation.depot import Depot
from holdfast.engines.dask.creation.pieces import Footer, Piece, read_footer, row_bytes
from holdfast.engines.dask.creation.presence import Abandoned, at_work
from holdfast.engines.dask.questions import Versions, check_versions
from holdfast.engines.store.inputs import Chosen
from holdfast.engines.store.session import Limits, Session, no_progress
from holdfast.engines.store.survey import Sums, sums_of
from holdfast.errors import HoldfastError, Infeasible, InvalidInput, Unavailable

__all__ = ["Failure", "Job", "attempt", "footer", "measure", "row_size", "scratch"]

_FACTS: dict[type[HoldfastError], tuple[str, ...]] = {
    InvalidInput: ("parameter", "value", "allowed", "hint"),
    Infeasible: ("constraint", "needed", "given", "remedy"),
    Unavailable: ("what", "needed", "given", "remedy"),
}


@dataclass(frozen=True)
class Job:
    """What all tasks of one creation know."""

    creation: str
    limits: Limits
    versions: Versions
    depot: Depot


@dataclass(frozen=True)
class Failure:
    """An error as data."""

    kind: type[HoldfastError]
    facts: tuple[Any, ...]

    def error(self) -> HoldfastError:
        """The error, to be raised."""
        return self.kind(*self.facts)


def attempt(task: Callable[..., Any], job: Job, *arguments: Any) -> Any:
    """What a task gives, or a `Failure`."""
    try:
        check_versions(job.versions)
        with at_work(job.creation):
            return task(job, *arguments)
    except Abandoned:
        return _other("a creation that was given up")
    except HoldfastError as error:
        for kind, names in _FACTS.items():
            if isinstance(error, kind):
                return Failure(kind, tuple(getattr(error, name) for name in names))
        return _other(str(error))
    except Exception as error:
        return _other(f"{type(error).__name__}: {error}")


def _other(what: str) -> Failure:
    remedy = "Look at the worker's machine: memory, disk, and whether it sees the files."
    needed = "workers that can read and write the files"
    return Failure(Infeasible, ("Creating on the cluster", needed, f"one met {what[:300]}", remedy))


def scratch() -> Path:
    """The worker's own folder."""
    from distributed import get_worker

    return Path(get_worker().local_directory)


def footer(job: Job, file: str) -> Footer:
    """The end of a file."""
    with Session(job.limits, scratch()) as session:
        return read_footer(file, session)


def row_size(job: Job, piece: Piece, chosen: Chosen) -> int:
    """About how many bytes a row of a piece takes."""
    with Session(job.limits, scratch()) as session:
        return row_bytes(piece, chosen, session)


def measure(job: Job, piece: Piece, chosen: Chosen) -> Sums:
    """Counts and sums of a piece."""
    fields = (*chosen.stored, *(() if chosen.ids is None else (chosen.ids,)))
    with Session(job.limits, scratch()) as session:
        return sums_of(session, piece.attach(session), fields, chosen.unit, no_progress)
