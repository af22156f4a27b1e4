"""The exponential mechanism's median: thm `EM-med` of the paper (theory §5).

A grid point v is the answer with probability ∝ e^(−ε·c(v)/2), where c(v) = max(#less, #greater)
counts the blocks whose value, projected onto the grid, is less or greater than v. One block moves
c by at most 1, so the mechanism is ε-bounded-range and costs a·ε²/8 at order a between neighbours
(`holdfast.theory.prices.exponential_price`), provided that the draw follows this law exactly: it
does (`holdfast.mechanisms.rejection`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.arguments import real_number
from holdfast.errors import InvalidInput
from holdfast.grids import Grid
from holdfast.mechanisms.ranks import Ranks
from holdfast.mechanisms.rejection import Cells
from holdfast.randomness import Entropy

__all__ = [
    "ScoreIntervals",
    "exponential_median",
    "exponential_probabilities",
    "score_intervals",
]

_LARGEST_EPSILON = 1e6

# Where to cut the cells at first, in nats: ranks at which the weight has fallen by e^−x.
_NEAR = (0.5, 1.0, 1.5, 2.5, 4.0, 6.0, 9.0, 13.0, 18.0, 25.0, 35.0)  # where counts are free
_FAR = (1.0, 2.5, 6.0)  # where each costs a pass over the values


class ScoreIntervals(NamedTuple):
    """Stretches of grid indices, first to last, on each of which the score is constant."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    score: NDArray[np.int64]


def score_intervals(values: object, grid: Grid) -> ScoreIntervals:
    """The score c(v) = max(#less, #greater) on the whole grid, as at most m + 2 intervals.

    Left of the median it falls at each value's point, right of it it rises after each.

    >>> from holdfast.grids import grid
    >>> score_intervals([0.1, 0.2, 0.2, 0.7, 0.9], grid(0, 1, step=0.1))
    ScoreIntervals(first=array([ 0,  1,  2,  3,  8, 10]),
        last=array([ 0,  1,  2,  7,  9, 10]), score=array([5, 4, 2, 3, 4, 5]))
    """
    projected = grid.ceiling(values)
    if projected.ndim != 1 or projected.size == 0:
        raise InvalidInput("values", projected.shape, "a list with one value per block")
    blocks = projected.size
    points, counts = np.unique(projected, return_counts=True)
    at_most = np.cumsum(counts)
    # Cut at every value's point and after it: in between less and greater do not change.
    starts = np.unique(np.concatenate(([0], points, points[points < grid.size - 1] + 1)))
    ends = np.append(starts[1:] - 1, grid.size - 1)
    known = np.concatenate(([0], at_most))
    less = known[np.searchsorted(points, starts, side="left")]
    greater = blocks - known[np.searchsorted(points, starts, side="right")]
    score = np.maximum(less, greater)
    keep = np.append(True, score[1:] != score[:-1])
    return ScoreIntervals(starts[keep], ends[np.append(keep[1:], True)], score[keep])


def exponential_probabilities(intervals: ScoreIntervals, epsilon: float) -> NDArray[np.float64]:
    """The probability that the answer lies in each interval; within one all points are alike.

    The logarithm of an interval's weight is ln(points) − ε·score/2; the largest is subtracted
    before the exponential is taken, so that neither huge grids nor huge scores overflow.

    >>> from holdfast.grids import grid
    >>> intervals = score_intervals([0.1, 0.2, 0.2, 0.7, 0.9], grid(0, 1, step=0.1))
    >>> exponential_probabilities(intervals, epsilon=2.0).round(3)
    array([0.015, 0.04 , 0.299, 0.55 , 0.081, 0.015])
    """
    epsilon = _epsilon(epsilon)
    points = (intervals.last - intervals.first + 1).astype(np.float64)
    logs = np.log(points) - epsilon / 2 * (intervals.score - intervals.score.min())
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def exponential_median(values: object, grid: Grid, epsilon: float, entropy: Entropy) -> int:
    """A grid index drawn with probability ∝ e^(−ε·c(v)/2), exactly.

    One value per block, as `Counts` reads them; failures count as the lowest point. Instead of
    all scores it computes a few, near the median, and bounds for the rest; the bounds do not
    change the law.

    >>> from holdfast.grids import grid
    >>> from holdfast.randomness import SeededEntropy
    >>> points = grid(0, 1, step=0.001)
    >>> values = np.linspace(0.2, 0.4, 1001)
    >>> points.point(exponential_median(values, points, 0.5, SeededEntropy(1)))
    0.3...
    """
    epsilon = _epsilon(epsilon)
    unit = 2 / epsilon  # ranks over which the weight falls by 1/e
    ranks = Ranks(values, grid, reach=2 * _FAR[-1] / epsilon)
    cells = Cells(grid.size, ranks.blocks, ranks.at_most)
    if grid.size > 1:
        _cut(cells, ranks, unit)
    return cells.draw(epsilon, entropy)


def _cut(cells: Cells, ranks: Ranks, unit: float) -> None:
    """Make the edges from which few trials are rejected; a bad choice costs time only.

    Beyond ln r + 3 nats the whole grid together weighs less than e^−3 of the median's point.
    """
    half, last = ranks.blocks // 2, ranks.blocks - 1
    end = math.log(ranks.grid.size) + 3
    offsets = {0}
    for side in (-1, 1):
        for nats in (*_NEAR, end):
            rank = half + side * math.ceil(min(nats * unit, half + 1))
            wanted = nats == end or (nats < end and (nats in _FAR or ranks.free(rank)))
            if wanted:
                offsets.add(min(max(rank, 0), last) - half)
    ordered = sorted(offsets)
    indices = ranks.near([half + offset for offset in ordered]).tolist()
    for offset, index in zip(ordered, indices, strict=True):
        # Left of the median the score falls at a value's point, right of it it rises after it.
        if offset <= 0:
            cells.count(index - 1)
        if offset >= 0:
            cells.count(index)
        if offset == 0 and ranks.tied:  # the median is this value or, as samples err, one beside
            for neighbour in ranks.beside(index):
                cells.score(neighbour)


def _epsilon(epsilon: float) -> float:
    return real_number("epsilon", epsilon, 0, _LARGEST_EPSILON, open_low=True)
