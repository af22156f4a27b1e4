"""Blocks for very many questions about a finite universe, beside those of searches."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast_lab import figures
from holdfast_lab.attacks.targets import WeightedEstimates, joint_plan
from holdfast_lab.experiments.base import Cell, Finding, Row, growth_findings
from holdfast_lab.figures import INK, DataFrame, Figure
from holdfast_lab.scaling import blocks_by, equal_tails
from holdfast_lab.statistics import crossing_point

CAPTIONS = {
    "weights": "Blocks by multiplicative weights over a universe of |Z| elements, beside a search "
    "for each question: log k beside √k."
}

_FROM = 1_000
_COLOURS = ("#56B4E9", "#0072B2", "#8B6BB1", "#CC79A7", "#A6761D")


def measure(cell: Cell) -> Iterable[Row]:
    """Weights over a universe; the searches where there is none."""
    queries, universe, confidence = cell["queries"], cell["universe"], cell["confidence"]
    tail = cell["tail"]
    if not universe:
        promise = equal_tails(queries, cell["grid"], tail, confidence)
        return [{"plan": "searches", "blocks": blocks_by("holdfast", promise)}]
    request = WeightedEstimates(queries, universe, tail)
    return [{"plan": "weights", "blocks": joint_plan(request, confidence=confidence).blocks}]


def draw(results: DataFrame) -> dict[str, Figure]:
    """One panel a tail; a colour for each universe."""
    width = 7.2 if results["tail"].nunique() < 2 else 9.6
    figure, axes, parts = figures.tail_panels(results, rising=True, width=width)
    for one, here in zip(axes, parts, strict=True):
        rows = here[here["plan"] == "searches"]
        figures.draw_curve(
            one, rows["queries"], rows["blocks"], "holdfast", "a search each", color=INK
        )
        sizes = sorted(size for size in results["universe"].unique() if size)
        for size, colour in zip(sizes, _COLOURS, strict=False):
            rows, label = here[here["universe"] == size], f"|Z| = {size:,}"
            how = {"color": colour, "marker": "o", "linewidth": 1.5}
            figures.draw_curve(one, rows["queries"], rows["blocks"], "holdfast", label, **how)
    figures.label_log_axes(axes, "questions k", "blocks")
    figures.legend_below(figure, axes)
    return {"weights": figure}


def findings(results: DataFrame) -> list[Finding]:
    """What tenfold as many questions add, and from where on weights need fewer blocks."""
    found: list[Finding] = []
    many = results[results["queries"] >= _FROM]
    for (tail, size, plan), rows in many.groupby(["tail", "universe", "plan"], sort=False):
        what = plan if plan == "searches" else f"weights, |Z| = {size:,}"
        found += growth_findings(rows, what, tail)
    for tail, here in results.groupby("tail", sort=False):
        searches = here[here["plan"] == "searches"].set_index("queries")["blocks"].to_dict()
        others = here[(here["plan"] != "searches") & bool(searches)]
        for size, rows in others.groupby("universe", sort=False):
            first = crossing_point(rows.set_index("queries")["blocks"].to_dict(), searches)
            which = f"weights, |Z| = {size:,}, ρ = {tail:g}"
            last = f"not up to k = {here['queries'].max():,}"
            told = last if first is None else f"from k ≈ {first:,.0f}"
            found.append(Finding(f"{which}: fewer blocks than searches", told))
    return found
