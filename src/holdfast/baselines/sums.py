"""Exact sums of bounded values, and the whole numbers that noise is added to.

A mean of n values in [0, 1] is a whole number of *cells* of size 2^-16/n: each value is rounded
to a multiple of 2^-16 on its own, and the sum of whole numbers does not round. One row moves the
sum by at most 2^16. Nothing about the values is ever raised or shown: what lies outside [0, 1] is
moved to the nearer end and what is no number counts as 0.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids import floats_up

__all__ = ["CELLS", "ROUNDING_ERROR", "as_mean", "bounded_sum", "clipped"]

FloatArray = NDArray[np.float64]

CELLS = 2**16
"""Whole numbers per value: a value of 1 adds this much to the sum."""

ROUNDING_ERROR = 2.0**-17
"""The most that rounding the values changes a mean, on the sample and in the population."""


def bounded_sum(values: object, rows: int) -> int:
    """Σ round(2^16 · v) over the values, each clipped to [0, 1]; `rows` of them.

    >>> bounded_sum([0.0, 0.5, 1.0, 7.0, float("nan")], rows=5) / CELLS
    2.5
    """
    return int(np.rint(clipped(values, 0.0, 1.0, rows) * CELLS).astype(np.int64).sum())


def clipped(values: object, low: float, high: float, size: int | None = None) -> FloatArray:
    """The values as floats in [low, high], `low` for what is no number; `size` of them, if given.

    Refused is only a wrong shape, which must not depend on the data: a list has as many values as
    items, whatever they are (`holdfast.grids`).

    >>> clipped([3, None, 10**400, "x"], -1.0, 5.0).tolist()
    [3.0, -1.0, 5.0, -1.0]
    """
    array = floats_up(values)
    if array.ndim != 1 or array.size == 0 or (size is not None and array.size != size):
        wanted = "a list of numbers" if size is None else f"a list of {size:,} numbers"
        raise InvalidInput("values", f"the shape {array.shape}", f"{wanted}, one each")
    return np.clip(np.nan_to_num(array, nan=low), low, high)


def as_mean(total: int, rows: int) -> float:
    """The float nearest to total / (rows · 2^16)."""
    return float(Fraction(total, rows * CELLS))
