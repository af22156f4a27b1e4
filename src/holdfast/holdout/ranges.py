"""Ranges: which guesses would be compatible, were fresh blocks like those of the open part.

A verdict says of one guess that fresh blocks lie on either side of it. What other guesses would
have been told the same is seen on the open part, which anybody may look at: with n open blocks, no
guess outside their quantiles at the tail, rounded outwards. It is no part of the answer, costs
nothing, and is computed anew each time: nothing of the sealed blocks is in it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.holdout.records import Result
from holdfast.protocols.answers import Verdict
from holdfast.protocols.base import shown
from holdfast.protocols.guesses import Corrected

__all__ = ["compatible_range", "ranged"]

Ends = tuple[float | None, float | None]


def ranged(result: Result, values: NDArray[np.float64] | None, worst: float = -math.inf) -> Result:
    """A verdict with its range, where the estimator has these values on the open blocks."""
    if isinstance(result, Corrected):
        verdict = ranged(result.verdict, values, worst)
        assert isinstance(verdict, Verdict)
        return Corrected(verdict, result.correction)
    if not isinstance(result, Verdict) or values is None:
        return result
    low, high = compatible_range(result, values, worst)
    return replace(result, range_low=low, range_high=high, open_blocks=values.size)


def compatible_range(
    verdict: Verdict, values: NDArray[np.float64], worst: float = -math.inf
) -> Ends:
    """The ends of the guesses that so many open blocks do not speak against; None: no such end.

    A guess stands only if more than a share of blocks lies on its side. Of n values the ⌊n·share⌋
    lowest ones are no more than that share, so that no lower guess is compatible; and so from
    above. Fewer than 1/share values say nothing. A guess that stands is always inside. A block
    without a value counts as `worst`.
    """
    ordered = np.sort(np.where(np.isnan(values), worst, values))
    near = verdict.tolerance is not None
    shares = (verdict.tail_low, verdict.tail_high if near else verdict.tail_low)
    low, high = (int(values.size * Fraction(repr(share))) for share in shares)
    margin = verdict.tolerance or 0.0
    first = float(ordered[low - 1]) - margin if low and verdict.claim != "at least" else -math.inf
    last = float(ordered[-high]) + margin if high and verdict.claim != "at most" else math.inf
    if verdict.verdict == "compatible":
        first, last = min(first, verdict.guess), max(last, verdict.guess)
    return _end(first), _end(last)


def _end(value: float) -> float | None:
    return value if math.isfinite(shown(value)) else None
