"""The universe: every possible block, listed in a fixed order, so that each can have a weight.

Multiplicative weights (theory §7, `adaptive-general-mwu`) keep a public hypothesis about the law of
a block. That takes a finite set Z of blocks. A unit has one of n possible values, and an estimator
that does not care for the order of its units sees a multiset of t of them: |Z| = C(n + t − 1, t).

The order is colexicographic, the combinatorial number system. With the t indices sorted,
a₁ ≤ … ≤ a_t, the place of a multiset is Σᵢ C(aᵢ + i − 1, i). With p_j the number of units below
point j it is also |Z| − 1 − Σⱼ C(p_j + j − 1, j), j = 1 … n − 1; the shorter sum is used.
Nothing is stored for an element: its units are computed from its place, and its place from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.arguments import whole_number
from holdfast.errors import Infeasible, InvalidInput
from holdfast.grids.values import floats_up
from holdfast.theory.updates import multiset_count

__all__ = ["LARGEST", "Progress", "Universe", "check_size"]

LARGEST = 2**26  # elements: what the rounding of their weights is proved for
_BYTES = 32  # for each: penalty and weight of the hypothesis, value and grid index of the question

Progress = Callable[[int, int], None]
Estimator = Callable[[NDArray[Any]], object]

_CHUNK = 2**20  # numbers given to an estimator at once


def check_size(size: int) -> int:
    """The size of a universe, refused where it is too large.

    >>> check_size(10**5)
    100000
    >>> check_size(10**9)
    Traceback (most recent call last):
    ...
    holdfast.errors.Infeasible: A universe of 1,000,000,000 elements: this needs 32.0 GB of memory
    (32 bytes for each), but the limit is 2.1 GB, or 67,108,864 elements. Take coarser points or
    smaller blocks, or ask by separate searches, which need no universe.
    """
    if size <= LARGEST:
        return size
    raise Infeasible(
        f"A universe of {size:,} elements",
        f"{size * _BYTES / 1e9:,.1f} GB of memory ({_BYTES} bytes for each)",
        f"the limit is {LARGEST * _BYTES / 1e9:,.1f} GB, or {LARGEST:,} elements",
        "Take coarser points or smaller blocks, or ask by separate searches, which need no "
        "universe.",
    )


class Universe:
    """All multisets of `block_size` units out of the points; with 1, the points themselves.

    Points are different finite numbers, which are sorted, or the different rows of a table, which
    keep their order. An estimator sees a block's units in that order, whatever their order was.

    >>> universe = Universe.multisets([0, 1, 5], block_size=2)
    >>> universe.blocks(0, universe.size).tolist()
    [[0, 0], [0, 1], [1, 1], [0, 5], [1, 5], [5, 5]]
    >>> universe.locate(np.array([[5, 0], [1, 1], [0.9, 4.0]])).tolist()
    [3, 2, 4]
    >>> universe.evaluate(lambda blocks: blocks.mean(axis=1)).tolist()
    [0.0, 0.5, 1.0, 2.5, 3.0, 5.0]
    """

    __slots__ = ("_tables", "block_size", "size", "units")

    def __init__(self, points: object, block_size: int) -> None:
        table = _table(points)
        self.block_size = whole_number("block_size", block_size, 1, 10**9)
        self.size: int = check_size(multiset_count(len(table), self.block_size))
        self.units = _different(table)
        row = np.arange(len(table) + self.block_size - 1)  # C(c, 1) = c
        self._tables: list[NDArray[np.int64]] = []
        for _ in range(2, min(self.block_size, len(table) - 1) + 1):
            row = np.concatenate([[0], np.cumsum(row[:-1])])  # C(c, i) = Σ_{b<c} C(b, i−1)
            self._tables.append(row)

    @classmethod
    def points(cls, values: object) -> Universe:
        """The universe of single units: Z is the set of points."""
        return cls(values, 1)

    @classmethod
    def multisets(cls, points: object, block_size: int) -> Universe:
        """The universe of blocks of several units, for estimators that ignore their order.

        It is refused, before anything is allocated, if it has more elements than `LARGEST`.
        """
        return cls(points, block_size)

    @property
    def _by_units(self) -> bool:
        """Whether places are sums over the t units, or over the n − 1 points above the first."""
        return self.block_size <= len(self.units) - 1

    # From a place to a block.

    def rows(self, start: int, stop: int) -> NDArray[np.int32]:
        """The indices of the units of each element from start to before stop, sorted."""
        stop = whole_number("stop", stop, 0, self.size)
        start = whole_number("start", start, 0, stop)
        place = np.arange(start, stop, dtype=np.int64)
        chosen = self._chosen(place if self._by_units else self.size - 1 - place)
        if self._by_units:
            return chosen.astype(np.int32).T
        seat = np.arange(self.block_size)
        result = np.zeros((place.size, self.block_size), np.int32)
        for below in chosen:  # the unit in a seat is the number of j with p_j ≤ seat
            result += below[:, None] <= seat
        return result

    def blocks(self, start: int, stop: int) -> NDArray[Any]:
        """The blocks themselves: (stop − start, block_size), and the columns of a table last."""
        return self.units[self.rows(start, stop)]

    def _chosen(self, place: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rising sequence x₁ ≤ x₂ ≤ … with Σᵢ C(xᵢ + i − 1, i) = place, one row per i."""
        fewer = min(self.block_size, len(self.units) - 1)
        result = np.empty((fewer, place.size), np.int64)
        left = place.copy()
        for i in range(fewer, 1, -1):
            table = self._tables[i - 2]
            top = np.searchsorted(table, left, side="right") - 1
            left -= table[top]
            result[i - 1] = top - (i - 1)
        if fewer:
            result[0] = left
        return result

    # From a block to its place.

    def locate(self, blocks: object) -> NDArray[np.int64]:
        """The place in Z of each block of the data, given as (m, t) or, for rows, (m, t, columns).

        A number that is no point counts as the nearest one (of two, the lower), a row that is none
        as the first. A failure, such as NaN, counts as the lowest point. That is a fixed rule about
        one unit, part of the definition of the data: the promise is about units after it. Nothing
        here raises but for the shape of an array; an item of a list that is not t units is a
        failure as a whole.
        """
        with np.errstate(all="ignore"):
            index = self._indices(self._read(blocks))
            if self._by_units:
                chosen = np.sort(index, axis=1).T
            else:
                points = range(1, len(self.units))
                chosen = np.array([np.count_nonzero(index < j, axis=1) for j in points])
                chosen = chosen.reshape(len(points), len(index))
        place = np.zeros(len(index), np.int64)
        for i, row in enumerate(chosen, start=1):
            place += _binomial(row + (i - 1), i)
        return place if self._by_units else self.size - 1 - place

    def _read(self, blocks: object) -> NDArray[np.float64]:
        shape = (self.block_size, *self.units.shape[1:])
        if isinstance(blocks, list | tuple):
            return np.array([_numbers(x, shape) for x in blocks]).reshape(len(blocks), *shape)
        array = floats_up(blocks)
        if self.block_size == 1 and array.ndim == self.units.ndim:
            array = array[:, None]
        if array.ndim != 1 + len(shape) or array.shape[1:] != shape:
            allowed = f"an array of shape (m, {', '.join(map(str, shape))})"
            raise InvalidInput("blocks", array.shape, allowed)
        return array

    def _indices(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The index of every unit's point."""
        points = self.units.astype(np.float64)
        if points.ndim == 2:
            found = _matching_rows(points, values.reshape(-1, points.shape[1]))
            return found.reshape(values.shape[:2])
        nearest = np.searchsorted(points[:-1] / 2 + points[1:] / 2, values, side="left")
        above = np.minimum(nearest + 1, points.size - 1)
        nearest = np.where(points[above] == values, above, nearest)  # the middle may be rounded up
        return np.where(np.isnan(values), 0, nearest)

    # Values of an estimator.

    def evaluate(
        self, estimator: Estimator, *, batch: bool = True, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """The estimator's value on every element of Z, NaN for a failure.

        With `batch` it gets many blocks at once, an array (blocks, t) or (blocks, t, columns), and
        returns one value for each; otherwise one block at a time, and an exception is a failure.
        `progress(done, total)` is called after every chunk. Z is public, so an error here says
        nothing about the data.
        """
        result = np.empty(self.size)
        for start, stop in self._chunks():
            blocks = self.blocks(start, stop)
            values = floats_up(estimator(blocks) if batch else _one_by_one(estimator, blocks))
            if values.shape != (stop - start,):
                hint = "Reduce the units along axis 1, or say batch=False."
                allowed = f"a function with one value for each of {stop - start:,} blocks"
                raise InvalidInput("estimator", f"shape {values.shape}", allowed, hint)
            result[start:stop] = values
            if progress is not None:
                progress(stop, self.size)
        if not batch and np.all(np.isnan(result)):
            allowed = "a function of one block that works for at least one of them"
            raise InvalidInput("estimator", "a failure on every block", allowed)
        return result

    def _chunks(self) -> Iterator[tuple[int, int]]:
        numbers = self.block_size * int(np.prod(self.units.shape[1:], dtype=np.int64))
        step = max(1, _CHUNK // numbers)
        for start in range(0, self.size, step):
            yield start, min(start + step, self.size)

    def __repr__(self) -> str:
        return f"<Universe of {self.size:,} blocks: {self.block_size:,} of {len(self.units):,}>"


def _table(points: object) -> NDArray[Any]:
    allowed = "a list of numbers, or a table of numbers with one point in each row"
    try:
        array = np.asarray(points)
    except ValueError:  # rows of different lengths
        raise InvalidInput("points", points, allowed) from None
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2) or array.size == 0:
        raise InvalidInput("points", points, allowed)
    return array


def _different(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of the points: finite numbers, which are sorted, or rows; all different."""
    with np.errstate(all="ignore"):
        doubles = array.astype(np.float64)
        exact = np.isfinite(doubles) & (doubles.astype(array.dtype) == array)
    if not np.all(exact):
        raise InvalidInput("points", array, "finite numbers that a 64-bit float holds exactly")
    if len(np.unique(doubles + 0.0, axis=0)) != len(array):  # −0 and 0 are the same
        raise InvalidInput("points", array, "all different", "np.unique removes the repeats.")
    result = np.sort(array) if array.ndim == 1 else array.copy()
    result.flags.writeable = False
    return result


def _numbers(block: object, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """One block of a list as an array of this shape, all NaN where it is none."""
    with suppress(Exception):
        array = floats_up(block if isinstance(block, np.ndarray) else np.array(block, object))
        if shape[0] == 1 and array.shape == shape[1:]:  # one unit need not be in brackets
            array = array[None]
        if array.shape == shape:
            return array
    return np.full(shape, np.nan)


def _binomial(top: NDArray[np.int64], i: int) -> NDArray[np.int64]:
    """C(top, i), exactly: no product exceeds i·|Z|."""
    result = np.ones_like(top)
    for j in range(1, i + 1):
        result = result * (top - j + 1) // j
    return result


def _matching_rows(points: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """The index of the equal point for each row, 0 where there is none."""
    key, wanted = np.zeros(len(points), np.int64), np.zeros(len(rows), np.int64)
    known = np.ones(len(rows), np.bool_)
    for column, values in zip(points.T, rows.T, strict=True):
        # Number the different beginnings of rows, one column longer each time.
        levels, code = np.unique(column, return_inverse=True)
        place = np.minimum(np.searchsorted(levels, values), levels.size - 1)
        known &= levels[place] == values
        keys, key = np.unique(key * levels.size + code, return_inverse=True)
        pairs = wanted * levels.size + place
        wanted = np.minimum(np.searchsorted(keys, pairs), keys.size - 1)
        known &= keys[wanted] == pairs
    return np.where(known, np.argsort(key)[wanted], 0)


def _one_by_one(estimator: Estimator, blocks: NDArray[Any]) -> list[object]:
    values: list[object] = []
    for block in blocks:
        try:
            values.append(estimator(block))
        except Exception:
            values.append(None)
    return values
