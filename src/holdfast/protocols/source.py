"""Sources: where a protocol gets values of blocks and terms of units, and nothing else of the data.

An engine is a source: it evaluates an estimator on every block, each by itself, and gives back one
value for each; what fails on a block is a failure (None or NaN) of that block. A function of one
unit has a term for each, in whole parts, which come one by one or summed over every block. No
source may raise an exception that depends on the data. `BlockArray` is the source for arrays in
memory.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput, whole_number
from holdfast.grids import floats_up

__all__ = ["UNIT", "WEIGHT_SCALE", "BlockArray", "Bounds", "Source", "is_within", "unit_terms"]

WEIGHT_SCALE = 2**16  # weights in [0, 1] are counted in these parts, so that sums are exact
Bounds = tuple[float, float]  # (low, high), between which a term lies
UNIT: Bounds = (0.0, 1.0)


def is_within(inner: Bounds, outer: Bounds) -> bool:
    """Whether every number of one range is in the other."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def unit_terms(numbers: NDArray[np.float64], bounds: Bounds) -> NDArray[np.float64]:
    """Terms cut to [low, high] and scaled to [0, 1]; what is no number counts as low.

    Both differences and the quotient are rounded once, so that a term is off by less than 2⁻⁵⁰.

    >>> unit_terms(np.array([-1.0, 0.5, 7.0, np.nan]), (-1.0, 1.0)).tolist()
    [0.0, 0.75, 1.0, 0.0]
    """
    low, high = bounds
    inside = np.clip(np.where(np.isnan(numbers), low, numbers), low, high)
    return np.asarray((inside - low) / (high - low))


class Source(Protocol):
    """Blocks of equally many units that can be asked, not read."""

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        ...

    @property
    def units(self) -> int:
        """How many units each block has."""
        ...

    def values(self, estimator: Any, /) -> object:
        """The estimator's value on every block, in a fixed order; failures as None or NaN."""
        ...

    def sums(self, function: Any, /, where: Any = None, bounds: Bounds = UNIT) -> NDArray[np.int64]:
        """For every block the sum over its units of ⌊2¹⁶·f + 1/2⌋, f in [0, 1].

        f is the function, cut to [low, high] and scaled, see `unit_terms`. With `where`, a function
        that is true or false of a unit, over those units alone. None is the f that is 1 of every
        unit.
        """
        ...

    def terms(
        self, function: Any, /, where: Any = None, bounds: Bounds = UNIT
    ) -> NDArray[np.int64]:
        """Of every unit the number that `sums` adds up: 0 for one that `where` leaves out.

        Block by block, and in a block in an order that is the same whatever is asked: the terms of
        two functions are of the same units, one by one.
        """
        ...

    def part(self, start: int, stop: int, /) -> Source:
        """The blocks start, …, stop − 1 alone."""
        ...


class BlockArray:
    """Rows of an array, in the order in which they come, cut into blocks of t rows.

    The rows must be in random order: shuffle them once, before any question is asked. Rows that do
    not fill a block are left out. An estimator is called with the rows of one block; a function
    for `sums` likewise, and gives one number for each of them.

    >>> source = BlockArray(np.arange(12.0), blocks=3)
    >>> source.values(lambda rows: float(rows.mean()))
    [1.5, 5.5, 9.5]
    >>> source.sums(lambda rows: rows > 4)
    array([     0, 196608, 262144])
    >>> source.part(1, 2).terms(lambda rows: rows > 4)
    array([    0, 65536, 65536, 65536])
    """

    def __init__(self, rows: NDArray[Any], blocks: int) -> None:
        self._rows = np.asarray(rows)
        if self._rows.ndim < 1:
            raise InvalidInput("rows", self._rows.shape, "an array with a first axis of rows")
        self._blocks = whole_number("blocks", blocks, 1, max(1, len(self._rows)))

    @property
    def blocks(self) -> int:
        return self._blocks

    @property
    def units(self) -> int:
        return len(self._rows) // self._blocks

    def values(self, estimator: Callable[[NDArray[Any]], object], /) -> list[object]:
        t = self.units
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning too may depend on the data
            return [_value(estimator, self._rows[i * t : (i + 1) * t]) for i in range(self.blocks)]

    def sums(
        self,
        function: Callable[[NDArray[Any]], object] | None,
        /,
        where: Callable[[NDArray[Any]], object] | None = None,
        bounds: Bounds = UNIT,
    ) -> NDArray[np.int64]:
        terms = self.terms(function, where, bounds)
        return np.asarray(terms.reshape(-1, self.units).sum(axis=1))

    def terms(
        self,
        function: Callable[[NDArray[Any]], object] | None,
        /,
        where: Callable[[NDArray[Any]], object] | None = None,
        bounds: Bounds = UNIT,
    ) -> NDArray[np.int64]:
        within = UNIT if function is None else bounds
        terms = [_parts(each, self.units, within) for each in self.values(function or _ones)]
        if where is not None:
            kept = [_parts(each, self.units, UNIT) > 0 for each in self.values(where)]
            terms = [each * keep for each, keep in zip(terms, kept, strict=True)]
        return np.concatenate(terms)

    def part(self, start: int, stop: int, /) -> BlockArray:
        stop = whole_number("stop", stop, 1, self.blocks)
        start = whole_number("start", start, 0, stop - 1)
        return BlockArray(self._rows[start * self.units : stop * self.units], stop - start)


def _value(estimator: Callable[[NDArray[Any]], object], rows: NDArray[Any]) -> object:
    """What the estimator says of a block; an exception may depend on it, and is a failure."""
    try:
        # It may write into its argument, not into the data; an array of objects shares them.
        block = copy.deepcopy(rows) if rows.dtype.hasobject else rows.copy()
        return estimator(block)
    except (Exception, SystemExit, GeneratorExit):
        return None


def _parts(terms: object, units: int, bounds: Bounds) -> NDArray[np.int64]:
    """One block's terms in parts of 2⁻¹⁶; a failure, of one or of all, counts as the lowest."""
    with np.errstate(all="ignore"):
        numbers = floats_up(terms if isinstance(terms, np.ndarray) else _items(terms))
    if numbers.shape != (units,):
        return np.zeros(units, np.int64)
    return np.floor(unit_terms(numbers, bounds) * WEIGHT_SCALE + 0.5).astype(np.int64)


def _ones(rows: NDArray[Any]) -> NDArray[np.float64]:
    return np.ones(len(rows))


def _items(terms: object) -> list[object]:
    """A sequence, a Series or an iterator as a list; empty if it is none, or fails."""
    try:
        return [] if isinstance(terms, str | bytes) else list(cast(Iterable[object], terms))
    except Exception:
        return []
