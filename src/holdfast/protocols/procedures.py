"""Procedures: what the rows say about one number M, valid at every level in finite samples.

    Share        a share of rows, by Clopper & Pearson
    Mean         a mean of terms in [0, 1], by bets
    Pair         a difference of two means on the same rows, by bets, or by exact McNemar
    BlockMedian  the median of an estimator over fresh blocks, by signs
    Nothing      no row at all

A procedure gives logarithms of p-values, rounded up, and intervals, rounded outwards. M and its
thresholds are in [0, 1], but for `BlockMedian`. Proofs: docs/explanation/theory/told.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.protocols.source import WEIGHT_SCALE
from holdfast.theory import betting, told
from holdfast.theory.betting import Bets
from holdfast.theory.numerics import log_binomial_tail

__all__ = ["HALF_PART", "BlockMedian", "Mean", "Nothing", "Pair", "Procedure", "Share"]

HALF_PART = 0.5 / WEIGHT_SCALE + 2.0**-50
"""By how much of its range a term is off that is counted in whole parts (`unit_terms`)."""


class Procedure(ABC):
    """Confidence statements about one number M, valid at every level."""

    @abstractmethod
    def log_above(self, value: float) -> float:
        """ln of the p-value of "M < value"."""

    @abstractmethod
    def log_below(self, value: float) -> float:
        """ln of the p-value of "M > value"."""

    def log_over(self, value: float) -> float:
        """ln of the p-value of "M ≤ value": the same, where laws of every M are tried."""
        return self.log_above(value)

    def log_under(self, value: float) -> float:
        """ln of the p-value of "M ≥ value"."""
        return self.log_below(value)

    def interval(self, nats: float) -> tuple[float, float]:
        """What holds at this level, each end in full."""
        raise NotImplementedError


@dataclass(frozen=True)
class Share(Procedure):
    """A share of rows, by Clopper & Pearson. `fixed`: terms that are independent, not alike."""

    rows: int
    count: int
    fixed: bool = False

    def log_above(self, value: float) -> float:
        return told.log_share_above(self.rows, self.count, value, fixed=self.fixed)

    def log_below(self, value: float) -> float:
        return told.log_share_below(self.rows, self.count, value, fixed=self.fixed)

    def interval(self, nats: float) -> tuple[float, float]:
        low = told.share_low(self.rows, self.count, nats, fixed=self.fixed)
        return low, told.share_high(self.rows, self.count, nats, fixed=self.fixed)


@dataclass(frozen=True)
class Mean(Procedure):
    """A mean of terms in [0, 1], by bets whose stakes public numbers predict.

    `slack` is how far the terms that are counted may be from those that M is the mean of: their
    mean is as far from M at most, and so are all ends.
    """

    terms: betting.Tally
    bets: tuple[Bets, Bets]
    """For lower ends, and for upper ones."""
    slack: float = HALF_PART

    def log_above(self, value: float) -> float:
        return betting.log_mean_above(
            self.terms, min(1.0, max(0.0, value + self.slack)), self.bets[0]
        )

    def log_below(self, value: float) -> float:
        return betting.log_mean_below(
            self.terms, min(1.0, max(0.0, value - self.slack)), self.bets[1]
        )

    def interval(self, nats: float) -> tuple[float, float]:
        low = betting.mean_low(self.terms, nats, self.bets[0])
        high = betting.mean_high(self.terms, nats, self.bets[1])
        if not self.slack:
            return low, high
        below, above = (
            math.nextafter(low - self.slack, -1.0),
            math.nextafter(high + self.slack, 2.0),
        )
        return max(0.0, below), min(1.0, above)


@dataclass(frozen=True)
class Pair(Mean):
    """A difference of two means on the same rows, as (1 + difference)/2.

    At the middle, no difference, exact McNemar is sharper than a bet, where terms are 0 or 1. It
    needs rows that are alike; or features that are fixed (`fixed`) and labels of two classes: then
    `differ` counts the rows on which the two differ, also those without a label.
    """

    wins: int = 0
    losses: int = 0
    differ: int = 0
    fixed: bool = False
    exact: bool = False

    def log_above(self, value: float) -> float:
        if self.exact and value == 0.5:
            return told.log_mcnemar(self.wins, self.differ - self.wins, fixed=self.fixed)
        return super().log_above(value)

    def log_below(self, value: float) -> float:
        if self.exact and value == 0.5:
            return told.log_mcnemar(self.losses, self.differ - self.losses, fixed=self.fixed)
        return super().log_below(value)


class Nothing(Procedure):
    """No row: nothing is known at any level."""

    def log_above(self, value: float) -> float:
        del value
        return 0.0

    def log_below(self, value: float) -> float:
        del value
        return 0.0

    def interval(self, nats: float) -> tuple[float, float]:
        del nats
        return 0.0, 1.0


class BlockMedian(Procedure):
    """The median M of what an estimator gives on fresh blocks, by signs; not scaled.

    M = inf{c : P[value ≤ c] ≥ ½}. If M < c then P[value ≥ c] ≤ ½, and if M > c then P[value ≤ c] <
    ½; if M ≤ c then P[value > c] ≤ ½, and if M ≥ c then P[value < c] ≤ ½.

    >>> signs = BlockMedian(np.arange(100.0))
    >>> signs.log_above(30.0) < -9 < signs.log_above(45.0), signs.log_below(49.0)
    (True, -0.61...)
    """

    def __init__(self, values: NDArray[np.float64]) -> None:
        self._values = np.sort(values)

    def log_above(self, value: float) -> float:
        return self._tail(self._values.size - self._up_to(value, "left"))

    def log_below(self, value: float) -> float:
        return self._tail(self._up_to(value, "right"))

    def log_over(self, value: float) -> float:
        return self._tail(self._values.size - self._up_to(value, "right"))

    def log_under(self, value: float) -> float:
        return self._tail(self._up_to(value, "left"))

    def _up_to(self, value: float, side: str) -> int:
        """How many values are less, or ("right") no more."""
        return int(np.searchsorted(self._values, value, side=side))  # type: ignore[call-overload]

    def _tail(self, count: int) -> float:
        return min(0.0, log_binomial_tail(self._values.size, 0.5, count))
