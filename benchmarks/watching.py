"""Peak memory of a fresh process and all that it starts, read from Linux's /proc."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Peak", "peak_memory"]

EVERY = 0.02  # seconds between two looks
MEGABYTE = 1e6
_WAIT = "\nimport os, sys\nos.write({pipe}, b'done')\nsys.stdin.read()\n"


@dataclass(frozen=True)
class Peak:
    """In megabytes."""

    largest: float  # resident memory of the largest process; the kernel keeps this peak
    together: float  # all processes at one moment, pages that they share counted once
    seconds: float


def peak_memory(code: str) -> Peak:
    """Run the code; look once more before the process ends.

    What a process says of itself (`ru_maxrss`) will not do: it begins with the peak of whoever
    started it.
    """
    ours, theirs = os.pipe()  # not its output: DuckDB prints bars there
    command = [sys.executable, "-c", code + _WAIT.format(pipe=theirs)]
    quiet, talk = subprocess.DEVNULL, subprocess.PIPE
    start = time.perf_counter()
    looks: list[tuple[float, float]] = []
    with (
        os.fdopen(ours, "rb", buffering=0) as answer,
        subprocess.Popen(command, stdin=talk, stdout=quiet, pass_fds=[theirs]) as process,
    ):
        os.close(theirs)
        while not select.select([answer], [], [], EVERY)[0]:
            looks.append(_look(process.pid))
        looks.append(_look(process.pid))
        seconds = time.perf_counter() - start
        if answer.read(4) != b"done":
            raise RuntimeError(f"this did not run:\n{code}")
    largest, together = (max(each) for each in zip(*looks, strict=True))
    return Peak(largest, max(largest, together), seconds)


def _look(process: int) -> tuple[float, float]:
    """The largest peak so far, and all processes together now."""
    peaks, own, shared = zip(*map(_memory, _tree(process)), strict=True)
    return max(peaks), sum(own) + max(shared)


def _tree(process: int) -> Iterator[int]:
    """The process and its descendants."""
    yield process
    with suppress(OSError):  # ended meanwhile
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):
                for child in (thread / "children").read_text().split():
                    yield from _tree(int(child))


def _memory(process: int) -> tuple[float, float, float]:
    """Peak of the resident memory; of what is resident now, its own and what others map too."""
    folder = Path(f"/proc/{process}")
    try:
        peak = _megabytes(folder / "status", "VmHWM:")
        resident = _megabytes(folder / "smaps_rollup", "Rss:")
        own = _megabytes(folder / "smaps_rollup", "Private_")
    except OSError:  # ended meanwhile
        return 0.0, 0.0, 0.0
    return peak, own, max(resident - own, 0)


def _megabytes(path: Path, start: str) -> float:
    """The sum of the lines that begin so."""
    lines = [line for line in path.read_text().splitlines() if line.startswith(start)]
    return sum(int(line.split()[1]) for line in lines) * 1024 / MEGABYTE
