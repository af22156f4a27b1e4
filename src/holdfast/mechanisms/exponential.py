"""The exponential mechanism's median: thm `EM-med` of the paper (theory §5).

A grid point v is the answer with probability ∝ e^(−ε·c(v)/2), where c(v) = max(#less, #greater)
counts the blocks whose value, projected onto the grid, is less or greater than v. One block moves
c by at most 1, so the mechanism is ε-bounded-range and costs a·ε²/8 at order a between neighbours
(`holdfast.theory.coins.exponential_price`), provided that the draw follows this law exactly: it
does (`holdfast.mechanisms.exponential`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import real_number
from holdfast.grids import Grid
from holdfast.mechanisms.looks import Counts
from holdfast.randomness import Entropy, uniform_index

__all__ = [
    "GridStretches",
    "RankCounts",
    "TrialTable",
    "exponential_median",
    "flip_exponential",
]


# Counts around the median that cost no pass over the values: a sorted stretch of them.
#
# Sorting a million values takes twenty passes. A sample shows where the middle is; what lies
# there, a few per cent, is cut out in three passes and sorted. The sample only says where to cut:
# every count is exact, inside the stretch by bisection, outside by a pass over all values.


_SAMPLE = 2**15  # a few times more and its own sort would cost a pass
_LONGEST = 1 / 16  # of all values: a longer stretch takes more time than the passes it saves
_DEVIATIONS = 4.5  # by which the sample's median may be off before the stretch misses the median


class RankCounts(Counts):
    """`Counts` with a sorted stretch that reaches some ranks below and above the median.

    There is none where it would be too long, or where the whole middle is `tied`: projected onto
    one point of the grid or two.

    >>> from holdfast.grids import grid
    >>> ranks = RankCounts(np.arange(1000.0), grid(0, 1000, step=1), reach=10)
    >>> ranks.at_most(499), ranks.near([0, 500]).tolist()
    (500, [0, 500])
    """

    __slots__ = ("_base", "_edges", "_sample", "_stretch", "tied")

    def __init__(self, values: object, grid: Grid, reach: float) -> None:
        super().__init__(values, grid)
        step = max(1, self.blocks // _SAMPLE)
        # Every step-th: no entropy is spent on it, and a periodic input costs time, not truth.
        self._sample = _ordered(self.array[::step])
        self._stretch, self._base = self._sample, 0  # all there is
        self._edges: tuple[Any, Any] | None = None
        self.tied = False
        if step > 1:
            self._cut(min(reach, self.blocks) / step)

    def _cut(self, reach: float) -> None:
        """Take out and sort the elements strictly between two elements of the sample."""
        half = self._sample.size // 2
        margin = math.ceil(reach + _DEVIATIONS * math.sqrt(half / 2))
        self._stretch, self._edges = self._sample[:0], (self._sample[0], self._sample[0])
        if margin > _LONGEST * half:
            return
        low, high = self._sample[half - margin], self._sample[half + margin]
        ends = self.indices(np.array([low, high], self.array.dtype))
        if ends[1] - ends[0] > 1:
            self._base = self.blocks - self.above(low)
            inside = np.logical_and(self._above, self.array < high, out=self._above)
            self._stretch, self._edges = np.sort(self.array[inside]), (low, high)
        self.tied = self._stretch.size == 0

    def at_most(self, index: int) -> int:
        """How many values are projected onto the point at this index or a lower one."""
        if index < 0 or index >= self.grid.size - 1:
            return 0 if index < 0 else self.blocks
        limit = self.threshold(index)
        if limit is None:
            return 0
        # With low ≤ limit < high: #{x ≤ limit} = #{x ≤ low} + #{low < x ≤ limit}, where NaN, the
        # lowest of all, is in the first term.
        if self._edges is None or self._edges[0] <= limit < self._edges[1]:
            return self._base + int(np.searchsorted(self._stretch, limit, side="right"))
        return self.blocks - self.above(limit)

    def free(self, rank: int) -> bool:
        """Whether counts near this rank cost no pass over the values."""
        return self._base <= rank < self._base + self._stretch.size

    def beside(self, index: int) -> tuple[int, int]:
        """About the nearest grid indices below and above this one that have values."""
        places = [
            0 if limit is None else int(np.searchsorted(self._sample, limit, side="right"))
            for limit in (self.threshold(max(index - 1, 0)), self.threshold(index))
        ]
        pair = self._sample[[max(places[0] - 1, 0), min(places[1], self._sample.size - 1)]]
        low, high = self.indices(pair).tolist()
        return low, high

    def near(self, ranks: Sequence[int]) -> NDArray[np.int64]:
        """The grid indices of the values at these ranks: exact where `free`, else about."""
        found = [
            self._stretch[rank - self._base]
            if self.free(rank)
            else self._sample[rank * self._sample.size // self.blocks]
            for rank in ranks
        ]
        return self.indices(np.array(found, self.array.dtype))


def _ordered(elements: NDArray[Any]) -> NDArray[Any]:
    """Sorted, with −∞ for NaN: it is projected onto the same point, and it can be compared."""
    result = np.sort(elements)
    if result.dtype.kind == "f":
        missing = int(np.count_nonzero(np.isnan(result)))
        if missing:  # numpy sorts NaN last
            result = np.roll(result, missing)
            result[:missing] = -np.inf
    return result


# Exact draws from weights e^(−ε·score/2) on a grid, when scores are known only by bounds.
#
# **Adaptive rejection.** Cut the grid into cells. In cell j, of n_j points, no score is below b_j.
# With c any constant and k any integer let U_j ≥ n_j·2^k·e^(−ε(b_j − c)/2) be an integer,
# W = Σ U_j. One trial: take cell j with probability U_j/W, in it a point g uniformly, find its
# score s(g), and accept with probability A = n_j·2^k·e^(−ε(s(g) − c)/2) / U_j ≤ 1. A trial accepts
# g with probability
#
#     U_j/W · 1/n_j · A = e^(−ε·s(g)/2) · (2^k·e^(ε·c/2) / W),
#
# and the second factor does not depend on g. So, given that a trial accepts, its point has exactly
# the law of the exponential mechanism, whatever the cells were. A rejected point becomes an edge
# of the cells of the next trial; that trial's law, given all the trials before it, is again this
# one, hence so is the law of the answer. ∎
#
# Cells and U_j decide only how many trials it takes. Floating point enters in one place, U_j,
# which is rounded up; the cell and the point are drawn as integers and the coin A as real
# numbers.


_ROUND_UP = 1 + 2.0**-40  # covers the rounding of n·e^(−x), below 2^-41 for x ≤ 700
_ROUND_DOWN = 1 - 2.0**-40
_FARTHEST = 700.0  # e^−700 is still a normal float; a bound beyond it may as well be it
_SMALLEST = 2.0**-1000  # below, floats may have lost digits, or everything
_TOTAL_BITS = 61  # W stays below 2^62, the largest range of uniform_index


class TrialTable(NamedTuple):
    """One trial's table: cells (first, last, bound on the score from below) and integers U."""

    cells: list[tuple[int, int, int]]
    weights: list[int]
    base: int  # the constant c
    scale: int  # the integer k

    def acceptance(self, cell: int, score: int, epsilon: float) -> tuple[Fraction, Fraction]:
        """f and x such that a point of this score is accepted with probability f·e^(−x)."""
        first, last, _ = self.cells[cell]
        factor = Fraction(2) ** self.scale * (last - first + 1) / self.weights[cell]
        return factor, Fraction(epsilon) * (score - self.base) / 2


