"""The hypothesis of multiplicative weights: a public law h over a universe (theory §7).

Every element has a penalty d(z), a whole number of units of (ln 2)/2²⁰, and h(z) ∝ 2^(−d(z)/2²⁰).
An update at an answer v adds its rate, rounded up to whole units, to all elements with φ ≤ v, or to
all with φ ≥ v. A question with grid indices φ(z) takes one pass over the weights, its `Histogram`:
the mass of h at every grid point. The median of φ under h is read off the histogram.

**Rounding.** The penalties define h, exactly. The weights are h in whole numbers: they come from
the penalties by table, product and rounding to nearest, in one way on every machine, and their sum
is between 2⁵² and 2⁵³. So every sum of weights is an exact float, in whatever order it is added,
and the median depends on the penalties alone: not on the representation of the grid, the machine
or the questions of before that led to the same penalties. A share of the weights differs from that
of h by less than |Z|·2⁻⁵³ + 1e-15 ≤ 7.5e-9, for universes of up to 2²⁶ elements, and the bound on
the number of updates allows for 1e-8 (docs/explanation/theory/weights.md#rounding).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.grids import floats_up
from holdfast.theory.weights import multiset_count

__all__ = [
    "LARGEST",
    "Histogram",
    "Hypothesis",
    "Median",
    "Progress",
    "Side",
    "Universe",
    "check_size",
]


# The universe: every possible block, listed in a fixed order, so that each can have a weight.
#
# Multiplicative weights (theory §7, `adaptive-general-mwu`) keep a public hypothesis about the law
# of a block. That takes a finite set Z of blocks. A unit has one of n possible values, and an
# estimator that does not care for the order of its units sees a multiset of t of them:
# |Z| = C(n + t − 1, t).
#
# The order is colexicographic, the combinatorial number system. With the t indices sorted,
# a₁ ≤ … ≤ a_t, the place of a multiset is Σᵢ C(aᵢ + i − 1, i). With p_j the number of units below
# point j it is also |Z| − 1 − Σⱼ C(p_j + j − 1, j), j = 1 … n − 1; the shorter sum is used.
# Nothing is stored for an element: its units are computed from its place, and its place from them.


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
        table = _universe_table(points)
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


def _universe_table(points: object) -> NDArray[Any]:
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


Side = Literal["at most", "at least"]

_DENSE = 2**22  # grid points that are counted one by one, in the largest universes
_STRETCH = 2**14  # elements whose weights are computed at a time: they stay in the cache

_BITS = 20  # a unit is (ln 2)/2²⁰
_UNITS_OF_A_NAT: float = 1.4426950408889634 * 2**_BITS  # log₂(e)·2²⁰
_VANISHED = 1000  # halvings, after which every weight is 0


def _table(bits: int) -> NDArray[np.float64]:
    """2^(−i/2^bits) for i < 1024, by square roots of whole numbers: right to the last bit."""
    one, root = 2**160, 2**159
    for _ in range(bits):
        root = math.isqrt(root * one)
    powers, power = [], one
    for _ in range(1024):
        powers.append(power / one)
        power = power * root // one
    return np.array(powers)


_COARSE, _FINE = _table(_BITS - 10), _table(_BITS)
_HALVES = np.ldexp(1.0, -np.arange(_VANISHED + 1))


def _powers(units: NDArray[np.int64]) -> NDArray[np.float64]:
    """2^(−units/2²⁰) ± 3 units in the last place, but 2^(−1001) at least; the same everywhere."""
    part = units & (2**_BITS - 1)
    powers = _COARSE[part >> 10] * _FINE[part & 1023]
    return np.asarray(powers * _HALVES[np.minimum(units >> _BITS, _VANISHED)])


def _units(rate: float) -> int:
    """A rate in units, rounded up: one that is too high does the least harm."""
    nats: float = real_number("rate", rate, 0, 1e6, open_low=True)
    return math.ceil(nats * _UNITS_OF_A_NAT)


class Median(NamedTuple):
    """A grid index v with the shares of the weights at φ ≤ v and φ ≥ v, both at least 1/2."""

    guess: int
    at_most: float
    at_least: float


class Hypothesis:
    """A law over the elements 0 … size − 1 of a universe, uniform at first.

    `passes` counts every time that all weights, or all penalties, are gone through, `updates` the
    shrinkings.

    >>> h = Hypothesis(4)
    >>> h.median(np.array([0, 1, 2, 3]), size=4)
    Median(guess=1, at_most=0.5, at_least=0.75)
    >>> h.shrink(np.array([True, True, False, False]), rate=math.log(3))
    >>> h.masses.round(3).tolist(), h.median(np.array([0, 1, 2, 3]), size=4).guess
    ([0.125, 0.125, 0.375, 0.375], 2)
    """

    __slots__ = ("_penalties", "_version", "_weighed", "_weights", "passes", "size", "updates")

    def __init__(self, size: int) -> None:
        self.size = check_size(whole_number("size", size, 1, 2**62))
        # 2⁶³ units are 3·10¹¹ updates at the highest rate that a plan has.
        self._penalties = np.zeros(self.size, np.int64)
        self._weights = np.empty(self.size)
        self._version = 0  # of the penalties
        self._weighed = -1  # the version that the weights are of
        self.passes = 0
        self.updates = 0

    @property
    def masses(self) -> NDArray[np.float64]:
        """h(z) for every element; for show, since the last bits of this sum are the machine's."""
        self.passes += 2
        powers = _powers(self._penalties - np.min(self._penalties))
        return np.asarray(powers / np.sum(powers))

    def mass(self, mask: NDArray[np.bool_]) -> float:
        """h[ψ] for an indicator given as a mask."""
        return float(self._split(mask).masses[1])

    def median(self, indices: NDArray[Any], size: int) -> Median:
        """The median of a question under h, for the grid index of every element; one pass."""
        return self.histogram(indices, size).median()

    def histogram(self, indices: NDArray[Any], size: int) -> Histogram:
        """The masses at the points of a grid, for the grid index of every element.

        On a grid much larger than the universe only the points that occur are kept; they are found
        by sorting the indices. Keep the indices unchanged until the histogram is done with.
        """
        return Histogram(self, indices, size)

    def shrink(self, mask: NDArray[np.bool_], rate: float) -> None:
        """h(z) ∝ h(z)·e^(−rate·mask(z)); one pass, and three before the next question's."""
        self._split(mask).shrink(1, "at least", rate)

    def _split(self, mask: NDArray[np.bool_]) -> Histogram:
        if getattr(mask, "dtype", None) != np.bool_:
            raise InvalidInput("mask", mask, f"an array of {self.size:,} booleans")
        return Histogram(self, mask.astype(np.intp), 2)

    def _stretches(self) -> Iterator[slice]:
        """One pass, a stretch at a time."""
        self.passes += 1
        for start in range(0, self.size, _STRETCH):
            yield slice(start, start + _STRETCH)

    def _counted(self, codes: NDArray[np.intp], points: int) -> NDArray[np.float64]:
        """Σ of the weights at each point; exact, in any order. One pass, four after an update."""
        if self._weighed != self._version:
            self._weigh()
        self.passes += 1
        return np.asarray(np.bincount(codes, self._weights, points), np.float64)

    def _weigh(self) -> None:
        """The weights rint(M·2^(−d/2²⁰)), where d counts from the smallest penalty; three passes.

        M is such that their sum is between 2⁵² and 2⁵³. It comes from the sum of rougher weights,
        whole numbers as well, which is just as exact.
        """
        self.passes += 1
        smallest = int(np.min(self._penalties))
        rough, total = 2 ** (53 - (self.size - 1).bit_length()), 0
        for stretch in self._stretches():
            self._penalties[stretch] -= smallest
            powers = _powers(self._penalties[stretch])
            self._weights[stretch] = powers
            total += int(np.sum(np.rint(powers * rough)))
        # Python divides whole numbers with correct rounding.
        scale = (2**53 - self.size - 8) * rough / (total + self.size // 2 + 1)
        for stretch in self._stretches():
            self._weights[stretch] = np.rint(self._weights[stretch] * scale)
        self._weighed = self._version

    def _add(self, units: int, where: NDArray[np.bool_]) -> None:
        """d(z) += units where the mask says so; one pass."""
        self.passes += 1
        self.updates += 1
        self._version += 1
        np.add(self._penalties, units, out=self._penalties, where=where)


class Histogram:
    """The masses of a hypothesis at the grid points of one question, and its updates there.

    >>> h = Hypothesis(6)
    >>> histogram = h.histogram(np.array([0, 0, 1, 5, 7, 9]), size=10)
    >>> v, at_most, at_least = histogram.median()
    >>> v, round(at_most, 3), round(at_least, 3)
    (1, 0.5, 0.667)
    >>> histogram.shrink(v, "at most", rate=1.0)
    >>> histogram.shrink(histogram.median().guess, "at least", rate=0.5)
    >>> h.updates, h.masses.round(3).tolist()
    (2, [0.126, 0.126, 0.126, 0.207, 0.207, 0.207])
    """

    __slots__ = ("_codes", "_hypothesis", "_points", "_size", "_sums", "_version")

    def __init__(self, hypothesis: Hypothesis, indices: NDArray[Any], size: int) -> None:
        points = whole_number("size", size, 1, 2**62)
        array = np.asarray(indices)
        if array.dtype.kind not in "iu" or array.shape != (hypothesis.size,):
            allowed = f"an array of {hypothesis.size:,} grid indices"
            raise InvalidInput("indices", array, allowed)
        self._hypothesis = hypothesis
        self._points: NDArray[Any] | None = None  # the grid indices that occur; None: all
        self._codes = array.astype(np.intp, copy=False)
        if int(np.max(self._codes.view(np.uintp))) >= points:  # as such a negative one is large
            allowed = f"grid indices from 0 to {points - 1:,}"
            raise InvalidInput("indices", "an index outside of the grid", allowed)
        if points > min(_DENSE, max(2**16, 8 * hypothesis.size)):
            self._points, self._codes = np.unique(self._codes, return_inverse=True)
            points = self._points.size
        self._size = points
        self._version = -1

    def _cumulated(self) -> NDArray[np.float64]:
        """The weights up to each of the points: whole numbers, exactly."""
        if self._version != self._hypothesis._version:
            counted = self._hypothesis._counted(self._codes, self._size)
            self._sums = np.cumsum(counted)
            self._version = self._hypothesis._version
        return self._sums

    @property
    def points(self) -> NDArray[Any]:
        """The grid indices that the masses belong to, rising."""
        return np.arange(self._size) if self._points is None else self._points

    @property
    def masses(self) -> NDArray[np.float64]:
        """The mass of h at each of the `points`, after the updates so far."""
        sums = self._cumulated()
        return np.asarray(np.diff(sums, prepend=0.0) / sums[-1])

    def median(self) -> Median:
        """The smallest grid index v with half of the weights at φ ≤ v; then more are at φ ≥ v."""
        sums = self._cumulated()
        total = float(sums[-1])
        place = int(np.searchsorted(sums, total / 2))  # of equal sums the first: it has mass
        below = float(sums[place - 1]) if place else 0.0
        return Median(
            place if self._points is None else int(self._points[place]),
            float(sums[place]) / total,
            (total - below) / total,
        )

    def shrink(self, guess: int, side: Side, rate: float) -> None:
        """Multiply h by e^(−rate) where φ is at most, or at least, the grid point; one pass."""
        if side not in ("at most", "at least"):
            raise InvalidInput("side", side, "'at most' or 'at least'")
        units = _units(rate)
        place = whole_number("guess", guess, 0, 2**62)
        if self._points is not None:
            ends: Literal["left", "right"] = "right" if side == "at most" else "left"
            place = int(np.searchsorted(self._points, place, side=ends))
        elif side == "at most":
            place += 1
        self._hypothesis._add(
            units, self._codes < place if side == "at most" else self._codes >= place
        )
