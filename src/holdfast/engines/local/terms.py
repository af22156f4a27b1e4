"""Results of a function, as the numbers that protocols take: values of blocks, sums of terms."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import floats_up
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds, unit_terms

__all__ = [
    "block_sum",
    "block_value",
    "block_values",
    "even_sums",
    "failed_share",
    "failed_sum",
    "farthest_outside",
    "row_numbers",
    "row_terms",
]


def block_value(result: object) -> float:
    """One number, rounded up to a float; NaN for what is none.

    >>> block_value(2), block_value("2"), block_value([2.0])
    (2.0, nan, nan)
    """
    if type(result) is float or type(result) is np.float64:
        return float(result)
    return float(floats_up([result])[0])


def block_values(result: object, blocks: int) -> NDArray[np.float64] | None:
    """One number for each of many blocks; None if the result has another shape."""
    numbers = floats_up(_several(result))
    return numbers if numbers.shape == (blocks,) else None


def row_numbers(result: object, rows: int) -> NDArray[np.float64]:
    """One number for each row, NaN where there is none; `TypeError` if there are not as many."""
    numbers = floats_up(_several(result)).reshape(-1)
    if numbers.shape != (rows,):
        raise TypeError(f"the result must be {rows} numbers, one for each row")
    return numbers


def row_terms(result: object, rows: int, bounds: Bounds = UNIT) -> NDArray[np.float64]:
    """For each row its term, scaled to [0, 1]; one that is no number is 0."""
    return unit_terms(row_numbers(result, rows), bounds)


def farthest_outside(numbers: NDArray[np.float64], bounds: Bounds) -> float:
    """The number that leaves the bounds by most; NaN if none does.

    >>> farthest_outside(np.array([0.5, -2.0, 1.5, np.nan]), (0.0, 1.0))
    -2.0
    """
    beyond = np.fmax(bounds[0] - numbers, numbers - bounds[1])
    out = np.flatnonzero(beyond > 0)
    return float(numbers[out[np.argmax(beyond[out])]]) if len(out) else math.nan


def failed_share(function: Any) -> float:
    """What a row counts as on which a term fails: 0 for its low bound, 1 for its high one."""
    failure = getattr(function, "failure", math.nan)
    return 0.0 if math.isnan(failure) else float(failure)


def failed_sum(function: Any, units: int) -> int:
    """What the sum of a block is on which a function fails: every unit counts as its failure."""
    return int(failed_share(function) * WEIGHT_SCALE) * units


def _several(result: object) -> object:
    """An array or a list; an iterator is read to its end."""
    if isinstance(result, np.ndarray | list | tuple) or hasattr(result, "__array__"):
        return result
    if isinstance(result, str | bytes | dict):
        return []
    return list(cast(Iterable[object], result))


def block_sum(
    terms: NDArray[np.float64], kept: NDArray[np.float64] | None, unit: NDArray[np.int64] | None
) -> int:
    """Σ over units of ⌊2¹⁶·term + 1/2⌋, over the kept rows; a unit's term is its rows' average.

    A unit of which no row is kept adds nothing.

    >>> block_sum(np.array([1.0, 0.0, 1.0]), None, np.array([0, 0, 1])) / WEIGHT_SCALE
    1.5
    """
    keep = np.ones(len(terms), np.bool_) if kept is None else kept * WEIGHT_SCALE >= 0.5
    if unit is not None:
        counts: NDArray[Any] = np.bincount(unit, keep)
        totals = np.bincount(unit, terms * keep)
        terms, keep = totals / np.maximum(counts, 1), counts > 0
    return int(np.floor(terms[keep] * WEIGHT_SCALE + 0.5).sum())


def even_sums(terms: NDArray[np.float64], blocks: int) -> NDArray[np.float64]:
    """`block_sum` of every block, where all have as many rows and every row is a unit.

    >>> even_sums(np.array([1.0, 0.0, 1.0, 1.0]), 2) / WEIGHT_SCALE
    array([1., 2.])
    """
    weights = np.floor(terms * WEIGHT_SCALE + 0.5)  # whole numbers: their sum is exact
    return np.asarray(weights.reshape(blocks, -1).sum(axis=1))