class GridStretches:
    """A grid cut into stretches by indices at which the count is known.

    With G(g) = #{i : φ(S_i) ≤ T[g]} the score of a point is max(G(g − 1), m − G(g)), the number of
    blocks less or greater. G rises, so between edges e < f, on e + 1 … f, it is at least
    max(G(e), m − G(f)); on a cell of one point that is the score itself.
    """

    __slots__ = ("_at_most", "_blocks", "_counts", "_edges")

    def __init__(self, size: int, blocks: int, at_most: Callable[[int], int]) -> None:
        self._at_most = at_most
        self._blocks = blocks
        self._edges = [-1, size - 1]
        self._counts = [0, blocks]

    def count(self, edge: int) -> int:
        """G(edge), which becomes an edge; known edges cost nothing."""
        place = bisect_left(self._edges, edge)
        if self._edges[place] != edge:
            self._edges.insert(place, edge)
            self._counts.insert(place, self._at_most(edge))
        return self._counts[place]

    def score(self, index: int) -> int:
        """The exact score of a point, which becomes a cell of its own."""
        return max(self.count(index - 1), self._blocks - self.count(index))

    def proposal(self, epsilon: float) -> TrialTable:
        """The table of the next trial."""
        cells = [
            (before + 1, edge, max(less, self._blocks - at_most))
            for (before, edge), (less, at_most) in zip(
                pairwise(self._edges), pairwise(self._counts), strict=True
            )
        ]
        base = min(bound for _, _, bound in cells)
        weights = [
            (last - first + 1) * math.exp(-min(epsilon * (bound - base) / 2, _FARTHEST)) * _ROUND_UP
            for first, last, bound in cells
        ]
        # The float sum is below 2^e and off by far less than a factor of 2; rounding up adds at
        # most 1 per cell: W < 2^62.
        scale = _TOTAL_BITS - math.frexp(math.fsum(weights))[1]
        whole = [math.ceil(math.ldexp(weight, scale)) for weight in weights]
        return TrialTable(cells, whole, base, scale)

    def draw(self, epsilon: float, entropy: Entropy) -> int:
        """An index with probability ∝ e^(−ε·score/2), exactly; by the trials described above."""
        while True:
            proposal = self.proposal(epsilon)
            ends = list(accumulate(proposal.weights))
            cell = bisect_left(ends, uniform_index(ends[-1], entropy) + 1)
            first, last, _ = proposal.cells[cell]
            index = first + uniform_index(last - first + 1, entropy)
            factor, exponent = proposal.acceptance(cell, self.score(index), epsilon)
            if flip_exponential(factor, exponent, entropy):
                return index


