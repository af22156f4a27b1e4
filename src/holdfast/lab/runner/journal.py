"""Finished cells on disk: one line of JSON each, written and synced before the next is begun.

The first line says what measured them: experiment, seed, and a digest of the code. A line that a
crash cut short is dropped when the journal is opened again, and its cell is measured again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.concurrency import Closing
from holdfast.lab.experiments.base import Cell, Row
from holdfast.lab.runner.cells import identity_of, key_of

__all__ = ["Done", "Journal", "Maker", "done_cells", "maker_of"]

Key = tuple[str, int]  # a cell's parameters as text, and its repeat


@dataclass(frozen=True)
class Maker:
    """What measured the cells of a journal: cells of different makers are not mixed."""

    experiment: str
    seed: int
    code: str

    def difference(self, other: Maker) -> str:
        """Why cells of the other one are not ours."""
        if self.seed != other.seed:
            return f"they were measured with seed {other.seed}, not {self.seed}"
        return "the code that measured them has changed since"


@dataclass(frozen=True)
class Done:
    """A finished cell: its rows, how long it took, and when it was finished (UTC, ISO 8601)."""

    rows: list[Row]
    seconds: float
    at: str


class Journal(Closing):
    """A file that finished cells are appended to. One writer at a time: the caller holds a lock."""

    def __init__(self, path: Path, maker: Maker) -> None:
        """Open the journal, or start one. Its maker must be this one."""
        text = path.read_bytes() if path.exists() else b""
        known = _maker(text) is not None  # cells that nobody vouches for are not taken over
        self.done = _cells(text) if known else {}
        whole = text.rfind(b"\n") + 1 if known else 0
        self._file = path.open("ab")
        self._file.truncate(whole)
        if not whole:
            self._write(asdict(maker))
            _sync_folder(path.parent)

    def add(self, cell: Cell, done: Done) -> None:
        """Keep a finished cell: when this returns, it survives a crash of the machine."""
        entry = {"parameters": dict(cell.parameters), "repeat": cell.repeat, **asdict(done)}
        self._write(entry)
        self.done[identity_of(cell)] = done

    def _write(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def maker_of(path: Path) -> Maker | None:
    """Who made the journal; None if there is none, or one without a whole first line."""
    return _maker(path.read_bytes()) if path.is_file() else None


def _maker(text: bytes) -> Maker | None:
    first, end, _ = text.partition(b"\n")
    try:
        return Maker(**json.loads(first)) if end else None
    except (ValueError, TypeError):
        return None


def done_cells(path: Path) -> dict[Key, Done]:
    """The finished cells of a journal."""
    return _cells(path.read_bytes()) if path.is_file() else {}


def _cells(text: bytes) -> dict[Key, Done]:
    """A line that is not whole is no cell; of two about one cell the later counts."""
    _, *lines = text.split(b"\n")
    found: dict[Key, Done] = {}
    for line in lines[:-1]:  # what comes after the last line's end was cut short
        try:
            said = json.loads(line)
            done = Done(_rows(said["rows"]), float(said["seconds"]), str(said["at"]))
            found[key_of(said["parameters"]), int(said["repeat"])] = done
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
    return found


def _rows(said: Sequence[Any]) -> list[Row]:
    if not all(isinstance(row, dict) for row in said):
        raise TypeError
    return list(said)


def _sync_folder(folder: Path) -> None:
    """The name of a new file is part of the folder, which is synced by itself."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
