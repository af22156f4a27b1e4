"""Blocks against the number of grid points: a grid of 2ʲ points takes j looks a question."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.figures import draw_curve, label_log_axes, legend_below, panels
from holdfast_lab.scaling import blocks_by, equal_tails
from holdfast_lab.statistics import fitted_slope, growth

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["CAPTIONS", "draw", "findings", "measure"]

CAPTIONS = {
    "grid": "Blocks against the number r of grid points, drawn on the scale of log₂ r: the looks "
    "that one question takes."
}

_NAMES = {"holdfast": "Holdfast", "exponential": "the exponential mechanism"}


def measure(cell: Cell) -> Iterable[Row]:
    """The blocks of one method on a grid of 2^looks points."""
    promise = equal_tails(cell["queries"], 2 ** cell["looks"], cell["tail"], cell["confidence"])
    blocks = blocks_by(cell["method"], promise)
    return [] if blocks is None else [{"blocks": blocks}]


def draw(results: DataFrame) -> dict[str, Figure]:
    """One panel a tail, one curve a method."""
    tails = sorted(results["tail"].unique(), reverse=True)
    figure, axes = panels([f"ρ = {tail:g}" for tail in tails], width=8.4)
    for one, tail in zip(axes, tails, strict=True):
        here = results[results["tail"] == tail]
        for method in ("paper", "exponential", "gaussian", "holdfast"):
            rows = here[here["method"] == method]
            draw_curve(one, rows["looks"], rows["blocks"], method)
    label_log_axes(axes, "grid points r", "blocks")
    for one in axes:
        shown = [j for j in (1, 2, 5, 10, 20, 40) if j <= results["looks"].max()]
        one.set_xticks(shown, [f"$2^{{{j}}}$" if j > 5 else f"{2**j}" for j in shown])
        one.minorticks_off()
    legend_below(figure, axes)
    return {"grid": figure}


def findings(results: DataFrame) -> list[Finding]:
    """Growth over the grids, and the exponent in log r."""
    return [*_growths(results), *_exponents(results)]


def _growths(results: DataFrame) -> Iterator[Finding]:
    for (tail, method), rows in results.groupby(["tail", "method"], sort=False):
        times = growth(rows["looks"], rows["blocks"])
        if method in _NAMES and not math.isnan(times):
            ends = rows["looks"].min(), rows["looks"].max()
            what = f"{_NAMES[method]}, ρ = {tail:g}: blocks from r = 2^{ends[0]} to r = 2^{ends[1]}"
            yield Finding(what, f"×{times:.2f}")


def _exponents(results: DataFrame) -> Iterator[Finding]:
    for tail, rows in results[results["method"] == "holdfast"].groupby("tail", sort=False):
        slope = fitted_slope(rows["looks"], rows["blocks"])
        if not math.isnan(slope):
            what = f"exponent of log r in Holdfast's blocks, ρ = {tail:g}"
            yield Finding(what, f"{slope:.3f}", "1/2", abs(slope - 0.5) <= 0.05)
    for tail, rows in results[results["method"] == "exponential"].groupby("tail", sort=False):
        asked = zip(rows["queries"], rows["looks"], rows["confidence"], strict=True)
        nats = [_nats(*one) for one in asked]
        slope = fitted_slope(nats, rows["blocks"])
        if not math.isnan(slope):
            what = f"exponent of ln(rk/β) in the exponential mechanism's blocks, ρ = {tail:g}"
            yield Finding(what, f"{slope:.3f}", "1", abs(slope - 1) <= 0.1)


def _nats(queries: int, looks: int, confidence: float) -> float:
    return math.log(queries * 2.0**looks / (1 - confidence))
