"""Timing that compares: the candidates take turns, so that a busy moment hits all of them."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Results", "Timing", "in_turns", "process", "recorded", "seconds_of"]

Results = dict[str, Any]  # what JSON can hold


@dataclass(frozen=True)
class Timing:
    """Seconds of every repeat of one job; and those of this process's CPU, where they are known."""

    seconds: tuple[float, ...]
    cpu: tuple[float, ...] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        return min(self.seconds)


def in_turns(
    jobs: Mapping[str, Callable[[], object]], repeats: int, *, slow: Collection[str] = ()
) -> dict[str, Timing]:
    """Each job once to warm up, then all of them in turn, `repeats` times.

    Where some are slow, the others are timed five times a turn.
    """
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(repeats):
        for name, job in jobs.items():
            for _ in range(5 if slow and name not in slow else 1):
                before = time.process_time()
                seconds = seconds_of(job)
                spent[name].append((seconds, time.process_time() - before))
    return {name: Timing(*zip(*each, strict=True)) for name, each in spent.items()}


def seconds_of(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def recorded(timings: Mapping[str, Timing]) -> Results:
    """Timings as results.json keeps them."""
    found: Results = {}
    for name, timing in timings.items():
        found[name] = {"median": timing.median, "best": timing.best, "repeats": len(timing.seconds)}
        if timing.cpu:
            found[name]["cpu"] = {"median": statistics.median(timing.cpu), "best": min(timing.cpu)}
    return found


def process(code: str) -> Callable[[], str]:
    """The job of running some code in a fresh Python process; it returns what the code prints."""

    def run() -> str:
        command = [sys.executable, "-c", code]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    return run
