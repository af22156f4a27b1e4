"""The mechanisms by themselves, on values in memory: growth with blocks, grid points and 1/ε."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import grown
from benchmarks.timing import Results, in_turns, recorded
from holdfast.grids import Grid, grid
from holdfast.mechanisms.exponential import exponential_median
from holdfast.mechanisms.looks import search
from holdfast.randomness import system_entropy
from holdfast.theory.coins import steepest_coin

__all__ = [
    "EPSILON",
    "EXPONENTIAL",
    "MILLION",
    "PARTITION",
    "SEARCH",
    "comparisons",
    "exponential",
    "measure",
    "partition",
    "sample",
    "searching",
    "section",
    "unit_grid",
]

MILLION = 10**6
EPSILON = 0.1
COIN = steepest_coin(order=10, price=1e-6, floor=1e-12)
PARTITION, SEARCH, EXPONENTIAL = "numpy.partition", "search", "exponential median"

Floats = NDArray[np.float64]
Job = Callable[[], object]


def unit_grid(size: int) -> Grid:
    """`size` points from 0 to almost 1, in steps of 1/size."""
    return grid(0, f"{size - 1}/{size}", step=f"1/{size}")


def sample(blocks: int, kind: str = "continuous") -> Floats:
    """One value per block, skewed, in [0, 1]."""
    generator = np.random.default_rng(20170617)
    if kind == "discrete":  # such as an accuracy over 32 rows
        return generator.binomial(32, 0.3, blocks) / 32
    values = generator.beta(2, 5, blocks)
    if kind == "failures":
        values[generator.random(blocks) < 0.1] = np.nan
    return values


def partition(values: Floats) -> Job:
    return partial(np.partition, values, values.size // 2)


def searching(values: Floats, points: Grid) -> Job:
    return partial(search, values, points, COIN, system_entropy())


def exponential(values: Floats, points: Grid, epsilon: float = EPSILON) -> Job:
    return partial(exponential_median, values, points, epsilon, system_entropy())


def measure(quick: bool) -> Results:
    return {"blocks": _by_blocks(quick), "points": _by_points(quick), "data": _by_data(quick)}


def comparisons(results: Results) -> list[Results]:
    """What matters of these is measured with the other libraries, in medians.py."""
    del results
    return []


def section(results: Results) -> str:
    return (
        "## Growth of the mechanisms with the number of blocks m\n\n"
        + grown(results["blocks"], ["blocks"])
        + "\n## Growth of the mechanisms with the grid r, 1,000,000 blocks\n\n"
        + grown(results["points"], ["points", "looks"])
        + "\n## Exponential median by data and ε, 1,000,000 blocks and points\n\n"
        + grown(results["data"], ["data"])
    )


def _by_blocks(quick: bool) -> list[Results]:
    rows = []
    for blocks in (1_000, 10_000, 100_000, MILLION) + (() if quick else (10 * MILLION,)):
        values = sample(blocks)
        jobs = {
            PARTITION: partition(values),
            SEARCH: searching(values, unit_grid(32)),
            EXPONENTIAL: exponential(values, unit_grid(MILLION)),
        }
        timings = in_turns(jobs, repeats=7 if quick or blocks > MILLION else 31)
        rows.append({"blocks": blocks, "times": recorded(timings)})
    return rows


def _by_points(quick: bool) -> list[Results]:
    rows, values = [], sample(MILLION)
    for size in (2, 32, 1_000, MILLION, 10**9, 2**50):
        points = unit_grid(size)
        jobs = {
            PARTITION: partition(values),
            SEARCH: searching(values, points),
            EXPONENTIAL: exponential(values, points),
        }
        timings = in_turns(jobs, repeats=7 if quick else 31)
        rows.append({"points": size, "looks": points.looks, "times": recorded(timings)})
    return rows


def _by_data(quick: bool) -> list[Results]:
    rows, points = [], unit_grid(MILLION)
    for kind in ("continuous", "discrete", "failures"):
        values = sample(MILLION, kind)
        jobs = {PARTITION: partition(values)}
        for epsilon in (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5):
            jobs[f"ε = {epsilon:g}"] = exponential(values, points, epsilon)
        timings = in_turns(jobs, repeats=7 if quick else 31)
        rows.append({"data": kind, "times": recorded(timings)})
    return rows
