"""Description length for quantiles: blocks with which exact answers, few in number, are enough.

The union bound of `holdfast.baselines.description_length`, with the exact tails of the binomial law
in place of Hoeffding's: every question that can ever be asked is a fixed function of a block, so a
count of blocks is binomial. No noise and no privacy; the analyst may see nothing else. Sizes only:
for comparison with `holdfast.theory.splitting` and with a planned holdout.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from holdfast.arguments import real_number, whole_number
from holdfast.baselines.description_length import log_questions
from holdfast.errors import Infeasible, InvalidInput
from holdfast.theory.amplification import median_samples
from holdfast.theory.binomial import binomial_tail, smallest_whole
from holdfast.theory.numerics import ROUNDING

__all__ = ["VerdictBlocks", "median_blocks", "verdict_blocks"]

_LIMIT = 10**9
_MOST_NATS = 600.0  # e^−600 is far from the smallest float


class VerdictBlocks(NamedTuple):
    """Blocks, and the count that both sides of a guess must reach."""

    blocks: int
    least: int


def median_blocks(queries: int, grid_size: int, tail: float, failure: float) -> int:
    """Blocks so that k exact medians on grids of r points are all in qi(ρ, 1 − ρ), but for β.

    A question follows a list of answers, each one of r: N = Σ_{i<k} r^i. The exact median of one
    fixed function leaves the interval with probability ≤ 2·P[Bin(m, ρ) ≥ m/2] (`amp-med`); m is
    the smallest with which that is at most β/N.

    >>> [median_blocks(k, 32, 0.25, 0.05) for k in (10, 50, 100)]
    [223, 1181, 2383]
    """
    queries = whole_number("queries", queries, 1, 10**9)
    grid_size = whole_number("grid_size", grid_size, 1, 2**62)
    if grid_size == 1:
        nats = math.log(queries)
    else:  # r^(k−1) · (1 + 1/r + 1/r² + …)
        nats = (queries - 1) * math.log(grid_size) - math.log1p(-1 / grid_size)
    return median_samples(_share(failure, nats), tail)


def verdict_blocks(
    queries: int, refusals: int, tail_low: float, tail_high: float, failure: float
) -> VerdictBlocks:
    """Blocks so that k exact verdicts are right, ℓ of them No, but for probability β.

    Yes if both #{φ ≤ v} ≥ c and #{φ ≥ v} ≥ c. A fixed guess with a tail ≤ ρ_lo gets Yes with
    probability ≤ P[Bin(m, ρ_lo) ≥ c]; one with both tails ≥ ρ_hi gets No with probability
    ≤ 2·P[Bin(m, ρ_hi) < c]. Both must be at most β/N, N = Σ_{j<ℓ} C(k, j+1). The promise is that
    of thm `sv`. Blocks are enough, and the fewest but for the steps of c.

    >>> verdict_blocks(1_000, 10, 0.05, 0.25, 0.05)
    VerdictBlocks(blocks=1186, least=152)
    """
    tail_low = real_number("tail_low", tail_low, 0, 0.5, open_low=True, open_high=True)
    tail_high = real_number("tail_high", tail_high, 0, 0.5, open_low=True, open_high=True)
    if not tail_low < tail_high:
        raise InvalidInput("tail_high", tail_high, f"greater than tail_low, {tail_low:g}")
    share = _share(failure, log_questions(queries, refusals, 1))

    def count(blocks: int) -> int:
        """The smallest c that a low tail hardly ever reaches."""
        return smallest_whole(lambda c: binomial_tail(blocks, tail_low, c) <= share, blocks + 1)

    def enough(blocks: int) -> bool:
        short = blocks - count(blocks) + 1  # blocks outside a tail of which fewer than c are in
        return 2 * binomial_tail(blocks, 1 - tail_high, short) <= share

    blocks = smallest_whole(enough, _LIMIT)
    return VerdictBlocks(blocks, count(blocks))


def _share(failure: float, nats: float) -> float:
    """β/N, rounded down."""
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    if nats > _MOST_NATS:
        remedy = "Ask fewer questions, or allow fewer refusals; other methods are cheaper here."
        given = f"the limit is {_MOST_NATS:g}"
        raise Infeasible("Description length", f"{nats:,.0f} nats", given, remedy)
    return failure * math.exp(-nats) * (1 - ROUNDING)
