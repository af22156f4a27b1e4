"""What is known of the estimator: how a block of t units turns a tail into an error.

mean      the average of t independent terms in [low, high]      kl–Chernoff (theory.md §8)
sd        standard deviation sd/√t, whatever the distribution     Cantelli (theory.md §8)
mad       mean absolute deviation of a block's value             cor `mad-range`, halved
none      nothing: answers are certified as quantiles, without an error in the answer's units
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from holdfast.errors import InvalidInput, real_number
from holdfast.grids import Grid
from holdfast.theory.bars import (
    cantelli_bar,
    deviation_bar,
    mean_bar,
    mean_half_width,
    units_for_half_width,
)

__all__ = ["BoundedMean", "KnownDeviation", "KnownSd", "Shape", "shape_from", "shape_from_dict"]

_UNITS_MAX = 10**15
_LARGER = "Ask for a larger error."
_FAILING = ("can_fail", "fails_high")


Cell = tuple[float | None, float | None]


class Shape(Protocol):
    """How far fresh data can put the mean beyond an answer's cell."""

    @property
    def span(self) -> float | None:
        """Length of the range that a grid has to cover, if it is known."""
        ...

    def error(self, units: int, tail: float, /) -> float:
        """Half-width beyond the cell's edge with blocks of `units` units."""
        ...

    def units(self, error: float, tail: float, /) -> int:
        """The fewest units a block needs for this half-width."""
        ...

    def bar(self, cell: Cell, units: int, tail_low: float, tail_high: float, /) -> Cell:
        """Bounds on the mean, given the edges of the answer's cell; None where there is none."""
        ...

    def describe(self) -> str:
        """One phrase for explanations."""
        ...

    def to_dict(self) -> dict[str, object]:
        """Plain data, for a plan's JSON."""
        ...


def _meets(cell: Cell, low: float, high: float) -> bool:
    """Whether a cell (lower, upper] holds a number of [low, high]."""
    return (cell[0] is None or cell[0] < high) and (cell[1] is None or cell[1] >= low)


@dataclass(frozen=True)
class BoundedMean:
    """A mean of independent terms in [low, high]: accuracy, error rate, a proportion.

    Where blocks `can_fail`, a failure counts as the lowest value: it can only lower an answer, so
    that the lower end of a bar still holds, and the upper end is that of the range. Where it
    `fails_high`, as a loss does, the other way round.
    """

    low: float = 0.0
    high: float = 1.0
    can_fail: bool = False
    fails_high: bool = False

    def __post_init__(self) -> None:
        real_number("low", self.low)
        real_number("high", self.high, self.low, open_low=True)
        real_number("high − low", self.high - self.low)

    @property
    def span(self) -> float | None:
        return self.high - self.low

    def error(self, units: int, tail: float) -> float:
        return (self.high - self.low) * mean_half_width(units, tail)

    def units(self, error: float, tail: float) -> int:
        width = error / (self.high - self.low)
        if width >= 1:
            return 1
        if -math.log(tail) > 2 * width**2 * _UNITS_MAX:  # Pinsker: about what it takes
            raise _unreachable(error)
        return units_for_half_width(width, tail)

    def bar(self, cell: Cell, units: int, tail_low: float, tail_high: float) -> Cell:
        if not _meets(cell, self.low, self.high):
            return None, None  # no such mean lies there: what was claimed of it is not so
        lower, upper = (None if x is None else min(max(x, self.low), self.high) for x in cell)
        below, above = mean_bar(lower, upper, units, tail_low, tail_high, self.low, self.high)
        # At an end of the grid the range itself is a bound.
        lost = self.low if self.fails_high else self.high
        ends = self.low if below is None else below, self.high if above is None else above
        if not self.can_fail:
            return ends
        return (lost, ends[1]) if self.fails_high else (ends[0], lost)

    def describe(self) -> str:
        return f"a mean of terms in [{self.low:g}, {self.high:g}]"

    def to_dict(self) -> dict[str, object]:
        data: dict[str, object] = {"kind": "mean", "low": self.low, "high": self.high}
        more = {"can_fail": self.can_fail, "fails_high": self.fails_high}
        return data | {name: True for name, given in more.items() if given}


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
            raise _unreachable(error)
        return max(1, math.ceil(needed * (1 + 1e-12)))

    def bar(self, cell: Cell, units: int, tail_low: float, tail_high: float) -> Cell:
        return cantelli_bar(*cell, self.sd / math.sqrt(units) * (1 + 1e-12), tail_low, tail_high)

    def describe(self) -> str:
        return f"any estimator with standard deviation {self.sd:g}/√t, inside the grid"

    def to_dict(self) -> dict[str, object]:
        return {"kind": "sd", "sd": self.sd}


