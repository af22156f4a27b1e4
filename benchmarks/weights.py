"""Multiplicative weights: passes over the weights and time of a question, on 100,000 elements.

    python benchmarks/weights.py [--quick]         this part alone; writes nothing

A question counts a histogram, reads the median off it and, on 3 % of them, is refused once or more
often and updates the weights. Its time is set beside np.bincount and np.sum over the same arrays,
taken in turns: the least that any algorithm does that reads every weight once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tables import milliseconds, table
from timing import Timing

from holdfast.mechanisms.hypothesis import Hypothesis
from holdfast.theory.updates import learning_rate

__all__ = ["measure", "target", "weights_table"]

Results = dict[str, Any]
Indices = NDArray[np.intp]

ELEMENTS = 100_000
QUESTIONS = 10_000
POINTS = 32
REFUSED = 0.03
MASS = 0.25  # of the sample at most, where the hypothesis holds a half
MOST_PASSES = 5
POOL = 64  # different questions, more than a cache holds
TURN = 100  # questions of one measurement
QUESTION, BINCOUNT, SUM = "one question", "np.bincount", "np.sum"


def pool(generator: np.random.Generator) -> list[Indices]:
    """Random thresholds: elements are points in 8 dimensions, a question is a direction."""
    elements = generator.standard_normal((ELEMENTS, 8))
    cuts = np.linspace(-3, 3, POINTS - 1)
    return [
        np.searchsorted(cuts, elements @ (direction / np.linalg.norm(direction)))
        for direction in generator.standard_normal((POOL, 8))
    ]


class Questions:
    """Questions one after the other on one hypothesis; `passes` has what each took."""

    def __init__(self, indices: list[Indices], generator: np.random.Generator) -> None:
        self.hypothesis = Hypothesis(ELEMENTS)
        self.passes: list[int] = []
        self._indices, self._generator = indices, generator

    def ask(self) -> None:
        before = self.hypothesis.passes
        number = len(self.passes)
        histogram = self.hypothesis.histogram(self._indices[number % POOL], POINTS)
        guess, at_most, at_least = histogram.median()
        if self._generator.random() < REFUSED:
            for _ in range(self._generator.geometric(0.5)):  # the same question, refused again
                if self._generator.random() < 0.5:
                    histogram.shrink(guess, "at most", learning_rate(MASS, at_most))
                else:
                    histogram.shrink(guess, "at least", learning_rate(MASS, at_least))
                guess, at_most, at_least = histogram.median()
            histogram.commit()
        self.passes.append(self.hypothesis.passes - before)


def measure(quick: bool = False) -> Results:
    """Passes and times of QUESTIONS questions, a tenth of them if quick."""
    generator = np.random.default_rng(20170617)
    indices = pool(generator)
    questions = Questions(indices, generator)
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
        "updates": questions.hypothesis.updates,
        "passes": {
            "most": max(questions.passes),
            "average": sum(questions.passes) / len(questions.passes),
        },
        "times": {
            name: {"median": t.median, "best": t.best, "repeats": len(t.seconds)}
            for name, t in timings.items()
        },
    }


def target(results: Results) -> Results:
    """A row for the table of targets in run.py."""
    most = results["passes"]["most"]
    return {
        "ratio": (
            f"passes over {results['elements']:,} weights in a question, "
            f"the most of {results['questions']:,}"
        ),
        "measured": most,
        "of best repeats": most,
        "target": f"≤ {MOST_PASSES}",
        "met": most <= MOST_PASSES,
    }


def weights_table(results: Results) -> str:
    """The results as Markdown."""
    times, passes = results["times"], results["passes"]
    rows = [
        [
            name,
            milliseconds(t["median"]),
            milliseconds(t["best"]),
            f"{t['median'] / times[BINCOUNT]['median']:.3g}",
            f"{t['median'] / times[SUM]['median']:.3g}",
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


if __name__ == "__main__":
    print(weights_table(measure(quick="--quick" in sys.argv[1:])))
