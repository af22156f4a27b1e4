"""From a verdict on one side to a bound on the mean.

A verdict says of D[φ ≥ v] or D[φ ≤ v]: above tail_low (Yes), or below tail_high (No). Where
φ is the average of t independent terms in [low, high], Chernoff's bound makes of it a bound on the
mean, as in `holdfast.theory.bars`:

    at least v   Yes: D[φ ≥ v] > tail_low        mean ≥ the lower end from v at tail_low
                 No:  D[φ < v] > 1 − tail_high   mean ≤ the upper end from v at 1 − tail_high
    at most v    Yes: D[φ ≤ v] > tail_low        mean ≤ the upper end from v at tail_low
                 No:  D[φ > v] > 1 − tail_high   mean ≥ the lower end from v at 1 − tail_high
"""

from __future__ import annotations

import math
from typing import Literal

from holdfast.theory.bars import Bar, mean_bar

__all__ = ["verdict_bar"]


def verdict_bar(
    guess: float,
    claim: Literal["at least", "at most"],
    confirmed: bool,
    units: int,
    tail_low: float,
    tail_high: float,
    low: float = 0.0,
    high: float = 1.0,
) -> Bar:
    """The bound on the mean that a one-sided verdict certifies; the range's end on the other side.

    2,500 units a block, tails 10⁻⁶ and 1 − 10⁻⁶, the guess that an accuracy is at least 0.85:

    >>> low, high = verdict_bar(0.85, "at least", True, 2_500, 1e-6, 1 - 1e-6)
    >>> round(low, 3), high
    (0.81, 1.0)
    >>> low, high = verdict_bar(0.85, "at least", False, 2_500, 1e-6, 1 - 1e-6)
    >>> low, round(high, 3)
    (0.0, 0.885)
    """
    # 1 − tail_high rounded down: a smaller tail makes the bound wider.
    tail = tail_low if confirmed else math.nextafter(1 - tail_high, 0.0)
    below = (claim == "at least") == confirmed
    if below:
        bound, _ = mean_bar(guess, None, units, tail, tail, low, high)
        return bound, high
    _, bound = mean_bar(None, guess, units, tail, tail, low, high)
    return low, bound
