"""Mechanisms: randomised answers from counts or values; they know nothing of data sources.

    look          one biased coin (theory §2)
    search        a quantile by bisection, one look per step (theory §3, `median2sq`, `SQ-med`)
    exponential   the exponential mechanism's median (theory §5, `EM-med`)
    counts        exact counts of values
    ranks         exact counts near the median without a pass over the values
    rejection     exact draws from weights known by bounds
    universe      every possible block, listed (theory §7)
    hypothesis    a public law over a universe, and its multiplicative updates

Each takes its randomness as an argument and draws from the stated law exactly: no probability is
rounded and no real-valued noise is added.
"""

from __future__ import annotations

from holdfast.mechanisms.exponential import (
    exponential_median,
)
from holdfast.mechanisms.looks import (
    look,
    search,
    search_counts,
    search_many,
)

__all__ = [
    "exponential_median",
    "look",
    "search",
    "search_counts",
    "search_many",
]
