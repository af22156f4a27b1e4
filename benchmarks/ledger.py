"""The ledger beside bare SQLite commits: a question charged and recorded, by one writer and more.

python -m benchmarks.ledger KIND FOLDER FIRST COUNT     one writer; `measure` starts these
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import holdfast as hf
from benchmarks import paying
from benchmarks.comparing import compared
from benchmarks.holdouts import ROOT, many_questions, scratch
from benchmarks.tables import both, milliseconds, ratio, table
from benchmarks.timing import Results, Timing, in_turns, recorded

__all__ = ["comparisons", "measure", "section"]

DOOR, LEDGER, KEPT = "a question, charge → record", "its two rows in a ledger", "its receipt kept"
FULL, NORMAL = "bare SQLite, 2 commits, FULL", "bare SQLite, 2 commits, NORMAL"
SYNCED = "a plain file, 2 × fsync"
QUERIES = 10_000  # planned for: more than are asked here
FIRSTS = itertools.count(10**6, 10**6)  # a writer has a million numbers for itself
TURNS = 3


def measure(quick: bool) -> Results:
    made, folder = many_questions(QUERIES), scratch() / "ledger"
    folder.mkdir()
    repeats = 20 if quick else 200
    with hf.Holdout.open(made.path) as holdout:
        asker = paying.Asker(holdout, itertools.count())
        asker.prepare(repeats + 1)
        rows = holdout.journal.ledger.rows()[-2:]
        sizes = [sum(len(str(value)) for value in row.record()) for row in rows]
        jobs = {
            DOOR: asker.ask,
            LEDGER: paying.ledger(folder, rows),
            KEPT: paying.kept(folder),
            FULL: paying.bare(folder / "full.sqlite", sizes, "FULL"),
            NORMAL: paying.bare(folder / "normal.sqlite", sizes, "NORMAL"),
            SYNCED: paying.synced(folder / "plain", sizes),
        }
        times = recorded(in_turns(jobs, repeats))
    crowds = [
        _crowd(writers, made.path, folder, sizes, count=10 if quick else 100)
        for writers in ((1, 2) if quick else (1, 2, 4, 8))
    ]
    return {"characters": sizes, "times": times, "writers": crowds}


def comparisons(results: Results) -> list[Results]:
    times, crowd = results["times"], results["writers"][-1]
    many = f"{DOOR}, {crowd['writers']} writers at once"
    return [
        compared(DOOR, times[DOOR], FULL, times[FULL]),
        compared(LEDGER, times[LEDGER], FULL, times[FULL]),
        compared(many, crowd["times"][DOOR], FULL, crowd["times"][FULL]),
    ]


def section(results: Results) -> str:
    times, (small, large) = results["times"], results["characters"]
    rows = [
        [name, both(t), ratio(t["median"] / times[FULL]["median"])] for name, t in times.items()
    ]
    crowds = [
        [
            str(row["writers"]),
            *(f"{1 / row['times'][name]['median']:,.0f}" for name in (DOOR, FULL)),
            *(milliseconds(row["times"][name]["median"]) for name in (DOOR, FULL)),
            ratio(row["times"][DOOR]["median"] / row["times"][FULL]["median"]),
        ]
        for row in results["writers"]
    ]
    head = ["writers", "questions a second", "bare, a second", "a question", "bare", "ratio"]
    return (
        "## The ledger beside bare SQLite commits\n\n"
        f"A question writes two rows, of {small:,} and {large:,} characters, in two durable "
        "commits, and keeps its receipt in a file elsewhere: a third wait for the disk. Nothing is "
        "evaluated. Bare commits have one row of the same size each, in the same folder, without "
        "chain, index or trigger.\n\n"
        + table(["", "time", "÷ bare, FULL"], rows)
        + "\n## Several writers at one ledger\n\n"
        "All processes together, from the first question to the last; the time is that of one "
        "question, with all of them at work.\n\n" + table(head, crowds)
    )


def _crowd(writers: int, holdout: Path, folder: Path, sizes: list[int], count: int) -> Results:
    """Time by question when so many processes ask at once, and when they only commit."""
    file = folder / f"full-{writers}.sqlite"
    paying.bare(file, sizes, "FULL")()
    places = {DOOR: ["door", str(holdout)], FULL: ["full", f"{file}:{sizes[0]}:{sizes[1]}"]}
    seconds: dict[str, list[float]] = {name: [] for name in places}
    for _ in range(TURNS):
        for name, place in places.items():
            each = [[*place, str(next(FIRSTS)), str(count)] for _ in range(writers)]
            seconds[name].append(_together(each) / (writers * count))
    times = recorded({name: Timing(tuple(each)) for name, each in seconds.items()})
    return {"writers": writers, "times": times}


def _together(commands: list[list[str]]) -> float:
    """Seconds from the moment when all processes are ready until the last is done."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.ledger", *command],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    for each in processes:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    start = time.perf_counter()
    for each in processes:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    for each in processes:
        assert each.stdout is not None
        assert each.stdout.readline() == "done\n"
    seconds = time.perf_counter() - start
    for each in processes:
        each.communicate()
    return seconds


def write(kind: str, place: str, first: int, count: int) -> None:
    """One writer: ready, wait for a line, write, done."""
    job: Callable[[], object]
    if kind == "door":
        asker = paying.Asker(hf.Holdout.open(place), itertools.count(first))
        asker.prepare(count)
        job = asker.ask
    else:
        path, *sizes = place.rsplit(":", 2)
        job = paying.bare(Path(path), [int(size) for size in sizes], "FULL")
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(count):
        job()
    print("done", flush=True)


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
