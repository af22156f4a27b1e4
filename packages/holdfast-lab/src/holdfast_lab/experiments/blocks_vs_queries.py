"""Blocks against questions, for all methods that certify the same promise."""

from __future__ import annotations

import math
from collections.abc import Iterable

from holdfast_lab import figures
from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.figures import DataFrame, Figure
from holdfast_lab.scaling import blocks_rows
from holdfast_lab.statistics import fitted_slope

CAPTIONS = {
    "blocks": "Blocks that each method needs for the same promise. The grey line is √k: it shows "
    "the exponent of the lower bound, which has no known constant."
}

_FROM = 1_000  # questions from which the exponent is fitted: below, logarithms of k count
_NAMES = {
    "holdfast": "Holdfast",
    "split": "fresh splitting",
    "gaussian": "Gaussian counts",
    "exponential": "the exponential mechanism",
    "paper": "the paper's constants",
}


def measure(cell: Cell) -> Iterable[Row]:
    """The blocks of one method."""
    return blocks_rows(cell, cell["grid"])


def draw(results: DataFrame) -> dict[str, Figure]:
    """One panel a tail, one curve a method."""
    figure, axes, parts = figures.tail_panels(results)
    for one, here in zip(axes, parts, strict=True):
        for method in ("paper", "split", "exponential", "gaussian", "holdfast"):
            rows = here[here["method"] == method]
            figures.draw_curve(one, rows["queries"], rows["blocks"], method)
        ends = [here["queries"].min(), here["queries"].max()]
        figures.guide(one, ends, [math.sqrt(k) for k in ends], "√k, the lower bound's exponent")
    figures.label_log_axes(axes, "questions k", "blocks")
    figures.legend_below(figure, axes, columns=3)
    return {"blocks": figure}


def findings(results: DataFrame) -> list[Finding]:
    """Exponents, and how many times as many blocks the others need."""
    found = []
    many = results[results["queries"] >= _FROM]
    for (tail, method), rows in many.groupby(["tail", "method"], sort=False):
        slope = fitted_slope(rows["queries"], rows["blocks"])
        if not math.isnan(slope) and method in ("holdfast", "split"):
            ours = method == "holdfast"
            expected, wanted = ("1/2", 0.5) if ours else ("1, and a logarithm", 1.04)
            what = f"exponent of k in the blocks of {_NAMES[method]}, ρ = {tail:g}, k ≥ {_FROM:,}"
            found.append(Finding(what, f"{slope:.3f}", expected, abs(slope - wanted) <= 0.05))
    table = results.pivot_table(index=["tail", "queries"], columns="method", values="blocks")
    for (tail, queries), row in table.iterrows():
        if queries in (_FROM, 1_000_000) and not math.isnan(row.get("holdfast", math.nan)):
            others = {name: row[name] / row["holdfast"] for name in _NAMES if row.get(name, 0) > 0}
            told = ", ".join(f"{_NAMES[name]} ×{r:.3g}" for name, r in others.items() if r != 1)
            size = f"Holdfast {row['holdfast']:,.0f}"
            what = f"blocks at k = {queries:,}, ρ = {tail:g}: {size}; others"
            found.append(Finding(what, told, "more", bool(min(others.values()) >= 1)))
    return found
