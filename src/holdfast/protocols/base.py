"""What every protocol does first: find its part of the plan, its source and its entropy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids import Grid, floats_up
from holdfast.mechanisms.looks import Counts
from holdfast.planning.parts import Part
from holdfast.planning.shapes import BoundedMean, KnownDeviation, KnownSd
from holdfast.protocols.budget import Budget
from holdfast.protocols.source import Source
from holdfast.randomness import Entropy, system_entropy

__all__ = [
    "BAR_MAX",
    "Asking",
    "Keeper",
    "Tallied",
    "block_counts",
    "block_floats",
    "block_indices",
    "checked_grid",
    "checked_shape",
    "shown",
]

P = TypeVar("P", bound=Part)


class Asking(Generic[P]):
    """One part of a budget's plan, ready to be asked questions about a source."""

    part_type: type[P]
    protocol: str
    served_by: tuple[str, ...] = ()
    """Protocols whose parts promise as much, and may serve where the plan has none of its own."""

    def __init__(
        self,
        budget: Budget,
        source: Source,
        entropy: Entropy | None = None,
        name: str | None = None,
    ) -> None:
        part = budget.plan.part(name or self.protocol)
        protocols = (self.protocol, *self.served_by)
        if not isinstance(part, self.part_type) or part.protocol not in protocols:
            raise InvalidInput("name", name, f"the name of a part for {self.protocol}")
        self.budget, self.source, self.part = budget, source, part
        if source.blocks != self._blocks():
            hint = "The plan was made for another split of the data."
            raise InvalidInput("blocks", source.blocks, f"the plan's {self._blocks():,}", hint)
        budget.bind(source)
        self.entropy = _checked_entropy(entropy)
        prices = part.prices(budget.plan.order)
        self._no, self._yes = _exactly(prices.no), _exactly(prices.yes)

    def _blocks(self) -> int:
        """How many blocks the source must have."""
        return self.budget.plan.blocks

    @property
    def certified(self) -> bool:
        """Whether answers may be certified: only the operating system's entropy is unforeseen."""
        return self.entropy.certifiable


@lru_cache(maxsize=1024)  # a plan has few prices, and every question asks for them
def _exactly(price: float) -> Fraction:
    return Fraction(price)


_LARGEST = float(np.finfo(np.float64).max)
BAR_MAX = 1e300  # beyond, a value has no error bar


def block_floats(source: Source, estimator: object) -> NDArray[np.float64]:
    """One finite float per block: a failure is the lowest of all, and infinities are the ends.

    So every value can be a guess, and comparing it with the others needs no exceptions. Promises
    are about the estimator as a float: an integer above 2⁵³ is first rounded up to one.
    """
    with np.errstate(all="ignore"):
        values = _one_per_block(source, floats_up(source.values(estimator)))
        return np.clip(np.where(np.isnan(values), -_LARGEST, values), -_LARGEST, _LARGEST)


def shown(value: float) -> float:
    """A value as people read it: the ends stand for failures and infinities."""
    return math.copysign(math.inf, value) if abs(value) == _LARGEST else value


def block_counts(source: Source, estimator: object, grid: Grid) -> Counts:
    """How many blocks' values are at most a point: what `block_indices` gives, never projected."""
    values = source.values(estimator)
    with np.errstate(all="ignore"):
        if isinstance(values, np.ndarray):
            _one_per_block(source, values)
        counts = Counts(values, grid)
    _one_per_block(source, counts.array)
    return counts


def block_indices(source: Source, estimator: object, grid: Grid) -> NDArray[np.int64]:
    """The grid index that each block's value is projected onto, the lowest for a failure."""
    return _one_per_block(source, grid.ceiling(source.values(estimator)))


def _checked_entropy(entropy: object) -> Entropy:
    if entropy is None:
        return system_entropy()
    if not isinstance(entropy, Entropy):
        hint = "Leave it out: then it is the operating system's."
        raise InvalidInput("entropy", entropy, "an Entropy of holdfast.randomness", hint)
    return entropy


def checked_grid(grid: object) -> Grid:
    """A grid, or an error that says how to make one."""
    if not isinstance(grid, Grid):
        hint = "Make one with holdfast.grid(low, high, step=…)."
        raise InvalidInput("grid", grid, "a grid of possible answers", hint)
    return grid


def checked_shape(shape: object) -> None:
    """A known shape or none, before anything is charged."""
    if shape is not None and not isinstance(shape, BoundedMean | KnownSd | KnownDeviation):
        allowed = "BoundedMean, KnownSd, KnownDeviation (holdfast.planning.shapes), or left out"
        raise InvalidInput("shape", shape, allowed)


A = TypeVar("A", NDArray[np.float64], NDArray[np.int64])


def _one_per_block(source: Source, values: A) -> A:
    if values.shape != (source.blocks,):  # the source's mistake: no estimator can change it
        raise InvalidInput("values", values.shape, f"one for each of {source.blocks:,} blocks")
    return values


# Tallies: protocols that are charged in things said, not in looks, count them here.
#
# A count is raised to its worst case before anything is evaluated, and put right afterwards. A
# `keeper` hears of the worst case in between: a durable ledger writes it down, so that a crash
# leaves
# it charged.


Keeper = Callable[[Mapping[str, int]], None]


class Tallied:
    """What has been said, as whole numbers by name; `counts` names the attributes."""

    counts: ClassVar[tuple[str, ...]]
    keeper: Keeper | None = None

    @property
    def tally(self) -> dict[str, int]:
        """All that a later object needs to go on from here."""
        return {name: getattr(self, f"_{name}") for name in self.counts}

    def restore(self, tally: Mapping[str, int]) -> None:
        """Go on from an earlier object's tally."""
        if set(tally) != set(self.counts):
            raise InvalidInput("tally", sorted(tally), f"with {', '.join(self.counts)}")
        for name in self.counts:
            if type(tally[name]) is not int or tally[name] < 0:
                raise InvalidInput(name, tally[name], "a whole number from 0")
            setattr(self, f"_{name}", tally[name])

    def _charged(self) -> None:
        """The counts stand at their worst case: from here on something may be said."""
        if self.keeper is not None:
            self.keeper(self.tally)
