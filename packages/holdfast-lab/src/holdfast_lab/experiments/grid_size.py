"""Blocks against the number of grid points: a grid of 2ʲ points takes j looks a question."""

from __future__ import annotations

import math
from collections.abc import Iterable

from holdfast_lab import figures
from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.figures import DataFrame, Figure
from holdfast_lab.scaling import blocks_rows
from holdfast_lab.statistics import fitted_slope, growth

CAPTIONS = {
    "grid": "Blocks against the number r of grid points, drawn on the scale of log₂ r: the looks "
    "that one question takes."
}

_NAMES = {"holdfast": "Holdfast", "exponential": "the exponential mechanism"}


def measure(cell: Cell) -> Iterable[Row]:
    """The blocks of one method on a grid of 2^looks points."""
    return blocks_rows(cell, 2 ** cell["looks"])


def draw(results: DataFrame) -> dict[str, Figure]:
    """One panel a tail, one curve a method."""
    figure, axes, parts = figures.tail_panels(results, width=8.4)
    for one, here in zip(axes, parts, strict=True):
        for method in ("paper", "exponential", "gaussian", "holdfast"):
            rows = here[here["method"] == method]
            figures.draw_curve(one, rows["looks"], rows["blocks"], method)
    figures.label_log_axes(axes, "grid points r", "blocks")
    for one in axes:
        shown = [j for j in (1, 2, 5, 10, 20, 40) if j <= results["looks"].max()]
        one.set_xticks(shown, [f"$2^{{{j}}}$" if j > 5 else f"{2**j}" for j in shown])
        one.minorticks_off()
    figures.legend_below(figure, axes)
    return {"grid": figure}


def findings(results: DataFrame) -> list[Finding]:
    """Growth over the grids, and the exponent in log r."""
    found, exponents = [], []
    for (tail, method), rows in results.groupby(["tail", "method"], sort=False):
        times = growth(rows["looks"], rows["blocks"])
        if method not in _NAMES or math.isnan(times):
            continue
        ends = rows["looks"].min(), rows["looks"].max()
        what = f"{_NAMES[method]}, ρ = {tail:g}: blocks from r = 2^{ends[0]} to r = 2^{ends[1]}"
        found.append(Finding(what, f"×{times:.2f}"))
        if method == "holdfast":
            slope = fitted_slope(rows["looks"], rows["blocks"])
            what = f"exponent of log r in Holdfast's blocks, ρ = {tail:g}"
            exponents.append(Finding(what, f"{slope:.3f}", "1/2", abs(slope - 0.5) <= 0.05))
        else:
            asked = zip(rows["queries"], rows["looks"], rows["confidence"], strict=True)
            nats = [math.log(k * 2.0**looks / (1 - sure)) for k, looks, sure in asked]
            slope = fitted_slope(nats, rows["blocks"])
            what = f"exponent of ln(rk/β) in the exponential mechanism's blocks, ρ = {tail:g}"
            exponents.append(Finding(what, f"{slope:.3f}", "1", abs(slope - 1) <= 0.1))
    return found + sorted(exponents, key=lambda each: "Holdfast" not in each.what)
