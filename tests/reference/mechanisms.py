"""Mechanisms beside those that answer: noisy and weighted counts, the exponential's law."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput, real_number
from holdfast.grids import Grid, floats_up
from holdfast.mechanisms.looks import search
from holdfast.randomness import Entropy
from holdfast.theory.coins import Coin, probit_coin

__all__ = [
    "ScoreIntervals",
    "exponential_probabilities",
    "gaussian_search",
    "score_intervals",
    "weighted_count",
]

_WEIGHT_BITS = 16
_FLOOR = 1e-30  # far below any tail that a plan asks for


def gaussian_search(
    values: object,
    grid: Grid,
    sigma: float,
    entropy: Entropy,
    *,
    twice_target: int | None = None,
    floor: float = _FLOOR,
) -> int:
    """Noisy binary search with Gaussian counts (cor `SQ-med`): a search with the probit coin.

    A count with noise N(0, σ²) is at least its target with probability Φ(x/σ). The coin flips that
    probability itself: no real-valued noise is ever drawn. The error levels off at the floor.
    """
    return search(values, grid, _probit(sigma, floor), entropy, twice_target=twice_target)


@lru_cache(maxsize=16)
def _probit(sigma: float, floor: float) -> Coin:
    return probit_coin(sigma, floor)


def weighted_count(weights: object) -> int:
    """⌊Σ w_i⌋, each weight in [0, 1] first rounded to the nearest multiple of 2⁻¹⁶ (theory §2).

    The sum is one of integers, exact whatever their order. Replacing one weight moves it by at
    most 2¹⁶, and so the result by at most 1. It is below Σ w_i by less than 1 + m·2⁻¹⁷ and above
    it by at most m·2⁻¹⁷, within the m·2⁻¹⁶ and one count that §2 charges to τ. A weight outside
    [0, 1] is clipped and a failure counts as 0: no exception depends on the data.

    >>> weighted_count([0.5, 0.25, 0.25, 0.999, float("nan")])
    1
    """
    with np.errstate(all="ignore"):  # whatever the caller's settings are
        array = floats_up(weights)
    if array.ndim != 1:
        raise InvalidInput("weights", array.shape, "a list with one weight per block")
    inside = np.clip(np.where(np.isnan(array), 0.0, array), 0.0, 1.0)
    # Scaling by a power of two is exact: rint rounds once.
    units = np.rint(np.ldexp(inside, _WEIGHT_BITS)).astype(np.int64)
    return int(units.sum()) >> _WEIGHT_BITS


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
    epsilon = real_number("epsilon", epsilon, 0, open_low=True)
    points = (intervals.last - intervals.first + 1).astype(np.float64)
    logs = np.log(points) - epsilon / 2 * (intervals.score - intervals.score.min())
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())
