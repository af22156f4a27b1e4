"""What a user gives the planner, checked one by one: the study."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.grids import ExplicitGrid, Grid
from holdfast.planning.shapes import Shape
from holdfast.theory.sizing import QUERIES_MAX

__all__ = ["ROWS_MAX", "Study", "measure_grid", "study_from"]

ROWS_MAX = 10**15


@dataclass(frozen=True)
class Study:
    """The known quantities; None is what the planner has to find."""

    queries: int | None
    rows: int | None
    blocks: int | None
    block_size: int | None
    grid: int | None
    widest_cell: float | None
    tails: tuple[float, float] | None  # (tail_low, tail_high)
    target: float | None
    confidence: float
    error: float | None
    shape: Shape | None

    def rounding(self, grid: int) -> float | None:
        """Half the widest grid cell, where the grid or the range is known."""
        if self.widest_cell is not None:
            return self.widest_cell / 2
        span = self.shape.span if self.shape is not None else None
        return None if span is None else span / (2 * (grid - 1))

    def room(self, grid: int) -> float:
        """What the wanted error leaves for sampling once the grid has rounded."""
        assert self.error is not None
        rounding = self.rounding(grid) or 0.0
        if rounding >= self.error:
            raise Infeasible(
                "The grid is too coarse for the error",
                f"cells narrower than {2 * self.error:g}",
                f"{grid:,} points round by ±{rounding:.4g}",
                "Use a finer grid, a narrower range, or ask for a larger error.",
            )
        return self.error - rounding


def study_from(
    *,
    queries: int | None,
    rows: int | None,
    blocks: int | None,
    block_size: int | None,
    grid: int | None,
    widest_cell: float | None,
    tail: float | None,
    tails: tuple[float, float] | None,
    target: float | None,
    confidence: float,
    error: float | None,
    shape: Shape | None,
) -> Study:
    """Check every argument by itself; what they mean together is the solver's business."""
    if rows is not None and blocks is not None:
        both = f"rows={rows!r}, blocks={blocks!r}"
        raise InvalidInput("rows and blocks", both, "given one at a time", "Rows are in units.")
    return Study(
        queries=None if queries is None else whole_number("queries", queries, 1, QUERIES_MAX),
        rows=None if rows is None else whole_number("rows", rows, 1, ROWS_MAX),
        blocks=None if blocks is None else whole_number("blocks", blocks, 1, ROWS_MAX),
        block_size=(
            None if block_size is None else whole_number("block_size", block_size, 1, ROWS_MAX)
        ),
        grid=grid,
        widest_cell=widest_cell,
        tails=_tails(tail, tails),
        target=_target(target),
        confidence=real_number("confidence", confidence, 0, 1, open_low=True, open_high=True),
        error=None if error is None else real_number("error", error, 0, open_low=True),
        shape=shape,
    )


def measure_grid(grid: int | Grid | None) -> tuple[int | None, float | None]:
    """The number of points, and the widest cell where it is known."""
    if grid is None:
        return None, None
    if isinstance(grid, Grid):
        if grid.size < 2:
            hint = "A single possible answer needs no data."
            raise InvalidInput("grid", grid, "a grid of at least 2 points", hint)
        if isinstance(grid, ExplicitGrid):
            points = np.asarray(grid.points(np.arange(grid.size)), dtype=float)
            return grid.size, float(np.diff(points).max())
        # Cells of the other kinds grow or shrink steadily: the widest is at an end.
        first = float(grid.point(1)) - float(grid.low)
        last = float(grid.high) - float(grid.point(grid.size - 2))
        return grid.size, max(first, last)
    return whole_number("grid", grid, 2, 2**62, hint="It counts the possible answers."), None


def _tails(tail: float | None, tails: tuple[float, float] | None) -> tuple[float, float] | None:
    if tail is not None and tails is not None:
        raise InvalidInput("tail and tails", (tail, tails), "given one at a time")
    if tail is not None:
        hint = "tail=0.25 promises the interquartile interval."
        rho = real_number("tail", tail, 0, 0.5, open_low=True, open_high=True, hint=hint)
        return rho, rho
    if tails is None:
        return None
    try:
        a, b = tails
    except (TypeError, ValueError):
        raise InvalidInput("tails", tails, "a pair (a, b) with 0 < a < b < 1") from None
    low = real_number("tails", a, 0, 1, open_low=True, open_high=True)
    high = real_number("tails", b, 0, 1, open_low=True, open_high=True)
    if low >= high:
        raise InvalidInput("tails", tails, "a pair (a, b) with 0 < a < b < 1")
    return low, float(1 - Fraction(repr(high)))  # as written: 1 − 0.99 is 0.01


def _target(target: float | None) -> float | None:
    if target is None:
        return None
    return real_number("target", target, 0, 1, open_low=True, open_high=True)