def flip_exponential(factor: Fraction, exponent: Fraction, entropy: Entropy) -> bool:
    """True with probability factor · e^(−exponent), exactly; the product must be at most 1.

    A uniform number is compared with bounds on the product, both to as many digits as it takes:
    64 bits and floats nearly always. For rational exponents the product is irrational (or the
    exponent is 0 and it is known), so that the comparison ends with probability 1.

    >>> from holdfast.randomness import SeededEntropy
    >>> entropy = SeededEntropy(1)
    >>> [flip_exponential(Fraction(1), Fraction(1), entropy) for _ in range(5)]
    [False, True, False, True, False]
    """
    word, bits, digits = int(entropy.words(1)[0]), 64, 25
    near = exponent <= _FARTHEST
    estimate = float(factor) * math.exp(-float(exponent) if near else -_FARTHEST)
    if near and word + 1 <= math.ldexp(estimate * _ROUND_DOWN, bits):
        return True
    if word >= math.ldexp(max(estimate, _SMALLEST) * _ROUND_UP, bits):
        return False
    while True:
        low, high = _exponential_bounds(exponent, digits)
        if Fraction(word + 1, 2**bits) <= factor * low:
            return True
        if Fraction(word, 2**bits) >= factor * high:
            return False
        word = word << 64 | int(entropy.words(1)[0])
        bits, digits = bits + 64, digits + 20  # 64 bits are 19.3 digits


def _exponential_bounds(exponent: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Rational numbers around e^(−exponent) for exponent ≥ 0, to about so many digits.

    Decimal divides and takes exponentials with one correct rounding each, of relative size
    u = 10^(1−digits)/2. An exponent off by x·u changes the result by a factor within 1 ± 2xu while
    2xu ≤ 1, and both together by one within 1 ± (2x + 2)u·2.
    """
    if exponent == 0:
        return Fraction(1), Fraction(1)
    size = math.ceil(exponent)
    digits += len(str(size))
    context = Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)
    quotient = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    middle = Fraction(context.exp(context.minus(quotient)))
    slack = Fraction(2 * (size + 1), 10 ** (digits - 1))
    return middle * (1 - slack), middle * (1 + slack)


_LARGEST_EPSILON = 1e6

# Where to cut the cells at first, in nats: ranks at which the weight has fallen by e^−x.
_NEAR = (0.5, 1.0, 1.5, 2.5, 4.0, 6.0, 9.0, 13.0, 18.0, 25.0, 35.0)  # where counts are free
_FAR = (1.0, 2.5, 6.0)  # where each costs a pass over the values


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
    ranks = RankCounts(values, grid, reach=2 * _FAR[-1] / epsilon)
    cells = GridStretches(grid.size, ranks.blocks, ranks.at_most)
    if grid.size > 1:
        _cut(cells, ranks, unit)
    return cells.draw(epsilon, entropy)


def _cut(cells: GridStretches, ranks: RankCounts, unit: float) -> None:
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
