"""The experiment of Dwork et al. 2015: variable selection with a holdout's help."""

from __future__ import annotations

import math
from collections.abc import Iterable

from holdfast_lab import figures
from holdfast_lab.attacks.analysts import REACH, VariableSelection
from holdfast_lab.attacks.targets import rows_for_means
from holdfast_lab.attacks.textbook import Thresholdout, conversation_of
from holdfast_lab.experiments.base import Cell, Finding, Row, average, rows_where
from holdfast_lab.figures import FAINT, INK, DataFrame, Figure, look_of

CAPTIONS = {
    "reusable-holdout": "Accuracy of the classifier of so many variables, as each holdout reports "
    "it; dashed, what it is in truth. Bands are one standard deviation over sessions; the pale one "
    "is what Holdfast certifies for all answers at once."
}

_SIGNALS = 20
_LARGEST = 500
_PUBLISHED, _SPREAD = 0.63, 0.004  # a mean of 100 sessions, and one session's standard deviation
_ROUNDED = 0.005  # the mean is printed as a whole per cent
_OURS, _WITH_GUESSES = "holdfast-mean", "holdfast-correct"
_WITH_BANDS = ("naive", "thresholdout", _OURS)  # the others would hide them
_HALF_WIDTH = 0.05


def measure(cell: Cell) -> Iterable[Row]:
    """One session: what is said, claimed and true of the classifier of each size."""
    name = cell["responder"]
    scaled = name == "thresholdout"  # one threshold for correlations and accuracies
    signals = _SIGNALS if cell["signal"] else 0
    analyst = VariableSelection(cell["rows"], cell["attributes"], signals, one_scale=scaled)
    made = {"make": lambda terms: Thresholdout(terms, span=2 * REACH)} if scaled else {}
    _, asked, session = conversation_of(cell, analyst, name, **made)
    replies = {
        "training": asked.guesses,
        "said": session.values,
        "low": session.low,
        "high": session.high,
        "sample": asked.sample,
        "truth": session.reached,
    }
    columns = {
        key: analyst.accuracies(each[-len(analyst.sizes) :]) for key, each in replies.items()
    }
    columns |= {end: columns[end].clip(0, 1) for end in ("low", "high")}
    first = name == _OURS and not cell.repeat
    needed = rows_for_means(analyst.queries, _HALF_WIDTH) if first else math.nan
    for place, size in enumerate(analyst.sizes):
        told = {key: float(each[place]) for key, each in columns.items()}
        claims = {"false_claims": session.wrong_claims, "rows_needed": needed}
        yield {"size": size, **told, **claims}


def draw(results: DataFrame) -> dict[str, Figure]:
    """Accuracy against the number of variables, without a signal and with one."""
    figure, axes = figures.new_figure(2, width=9.6, height=4.8)
    titles = {False: "no signal: every accuracy is 1/2", True: f"{_SIGNALS} weak signals"}
    for one, (signal, title) in zip(axes, titles.items(), strict=True):
        here = rows_where(results, signal=signal)
        naive = rows_where(here, responder="naive")
        figures.draw_average(
            one, naive, "size", "training", "", "training", marker="", linestyle=":"
        )
        for name in here["responder"].unique():
            rows = rows_where(here, responder=name)
            figures.draw_average(one, rows, "size", "said", name, band=name in _WITH_BANDS)
            if name in ("naive", _OURS):
                truth = f"{look_of(name).label}, truth"
                figures.draw_average(
                    one, rows, "size", "truth", name, truth, marker="", linestyle="--"
                )
        ours = rows_where(here, responder=_OURS)
        figures.draw_claim(one, ours, "size", _OURS, "certified by Holdfast")
        one.set_title(title, fontsize=10, loc="left", color=INK)
        one.set_xlabel("variables", color=FAINT)
    axes[0].set_ylabel("accuracy", color=FAINT)
    axes[1].sharey(axes[0])
    figures.legend_below(figure, [axes[0]], size=8)
    return {"reusable-holdout": figure}


def findings(results: DataFrame) -> list[Finding]:
    """The published accuracy, and what others say of the same variables."""
    found: list[Finding] = []
    largest = rows_where(results, size=_LARGEST)
    here = rows_where(largest, signal=False)
    for name in here["responder"].unique():
        what = f"{look_of(name).label}: accuracy of {_LARGEST} variables, no signal"
        said = average(rows_where(here, responder=name)["said"])
        if said is None:
            expected = "refused: there are more questions than rows"
            found.append(Finding(what, "refused", expected))
        elif name == "naive":
            told = "more than 63 % (63 ± 0.4 % in the paper; truth 50 %)"
            slack = 3 * _SPREAD / math.sqrt(said.sessions)
            near = _PUBLISHED - slack < said.mean < _PUBLISHED + _ROUNDED + slack
            found.append(Finding(what, str(said), told, near))
        else:
            found.append(Finding(what, str(said), "truth 0.5"))
    for name in ("naive", "thresholdout"):
        rows = rows_where(largest, signal=True, responder=name)
        said, truth = average(rows["said"]), average(rows["truth"])
        if said is not None and truth is not None:
            what = f"{look_of(name).label}: accuracy of {_LARGEST} variables, {_SIGNALS} signals"
            found.append(Finding(what, str(said), f"truth {truth.mean:.3f}"))
    for name in ("naive", "gaussian", "guess-and-check", _OURS, _WITH_GUESSES):
        rows = rows_where(largest, responder=name)
        if not rows.empty:
            wrong = int((rows["false_claims"] > 0).sum())
            width = float((rows["high"] - rows["low"]).mean()) / 2
            what = f"{look_of(name).label}: sessions with a false claim"
            told = f"{wrong} of {len(rows)}, ±{width:.3f} claimed for the accuracy"
            expected, right = ("all", len(rows)) if name == "naive" else ("none", 0)
            found.append(Finding(what, told, expected, wrong == right))
    ours = rows_where(largest, responder=_OURS)
    needed = ours["rows_needed"].max()
    if not math.isnan(needed):
        questions = ours["attributes"].iloc[0] + 20
        what = f"Holdfast: rows for bars of ±{_HALF_WIDTH} on {questions:,} questions"
        found.append(Finding(what, f"{needed:,.0f}, instead of {ours['rows'].iloc[0]:,}"))
    return found
