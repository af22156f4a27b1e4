"""The look: one biased coin, all that an analyst ever learns from the data (theory §2).

A count C is compared with a target c*; the answer is Yes with probability g(C − c*), where g is
the coin. Offsets are integers, twice C − c*, so that nothing is rounded before the coin is chosen.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput, whole_number
from holdfast.grids import Grid
from holdfast.randomness import Entropy, flip, flip_one
from holdfast.theory.coins import Coin

__all__ = [
    "Counts",
    "look",
    "search",
    "search_counts",
    "search_many",
]


@overload
def look(twice_offset: int | np.integer, coin: Coin, entropy: Entropy) -> bool: ...
@overload
def look(twice_offset: NDArray[np.integer], coin: Coin, entropy: Entropy) -> NDArray[np.bool_]: ...
def look(
    twice_offset: int | np.integer | NDArray[np.integer], coin: Coin, entropy: Entropy
) -> bool | NDArray[np.bool_]:
    """Yes with probability h for offsets ≤ 0 and 1 − h above, h = coin error at |offset|: exactly.

    The stored number h is flipped on both sides and the verdict complemented above the target:
    the float 1 − h, which is rounded, never appears, and the price of the lower side is the
    price of the upper one. One offset gives a bool, an array of them an array of its shape.

    >>> from holdfast.randomness import SeededEntropy
    >>> from holdfast.theory.coins import logistic_coin
    >>> coin, entropy = logistic_coin(slope=0.1, floor=1e-6), SeededEntropy(1)
    >>> look(2 * 560 - 1000, coin, entropy)
    True
    >>> look(np.array([-200, -1, 0, 1, 200]), coin, entropy)
    array([False, False,  True,  True,  True])
    """
    if isinstance(twice_offset, np.ndarray) and twice_offset.ndim > 0:
        return _looks(twice_offset, coin, entropy)
    try:
        offset = operator.index(twice_offset)
    except TypeError:
        raise InvalidInput("twice_offset", twice_offset, _ALLOWED) from None
    if isinstance(twice_offset, bool):
        raise InvalidInput("twice_offset", twice_offset, _ALLOWED)
    wrong = flip_one(float(coin.halfsteps[min(abs(offset), coin.halfsteps.size - 1)]), entropy)
    return wrong != (offset > 0)


_ALLOWED = "whole numbers: twice the count minus twice the target"


def _looks(twice_offset: NDArray[np.integer], coin: Coin, entropy: Entropy) -> NDArray[np.bool_]:
    if twice_offset.dtype.kind not in "iu":
        raise InvalidInput("twice_offset", twice_offset, _ALLOWED)
    far = coin.halfsteps.size - 1
    # Clip before the absolute value: that of the lowest int64 is no int64.
    if twice_offset.dtype.kind == "i":
        near = np.clip(twice_offset.astype(np.int64), -far, far)
    else:
        near = np.minimum(twice_offset, np.uint64(far)).astype(np.int64)
    return np.asarray(flip(coin.error(np.abs(near)), entropy) != (near > 0))


# Counts of blocks: how many values are at most a grid point.
#
# A count is an integer, computed without rounding, and one block moves it by at most 1 (theory
# §2).


_COMPARED = {f"{kind}{size}" for kind in "iuf" for size in (1, 2, 4, 8)}  # compared as they are


class Counts:
    """#{i : φ(S_i) ≤ T[index]} for one value per block, one pass over the values each.

    Values above the grid count as its highest point, NaN and other failures as its lowest. An
    array of floats or integers is compared as it is, without a copy: in its own type x > T
    means x > t, where t is the largest number of that type that is ≤ T. Anything else is
    projected onto the grid first and compared by index.

    A list is refused only if it is empty: of its items, whatever is not one number is a failure.
    An array is refused for its shape, which must therefore not depend on the data: give the
    estimators' results as a list, not as `np.array(results)`, which is a table if all are pairs.

    >>> from holdfast.grids import grid
    >>> counts = Counts(np.array([0.05, 0.31, 0.32, 7.0, math.nan]), grid(0, 1, step=0.1))
    >>> [counts.at_most(i) for i in (0, 1, 3, 4, 10)]
    [1, 2, 2, 4, 5]
    """

    __slots__ = ("_above", "_projected", "array", "blocks", "grid")

    def __init__(self, values: object, grid: Grid) -> None:
        self.array: NDArray[Any]
        if type(values) is np.ndarray and values.dtype.str[1:] in _COMPARED:
            self.array, self._projected = values, False
        else:
            self.array, self._projected = grid.ceiling(values), True
        if self.array.ndim != 1 or self.array.size == 0:
            raise InvalidInput("values", self.array.shape, "a list with one value per block")
        self.grid = grid
        self.blocks: int = self.array.size
        self._above = np.empty(self.blocks, np.bool_)

    def at_most(self, index: int) -> int:
        """How many values are projected onto the point at this index or a lower one."""
        if index >= self.grid.size - 1:
            return self.blocks
        limit = self.threshold(index)
        return 0 if limit is None else self.blocks - self.above(limit)

    def above(self, limit: Any) -> int:
        """How many elements of the array are > limit; NaN is not."""
        return int(np.count_nonzero(np.greater(self.array, limit, out=self._above)))

    def threshold(self, index: int) -> Any:
        """The largest number of the array's type ≤ the grid point; None if all are greater.

        >>> from holdfast.grids import IntegerGrid
        >>> int(Counts(np.array([0.5]), IntegerGrid(2**53 + 1, 2**53 + 2)).threshold(0))
        9007199254740992
        """
        if self._projected:
            return np.int64(index)
        point, dtype = self.grid.point(index), self.array.dtype
        if dtype.kind == "f":
            with np.errstate(over="ignore"):  # the point may be infinite in a shorter type
                nearest = dtype.type(point)
                above = float(nearest) > point  # Python compares int and float exactly
                return np.nextafter(nearest, dtype.type(-np.inf)) if above else nearest
        limits = np.iinfo(dtype)
        below = min(math.floor(point), int(limits.max))
        return None if below < limits.min else dtype.type(below)

    def indices(self, elements: NDArray[Any]) -> NDArray[np.int64]:
        """The grid indices that elements of the array are projected onto."""
        return elements if self._projected else self.grid.ceiling(elements)


# Search: a quantile of the blocks' values by bisection of the grid, one look per step.
#
# Lemma `median2sq` and corollary `SQ-med` of the paper, with one look per step instead of two
# (theory §3): lo = 0, hi = r − 1; while lo < hi: mid = ⌊(lo + hi)/2⌋, C = #{i : φ(S_i) ≤ T[mid]};
# a look at C against the target m/2 says Yes → hi = mid, No → lo = mid + 1. The answer is T[lo].
#
# A stretch of n points is cut into ⌈n/2⌉ and ⌊n/2⌋, hence at most ⌈log2 r⌉ looks, on some paths
# one fewer. If no look errs at a distance of τ counts or more, then, with v the answer, #{φ ≤ v}
# and #{φ ≥ v} are both above m/2 − τ: the last Yes was at v, the last No just below it (an end of
# the grid that no look chose holds by itself). So a quantile is missed by τ or more with
# probability at most looks × h(τ), for every dataset.


def search(
    values: object, grid: Grid, coin: Coin, entropy: Entropy, *, twice_target: int | None = None
) -> int:
    """The grid index at which the count of values ≤ T[index] crosses the target (default m/2).

    One value per block; NaN and other failures count as the lowest point. The target is given as
    twice a count, from 0 to 2m: m for the median, m // 2 for the lower quartile.

    >>> from holdfast.grids import grid
    >>> from holdfast.randomness import SeededEntropy
    >>> from holdfast.theory.coins import steepest_coin
    >>> points = grid(0, 1, step=0.02)
    >>> coin = steepest_coin(order=10, price=1e-3, floor=1e-9)
    >>> points.point(search(np.linspace(0.19, 0.39, 1001), points, coin, SeededEntropy(1)))
    0.3
    """
    counts = Counts(values, grid)
    target = _twice_target(twice_target, counts.blocks)
    return search_counts(counts.at_most, grid.size, target, coin, entropy)


def search_counts(
    count_at: Callable[[int], int], size: int, twice_target: int, coin: Coin, entropy: Entropy
) -> int:
    """The search over any source of counts: count_at(i) = #{φ ≤ T[i]}, asked for i < size − 1.

    >>> from holdfast.randomness import SeededEntropy
    >>> from holdfast.theory.coins import probit_coin
    >>> coin = probit_coin(sigma=1.0, floor=1e-9)
    >>> search_counts(lambda i: 10 * i, size=32, twice_target=130, coin=coin,
    ...               entropy=SeededEntropy(1))
    7
    """
    if size < 1:
        raise InvalidInput("size", size, "at least 1")
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) // 2
        if look(2 * count_at(middle) - twice_target, coin, entropy):
            high = middle
        else:
            low = middle + 1
    return low


def search_many(
    values: object,
    grid: Grid,
    coin: Coin,
    entropy: Entropy,
    *,
    twice_target: int | NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """One independent search for each row of values (questions, blocks): an index per question.

    Every row is searched as `search` would, with coins of its own; one numpy pass per level. The
    target is one for all rows, or one per row. A table is an array or a list of rows.

    >>> from holdfast.grids import grid
    >>> from holdfast.randomness import SeededEntropy
    >>> from holdfast.theory.coins import steepest_coin
    >>> coin = steepest_coin(order=10, price=1e-3, floor=1e-9)
    >>> rows = np.linspace([0.18, 0.48], [0.38, 0.68], 1001, axis=1)
    >>> search_many(rows, grid(0, 1, step=0.05), coin, SeededEntropy(1))
    array([ 6, 12])
    """
    plain = type(values) is np.ndarray and values.dtype == np.float64
    direct = plain and isinstance(grid.low, float)
    array = np.asarray(values) if direct else _projected_table(values, grid)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidInput("values", array.shape, "a table of questions × blocks")
    questions, blocks = array.shape
    targets = _twice_targets(twice_target, questions, blocks)
    low = np.zeros(questions, np.int64)
    high = np.full(questions, grid.size - 1, np.int64)
    while (active := low < high).any():
        middle = (low + high) // 2  # below 2**63, for a grid has at most 2**62 points
        limits = grid.points(middle) if direct else middle
        above = np.count_nonzero(array > limits[:, np.newaxis], axis=1)
        offsets = 2 * (blocks - above) - targets
        yes = look(offsets[active], coin, entropy)
        high[active] = np.where(yes, middle[active], high[active])
        low[active] = np.where(yes, low[active], middle[active] + 1)
    return low


def _projected_table(values: object, grid: Grid) -> NDArray[np.int64]:
    """The values as grid indices; of a list, row by row, so that no item changes the shape."""
    if not isinstance(values, list | tuple):
        return grid.ceiling(values)
    rows = [grid.ceiling(row) for row in values]
    shapes = sorted({row.shape for row in rows})
    if len(shapes) != 1:
        raise InvalidInput("values", shapes, "a table of questions × blocks")
    return np.stack(rows)


def _twice_target(twice_target: int | None, blocks: int) -> int:
    if twice_target is None:
        return blocks
    return whole_number("twice_target", twice_target, 0, 2 * blocks)


def _twice_targets(
    twice_target: int | NDArray[np.int64] | None, questions: int, blocks: int
) -> NDArray[np.int64]:
    if not isinstance(twice_target, np.ndarray):
        return np.full(questions, _twice_target(twice_target, blocks), np.int64)
    whole = twice_target.dtype.kind in "iu" and twice_target.shape == (questions,)
    if not whole or bool(np.any((twice_target < 0) | (twice_target > 2 * blocks))):
        allowed = f"{questions} whole numbers from 0 to {2 * blocks:,}"
        raise InvalidInput("twice_target", twice_target, allowed)
    return twice_target.astype(np.int64)
