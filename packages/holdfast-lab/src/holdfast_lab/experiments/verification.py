"""Blocks for verdicts on k guesses, beside those of searches for k questions."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.theory.paper import sv
from holdfast_lab import figures
from holdfast_lab.attacks.targets import Guesses, joint_plan
from holdfast_lab.experiments.base import Cell, Finding, Row, growth_findings
from holdfast_lab.figures import INK, DataFrame, Figure
from holdfast_lab.scaling import blocks_by, equal_tails
from holdfast_lab.statistics import crossing_point

CAPTIONS = {
    "verification": "Blocks for k guesses of which ℓ may be refused, beside a search for each of k "
    "questions (tail 0.05, 32 grid points)."
}

_FROM = 1_000
_NAMES = {"looks": "verdicts by looks", "paper": "the paper's constants"}


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
        "paper": sv(queries, refusals, cell["tail_high"], alpha, 1 - confidence).blocks,
    }
    return [{"plan": plan, "blocks": blocks} for plan, blocks in sizes.items()]


def draw(results: DataFrame) -> dict[str, Figure]:
    """All plans in one panel."""
    low, high = (results[name].iloc[0] for name in ("tail_low", "tail_high"))
    title = f"guesses confirmed at tails ≥ {high:g}, refused at a tail ≤ {low:g}"
    figure, axes = figures.panels([title])
    rows = results[results["plan"] == "searches"]
    figures.draw_curve(
        axes[0], rows["queries"], rows["blocks"], "holdfast", "a search each", color=INK
    )
    for refusals, mark in {1: "o", 10: "s"}.items():
        here = results[results["refusals"] == refusals]
        for plan, method, line in (("paper", "paper", ":"), ("looks", "holdfast", "-")):
            rows = here[here["plan"] == plan]
            label = f"{_NAMES[plan]}, ℓ = {refusals}"
            how = {"marker": mark, "linestyle": line, "linewidth": 1.6}
            figures.draw_curve(axes[0], rows["queries"], rows["blocks"], method, label, **how)
    figures.label_log_axes(axes, "guesses or questions k", "blocks")
    figures.legend_below(figure, axes, columns=3)
    return {"verification": figure}


def findings(results: DataFrame) -> list[Finding]:
    """What tenfold as many guesses add, and from where on they need fewer blocks than searches."""
    found: list[Finding] = []
    many = results[results["queries"] >= _FROM]
    for (refusals, plan), rows in many.groupby(["refusals", "plan"], sort=False):
        what = plan if plan == "searches" else f"{_NAMES[plan]}, ℓ = {refusals}"
        found += growth_findings(rows, what)
    blocks = {
        key: rows.set_index("queries")["blocks"].to_dict()
        for key, rows in results.groupby(["refusals", "plan"], sort=False)
    }
    searches = blocks.pop((0, "searches"), {})
    for (refusals, plan), curve in blocks.items():
        first = crossing_point(curve, searches)
        if first is not None:
            what = f"{_NAMES[plan]}, ℓ = {refusals}: fewer blocks than a search each"
            found.append(Finding(what, f"from k ≈ {first:,.0f}"))
    return found
