"""Fresh splitting: every question has m = ⌊n/k⌋ rows that nobody has used before.

No theorem about adaptivity is needed. Three ways to bound one mean at β/k:

    half        the exact binomial tails of a fair coin; the papers' programs compare with this
    every       exact binomial tails, for every share of the population: the one that is proved
    hoeffding   √(ln(2k/β)/(2m)), also for values between 0 and 1

`half` is a little too small: of all shares 1/2 has the largest variance, but the sample's share is
a multiple of 1/m, and a share just below 1/2 meets the lattice less luckily. It is kept because
its figures are the published ones.
"""

from __future__ import annotations

import math
from typing import Literal

from holdfast.baselines.published.search import checked, checked_target, most_queries
from holdfast.errors import Infeasible, InvalidInput
from holdfast.theory.numerics import ROUNDING, binomial_tail

__all__ = ["By", "queries_at", "width"]

By = Literal["half", "every", "hoeffding"]

_LATTICE = 16  # so many questions and sizes are tried beyond the last that was enough
_MOST_EVERY = 10**5  # rows a question up to which all shares are tried


def width(rows: int, queries: int, failure: float, *, by: By = "half") -> float:
    """The half-width of k means on fresh rows.

    >>> [round(width(100_000, 288, 0.05, by=by), 4) for by in ("half", "every", "hoeffding")]
    [0.0994, 0.1021, 0.1161]
    """
    rows, queries, failure = checked(rows, queries, failure)
    size, share = rows // queries, failure / (2 * queries)
    if by not in ("half", "every", "hoeffding"):
        raise InvalidInput("by", by, "'half', 'every' or 'hoeffding'")
    if size == 0:
        return 1.0
    if by == "hoeffding":
        return min(1.0, math.sqrt(-math.log(share) / (2 * size)) * (1 + ROUNDING))
    return _half(size, share) if by == "half" else _every(size, share)


def queries_at(rows: int, half_width: float, failure: float, *, by: By = "half") -> int:
    """The most questions with half-widths of at most this; 0 if there is none.

    >>> [queries_at(100_000, 0.1, 0.05, by=by) for by in ("half", "every", "hoeffding")]
    [288, 277, 219]
    >>> [queries_at(100_000, 0.1, 0.001, by=by) for by in ("half", "every", "hoeffding")]
    [196, 189, 157]
    """
    rows, half_width, failure = checked_target(rows, half_width, failure)
    best = most_queries(lambda k: width(rows, k, failure, by="hoeffding"), half_width)
    if by == "hoeffding":
        return best
    queries = max(1, best)
    last = rows // queries
    while queries <= best + _LATTICE or rows // queries >= max(1, last - _LATTICE):
        if width(rows, queries, failure, by=by) <= half_width:
            best, last = queries, rows // queries
        queries += 1
    return best


def _half(size: int, share: float) -> float:
    """(x − m/2)/m for the smallest x with P[Bin(m, 1/2) > x] ≤ share."""
    low, high = size // 2 - 1, size  # P[X > m] = 0 is enough; as many as half is not
    while high - low > 1:
        middle = (low + high) // 2
        if binomial_tail(size, 0.5, middle + 1) <= share:
            high = middle
        else:
            low = middle
    return abs(high - size / 2) / size


def _every(size: int, share: float) -> float:
    """The smallest w with P_p[X/m > p + w] ≤ share for all p; the lower side is its mirror image.

    For X ≥ j to be further than w away, p < j/m − w, and P_p[X ≥ j] grows with p: so it is enough
    that P[X ≥ j] ≤ share at p = j/m − w, for every j.
    """
    if size > _MOST_EVERY:
        remedy = "Ask for the width by Hoeffding's bound."
        raise Infeasible("Every share", f"up to {_MOST_EVERY:,} rows", f"{size:,}", remedy)
    import numpy as np
    from scipy.special import betainc

    counts = np.arange(1, size + 1, dtype=np.float64)
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        shares = counts / size - middle
        kept = counts[shares > 0]
        tails = betainc(kept, size - kept + 1, shares[shares > 0])
        if tails.max(initial=0.0) * (1 + 1e-9) <= share:
            high = middle
        else:
            low = middle
    return high