@dataclass(frozen=True)
class KnownDeviation:
    """An estimator whose mean absolute deviation, on a block, is `mad`: |v − E φ| ≤ mad/(2ρ).

    Cor `mad-range`, with half its constant. The deviation is the block's: it is not divided by √t.
    """

    mad: float

    def __post_init__(self) -> None:
        real_number("mad", self.mad, 0, open_low=True)

    @property
    def span(self) -> float | None:
        return None

    def error(self, _: int, tail: float) -> float:
        return self.mad / (2 * tail) * (1 + 1e-12)

    def units(self, error: float, tail: float) -> int:
        if self.error(1, tail) > error:
            raise InvalidInput("error", error, f"at least {self.error(1, tail):g}", _LARGER)
        return 1

    def bar(self, cell: Cell, _: int, tail_low: float, tail_high: float) -> Cell:
        return deviation_bar(*cell, self.mad, tail_low, tail_high)

    def describe(self) -> str:
        return f"any estimator with mean absolute deviation {self.mad:g}, inside the grid"

    def to_dict(self) -> dict[str, object]:
        return {"kind": "mad", "mad": self.mad}


def shape_from_dict(data: Mapping[str, object]) -> Shape:
    """The shape that `to_dict` wrote."""
    if set(data) - {*_FAILING} == {"kind", "low", "high"} and data["kind"] == "mean":
        low, high = real_number("low", data["low"]), real_number("high", data["high"])
        return BoundedMean(low, high, *(data.get(name) is True for name in _FAILING))
    if set(data) == {"kind", "sd"} and data["kind"] == "sd":
        return KnownSd(real_number("sd", data["sd"]))
    if set(data) == {"kind", "mad"} and data["kind"] == "mad":
        return KnownDeviation(real_number("mad", data["mad"]))
    raise InvalidInput("shape", dict(data), "a shape as a plan writes it")


def shape_from(
    name: str, low: float | None, high: float | None, sd: float | None, grid: object
) -> Shape | None:
    """The shape that a user names. A mean's range is, if not given, the grid's, else [0, 1]."""
    if name not in ("mean", "sd", "none"):
        raise InvalidInput("shape", name, "'mean', 'sd' or 'none'")
    if name != "mean":
        for parameter, value in (("low", low), ("high", high)):
            if value is not None:
                raise InvalidInput(parameter, value, f"left out for shape {name!r}")
    if name != "sd" and sd is not None:
        raise InvalidInput("sd", sd, f"left out for shape {name!r}", "Use shape='sd' with it.")
    if name == "none":
        return None
    if name == "sd":
        if sd is None:
            hint = "It is one unit's, in the answer's own units."
            raise InvalidInput("sd", sd, "given with shape 'sd'", hint)
        return KnownSd(sd)
    return _bounded_mean(low, high, grid)


def _bounded_mean(low: float | None, high: float | None, grid: object) -> BoundedMean:
    if not isinstance(grid, Grid):
        return BoundedMean(0.0 if low is None else low, 1.0 if high is None else high)
    shape = BoundedMean(
        float(grid.low) if low is None else low, float(grid.high) if high is None else high
    )
    if grid.low > shape.low or grid.high < shape.high:
        hint = "An answer at an end of the grid would have no bound on that side."
        allowed = f"a grid that covers the mean's range, [{shape.low:g}, {shape.high:g}]"
        raise InvalidInput("grid", grid, allowed, hint)
    return shape


def _unreachable(error: float) -> InvalidInput:
    return InvalidInput("error", error, "reachable with 10¹⁵ units a block", _LARGER)
