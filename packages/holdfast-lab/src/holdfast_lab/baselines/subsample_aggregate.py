"""Subsample and aggregate with a widened winsorised mean (Smith 2011).

("Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011.) The data
are split at random into m blocks, the estimator is computed on each, and the m values, known to
lie in [low, high], are aggregated:

    1. private quartiles â, b̂ of the values, by the exponential mechanism, ε/4 each;
    2. wide limits (â + b̂)/2 ± 4·m^(1/3 + 1/10)·|b̂ − â|, cut to [low, high];
    3. the mean of the values clipped to the limits, with Laplace noise for the other ε/2.

**What holds.** ε-privacy in the blocks, hence in the rows: with the limits given, one block moves
the sum of the clipped values by at most their distance w, and Lap(2w/(εm)) on the mean makes that
ε/2-private. The noise of step 3 is often printed as Lap(w/(2εm)), which would be 2ε-private by
itself; and the weights of step 1 as e^(−ε′·score), which is 2ε′-private for scores that move by 1.
Here they are e^(−ε′·score/2). All values are whole numbers of cells, 2^20 to the range unless told
otherwise; quartiles and noise are drawn exactly.

**What does not.** Smith's theorem is about the limit: for an estimator that is asymptotically
normal the answer has the same limit law as the estimator itself. For a finite sample nothing is
promised, neither by it nor by Holdfast; many adaptive questions share the privacy (thm
`composition`) and no more.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.mechanisms.exponential import flip_exponential
from holdfast.randomness import Entropy, uniform_index
from holdfast_lab.baselines.noise import Uncertified, clipped, discrete_laplace

Draw = Callable[[Fraction], int]
Quantile = Callable[[Fraction], int]

_WIDENING = 1 / 3 + 1 / 10
_FARTHEST = 700.0  # e^−700 is still a normal float
_ROUND_UP = 1 + 2.0**-40
_WEIGHT_BITS = 40
_MOST_BLOCKS = 2**20  # so that the weights of twice as many stretches are below 2^62 together


@dataclass(frozen=True, slots=True)
class Aggregate(Uncertified):
    """The noisy winsorised mean of the blocks' values, and the limits they were clipped to."""

    statement: ClassVar[str] = (
        "differential privacy, and the estimator's own limit law as the sample grows; "
        "nothing for a finite sample"
    )

    value: float
    low: float
    high: float


class QuantileScores(NamedTuple):
    """Stretches of cells, first to last, with the same score: how far they are off, in ranks."""

    first: list[int]
    last: list[int]
    score: list[Fraction]


def quantile_scores(values: NDArray[np.int64], cells: int, share: Fraction) -> QuantileScores:
    """max(#less − q·m, #greater − (1 − q)·m) on the points 0 … cells: one block moves it by ≤ 1.

    It is 0 or less at a q-quantile, and constant between neighbouring values.

    >>> quantile_scores(np.array([1, 2, 2, 4]), 5, Fraction(1, 4)).score
    [Fraction(1, 1), Fraction(0, 1), Fraction(0, 1), Fraction(2, 1), Fraction(2, 1), Fraction(3, 1)]
    """
    points, counts = np.unique(values, return_counts=True)
    starts = np.unique(np.concatenate(([0], points, points[points < cells] + 1)))
    known = np.concatenate(([0], np.cumsum(counts)))
    less = known[np.searchsorted(points, starts, side="left")].tolist()
    at_most = known[np.searchsorted(points, starts, side="right")].tolist()
    blocks = values.size
    score = [
        max(a - share * blocks, blocks - b - (1 - share) * blocks)
        for a, b in zip(less, at_most, strict=True)
    ]
    return QuantileScores(starts.tolist(), [*(starts[1:] - 1).tolist(), cells], score)


def draw_quantile(scores: QuantileScores, epsilon: Fraction, entropy: Entropy) -> int:
    """A point with probability ∝ e^(−ε·score/2), exactly: by rejection from whole weights.

    A stretch j is proposed with probability ∝ U_j, a whole number ≥ n_j·2^s·e^(−ε·score_j/2), and
    kept with the quotient of the two (`holdfast.mechanisms.exponential` has the proof).
    """
    base = min(scores.score)
    points = [last - first + 1 for first, last in zip(scores.first, scores.last, strict=True)]
    exponents = [epsilon * (score - base) / 2 for score in scores.score]
    # Below 2^40 for the heaviest, and one more at most for each of the others.
    scale = _WEIGHT_BITS - max(points).bit_length()
    weights = [
        math.ceil(math.ldexp(n * math.exp(-min(float(x), _FARTHEST)) * _ROUND_UP, scale))
        for n, x in zip(points, exponents, strict=True)
    ]
    ends = list(accumulate(weights))
    while True:
        place = bisect_left(ends, uniform_index(ends[-1], entropy) + 1)
        factor = Fraction(2) ** scale * points[place] / weights[place]
        if flip_exponential(factor, exponents[place], entropy):
            return scores.first[place] + uniform_index(points[place], entropy)


def aggregate(
    values: NDArray[np.int64], cells: int, epsilon: Fraction, quantile: Quantile, draw: Draw
) -> tuple[Fraction, int, int]:
    """Steps 2 and 3 in cells, as a pure function of quartiles and noise: (mean, low, high).

    The limits are rounded outward. If they coincide there is nothing to hide and no noise.
    """
    first, third = quantile(Fraction(1, 4)), quantile(Fraction(3, 4))
    blocks = values.size
    reach = 4 * blocks**_WIDENING * abs(third - first)
    middle = (first + third) / 2
    low = max(0, math.floor(middle - reach))
    high = min(cells, math.ceil(middle + reach))
    total = int(np.clip(values, low, high).sum())
    if low < high:
        total += draw(2 * (high - low) / epsilon)
    return Fraction(total, blocks), low, high


def subsample_aggregate(
    values: object, low: float, high: float, epsilon: float, entropy: Entropy, *, cells: int = 2**20
) -> Aggregate:
    """The ε-private winsorised mean of one value per block; blocks are disjoint and random.

    Values outside [low, high] count as the nearer end, whatever is no number as `low`.

    >>> from holdfast.randomness import SeededEntropy
    >>> values = np.linspace(0.2, 0.4, 1_001)
    >>> subsample_aggregate(values, -10.0, 10.0, epsilon=1.0, entropy=SeededEntropy(1))
    Aggregate(value=0.274..., low=-7.755..., high=8.356...)
    """
    low, high = real_number("low", low), real_number("high", high)
    if not low < high or not math.isfinite(high - low):
        raise InvalidInput("high", high, f"greater than low, {low:g}, and not by too much")
    exact = Fraction(real_number("epsilon", epsilon, 0, 1e6, open_low=True))
    cells = whole_number("cells", cells, 1, 2**32)
    inside = clipped(values, low, high)
    if inside.size > _MOST_BLOCKS:
        raise InvalidInput("values", f"{inside.size:,} of them", f"at most {_MOST_BLOCKS:,}")
    placed = np.rint((inside - low) / (high - low) * cells).astype(np.int64)

    def quantile(share: Fraction) -> int:
        return draw_quantile(quantile_scores(placed, cells, share), exact / 4, entropy)

    def draw(scale: Fraction) -> int:
        return discrete_laplace(scale, entropy)

    mean, first, last = aggregate(placed, cells, exact, quantile, draw)
    width = high - low
    return Aggregate(
        low + width * float(mean / cells), low + width * first / cells, low + width * last / cells
    )
