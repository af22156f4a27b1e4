"""Holdfast: ask one holdout adaptively chosen questions, and know what each answer is worth."""

from __future__ import annotations

from holdfast.errors import HoldfastError, Infeasible, InvalidInput
from holdfast.grids import Grid, grid
from holdfast.planning import Plan, plan

__all__ = [
    "Grid",
    "HoldfastError",
    "Infeasible",
    "InvalidInput",
    "Plan",
    "__version__",
    "grid",
    "plan",
]

__version__ = "0.1.0"
