"""Sign aggregation on medians: the population rank of the last answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast_lab.attacks.analysts import SignAggregation
from holdfast_lab.attacks.blocks import BlockResponder
from holdfast_lab.attacks.conversation import FloatArray, Responder, Terms, interview
from holdfast_lab.attacks.textbook import RESPONDERS, ExponentialMedian, GaussianMedian
from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.figures import PROMISED, look_of, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["CAPTIONS", "draw", "findings", "measure"]

CAPTIONS = {
    "rank": "The population rank of the last answer, one mark for each repeat; the line is their "
    "median. Shaded, the ranks that are promised.",
}

_FAILURE = 0.05
_DEEPEST = 1e-6  # ranks beyond are drawn at the edge
_MAKERS: dict[str, Callable[[Terms], Responder]] = {
    **RESPONDERS,
    GaussianMedian.name: GaussianMedian,
    ExponentialMedian.name: ExponentialMedian,
}


def measure(cell: Cell) -> Iterable[Row]:
    """One conversation. `blocks` is what the method's own certificate needs, where it has one."""
    analyst = SignAggregation(cell["rows"], cell["signs"])
    half_width = 0.5 - cell["tail"]
    terms = Terms(analyst.rows, analyst.queries, cell.entropy(), _FAILURE, half_width)
    responder = _MAKERS[cell["responder"]](terms)
    session = interview(analyst, analyst.draw(cell.shared_chance()), responder)
    yield {
        "rank": float(session.reached[-1]),
        "outside": bool(_outside(session.reached, cell["tail"]).any()),
        "answered": session.answered,
        "asked": session.asked,
        "wrong_claims": session.wrong_claims,
        "blocks": _needed(responder),
    }


def _outside(ranks: FloatArray, tail: float) -> NDArray[np.bool_]:
    return np.asarray((ranks <= tail) | (ranks >= 1 - tail))  # NaN is not


def _needed(responder: Responder) -> int | None:
    if isinstance(responder, GaussianMedian | ExponentialMedian):
        return responder.blocks
    return responder.fewest if isinstance(responder, BlockResponder) else None


def draw(results: DataFrame) -> dict[str, Figure]:
    """The rank of the last answer against the number of questions, on a logit scale."""
    figure, (axes,) = new_figure()
    for place, (name, rows) in enumerate(results.groupby("responder", sort=False)):
        _marks(axes, str(name), rows.dropna(subset=["rank"]), 1 + 0.04 * (place - 2))
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


def _marks(axes: Axes, name: str, rows: DataFrame, shift: float) -> None:
    if rows.empty:
        return
    look = look_of(name)
    ranks = rows["rank"].clip(_DEEPEST, 1 - _DEEPEST)
    places = rows["signs"] * shift  # side by side
    axes.plot(places, ranks, look.marker, color=look.colour, alpha=0.35, markersize=4)
    middle = ranks.groupby(rows["signs"]).median()
    line = look.marker + look.line
    axes.plot(middle.index, middle, line, color=look.colour, label=look.label, linewidth=1.6)


def findings(results: DataFrame) -> list[Finding]:
    """How often ranks left the promised interval, and what the certificates need."""
    found = []
    for (name, signs), rows in results.groupby(["responder", "signs"], sort=False):
        if name in ("naive", "holdfast-estimate"):
            found.append(_outside_finding(str(name), int(signs), rows))
    most = results[results["signs"] == results["signs"].max()].dropna(subset=["blocks"])
    for name, rows in most.groupby("responder", sort=False):
        signs, blocks = (int(rows[column].iloc[0]) for column in ("signs", "blocks"))
        what = f"{look_of(str(name)).label}: blocks that the promise needs, {signs:,} signs"
        found.append(Finding(what, f"{blocks:,}"))
    return found


def _outside_finding(name: str, signs: int, rows: DataFrame) -> Finding:
    outside = int(rows["outside"].sum())
    extreme = rows["rank"].max()
    what = f"{look_of(name).label}, {signs:,} signs: conversations with a rank outside"
    told = f"{outside} of {len(rows)}; last rank up to {extreme:.6g}"
    if name != "naive":
        return Finding(what, told, "at most 5 %", outside <= 0.05 * len(rows))
    if signs <= 300:
        return Finding(what, told, "none or few: thousands are needed", outside <= 0.2 * len(rows))
    if signs >= 5_000:
        return Finding(what, told, "nearly all", outside >= 0.9 * len(rows))
    return Finding(what, told)
