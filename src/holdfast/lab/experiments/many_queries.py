"""Blocks for very many questions about a finite universe, beside those of searches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.errors import Infeasible
from holdfast.lab.experiments.base import Cell, Finding, Row
from holdfast.lab.scaling.lines import draw_curve, label_log_axes, legend_below, panels
from holdfast.lab.scaling.sizes import blocks_by, equal_tails
from holdfast.lab.scaling.slopes import crossing_point, fitted_slope, growth, per_decade
from holdfast.lab.style import INK
from holdfast.planning.exact import exact_weights
from holdfast.planning.joint import joint_plan
from holdfast.planning.requests import WeightedEstimates

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["CAPTIONS", "draw", "findings", "measure"]

CAPTIONS = {
    "weights": "Blocks by multiplicative weights over a universe of |Z| elements, beside a search "
    "for each question: log k beside √k."
}

_FROM = 1_000
_COLOURS = ("#56B4E9", "#0072B2", "#8B6BB1", "#CC79A7", "#A6761D")
_NAMES = {"looks": "by looks", "exact": "exact"}


def measure(cell: Cell) -> Iterable[Row]:
    """Both plans for a universe; the searches where there is none."""
    queries, universe, confidence = cell["queries"], cell["universe"], cell["confidence"]
    tail = cell["tail"]
    if not universe:
        promise = equal_tails(queries, cell["grid"], tail, confidence)
        return [{"plan": "searches", "blocks": blocks_by("holdfast", promise)}]
    request = WeightedEstimates(queries, universe, tail)
    rows = [{"plan": "looks", "blocks": joint_plan(request, confidence=confidence).blocks}]
    with suppress(Infeasible):  # there may be too many histories to count
        exact = exact_weights(queries, universe, tail, confidence)
        rows.append({"plan": "exact", "blocks": exact.blocks})
    return rows


def draw(results: DataFrame) -> dict[str, Figure]:
    """One panel a tail; a colour for each universe, a line for each plan."""
    tails = sorted(results["tail"].unique())
    figure, axes = panels([f"ρ = {tail:g}" for tail in tails], width=7.2 if len(tails) < 2 else 9.6)
    for one, tail in zip(axes, tails, strict=True):
        here = results[results["tail"] == tail]
        rows = here[here["plan"] == "searches"]
        draw_curve(one, rows["queries"], rows["blocks"], "holdfast", "a search each", color=INK)
        sizes = sorted(size for size in results["universe"].unique() if size)
        for size, colour in zip(sizes, _COLOURS, strict=False):
            for plan, line, marker in (("looks", "-", "o"), ("exact", "--", "d")):
                rows = here[(here["universe"] == size) & (here["plan"] == plan)]
                label = f"|Z| = {size:,}, {_NAMES[plan]}"
                how = {"color": colour, "linestyle": line, "marker": marker, "linewidth": 1.5}
                draw_curve(one, rows["queries"], rows["blocks"], "holdfast", label, **how)
    label_log_axes(axes, "questions k", "blocks")
    legend_below(figure, axes)
    return {"weights": figure}


def findings(results: DataFrame) -> list[Finding]:
    """What tenfold as many questions add, and from where on weights need fewer blocks."""
    return [*_growths(results[results["queries"] >= _FROM]), *_crossings(results)]


def _growths(many: DataFrame) -> Iterator[Finding]:
    for (tail, size, plan), rows in many.groupby(["tail", "universe", "plan"], sort=False):
        times = growth(rows["queries"], rows["blocks"])
        if math.isnan(times):
            continue
        ends = f"from k = {rows['queries'].min():,} to {rows['queries'].max():,}, ρ = {tail:g}"
        if plan == "searches":
            slope = fitted_slope(rows["queries"], rows["blocks"])
            told = f"×{times:.1f}, exponent {slope:.3f}"
            holds = abs(slope - 0.5) <= 0.05
            yield Finding(f"a search each: blocks {ends}", told, "exponent 1/2", holds)
            continue
        added = per_decade(rows["queries"], rows["blocks"])
        what = f"weights {_NAMES[plan]}, |Z| = {size:,}: blocks {ends}"
        told = f"×{times:.2f}; each tenfold k adds {min(added):,.0f} to {max(added):,.0f}"
        yield Finding(what, told, "log k: about the same for each", max(added) <= 1.5 * min(added))


def _crossings(results: DataFrame) -> Iterator[Finding]:
    for tail, here in results.groupby("tail", sort=False):
        searches = here[here["plan"] == "searches"].set_index("queries")["blocks"].to_dict()
        if not searches:
            continue
        others = here[here["plan"] != "searches"]
        for (size, plan), rows in others.groupby(["universe", "plan"], sort=False):
            first = crossing_point(rows.set_index("queries")["blocks"].to_dict(), searches)
            what = (
                f"weights {_NAMES[plan]}, |Z| = {size:,}, ρ = {tail:g}: fewer blocks than searches"
            )
            last = f"not up to k = {here['queries'].max():,}"
            yield Finding(what, last if first is None else f"from k ≈ {first:,.0f}")
