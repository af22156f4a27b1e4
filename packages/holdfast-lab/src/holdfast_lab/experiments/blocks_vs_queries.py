"""Blocks against questions, for all methods that certify the same promise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.figures import draw_curve, guide, label_log_axes, legend_below, panels
from holdfast_lab.scaling import blocks_by, equal_tails
from holdfast_lab.statistics import fitted_slope

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["CAPTIONS", "draw", "findings", "measure"]

CAPTIONS = {
    "blocks": "Blocks that each method needs for the same promise. The grey line is √k: it shows "
    "the exponent of the lower bound, which has no known constant."
}

_FROM = 1_000  # questions from which the exponent is fitted: below, logarithms of k count


def measure(cell: Cell) -> Iterable[Row]:
    """The blocks of one method."""
    promise = equal_tails(cell["queries"], cell["grid"], cell["tail"], cell["confidence"])
    blocks = blocks_by(cell["method"], promise)
    return [] if blocks is None else [{"blocks": blocks}]


def draw(results: DataFrame) -> dict[str, Figure]:
    """One panel a tail, one curve a method."""
    tails = sorted(results["tail"].unique(), reverse=True)
    figure, axes = panels([f"ρ = {tail:g}" for tail in tails])
    for one, tail in zip(axes, tails, strict=True):
        here = results[results["tail"] == tail]
        for method in ("paper", "split", "exponential", "gaussian", "holdfast"):
            rows = here[here["method"] == method]
            draw_curve(one, rows["queries"], rows["blocks"], method)
        ends = [here["queries"].min(), here["queries"].max()]
        guide(one, ends, [math.sqrt(k) for k in ends], "√k, the lower bound's exponent")
    label_log_axes(axes, "questions k", "blocks")
    legend_below(figure, axes, columns=3)
    return {"blocks": figure}


def findings(results: DataFrame) -> list[Finding]:
    """Exponents, and how many times as many blocks the others need."""
    return [*_exponents(results), *_ratios(results)]


def _exponents(results: DataFrame) -> Iterator[Finding]:
    many = results[results["queries"] >= _FROM]
    for (tail, method), rows in many.groupby(["tail", "method"], sort=False):
        slope = fitted_slope(rows["queries"], rows["blocks"])
        if math.isnan(slope) or method not in ("holdfast", "split"):
            continue
        expected, wanted = ("1/2", 0.5) if method == "holdfast" else ("1, and a logarithm", 1.04)
        what = f"exponent of k in the blocks of {_NAMES[method]}, ρ = {tail:g}, k ≥ {_FROM:,}"
        yield Finding(what, f"{slope:.3f}", expected, abs(slope - wanted) <= 0.05)


def _ratios(results: DataFrame) -> Iterator[Finding]:
    table = results.pivot_table(index=["tail", "queries"], columns="method", values="blocks")
    for (tail, queries), row in table.iterrows():
        if queries not in (_FROM, 1_000_000) or math.isnan(row.get("holdfast", math.nan)):
            continue
        others = {name: row[name] / row["holdfast"] for name in _NAMES if row.get(name, 0) > 0}
        told = ", ".join(f"{_NAMES[name]} ×{r:.3g}" for name, r in others.items() if r != 1)
        what = f"blocks at k = {queries:,}, ρ = {tail:g}: Holdfast {row['holdfast']:,.0f}; others"
        yield Finding(what, told, "more", bool(min(others.values()) >= 1))


_NAMES = {
    "holdfast": "Holdfast",
    "split": "fresh splitting",
    "gaussian": "Gaussian counts",
    "exponential": "the exponential mechanism",
    "paper": "the paper's constants",
}
