"""The analyst: hunts for the worst flights, from answer to answer. Who answers is an argument.

    1   every airline, airport, part of the day and weekday that has 1 % of the flights
    2   the five worst of these, split by each of the other three
    3   the planes of the worst pair, of the next one, …, until all questions are asked

The finding is the list of the ten worst cells. They are on it because their answers were extreme:
where answers are exact, partly because of chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.randomness import SeededEntropy, system_entropy
from holdfast_lab.flights import MINUTES, Cell, Flights, Rows

LISTED = 10
_WORST = 5
_LEAST_SHARE = 0.01
_LEAST_FLIGHTS = 30  # in the sample: the textbook's rule for a mean
_TRAITS = ("carrier", "origin", "part", "weekday")


@dataclass(frozen=True)
class Hunt:
    """What was asked, round by round, and what was answered."""

    rounds: tuple[tuple[Cell, ...], ...]
    answers: dict[Cell, float]

    @property
    def finding(self) -> tuple[Cell, ...]:
        """The worst cells of all, the worst first."""
        return tuple(self.worst(self.answers)[:LISTED])

    def worst(self, cells: Iterable[Cell]) -> list[Cell]:
        """Cells by their answers, the worst first; equal ones in the order they were asked."""
        return sorted(cells, key=lambda cell: -self.answers[cell])


def hunt(
    ask: Callable[[Cell], float],
    flights: Flights,
    sample: int,
    questions: int,
    progress: Callable[[int, int], None] | None = None,
) -> Hunt:
    """Ask so many questions about shares of late flights in a sample of this size."""
    answers: dict[Cell, float] = {}
    rounds: list[tuple[Cell, ...]] = []
    found = Hunt((), answers)

    def ask_all(cells: Iterable[Cell]) -> None:
        asked: list[Cell] = []
        for cell in cells:
            if len(answers) == questions:
                break
            if cell in answers:
                continue
            answers[cell] = ask(cell)
            asked.append(cell)
            if progress is not None:
                progress(len(answers), questions)
        rounds.append(tuple(asked))

    def split(cells: Iterable[Cell], columns: tuple[str, ...], least: float) -> Iterable[Cell]:
        return (part for cell in cells for part in flights.parts(cell, columns, least))

    one_percent = _LEAST_SHARE * flights.count
    ask_all(split([()], _TRAITS, one_percent))
    ask_all(split(found.worst(rounds[0])[:_WORST], _TRAITS, one_percent))
    enough = _LEAST_FLIGHTS * flights.count / sample
    ask_all(split(found.worst(rounds[1]), ("tailnum",), enough))
    return Hunt(tuple(rounds), answers)


# The demo's questions about flights, in SQL; the flights themselves are the lab's.
#
# The delay of a cancelled or diverted flight is NULL in SQL. Averages and quantiles of delays leave
# those out, as SQL does.


LATE = f"arr_delay >= {MINUTES} OR arr_delay IS NULL"


def cell_sql(cell: Cell) -> str:
    """The cell as a condition.

    >>> cell_sql((("carrier", "EV"), ("part", "evening")))
    "carrier = 'EV' AND part = 'evening'"
    """
    return " AND ".join(f"{column} = '{value}'" for column, value in cell)


def list_sql(cells: Iterable[Cell]) -> str:
    """Some of the cells, as a condition."""
    return " OR ".join(f"({cell_sql(cell)})" for cell in cells)


def cell_words(cell: Cell) -> str:
    """The cell for people.

    >>> cell_words((("carrier", "EV"), ("part", "evening"), ("tailnum", "N14543")))
    'EV evening N14543'
    """
    return " ".join(value for _, value in cell) or "all flights"


# A finding: what a search selected, what is claimed of it, and what is true of it.


@dataclass(frozen=True)
class Finding:
    """A list of cells: the share of late flights on it, with an interval for the population's."""

    cells: tuple[Cell, ...]
    flights: int
    """Flights of the sample that are on the list; in a sealed one, as many as are expected."""
    value: float
    low: float
    high: float
    truth: float

    @property
    def contains(self) -> bool:
        """Whether the interval contains the population's value."""
        return self.low <= self.truth <= self.high

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text."""
        cells = [cell_words(cell) for cell in self.cells]
        return {**asdict(self), "cells": cells, "contains": self.contains}


def percent(share: float, digits: int = 0) -> str:
    """A share as people read it.

    >>> percent(0.703, 1), percent(0.05)
    ('70.3 %', '5 %')
    """
    return f"{100 * share:.{digits}f} %"


# Naive reuse: every question is answered exactly, on all of the sample, as often as one likes.


_CONFIDENCE = 0.95


class Naive:
    """A sample that anybody may look at."""

    def __init__(self, flights: Flights, sample: Rows) -> None:
        self._flights, self._size = flights, sample.size
        # How often each flight of the population is in the sample: all that an answer needs.
        self._times = np.bincount(sample, minlength=flights.count)

    def share(self, cell: Cell) -> float:
        """The share of late flights among the sample's flights of a cell."""
        count, late = self._counts(self._flights.rows(cell))
        return late / count if count else 0.0

    def search(self, questions: int, progress: Callable[[int, int], None] | None = None) -> Hunt:
        """The analyst's hunt on this sample."""
        return hunt(self.share, self._flights, self._size, questions, progress)

    def finding(self, found: Hunt) -> Finding:
        """What the search found, with the interval that a textbook gives for it."""
        rows = self._flights.listed(found.finding)
        count, late = self._counts(rows)
        low, high = textbook_interval(count, late)
        return Finding(
            found.finding,
            flights=count,
            value=late / count,
            low=low,
            high=high,
            truth=float(self._flights.late[rows].mean()),
        )

    def _counts(self, rows: Rows) -> tuple[int, int]:
        times: NDArray[np.int64] = self._times[rows]
        return int(times.sum()), int(times[self._flights.late[rows]].sum())


def textbook_interval(count: int, late: int) -> tuple[float, float]:
    """The mean of `count` zeros and ones, ± t·s/√count: the 95 % t-interval.

    >>> [round(end, 3) for end in textbook_interval(400, 100)]
    [0.207, 0.293]
    """
    from scipy.special import stdtrit

    share = late / count
    deviation = math.sqrt(share * (1 - share) * count / (count - 1))
    half = float(stdtrit(count - 1, (1 + _CONFIDENCE) / 2)) * deviation / math.sqrt(count)
    return max(0.0, share - half), min(1.0, share + half)


# Where the demo's samples come from: the operating system's entropy, or a seed.


def generator(seed: int | None) -> np.random.Generator:
    """A generator of samples and of fresh blocks; the holdout has its own entropy."""
    source = system_entropy() if seed is None else SeededEntropy(seed)
    return np.random.default_rng([int(word) for word in source.words(4)])
