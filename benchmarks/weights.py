"""Multiplicative weights: passes over the weights and time of a question, on 100,000 elements.

Every question goes through the protocol: its budget, the histogram, two looks at the blocks, and an
update where they refuse. Its time is set beside np.bincount and np.sum over the same arrays, taken
in turns: the least that any algorithm does that reads every weight once.

A second table says where the planner finds weights cheaper than a search for every question.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.comparing import compared
from benchmarks.tables import milliseconds, ratio, table
from benchmarks.timing import Results, Timing, recorded
from holdfast.grids import grid
from holdfast.mechanisms.hypothesis import Universe
from holdfast.planning.joint import joint_plan
from holdfast.planning.proposals import propose_weights
from holdfast.protocols.memory import MemoryHoldout
from holdfast.protocols.searches import Estimates
from holdfast.protocols.source import BlockArray
from holdfast.protocols.weights import WeightedEstimates

__all__ = ["comparisons", "measure", "section"]

Indices = NDArray[np.intp]

ELEMENTS = 100_000
QUESTIONS = 10_000
POINTS = 32
TAIL = 0.05
MOST_PASSES = 2  # on average: a refused guess takes five more, and few are refused
POOL = 64  # different questions, more than a cache holds
TURN = 100  # questions of one measurement
QUESTION, BINCOUNT, SUM = "one question", "np.bincount", "np.sum"


def pool(elements: NDArray[np.float64], generator: np.random.Generator) -> list[Indices]:
    """Random thresholds: elements are points in 8 dimensions, a question is a direction."""
    cuts = np.linspace(-3, 3, POINTS - 1)
    return [
        np.searchsorted(cuts, elements @ (direction / np.linalg.norm(direction)))
        for direction in generator.standard_normal((POOL, 8))
    ]


class Questions:
    """Questions one after the other to one holdout; `passes` has what each took."""

    def __init__(
        self, elements: NDArray[np.float64], indices: list[Indices], generator: np.random.Generator
    ) -> None:
        plan = joint_plan(WeightedEstimates(QUESTIONS, ELEMENTS, TAIL))
        # A law far from the uniform one that the hypothesis starts with.
        shifted = np.exp(1.5 * elements.sum(axis=1))
        rows = generator.choice(ELEMENTS, size=plan.blocks, p=shifted / shifted.sum())
        universe, source = Universe.points(np.arange(ELEMENTS)), BlockArray(rows, plan.blocks)
        self.holdout = MemoryHoldout(plan, source, universe=universe)
        self.passes: list[int] = []
        self._before = 0
        self._indices, self._grid = indices, grid(0, POINTS - 1, scale="integer")

    def ask(self) -> None:
        self.holdout.ask(self._indices[len(self.passes) % POOL], self._grid)
        weights: Any = self.holdout.protocol("ask")
        self.passes.append(weights.hypothesis.passes - self._before)
        self._before = weights.hypothesis.passes


def measure(quick: bool) -> Results:
    return {"questions": _questions(quick), "crossover": _crossover(quick)}


def comparisons(results: Results) -> list[Results]:
    asked = results["questions"]
    times, average = asked["times"], asked["passes"]["average"]
    what = (
        f"passes over {asked['elements']:,} weights for a question, the average of "
        f"{asked['questions']:,}"
    )
    passes, one = {"median": average, "best": average}, {"median": 1, "best": 1}
    return [
        compared(what, passes, "one pass", one, unit="", at_most=MOST_PASSES),
        compared("a question by weights", times[QUESTION], BINCOUNT, times[BINCOUNT]),
    ]


def section(results: Results) -> str:
    return (
        "## Multiplicative weights\n\n"
        + _questions_table(results["questions"])
        + "\n## Blocks by multiplicative weights and by a search for every question\n\n"
        + _crossover_table(results["crossover"])
    )


def _questions(quick: bool) -> Results:
    """Passes and times of QUESTIONS questions, a tenth of them if quick."""
    generator = np.random.default_rng(20170617)
    elements = generator.standard_normal((ELEMENTS, 8))
    indices = pool(elements, generator)
    questions = Questions(elements, indices, generator)
    weights = generator.random(ELEMENTS)
    place = 0

    def bincount() -> None:
        nonlocal place
        place += 1
        np.bincount(indices[place % POOL], weights, POINTS)

    jobs: dict[str, Callable[[], object]] = {
        QUESTION: questions.ask,
        BINCOUNT: bincount,
        SUM: lambda: np.sum(weights),
    }
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range((QUESTIONS // 10 if quick else QUESTIONS) // TURN):
        for name, job in jobs.items():
            start = time.perf_counter()
            for _ in range(TURN):
                job()
            seconds[name].append((time.perf_counter() - start) / TURN)
    timings = {name: Timing(tuple(each)) for name, each in seconds.items()}
    return {
        "elements": ELEMENTS,
        "points": POINTS,
        "questions": len(questions.passes),
        "refused": sum(passes > 1 for passes in questions.passes),
        "updates": sum(len(each["steps"]) for each in questions.holdout.lessons),
        "passes": {
            "most": max(questions.passes),
            "average": sum(questions.passes) / len(questions.passes),
        },
        "times": recorded(timings),
    }


def _crossover(quick: bool) -> list[Results]:
    """Blocks by weights and by searches, for the same promise."""
    rows = []
    for tail in (0.05, 0.25):
        for queries in (10**4,) if quick else (10**3, 10**4, 10**5, 10**6):
            searches = joint_plan(Estimates(queries, POINTS, tail, tail)).blocks
            sizes = (10**2,) if quick else (10**2, 10**3, 10**4, 10**5, 10**6)
            blocks = {str(z): propose_weights(queries, z, tail, POINTS).blocks for z in sizes}
            rows.append({"tail": tail, "queries": queries, "searches": searches, "weights": blocks})
    return rows


def _crossover_table(rows: list[Results]) -> str:
    """Bold where weights need fewer blocks."""
    sizes = [int(size) for size in rows[0]["weights"]]
    lines = [
        [
            f"{row['tail']:g}",
            f"{row['queries']:,}",
            f"{row['searches']:,}",
            *(f"**{m:,}**" if m < row["searches"] else f"{m:,}" for m in row["weights"].values()),
        ]
        for row in rows
    ]
    return table(["tail", "k", "searches", *(f"∣Z∣ = {size:,}" for size in sizes)], lines)


def _questions_table(results: Results) -> str:
    times, passes = results["times"], results["passes"]
    rows = [
        [
            name,
            milliseconds(t["median"]),
            milliseconds(t["best"]),
            ratio(t["median"] / times[BINCOUNT]["median"]),
            ratio(t["median"] / times[SUM]["median"]),
        ]
        for name, t in times.items()
    ]
    return (
        f"{results['questions']:,} questions on {results['elements']:,} elements and "
        f"{results['points']} grid points, {results['refused']:,} of them refused, "
        f"{results['updates']:,} updates. Passes over the weights per question: at most "
        f"{passes['most']}, {passes['average']:.2f} on average.\n\n"
        + table(["", "median time", "best time", "÷ np.bincount", "÷ np.sum"], rows)
    )
