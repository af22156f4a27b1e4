"""Exact draws from weights e^(−ε·score/2) on a grid, when scores are known only by bounds.

**Adaptive rejection.** Cut the grid into cells. In cell j, of n_j points, no score is below b_j.
With c any constant and k any integer let U_j ≥ n_j·2^k·e^(−ε(b_j − c)/2) be an integer, W = Σ U_j.
One trial: take cell j with probability U_j/W, in it a point g uniformly, find its score s(g), and
accept with probability A = n_j·2^k·e^(−ε(s(g) − c)/2) / U_j ≤ 1. A trial accepts g with probability

    U_j/W · 1/n_j · A = e^(−ε·s(g)/2) · (2^k·e^(ε·c/2) / W),

and the second factor does not depend on g. So, given that a trial accepts, its point has exactly
the law of the exponential mechanism, whatever the cells were. A rejected point becomes an edge
of the cells of the next trial; that trial's law, given all the trials before it, is again this
one, hence so is the law of the answer. ∎

Cells and U_j decide only how many trials it takes. Floating point enters in one place, U_j, which
is rounded up; the cell and the point are drawn as integers and the coin A as real numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import NamedTuple

from holdfast.randomness import Entropy, uniform_index

__all__ = ["Cells", "Proposal", "flip_exponential"]

_ROUND_UP = 1 + 2.0**-40  # covers the rounding of n·e^(−x), below 2^-41 for x ≤ 700
_ROUND_DOWN = 1 - 2.0**-40
_FARTHEST = 700.0  # e^−700 is still a normal float; a bound beyond it may as well be it
_TOTAL_BITS = 61  # W stays below 2^62, the largest range of uniform_index


class Proposal(NamedTuple):
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


class Cells:
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

    def proposal(self, epsilon: float) -> Proposal:
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
        return Proposal(cells, whole, base, scale)

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
    if word >= math.ldexp(estimate * _ROUND_UP, bits):
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
