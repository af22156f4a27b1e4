"""What is known of the estimator: how a block of t units turns a tail into an error.

mean      the average of t independent terms in [low, high]      kl–Chernoff (theory.md §8)
sd        standard deviation sd/√t, whatever the distribution     Cantelli (theory.md §8)
none      nothing: answers are certified as quantiles, without an error in the answer's units
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from holdfast.arguments import real_number
from holdfast.errors import InvalidInput
from holdfast.theory.bars import mean_half_width, units_for_half_width

__all__ = ["BoundedMean", "KnownSd", "Shape", "shape_from"]

_UNITS_MAX = 10**15


class Shape(Protocol):
    """How far fresh data can put the mean beyond an answer's cell."""

    @property
    def span(self) -> float | None:
        """Length of the range that a grid has to cover, if it is known."""
        ...

    def error(self, units: int, tail: float) -> float:
        """Half-width beyond the cell's edge with blocks of `units` units."""
        ...

    def units(self, error: float, tail: float) -> int:
        """The fewest units a block needs for this half-width."""
        ...

    def describe(self) -> str:
        """One phrase for explanations."""
        ...


@dataclass(frozen=True)
class BoundedMean:
    """A mean of independent terms in [low, high]: accuracy, error rate, a proportion."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        real_number("low", self.low)
        real_number("high", self.high, self.low, open_low=True)

    @property
    def span(self) -> float | None:
        return self.high - self.low

    def error(self, units: int, tail: float) -> float:
        return (self.high - self.low) * mean_half_width(units, tail)

    def units(self, error: float, tail: float) -> int:
        width = error / (self.high - self.low)
        return 1 if width >= 1 else units_for_half_width(width, tail)

    def describe(self) -> str:
        return f"a mean of terms in [{self.low:g}, {self.high:g}]"


@dataclass(frozen=True)
class KnownSd:
    """An estimator whose standard deviation on t units is sd/√t: |v − E φ| ≤ sd·√((1−ρ)/(ρt))."""

    sd: float

    def __post_init__(self) -> None:
        real_number("sd", self.sd, 0, open_low=True)

    @property
    def span(self) -> float | None:
        return None

    def error(self, units: int, tail: float) -> float:
        return self.sd * math.sqrt((1 - tail) / (tail * units)) * (1 + 1e-12)

    def units(self, error: float, tail: float) -> int:
        needed = (self.sd / error) ** 2 * (1 - tail) / tail
        if needed > _UNITS_MAX:
            hint = "Ask for a larger error."
            raise InvalidInput("error", error, "reachable with 10¹⁵ units a block", hint)
        return max(1, math.ceil(needed * (1 + 1e-12)))

    def describe(self) -> str:
        return f"any estimator with standard deviation {self.sd:g}/√t"


def shape_from(name: str, low: float, high: float, sd: float | None) -> Shape | None:
    """The shape that a user names."""
    if name == "mean":
        if sd is not None:
            raise InvalidInput("sd", sd, "left out for shape 'mean'", "Use shape='sd' with it.")
        return BoundedMean(low, high)
    if name == "sd":
        if sd is None:
            raise InvalidInput(
                "sd", sd, "given with shape 'sd'", "It is one unit's, in answer units."
            )
        return KnownSd(sd)
    if name == "none":
        return None
    raise InvalidInput("shape", name, "'mean', 'sd' or 'none'")
