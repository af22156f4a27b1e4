"""The boosting attack of Blum & Hardt 2015 on a leaderboard of 4,000 rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from holdfast.theory.means import best_direct
from holdfast_lab.attacks.analysts import Boosting, Keep
from holdfast_lab.attacks.conversation import Terms, interview
from holdfast_lab.attacks.textbook import RESPONDERS, Watched
from holdfast_lab.experiments.base import (
    Cell,
    Finding,
    Row,
    average,
    draw_average,
    draw_claim,
    legend_below,
    log_ticks,
    rows_where,
)
from holdfast_lab.figures import FAINT, INK, look_of, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["CAPTIONS", "draw", "findings", "measure"]

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
    terms = Terms(analyst.rows, analyst.queries, cell.entropy())
    responder = Watched(RESPONDERS[name](terms))
    session = interview(analyst, analyst.draw(cell.shared_chance()), responder)
    yield {
        "loss": float(responder.sample[-1]),
        "reported": float(session.values[-1]),
        "low": max(0.0, float(session.low[-1])),
        "high": min(1.0, float(session.high[-1])),
        "false_claims": session.wrong_claims,
        "rows_needed": _rows_needed(analyst.queries) if name == _OURS else math.nan,
    }


@cache
def _rows_needed(queries: int) -> float:
    """The rows with which Holdfast's bars for so many means are ±0.05, at confidence 0.95."""
    return float(best_direct(queries, _HALF_WIDTH, 0.95, exact=False).blocks)


def draw(results: DataFrame) -> dict[str, Figure]:
    """The vote's loss on the rows, and what is said of it, against the number of submissions."""
    figure, (left, right) = new_figure(2, width=9.6)
    for name in results["responder"].unique():
        rows = rows_where(results, responder=name)
        clear = name != "split"  # whose spread would hide the others
        draw_average(left, rows, "submissions", "loss", name, band=clear)
        draw_average(right, rows, "submissions", "reported", name, band=clear)
    ours = rows_where(results, responder=_OURS)
    draw_claim(right, ours, "submissions", _OURS, "certified by Holdfast")
    for axes, title in ((left, "loss on the leaderboard's rows"), (right, "reported loss")):
        axes.axhline(0.5, color=INK, linestyle="--", linewidth=1, label="truth")
        axes.set_title(f"The vote: {title}", fontsize=10, loc="left", color=INK)
        axes.set_xlabel("submissions", color=FAINT)
        log_ticks(axes, results["submissions"])
    left.set_ylabel("loss", color=FAINT)
    legend_below(figure, right)
    return {"leaderboard": figure}


def findings(results: DataFrame) -> list[Finding]:
    """The published losses, and what Holdfast says of the same vote."""
    here = rows_where(results, submissions=_AT)
    ours = rows_where(here, responder=_OURS)
    return [*_reproduced(here), *_compared(here), *_claimed(here), *_certified(ours)]


def _reproduced(here: DataFrame) -> Iterator[Finding]:
    for name, published in _PUBLISHED.items():
        found = average(rows_where(here, responder=name)["loss"])
        if found is not None:
            what = f"{look_of(name).label}: loss of the vote on the rows, {_AT} submissions"
            theirs = f"{published} (mean of {_SESSIONS} sessions; truth 0.5)"
            yield Finding(what, str(found), theirs, found.agrees(published, _SESSIONS))


def _compared(here: DataFrame) -> Iterator[Finding]:
    """How much each gave away of its rows; that Holdfast leads is not expected here."""
    losses = {name: average(rows_where(here, responder=name)["loss"]) for name in _names(here)}
    means = {name: found.mean for name, found in losses.items() if found is not None}
    if len(means) > 1:
        ordered = sorted(means, key=means.__getitem__, reverse=True)
        told = ", ".join(f"{look_of(name).label} {means[name]:.4f}" for name in ordered)
        what = f"loss of the vote on the rows, {_AT} submissions, from those that gave least away"
        better = means[_OURS] > means["naive"] if {_OURS, "naive"} <= {*means} else None
        expected = "" if better is None else "Holdfast's above naive reuse's"
        yield Finding(what, told, expected, better)


def _names(here: DataFrame) -> list[str]:
    return [str(name) for name in here["responder"].unique()]


def _claimed(here: DataFrame) -> Iterator[Finding]:
    """In how many sessions a claim was false: the textbook's and ours."""
    for name in ("naive", _OURS):
        rows = rows_where(here, responder=name)
        if not rows.empty:
            wrong = int((rows["false_claims"] > 0).sum())
            what = f"{look_of(name).label}: sessions with a false claim, {_AT} submissions"
            right = "none" if name == _OURS else "most: its interval was for questions fixed before"
            holds = wrong == 0 if name == _OURS else wrong > len(rows) / 2
            yield Finding(what, f"{wrong} of {len(rows)}", right, holds)


def _certified(ours: DataFrame) -> Iterator[Finding]:
    if ours.empty:
        return
    said = average(ours["reported"])
    half_width = float((ours["high"] - ours["low"]).mean()) / 2
    told = f"{said}, certified ±{half_width:.3f} by {ours['rows'].iloc[0]:,} rows"
    contains = ((ours["low"] <= 0.5) & (ours["high"] >= 0.5)).all()
    yield Finding("Holdfast: reported loss of the vote", told, "0.5 inside every bar", contains)
    needed = ours["rows_needed"].max()
    what = f"Holdfast: rows for bars of ±{_HALF_WIDTH} on {_AT + 1} questions"
    yield Finding(what, f"{needed:,.0f}")
