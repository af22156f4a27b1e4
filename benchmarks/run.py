"""Measure Holdfast against numpy, OpenDP and diffprivlib in one run, and write the results down.

    make bench                                     everything, in .venv-bench; a few minutes
    python benchmarks/run.py --quick               fewer repeats and sizes; writes nothing

A full run writes benchmarks/results.json, benchmarks/RESULTS.md and the table of
docs/how-to/benchmarks.md. A target that is missed is reported as missed.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import others
import weights
from tables import milliseconds, replace_section, table
from timing import Timing, in_turns, process

from holdfast.grids import Grid, grid
from holdfast.mechanisms import exponential_median, search
from holdfast.randomness import system_entropy
from holdfast.theory.coin import steepest_coin

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "how-to" / "benchmarks.md"

MILLION = 10**6
EPSILON = 0.1
COIN = steepest_coin(order=10, price=1e-6, floor=1e-12)
PARTITION, SEARCH, EXPONENTIAL = "numpy.partition", "search", "exponential median"
Results = dict[str, Any]


def unit_grid(size: int) -> Grid:
    """`size` points from 0 to almost 1, in steps of 1/size."""
    return grid(0, f"{size - 1}/{size}", step=f"1/{size}")


def sample(blocks: int, kind: str = "continuous") -> np.ndarray:
    """One value per block, skewed, in [0, 1]."""
    generator = np.random.default_rng(20170617)
    if kind == "discrete":  # such as an accuracy over 32 rows
        return generator.binomial(32, 0.3, blocks) / 32
    values = generator.beta(2, 5, blocks)
    if kind == "failures":
        values[generator.random(blocks) < 0.1] = np.nan
    return values


def partition(values: np.ndarray) -> Callable[[], object]:
    return partial(np.partition, values, values.size // 2)


def searching(values: np.ndarray, points: Grid) -> Callable[[], object]:
    return partial(search, values, points, COIN, system_entropy())


def exponential(values: np.ndarray, points: Grid, epsilon: float = EPSILON) -> Callable[[], object]:
    return partial(exponential_median, values, points, epsilon, system_entropy())


def recorded(timings: dict[str, Timing]) -> Results:
    return {
        name: {"median": t.median, "best": t.best, "repeats": len(t.seconds)}
        for name, t in timings.items()
    }


def headline(quick: bool) -> list[Results]:
    """A million values: the two mechanisms, numpy's partition, the other libraries."""
    values, groups = sample(MILLION), []
    for points in (unit_grid(32), unit_grid(MILLION)):
        candidates = points.points(np.arange(points.size))
        theirs = others.jobs(values, candidates, EPSILON)
        own = {
            PARTITION: partition(values),
            SEARCH: searching(values, points),
            EXPONENTIAL: exponential(values, points),
        }
        timings = in_turns(own | theirs, repeats=3 if quick else 15, slow=theirs)
        groups.append({"points": points.size, "others": [*theirs], "times": recorded(timings)})
    return groups


def growth_with_blocks(quick: bool) -> list[Results]:
    rows = []
    for blocks in (1_000, 10_000, 100_000, MILLION) + (() if quick else (10 * MILLION,)):
        values = sample(blocks)
        timings = in_turns(
            {
                PARTITION: partition(values),
                SEARCH: searching(values, unit_grid(32)),
                EXPONENTIAL: exponential(values, unit_grid(MILLION)),
            },
            repeats=7 if quick or blocks > MILLION else 31,
        )
        rows.append({"blocks": blocks, "times": recorded(timings)})
    return rows


def growth_with_points(quick: bool) -> list[Results]:
    rows, values = [], sample(MILLION)
    for size in (2, 32, 1_000, MILLION, 10**9, 2**50):
        points = unit_grid(size)
        timings = in_turns(
            {SEARCH: searching(values, points), EXPONENTIAL: exponential(values, points)},
            repeats=7 if quick else 31,
        )
        rows.append({"points": size, "looks": points.looks, "times": recorded(timings)})
    return rows


def kinds_of_data(quick: bool) -> list[Results]:
    rows, points = [], unit_grid(MILLION)
    for kind in ("continuous", "discrete", "failures"):
        values = sample(MILLION, kind)
        jobs = {PARTITION: partition(values)}
        for epsilon in (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5):
            jobs[f"ε = {epsilon:g}"] = exponential(values, points, epsilon)
        timings = in_turns(jobs, repeats=7 if quick else 31)
        rows.append({"data": kind, "times": recorded(timings)})
    return rows


def imports(quick: bool) -> Results:
    """Each in a fresh process, the start of Python included."""
    jobs = {code: process(code) for code in ("import numpy", "import holdfast", "pass")}
    return recorded(in_turns(jobs, repeats=5 if quick else 21))


def plans(quick: bool) -> Results | None:
    """A plan made in a process with an empty cache; the import is measured above and taken off."""
    import holdfast

    if not hasattr(holdfast, "plan"):
        return None
    results: Results = {}
    for queries in (100, 1_000, 10_000, 100_000, MILLION):
        code = (
            "import tempfile, os, time\n"
            "os.environ['XDG_CACHE_HOME'] = tempfile.mkdtemp()\n"
            "import holdfast\n"
            "start = time.perf_counter()\n"
            f"holdfast.plan(queries={queries})\n"
            "print(time.perf_counter() - start)\n"
        )
        job = process(code)
        seconds = [float(job().stdout) for _ in range(1 if quick else 5)]  # type: ignore[attr-defined]
        results |= {f"{queries:,}": recorded({"plan": Timing(tuple(seconds))})["plan"]}
    return results


