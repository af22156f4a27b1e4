"""The boosting attack of Blum & Hardt 2015 on a leaderboard of 4,000 rows."""

from __future__ import annotations

import math
from collections.abc import Iterable

from holdfast_lab import figures
from holdfast_lab.attacks.analysts import Boosting, Keep
from holdfast_lab.attacks.targets import rows_for_means
from holdfast_lab.attacks.textbook import conversation_of
from holdfast_lab.experiments.base import Cell, Finding, Row, average, rows_where
from holdfast_lab.figures import FAINT, INK, DataFrame, Figure, look_of

CAPTIONS = {
    "leaderboard": "The vote of the submissions that did well: its loss on the leaderboard's own "
    "rows, and what the leaderboard says of it. In truth every loss is 1/2. Bands are one standard "
    "deviation over sessions; the pale one is what Holdfast certifies."
}

_PUBLISHED = {"naive": 0.42745, "ladder": 0.48425}  # at 400 submissions, means of 5 sessions
_AT, _SESSIONS = 400, 5
_OURS = "holdfast-mean"
_HALF_WIDTH = 0.05


def measure(cell: Cell) -> Iterable[Row]:
    """One attack: the vote's loss on the rows, what is said of it, and what is claimed."""
    name = cell["responder"]
    # The Ladder shows the best so far: what lowered it did well.
    keep: Keep = "lower" if name == "ladder" else "half"
    analyst = Boosting(cell["rows"], cell["submissions"], keep)
    _, asked, session = conversation_of(cell, analyst, name)
    needed = rows_for_means(analyst.queries, _HALF_WIDTH) if name == _OURS else math.nan
    yield {
        "loss": float(asked.sample[-1]),
        "reported": float(session.values[-1]),
        "low": max(0.0, float(session.low[-1])),
        "high": min(1.0, float(session.high[-1])),
        "false_claims": session.wrong_claims,
        "rows_needed": needed,
    }


def draw(results: DataFrame) -> dict[str, Figure]:
    """The vote's loss on the rows, and what is said of it, against the number of submissions."""
    figure, (left, right) = figures.new_figure(2, width=9.6)
    for name in results["responder"].unique():
        rows = rows_where(results, responder=name)
        clear = name != "split"  # whose spread would hide the others
        figures.draw_average(left, rows, "submissions", "loss", name, band=clear)
        figures.draw_average(right, rows, "submissions", "reported", name, band=clear)
    ours = rows_where(results, responder=_OURS)
    figures.draw_claim(right, ours, "submissions", _OURS, "certified by Holdfast")
    for axes, title in ((left, "loss on the leaderboard's rows"), (right, "reported loss")):
        axes.axhline(0.5, color=INK, linestyle="--", linewidth=1, label="truth")
        axes.set_title(f"The vote: {title}", fontsize=10, loc="left", color=INK)
        axes.set_xlabel("submissions", color=FAINT)
        figures.log_ticks(axes, results["submissions"])
    left.set_ylabel("loss", color=FAINT)
    figures.legend_below(figure, [right], size=8)
    return {"leaderboard": figure}


def findings(results: DataFrame) -> list[Finding]:
    """The published losses, and what Holdfast says of the same vote."""
    found, here = [], rows_where(results, submissions=_AT)
    names = [str(name) for name in here["responder"].unique()]
    losses = {name: average(rows_where(here, responder=name)["loss"]) for name in names}
    for name, published in _PUBLISHED.items():
        loss = losses.get(name)
        if loss is not None:
            what = f"{look_of(name).label}: loss of the vote on the rows, {_AT} submissions"
            theirs = f"{published} (mean of {_SESSIONS} sessions; truth 0.5)"
            found.append(Finding(what, str(loss), theirs, loss.agrees(published, _SESSIONS)))
    # How much each gave away of its rows; that Holdfast leads is not expected here.
    means = {name: loss.mean for name, loss in losses.items() if loss is not None}
    if len(means) > 1:
        ordered = sorted(means, key=means.__getitem__, reverse=True)
        told = ", ".join(f"{look_of(name).label} {means[name]:.4f}" for name in ordered)
        what = f"loss of the vote on the rows, {_AT} submissions, from those that gave least away"
        better = means[_OURS] > means["naive"] if {_OURS, "naive"} <= {*means} else None
        expected = "" if better is None else "Holdfast's above naive reuse's"
        found.append(Finding(what, told, expected, better))
    for name in ("naive", _OURS):
        rows = rows_where(here, responder=name)
        if not rows.empty:
            wrong = int((rows["false_claims"] > 0).sum())
            what = f"{look_of(name).label}: sessions with a false claim, {_AT} submissions"
            right = "none" if name == _OURS else "most: its interval was for questions fixed before"
            holds = wrong == 0 if name == _OURS else wrong > len(rows) / 2
            found.append(Finding(what, f"{wrong} of {len(rows)}", right, holds))
    ours = rows_where(here, responder=_OURS)
    if not ours.empty:
        half_width = float((ours["high"] - ours["low"]).mean()) / 2
        bar = f"certified ±{half_width:.3f} by {ours['rows'].iloc[0]:,} rows"
        what, told = "Holdfast: reported loss of the vote", f"{average(ours['reported'])}, {bar}"
        contains = ((ours["low"] <= 0.5) & (ours["high"] >= 0.5)).all()
        found.append(Finding(what, told, "0.5 inside every bar", contains))
        what = f"Holdfast: rows for bars of ±{_HALF_WIDTH} on {_AT + 1} questions"
        found.append(Finding(what, f"{ours['rows_needed'].max():,.0f}"))
    return found
