"""The strategy of Rogers et al. 2020: the error of the last answer, and what was claimed of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from holdfast_lab.attacks.analysts import Quadratic
from holdfast_lab.attacks.textbook import conversation_of
from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.figures import FAINT, DataFrame, Figure, look_of, new_figure

CAPTIONS = {
    "error": "Left, how far the last answer is from the truth, the mean over all repeats; dotted, "
    "what theory says of exact answers. Right, what was claimed of it. A method is broken where "
    "its error is larger than its claim."
}


def measure(cell: Cell) -> Iterable[Row]:
    """One conversation."""
    analyst = Quadratic(cell["rows"], cell["queries"])
    _, _, session = conversation_of(cell, analyst, cell["responder"])
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
            line = "--" if name == "holdfast-median-mean" else look.line
            how: Any = {"color": look.colour, "marker": look.marker, "linestyle": line}
            axes.plot(means.index, means, label=look.label, **how)
        axes.set_xscale("log")
        axes.set_xlabel("questions")
        axes.set_title(label, fontsize=10)
        axes.set_ylim(-0.01, 0.55)  # the same for both: they are to be compared
    if not results.empty:
        queries, rows = sorted(results["queries"].unique()), results["rows"].iloc[0]
        drift, label = [_drift(k, rows) for k in queries], "exact answers, in theory"
        panels[0].plot(queries, drift, color=FAINT, linestyle=":", label=label)
        panels[0].legend(frameon=False, fontsize=9, loc="upper left")
    return {"error": figure}


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
    found: list[Finding] = []
    most = int(results["queries"].max())
    last = results[results["queries"] == most]
    for name, rows in last.groupby("responder", sort=False):
        error, width = rows["error"].mean(), rows["half_width"].mean()
        if name == "naive":
            predicted = _drift(most, int(rows["rows"].iloc[0]))
            finding = Finding(
                f"naive reuse, {most:,} questions: error of the last answer",
                f"{error:.3f}, claimed ± {width:.3f}",
                f"{predicted:.3f} in theory, outside of the claim",
                bool(abs(error - predicted) < 0.02 and error > width),
            )
            found.insert(0, finding)
        else:
            what = f"{look_of(str(name)).label}, {most:,} questions: error, claimed half-width"
            holds = bool(rows["held"].mean() >= 0.9)
            found.append(Finding(what, f"{error:.3f}, ± {width:.3f}", "the claim holds", holds))
    ours = results[results["responder"].str.startswith("holdfast")]
    if not ours.empty:
        wrong = int((ours["wrong_claims"] > 0).sum())
        told, few = f"{wrong} of {len(ours)} conversations", wrong <= 0.05 * len(ours)
        found.append(Finding("Holdfast: a false claim", told, "at most 5 % of them", few))
    return found
