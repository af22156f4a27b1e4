"""Sign aggregation on medians: the population rank of the last answer."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast_lab.attacks.signs import SignAggregator
from holdfast_lab.attacks.textbook import conversation_of
from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.figures import PROMISED, DataFrame, Figure, look_of, new_figure

CAPTIONS = {
    "rank": "The population rank of the last answer, one mark for each repeat; the line is their "
    "median. Shaded, the ranks that are promised."
}

_DEEPEST = 1e-6  # ranks beyond are drawn at the edge


def measure(cell: Cell) -> Iterable[Row]:
    """One conversation. `blocks` is what the method's own certificate needs, where it has one."""
    analyst = SignAggregator(cell["signs"], cell["rows"])
    half_width = 0.5 - cell["tail"]
    _, asked, session = conversation_of(cell, analyst, cell["responder"], half_width=half_width)
    yield {
        "rank": float(session.reached[-1]),
        "outside": bool(session.outside(cell["tail"]).any()),
        "answered": session.answered,
        "asked": session.asked,
        "wrong_claims": session.wrong_claims,
        "blocks": asked.responder.fewest,
    }


def draw(results: DataFrame) -> dict[str, Figure]:
    """The rank of the last answer against the number of questions, on a logit scale."""
    figure, (axes,) = new_figure()
    for place, (name, every) in enumerate(results.groupby("responder", sort=False)):
        rows, look = every.dropna(subset=["rank"]), look_of(str(name))
        if rows.empty:
            continue
        ranks = rows["rank"].clip(_DEEPEST, 1 - _DEEPEST)
        places = rows["signs"] * (1 + 0.04 * (place - 2))  # side by side
        axes.plot(places, ranks, look.marker, color=look.colour, alpha=0.35, markersize=4)
        middle, line = ranks.groupby(rows["signs"]).median(), look.marker + look.line
        axes.plot(middle.index, middle, line, color=look.colour, label=look.label, linewidth=1.6)
    for tail in results["tail"].unique():
        axes.axhspan(tail, 1 - tail, color=PROMISED, alpha=0.12, linewidth=0)
    axes.set_xscale("log")
    axes.set_yscale("logit")
    axes.set_ylim(1e-3, 1 - _DEEPEST / 3)
    axes.set_yticks([0.01, 0.1, 0.5, 0.9, 0.99, 0.9999, 0.999999])
    axes.set_yticklabels(["0.01", "0.1", "0.5", "0.9", "0.99", "0.9999", "1 − 10⁻⁶"])
    axes.minorticks_off()
    axes.set_xlabel("questions")
    axes.set_ylabel("population rank of the last answer")
    if axes.lines:
        axes.legend(frameon=False, fontsize=9, loc="upper left")
    return {"rank": figure}


def findings(results: DataFrame) -> list[Finding]:
    """How often ranks left the promised interval, and what the certificates need."""
    found = []
    for (name, signs), rows in results.groupby(["responder", "signs"], sort=False):
        if name not in ("naive", "holdfast-estimate"):
            continue
        share, extreme = rows["outside"].mean(), rows["rank"].max()
        what = f"{look_of(name).label}, {signs:,} signs: conversations with a rank outside"
        told = f"{rows['outside'].sum()} of {len(rows)}; last rank up to {extreme:.6g}"
        if name != "naive":
            found.append(Finding(what, told, "at most 5 %", share <= 0.05))
        elif signs <= 300:
            expected = "none or few: thousands are needed"
            found.append(Finding(what, told, expected, share <= 0.2))
        elif signs >= 5_000:
            found.append(Finding(what, told, "nearly all", share >= 0.9))
        else:
            found.append(Finding(what, told))
    most = results[results["signs"] == results["signs"].max()].dropna(subset=["blocks"])
    for name, rows in most.groupby("responder", sort=False):
        signs, blocks = (int(rows[column].iloc[0]) for column in ("signs", "blocks"))
        what = f"{look_of(str(name)).label}: blocks that the promise needs, {signs:,} signs"
        found.append(Finding(what, f"{blocks:,}"))
    return found
