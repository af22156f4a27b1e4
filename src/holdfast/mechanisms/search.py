"""Search: a quantile of the blocks' values by bisection of the grid, one look per step.

Lemma `median2sq` and corollary `SQ-med` of the paper, with one look per step instead of two
(theory §3): lo = 0, hi = r − 1; while lo < hi: mid = ⌊(lo + hi)/2⌋, C = #{i : φ(S_i) ≤ T[mid]};
a look at C against the target m/2 says Yes → hi = mid, No → lo = mid + 1. The answer is T[lo].

A stretch of n points is cut into ⌈n/2⌉ and ⌊n/2⌋, hence at most ⌈log2 r⌉ looks, on some paths one
fewer. If no look errs at a distance of τ counts or more, then, with v the answer, #{φ ≤ v} and
#{φ ≥ v} are both above m/2 − τ: the last Yes was at v, the last No just below it (an end of the
grid that no look chose holds by itself). So a quantile is missed by τ or more with probability at
most looks × h(τ), for every dataset.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from holdfast.arguments import whole_number
from holdfast.errors import InvalidInput
from holdfast.grids import Grid
from holdfast.mechanisms.counts import Counts
from holdfast.mechanisms.look import look
from holdfast.randomness import Entropy
from holdfast.theory.coin import Coin, laplace_coin, probit_coin

__all__ = ["gaussian_search", "laplace_search", "search", "search_counts", "search_many"]

_FLOOR = 1e-30  # far below any tail that a plan asks for


def search(
    values: object, grid: Grid, coin: Coin, entropy: Entropy, *, twice_target: int | None = None
) -> int:
    """The grid index at which the count of values ≤ T[index] crosses the target (default m/2).

    One value per block; NaN and other failures count as the lowest point. The target is given as
    twice a count, from 0 to 2m: m for the median, m // 2 for the lower quartile.

    >>> from holdfast.grids import grid
    >>> from holdfast.randomness import SeededEntropy
    >>> from holdfast.theory.coin import steepest_coin
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
    >>> from holdfast.theory.coin import probit_coin
    >>> coin = probit_coin(sigma=1.0, floor=1e-9)
    >>> search_counts(lambda i: 10 * i, size=32, twice_target=130, coin=coin,
    ...               entropy=SeededEntropy(1))
    7
    """
    low, high = 0, whole_number("size", size, 1, 2**62) - 1
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
    >>> from holdfast.theory.coin import steepest_coin
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


def gaussian_search(
    values: object,
    grid: Grid,
    sigma: float,
    entropy: Entropy,
    *,
    twice_target: int | None = None,
    floor: float = _FLOOR,
) -> int:
    """Noisy binary search with Gaussian counts (cor `SQ-med`): a search with the probit coin.

    A count with noise N(0, σ²) is at least its target with probability Φ(x/σ). The coin flips that
    probability itself: no real-valued noise is ever drawn. The error levels off at the floor.
    """
    return search(values, grid, _probit(sigma, floor), entropy, twice_target=twice_target)


def laplace_search(
    values: object,
    grid: Grid,
    scale: float,
    entropy: Entropy,
    *,
    twice_target: int | None = None,
    floor: float = _FLOOR,
) -> int:
    """Noisy binary search with Laplace counts: a search with the Laplace coin, as above."""
    return search(values, grid, _laplace(scale, floor), entropy, twice_target=twice_target)


def _projected_table(values: object, grid: Grid) -> NDArray[np.int64]:
    """The values as grid indices; of a list, row by row, so that no item changes the shape."""
    if not isinstance(values, list | tuple):
        return grid.ceiling(values)
    rows = [grid.ceiling(row) for row in values]
    shapes = sorted({row.shape for row in rows})
    if len(shapes) != 1:
        raise InvalidInput("values", shapes, "a table of questions × blocks")
    return np.stack(rows)


@lru_cache(maxsize=16)
def _probit(sigma: float, floor: float) -> Coin:
    return probit_coin(sigma, floor)


@lru_cache(maxsize=16)
def _laplace(scale: float, floor: float) -> Coin:
    return laplace_coin(scale, floor)


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
