"""Fresh processes: what `import holdfast` takes, and a plan with an empty cache."""

from __future__ import annotations

from benchmarks.comparing import compared
from benchmarks.tables import listed
from benchmarks.timing import Results, Timing, in_turns, process, recorded

__all__ = ["PLAN", "comparisons", "measure", "section"]

PLAN = """
import os, tempfile, time
with tempfile.TemporaryDirectory() as cache:
    os.environ["XDG_CACHE_HOME"] = cache
    import holdfast
    start = time.perf_counter()
    holdfast.plan(queries={queries})
    seconds = time.perf_counter() - start
"""


def measure(quick: bool) -> Results:
    return {"imports": _imports(quick), "plans": _plans(quick)}


def comparisons(results: Results) -> list[Results]:
    times = results["imports"]
    ours, floor = "import holdfast", "import numpy"
    return [compared(ours, times[ours], floor, times[floor], at_most=3)]


def section(results: Results) -> str:
    return (
        "## Fresh processes, the start of Python included\n\n"
        + listed("process", results["imports"])
        + "\n## A plan, in a fresh process with an empty cache, its import not counted\n\n"
        + listed("queries", results["plans"])
    )


def _imports(quick: bool) -> Results:
    jobs = {code: process(code) for code in ("import numpy", "import holdfast", "pass")}
    return recorded(in_turns(jobs, repeats=5 if quick else 21))


def _plans(quick: bool) -> Results:
    timings = {}
    for queries in (100, 10_000) if quick else (100, 1_000, 10_000, 100_000, 1_000_000):
        job = process(PLAN.format(queries=queries) + "print(seconds)")
        seconds = [float(job()) for _ in range(1 if quick else 3)]
        timings[f"{queries:,}"] = Timing(tuple(seconds))
    return recorded(timings)
