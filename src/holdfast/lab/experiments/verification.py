"""Blocks for verdicts on k guesses, beside those of searches for k questions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from holdfast.lab.experiments.base import Cell, Finding, Row
from holdfast.lab.scaling.lines import draw_curve, label_log_axes, name_ends, panels
from holdfast.lab.scaling.sizes import blocks_by, equal_tails
from holdfast.lab.scaling.slopes import crossing_point, fitted_slope, growth, per_decade
from holdfast.lab.style import INK
from holdfast.planning.exact import exact_verdicts
from holdfast.planning.joint import joint_plan
from holdfast.planning.requests import Guesses
from holdfast.theory.paper import sv

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["CAPTIONS", "draw", "findings", "measure"]

CAPTIONS = {
    "verification": "Blocks for k guesses of which ℓ may be refused, beside a search for each of k "
    "questions (tail 0.05, 32 grid points)."
}

_FROM = 1_000
_NAMES = {"looks": "verdicts by looks", "exact": "exact verdicts", "paper": "the paper's constants"}


def measure(cell: Cell) -> Iterable[Row]:
    """Every plan for so many guesses; for searches where no refusal is allowed."""
    queries, refusals, confidence = cell["queries"], cell["refusals"], cell["confidence"]
    tails = cell["tail_low"], cell["tail_high"]
    if not refusals:
        promise = equal_tails(queries, cell["grid"], cell["tail_low"], confidence)
        return [{"plan": "searches", "blocks": blocks_by("holdfast", promise)}]
    alpha = cell["tail_high"] - cell["tail_low"]
    guesses = Guesses(queries, refusals, *tails)
    sizes = {
        "looks": joint_plan(guesses, confidence=confidence).blocks,
        "exact": exact_verdicts(queries, refusals, *tails, confidence).blocks,
        "paper": sv(queries, refusals, cell["tail_high"], alpha, 1 - confidence).blocks,
    }
    return [{"plan": plan, "blocks": blocks} for plan, blocks in sizes.items()]


def draw(results: DataFrame) -> dict[str, Figure]:
    """All plans in one panel."""
    low, high = (results[name].iloc[0] for name in ("tail_low", "tail_high"))
    title = f"guesses confirmed at tails ≥ {high:g}, refused at a tail ≤ {low:g}"
    figure, axes = panels([title], width=8.6)
    rows = results[results["plan"] == "searches"]
    draw_curve(axes[0], rows["queries"], rows["blocks"], "holdfast", "a search each", color=INK)
    marks = {1: "o", 10: "s"}
    for refusals, mark in marks.items():
        here = results[results["refusals"] == refusals]
        for plan, method, line in (
            ("paper", "paper", ":"),
            ("looks", "holdfast", "-"),
            ("exact", "holdfast", "--"),
        ):
            rows = here[here["plan"] == plan]
            label = f"{_NAMES[plan]}, ℓ = {refusals}"
            how = {"marker": mark, "linestyle": line, "linewidth": 1.6}
            draw_curve(axes[0], rows["queries"], rows["blocks"], method, label, **how)
    label_log_axes(axes, "guesses or questions k", "blocks")
    name_ends(axes[0])
    return {"verification": figure}


def findings(results: DataFrame) -> list[Finding]:
    """What tenfold as many guesses add, and from where on they need fewer blocks than searches."""
    return [*_growths(results[results["queries"] >= _FROM]), *_crossings(results)]


def _growths(many: DataFrame) -> Iterator[Finding]:
    for (refusals, plan), rows in many.groupby(["refusals", "plan"], sort=False):
        times = growth(rows["queries"], rows["blocks"])
        if math.isnan(times):
            continue
        slope = fitted_slope(rows["queries"], rows["blocks"])
        ends = f"from k = {rows['queries'].min():,} to {rows['queries'].max():,}"
        if plan == "searches":
            what = f"a search each: blocks {ends}"
            told = f"×{times:.1f}, exponent {slope:.3f}"
            yield Finding(what, told, "exponent 1/2", abs(slope - 0.5) <= 0.05)
            continue
        added = per_decade(rows["queries"], rows["blocks"])
        what = f"{_NAMES[plan]}, ℓ = {refusals}: blocks {ends}"
        told = f"×{times:.2f}; each tenfold k adds {min(added):,.0f} to {max(added):,.0f}"
        yield Finding(what, told, "log k: about the same for each", max(added) <= 1.5 * min(added))


def _crossings(results: DataFrame) -> Iterator[Finding]:
    blocks = {
        key: rows.set_index("queries")["blocks"].to_dict()
        for key, rows in results.groupby(["refusals", "plan"], sort=False)
    }
    searches = blocks.pop((0, "searches"), {})
    for (refusals, plan), curve in blocks.items():
        first = crossing_point(curve, searches)
        if first is not None:
            what = f"{_NAMES[plan]}, ℓ = {refusals}: fewer blocks than a search each"
            yield Finding(what, f"from k ≈ {first:,.0f}")
