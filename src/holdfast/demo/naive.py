"""Naive reuse: every question is answered exactly, on all of the sample, as often as one likes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from holdfast.demo.analyst import Hunt, hunt
from holdfast.demo.finding import Finding
from holdfast.lab.worlds.flights import Cell, Flights, Rows

__all__ = ["Naive", "textbook_interval"]

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
