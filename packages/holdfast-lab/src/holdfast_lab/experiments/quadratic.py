"""The strategy of Rogers et al. 2020: the error of the last answer, and what was claimed of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast_lab.attacks.analysts import Quadratic
from holdfast_lab.attacks.conversation import Terms, interview
from holdfast_lab.attacks.textbook import RESPONDERS
from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.figures import FAINT, look_of, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["CAPTIONS", "draw", "findings", "measure"]

CAPTIONS = {
    "error": "Left, how far the last answer is from the truth, the mean over all repeats; dotted, "
    "what theory says of exact answers. Right, what was claimed of it. A method is broken where "
    "its error is larger than its claim.",
}

_FAILURE = 0.05


def measure(cell: Cell) -> Iterable[Row]:
    """One conversation."""
    analyst = Quadratic(cell["rows"], cell["queries"])
    terms = Terms(analyst.rows, analyst.queries, cell.entropy(), _FAILURE)
    world = analyst.draw(cell.shared_chance())
    session = interview(analyst, world, RESPONDERS[cell["responder"]](terms))
    yield {
        "value": float(session.values[-1]),
        "error": float(session.errors[-1]),
        "worst_error": session.worst_error,
        "half_width": float(session.high[-1] - session.low[-1]) / 2,
        "held": bool(session.low[-1] <= session.reached[-1] <= session.high[-1]),
        "wrong_claims": session.wrong_claims,
        "answered": session.answered,
    }


def draw(results: DataFrame) -> dict[str, Figure]:
    """Errors, and claims beside them, both against the number of questions."""
    figure, panels = new_figure(2, width=9.2)
    labels = {"error": "error of the last answer", "half_width": "claimed half-width"}
    for axes, (column, label) in zip(panels, labels.items(), strict=True):
        for name, rows in results.groupby("responder", sort=False):
            means, look = rows.groupby("queries")[column].mean(), look_of(str(name))
            axes.plot(
                means.index,
                means,
                color=look.colour,
                marker=look.marker,
                linestyle=_line(str(name)),
                label=look.label,
            )
        axes.set_xscale("log")
        axes.set_xlabel("questions")
        axes.set_title(label, fontsize=10)
        axes.set_ylim(-0.01, 0.55)  # the same for both: they are to be compared
    if not results.empty:
        _predicted(panels[0], results)
        panels[0].legend(frameon=False, fontsize=9, loc="upper left")
    return {"error": figure}


def _line(responder: str) -> str:
    return "--" if responder == "holdfast-median-mean" else look_of(responder).line


def _predicted(axes: Axes, results: DataFrame) -> None:
    """Φ(√(k/n)) − 1/2 for exact answers: votes fitted to the noise of n rows."""
    queries, rows = sorted(results["queries"].unique()), results["rows"].iloc[0]
    drift = [_drift(k, rows) for k in queries]
    axes.plot(queries, drift, color=FAINT, linestyle=":", label="exact answers, in theory")


def _drift(queries: int, rows: int) -> float:
    """Φ(√(k/n)) − 1/2, where k counts the signs: all questions but those about votes.

    >>> round(_drift(400, 10_000), 3)
    0.077
    """
    signs = queries - math.isqrt(queries) + 1
    return 0.5 * math.erf(math.sqrt(signs / rows / 2))


def findings(results: DataFrame) -> list[Finding]:
    """Who was broken, and how wide the claims were, at the most questions."""
    if results.empty:
        return []
    most = results["queries"].max()
    last = results[results["queries"] == most]
    found = [_naive(last, int(most))] if (last["responder"] == "naive").any() else []
    found += [
        _claimed(rows, str(name), int(most))
        for name, rows in last.groupby("responder", sort=False)
        if name != "naive"
    ]
    ours = results[results["responder"].str.startswith("holdfast")]
    if not ours.empty:
        wrong = int((ours["wrong_claims"] > 0).sum())
        told = f"{wrong} of {len(ours)} conversations"
        allowed = "at most 5 % of them"
        found.append(Finding("Holdfast: a false claim", told, allowed, wrong <= 0.05 * len(ours)))
    return found


def _naive(rows: DataFrame, queries: int) -> Finding:
    naive = rows[rows["responder"] == "naive"]
    error, claimed = naive["error"].mean(), naive["half_width"].mean()
    predicted = _drift(queries, int(naive["rows"].iloc[0]))
    return Finding(
        f"naive reuse, {queries:,} questions: error of the last answer",
        f"{error:.3f}, claimed ± {claimed:.3f}",
        f"{predicted:.3f} in theory, outside of the claim",
        bool(abs(error - predicted) < 0.02 and error > claimed),
    )


def _claimed(rows: DataFrame, name: str, queries: int) -> Finding:
    error, width = rows["error"].mean(), rows["half_width"].mean()
    what = f"{look_of(name).label}, {queries:,} questions: error, claimed half-width"
    told = f"{error:.3f}, ± {width:.3f}"
    return Finding(what, told, "the claim holds", bool(rows["held"].mean() >= 0.9))
