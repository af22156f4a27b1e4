"""Grids: the finite, sorted sets of possible answers (theory §1).

    LinearGrid        equal steps             grid(0, 1, step=0.02)
    LogarithmicGrid   equal ratios            grid(0.001, 1000, points=61, scale="log")
    IntegerGrid       whole numbers           grid(0, 100, scale="integer")
    ExplicitGrid      the points, as given    grid([1, 2, 5, 10])

A grid is immutable and never holds its points (an explicit one does), so that 2**62 of them are
no trouble. A value is projected onto the smallest point that is at least as large; whatever is
not a number counts as the lowest point (theory §2). Every comparison is exact.
"""

from __future__ import annotations

from holdfast.grids.base import Grid
from holdfast.grids.build import grid, parse_grid
from holdfast.grids.explicit import ExplicitGrid
from holdfast.grids.integer import IntegerGrid
from holdfast.grids.linear import LinearGrid
from holdfast.grids.logarithmic import LogarithmicGrid

__all__ = [
    "ExplicitGrid",
    "Grid",
    "IntegerGrid",
    "LinearGrid",
    "LogarithmicGrid",
    "grid",
    "parse_grid",
]
