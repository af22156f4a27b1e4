"""Growth with the questions asked before, k: the next one, opening, looking back, checking.

The ledger is filled with rows as the door writes them, many in a transaction; `check` must pass.
"""

from __future__ import annotations

import itertools
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import holdfast as hf
from benchmarks import paying
from benchmarks.comparing import compared
from benchmarks.holdouts import many_questions, scratch
from benchmarks.tables import grown
from benchmarks.timing import Results, Timing, in_turns, recorded, seconds_of
from holdfast.holdout.check import check_holdout
from holdfast.ledger.opening import LEDGER

__all__ = ["comparisons", "measure", "section"]

NEXT, COMMITS = "next question", "bare SQLite, 2 commits"
OPEN, FIRST, STATUS, CHECK = "open", "first question after", "status after open", "check"
READ = "bare SELECT of all rows"
SPARE = 1_000  # questions asked for measuring
NUMBERS = itertools.count()
PIECE = 1_000  # questions in one transaction


def measure(quick: bool) -> Results:
    sizes = (10, 300) if quick else (100, 1_000, 10_000)
    made = many_questions(sizes[-1] + SPARE)
    folder = scratch() / "history"
    folder.mkdir()
    bare = paying.bare(folder / "bare.sqlite", [500, 900], "FULL")
    rows = []
    for size in sizes:
        before = _filled(made.path, size)
        times = _asking(made.path, bare, repeats=5 if quick else 30)
        times |= _looking_back(made.path, repeats=2 if quick else 3)
        rows.append({"questions before": before, "times": times})
    return {"growth": rows}


def comparisons(results: Results) -> list[Results]:
    few, many = results["growth"][0], results["growth"][-1]
    name = f"the {NEXT} after {many['questions before']:,}"
    beside = f"after {few['questions before']:,}"
    times = many["times"]
    return [
        compared(name, times[NEXT], beside, few["times"][NEXT]),
        compared(f"{CHECK} of {many['questions before']:,}", times[CHECK], READ, times[READ]),
    ]


def section(results: Results) -> str:
    return (
        "## Growth with the questions asked before, k\n\n"
        "Nothing is evaluated. Whoever opens a holdout reads all rows at the first question, and "
        "adds up what they spent; `check` reads the sealed files too and proves the plan again.\n\n"
        + grown(results["growth"], ["questions before"])
    )


def _filled(path: Path, size: int) -> int:
    """Fill the ledger up to so many questions; how many there are."""
    with hf.Holdout.open(path) as holdout:
        asker = paying.Asker(holdout, NUMBERS)
        while (left := size - holdout.status().answers) > 0:
            asker.fill(min(left, PIECE))
        return holdout.status().answers


def _asking(path: Path, bare: Callable[[], object], repeats: int) -> Results:
    """Questions one after the other to an open holdout."""
    with hf.Holdout.open(path) as holdout:
        asker = paying.Asker(holdout, NUMBERS)
        asker.prepare(repeats + 1)
        return recorded(in_turns({NEXT: asker.ask, COMMITS: bare}, repeats))


def _looking_back(path: Path, repeats: int) -> Results:
    """What a process does that has seen nothing of the ledger yet."""
    seconds: dict[str, list[float]] = {name: [] for name in (OPEN, FIRST, STATUS, CHECK, READ)}
    for _ in range(repeats):
        start = time.perf_counter()
        with hf.Holdout.open(path) as holdout:
            seconds[OPEN].append(time.perf_counter() - start)
            asker = paying.Asker(holdout, NUMBERS)
            asker.prepare(1)
            seconds[FIRST].append(seconds_of(asker.ask))
        with hf.Holdout.open(path) as holdout:
            seconds[STATUS].append(seconds_of(holdout.status))
        seconds[CHECK].append(seconds_of(lambda: _check(path)))
        seconds[READ].append(seconds_of(lambda: _read(path)))
    return recorded({name: Timing(tuple(each)) for name, each in seconds.items()})


def _check(path: Path) -> None:
    found = check_holdout(path)
    assert found.passed, str(found)


def _read(path: Path) -> None:
    connection = sqlite3.connect(path / LEDGER)
    connection.execute("SELECT * FROM ledger").fetchall()
    connection.close()