def machine() -> Results:
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        cpu = lines[0].split(":", 1)[1].strip() if lines else cpu
    names = ("numpy", "scipy", *others.versions())
    return {
        "date": datetime.date.today().isoformat(),
        "cores": os.cpu_count(),
        "cpu": cpu,
        "system": f"{platform.system()} {platform.machine()}",
        "load": [round(x, 2) for x in os.getloadavg()],
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in names},
    }


def targets(results: Results) -> list[Results]:
    few, many = results["headline"]
    loaded = results["imports"]
    rows = [
        _target(few["times"], SEARCH, PARTITION, at_most=1, note="32 points"),
        _target(many["times"], EXPONENTIAL, PARTITION, at_most=2, note="1,000,000 points"),
        _target(loaded, "import holdfast", "import numpy", at_most=3),
    ]
    for group, own in ((few, SEARCH), (many, EXPONENTIAL)):
        if group["others"]:
            fastest = min(group["others"], key=lambda name: group["times"][name]["best"])
            note = f"{group['points']:,} candidates"
            rows.append(_target(group["times"], fastest, own, at_least=10, note=note))
    return [*rows, weights.target(results["weights"])]


def _target(
    times: Results, one: str, two: str, *, at_most: float = 0, at_least: float = 0, note: str = ""
) -> Results:
    ratio = times[one]["median"] / times[two]["median"]
    return {
        "ratio": f"{one} ÷ {two}" + (f", {note}" if note else ""),
        "measured": ratio,
        "of best repeats": times[one]["best"] / times[two]["best"],
        "target": f"≤ {at_most:g}" if at_most else f"≥ {at_least:g}",
        "met": ratio <= at_most if at_most else ratio >= at_least,
    }


def summary(results: Results) -> str:
    """The two tables that matter."""
    where = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    rows = [
        [
            name,
            f"{group['points']:,}",
            milliseconds(t["median"]),
            milliseconds(t["best"]),
            f"{t['median'] / group['times'][PARTITION]['median']:.3g}",
        ]
        for group in results["headline"]
        for name, t in group["times"].items()
    ]
    goals = [
        [
            row["ratio"],
            f"{row['measured']:.3g}",
            f"{row['of best repeats']:.3g}",
            row["target"],
            "yes" if row["met"] else "**missed**",
        ]
        for row in results["targets"]
    ]
    return (
        f"{where['date']}, {where['cores']} cores ({where['cpu']}), Python {where['python']}, "
        f"{versions}. Load average at the end: {where['load'][0]}.\n\n"
        f"One private median of 1,000,000 values, ε = {EPSILON:g}:\n\n"
        + table(["", "candidates", "median time", "best time", "÷ numpy.partition"], rows)
        + "\nTargets:\n\n"
        + table(["ratio", "of medians", "of best times", "target", "met"], goals)
    )


def details(results: Results) -> str:
    plans = results["plans"]
    sections = [
        ("Growth with the number of blocks", _grown(results["growth_with_blocks"], ["blocks"])),
        (
            "Growth with the grid, 1,000,000 blocks",
            _grown(results["growth_with_points"], ["points", "looks"]),
        ),
        (
            "Exponential median by data and ε, 1,000,000 blocks and points",
            _grown(results["kinds_of_data"], ["data"]),
        ),
        ("Fresh processes, the start of Python included", _listed("process", results["imports"])),
        (
            "A plan, in a fresh process with an empty cache",
            _listed("queries", plans) if plans else "This version has no `holdfast.plan`.\n",
        ),
        ("Multiplicative weights", weights.weights_table(results["weights"])),
        (
            "Blocks by multiplicative weights and by a search for every question",
            weights.crossover_table(results["crossover"]),
        ),
    ]
    note = "Median times, and in brackets the best; on a busy machine they lie apart.\n\n"
    return note + "\n".join(f"## {title}\n\n{text}" for title, text in sections)


def _grown(rows: list[Results], keys: list[str]) -> str:
    lines = [
        [f"{row[key]:,}" if isinstance(row[key], int) else row[key] for key in keys]
        + [_both(t) for t in row["times"].values()]
        for row in rows
    ]
    return table([*keys, *rows[0]["times"]], lines)


def _listed(head: str, times: Results) -> str:
    return table([head, "time"], [[name, _both(t)] for name, t in times.items()])


def _both(timing: Results) -> str:
    return f"{milliseconds(timing['median'])} ({milliseconds(timing['best'])})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats; write nothing")
    quick: bool = parser.parse_args().quick
    parts: dict[str, Callable[[bool], Any]] = {
        "headline": headline,
        "growth_with_blocks": growth_with_blocks,
        "growth_with_points": growth_with_points,
        "kinds_of_data": kinds_of_data,
        "imports": imports,
        "plans": plans,
        "weights": weights.measure,
        "crossover": weights.crossover,
    }
    results: Results = {}
    for name, part in parts.items():
        print(f"measuring: {name.replace('_', ' ')}", file=sys.stderr, flush=True)
        results[name] = part(quick)
    results["machine"] = machine()
    results["targets"] = targets(results)
    text = summary(results)
    print(text + "\n" + details(results))
    if not quick:
        (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
        (HERE / "RESULTS.md").write_text(f"# Results\n\n{text}\n{details(results)}", "utf-8")
        replace_section(PAGE, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
