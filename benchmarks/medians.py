"""One private median of a million values: the two mechanisms, numpy's partition, other libraries.

The same values, candidates and ε for all; neighbours replace one value.
"""

from __future__ import annotations

import numpy as np

from benchmarks import others
from benchmarks.comparing import compared
from benchmarks.mechanisms import (
    EPSILON,
    EXPONENTIAL,
    MILLION,
    PARTITION,
    SEARCH,
    exponential,
    partition,
    sample,
    searching,
    unit_grid,
)
from benchmarks.tables import milliseconds, ratio, table
from benchmarks.timing import Results, in_turns, recorded

__all__ = ["comparisons", "measure", "section"]


def measure(quick: bool) -> Results:
    values, groups = sample(MILLION), []
    for points in (unit_grid(32), unit_grid(MILLION)):
        candidates = points.points(np.arange(points.size))
        theirs = others.jobs(values, candidates, EPSILON)
        own = {
            PARTITION: partition(values),
            SEARCH: searching(values, points),
            EXPONENTIAL: exponential(values, points),
        }
        timings = in_turns(own | theirs, repeats=1 if quick else 15, slow=theirs)
        groups.append({"points": points.size, "others": [*theirs], "times": recorded(timings)})
    return {"values": MILLION, "epsilon": EPSILON, "groups": groups}


def comparisons(results: Results) -> list[Results]:
    few, many = results["groups"]
    rows = [
        _compared(few, SEARCH, PARTITION, at_most=1),
        _compared(many, EXPONENTIAL, PARTITION, at_most=2),
    ]
    for group, own in ((few, SEARCH), (many, EXPONENTIAL)):
        times = group["times"]
        libraries = sorted(group["others"], key=lambda name: times[name]["median"])
        for place, name in enumerate(libraries):  # the target is for the fastest
            rows.append(_compared(group, name, own, at_least=None if place else 10))
    return rows


def _compared(
    group: Results, one: str, two: str, at_most: float | None = None, at_least: float | None = None
) -> Results:
    times, what = group["times"], f"{one}, {group['points']:,} points"
    return compared(what, times[one], two, times[two], at_most=at_most, at_least=at_least)


def section(results: Results) -> str:
    rows = [
        [
            name,
            f"{group['points']:,}",
            milliseconds(t["median"]),
            milliseconds(t["best"]),
            ratio(t["median"] / group["times"][PARTITION]["median"]),
        ]
        for group in results["groups"]
        for name, t in group["times"].items()
    ]
    head = ["", "candidates", "median time", "best time", "÷ numpy.partition"]
    values, epsilon = results["values"], results["epsilon"]
    title = f"## One private median of {values:,} values, ε = {epsilon:g}\n\n"
    return title + table(head, rows)
