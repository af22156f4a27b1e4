"""What a worker process does: measure one cell, and say what came of it."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from multiprocessing import connection, parent_process
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.lab.experiments.base import Cell, Row
from holdfast.lab.runner.catalogue import load_module
from holdfast.lab.runner.journal import Done
from holdfast.lab.runner.reach import digest_of

__all__ = ["Failure", "Job", "measure_cell", "start_worker"]


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
        rows = _plain_rows(measured, {*job.cell.parameters, "repeat"})
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


def _plain_rows(rows: Iterable[Mapping[str, Any]], taken: set[str]) -> list[Row]:
    plain = []
    for row in rows:
        both = taken & set(row)
        if both:
            raise ValueError(f"a row names {sorted(both)}, which the cell names already")
        plain.append({str(name): _plain(name, value) for name, value in row.items()})
    return plain


def _plain(name: str, value: object) -> object:
    """A value that a table can hold: a number, a boolean, text, or nothing."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    kind = type(value).__name__
    raise TypeError(f"a row's {name!r} is a {kind}, not a number, a boolean, text or None")
