"""The experiment of Dwork et al. 2015: variable selection with a holdout's help."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from holdfast.theory.means import best_direct
from holdfast_lab.attacks.analysts import REACH, VariableSelection
from holdfast_lab.attacks.conversation import Responder, Terms, interview
from holdfast_lab.attacks.textbook import RESPONDERS, Thresholdout, Watched
from holdfast_lab.experiments.base import (
    Cell,
    Finding,
    Row,
    average,
    draw_average,
    draw_claim,
    legend_below,
    rows_where,
)
from holdfast_lab.figures import FAINT, INK, look_of, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["CAPTIONS", "draw", "findings", "measure"]

CAPTIONS = {
    "reusable-holdout": "Accuracy of the classifier of so many variables, as each holdout reports "
    "it; dashed, what it is in truth. Bands are one standard deviation over sessions; the pale one "
    "is what Holdfast certifies for all answers at once."
}

_SIGNALS = 20
_LARGEST = 500
_PUBLISHED, _SPREAD = 0.63, 0.004  # a mean of 100 sessions, and one session's standard deviation
_ROUNDED = 0.005  # the mean is printed as a whole per cent
_OURS, _WITH_GUESSES = "holdfast-mean", "holdfast-exact-correct"
_WITH_BANDS = ("naive", "thresholdout", _OURS)  # the others would hide them
_HALF_WIDTH = 0.05


def measure(cell: Cell) -> Iterable[Row]:
    """One session: what is said, claimed and true of the classifier of each size."""
    name = cell["responder"]
    analyst = VariableSelection(
        cell["rows"],
        cell["attributes"],
        _SIGNALS if cell["signal"] else 0,
        one_scale=name == "thresholdout",  # one threshold for correlations and accuracies
    )
    terms = Terms(analyst.rows, analyst.queries, cell.entropy())
    responder = Watched(_responder(name, terms))
    session = interview(analyst, analyst.draw(cell.shared_chance()), responder)
    sizes = len(analyst.sizes)
    columns = {
        "size": analyst.sizes,
        "training": analyst.accuracies(responder.guesses[-sizes:]).tolist(),
        "said": analyst.accuracies(session.values[-sizes:]).tolist(),
        "low": analyst.accuracies(session.low[-sizes:]).clip(0, 1).tolist(),
        "high": analyst.accuracies(session.high[-sizes:]).clip(0, 1).tolist(),
        "sample": analyst.accuracies(responder.sample[-sizes:]).tolist(),
        "truth": analyst.accuracies(session.reached[-sizes:]).tolist(),
    }
    needed = _rows_needed(analyst.queries) if name == _OURS and not cell.repeat else math.nan
    for line in zip(*columns.values(), strict=True):
        told = dict(zip(columns, line, strict=True))
        yield {**told, "false_claims": session.wrong_claims, "rows_needed": needed}


def _responder(name: str, terms: Terms) -> Responder:
    if name == "thresholdout":
        return Thresholdout(terms, span=2 * REACH)
    return RESPONDERS[name](terms)


@cache
def _rows_needed(queries: int) -> float:
    """The rows with which Holdfast's bars for so many means are ±0.05, at confidence 0.95."""
    return float(best_direct(queries, _HALF_WIDTH, 0.95, exact=False).blocks)


def draw(results: DataFrame) -> dict[str, Figure]:
    """Accuracy against the number of variables, without a signal and with one."""
    figure, axes = new_figure(2, width=9.6, height=4.8)
    titles = {False: "no signal: every accuracy is 1/2", True: f"{_SIGNALS} weak signals"}
    for one, (signal, title) in zip(axes, titles.items(), strict=True):
        here = rows_where(results, signal=signal)
        naive = rows_where(here, responder="naive")
        draw_average(one, naive, "size", "training", "", "training", marker="", linestyle=":")
        for name in here["responder"].unique():
            rows = rows_where(here, responder=name)
            draw_average(one, rows, "size", "said", name, band=name in _WITH_BANDS)
            if name in ("naive", _OURS):
                truth = f"{look_of(name).label}, truth"
                draw_average(one, rows, "size", "truth", name, truth, marker="", linestyle="--")
        ours = rows_where(here, responder=_OURS)
        draw_claim(one, ours, "size", _OURS, "certified by Holdfast")
        one.set_title(title, fontsize=10, loc="left", color=INK)
        one.set_xlabel("variables", color=FAINT)
    axes[0].set_ylabel("accuracy", color=FAINT)
    axes[1].sharey(axes[0])
    legend_below(figure, axes[0])
    return {"reusable-holdout": figure}


def findings(results: DataFrame) -> list[Finding]:
    """The published accuracy, and what others say of the same variables."""
    largest = rows_where(results, size=_LARGEST)
    return [
        *_reproduced(rows_where(largest, signal=False)),
        *_with_signal(rows_where(largest, signal=True)),
        *_claimed(largest),
        *_certified(rows_where(largest, responder=_OURS)),
    ]


def _reproduced(here: DataFrame) -> Iterator[Finding]:
    for name in here["responder"].unique():
        rows = rows_where(here, responder=name)
        what = f"{look_of(name).label}: accuracy of {_LARGEST} variables, no signal"
        found = average(rows["said"])
        if found is None:
            yield Finding(what, "refused", "refused: there are more questions than rows")
        elif name == "naive":
            told = "more than 63 % (63 ± 0.4 % in the paper; truth 50 %)"
            slack = 3 * _SPREAD / math.sqrt(found.sessions)
            near = _PUBLISHED - slack < found.mean < _PUBLISHED + _ROUNDED + slack
            yield Finding(what, str(found), told, near)
        else:
            yield Finding(what, str(found), "truth 0.5")


def _with_signal(here: DataFrame) -> Iterator[Finding]:
    for name in ("naive", "thresholdout"):
        rows = rows_where(here, responder=name)
        found, truth = average(rows["said"]), average(rows["truth"])
        if found is not None and truth is not None:
            what = f"{look_of(name).label}: accuracy of {_LARGEST} variables, {_SIGNALS} signals"
            yield Finding(what, str(found), f"truth {truth.mean:.3f}")


def _claimed(largest: DataFrame) -> Iterator[Finding]:
    """In how many sessions a claim was false."""
    for name in ("naive", "gaussian", "guess-and-check", _OURS, _WITH_GUESSES):
        rows = rows_where(largest, responder=name)
        if rows.empty:
            continue
        wrong = int((rows["false_claims"] > 0).sum())
        width = float((rows["high"] - rows["low"]).mean()) / 2
        what = f"{look_of(name).label}: sessions with a false claim"
        told = f"{wrong} of {len(rows)}, ±{width:.3f} claimed for the accuracy"
        yield Finding(what, told, "all" if name == "naive" else "none", _right(name, wrong, rows))


def _right(name: str, wrong: int, rows: DataFrame) -> bool:
    return wrong == len(rows) if name == "naive" else wrong == 0


def _certified(ours: DataFrame) -> Iterator[Finding]:
    needed = ours["rows_needed"].max()
    if not math.isnan(needed):
        questions = ours["attributes"].iloc[0] + 20
        what = f"Holdfast: rows for bars of ±{_HALF_WIDTH} on {questions:,} questions"
        yield Finding(what, f"{needed:,.0f}, instead of {ours['rows'].iloc[0]:,}")
