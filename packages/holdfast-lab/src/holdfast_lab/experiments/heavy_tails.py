"""Questions about heavy-tailed data: what is promised holds, what means claim does not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from holdfast_lab import figures
from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.figures import FAINT, INK, DataFrame, Figure
from holdfast_lab.scaling import LOCATORS, law_named
from holdfast_lab.statistics import can_be_rate, failure_rate_bound, fitted_slope

CAPTIONS = {
    "error": "The worst of 20 answers of a session, the median of all sessions: the distance from "
    "what is asked for, divided by it. A mean that is infinite has no error.",
    "claims": "Sessions in which every claim was true. Estimates claim a quantile, intervals the "
    "median of the estimator's law, the others the mean, or the centre of the Cauchy law. Beside "
    "it half the width of the claim, at the largest number of rows.",
}


def measure(cell: Cell) -> Iterable[Row]:
    """One session: a question about each feature, then about those that answers put at the ends."""
    law = law_named(cell["law"])
    data = law.quantiles(cell.shared_chance().random((cell["rows"], cell["features"])))
    kind, of = cell["responder"].split(" ")
    ask = LOCATORS[kind](cell, law, of)
    replies = [ask(data[:, [feature]]) for feature in range(cell["features"])]
    order, few = np.argsort([reply.value for reply in replies]), cell["pooled"]
    ends = (order[:few], order[-few:], order[few : 2 * few], order[-2 * few : -few])
    replies += [ask(data[:, np.sort(chosen)]) for chosen in ends]
    errors = [abs(reply.value - reply.wanted) / reply.wanted for reply in replies]
    claims = [reply.true for reply in replies if reply.true is not None]
    return [
        {
            "error": max(errors) if math.isfinite(replies[0].wanted) else math.nan,
            "value": max(reply.value for reply in replies),
            "width": float(np.median([reply.width for reply in replies])),
            "claims": len(claims),
            "false_claims": claims.count(False),
            "lowest_rank": min(reply.rank for reply in replies),
            "highest_rank": max(reply.rank for reply in replies),
        }
    ]


_LOOKS = {
    "estimate median": ("holdfast", "Holdfast, medians of blocks", "-", "o"),
    "estimate trimmed": ("holdfast", "Holdfast, trimmed means of blocks", "--", "s"),
    "estimate mean": ("holdfast", "Holdfast, means of blocks", ":", "d"),
    "interval median": ("holdfast", "Holdfast, intervals for medians", "-", "P"),
    "interval mean": ("holdfast", "Holdfast, intervals for means", ":", "X"),
    "naive median": ("truth", "median of all rows", "--", "."),
    "naive mean": ("naive", "mean of all rows", "-", "^"),
    "clipped 10": ("gaussian", "noisy mean, clipped at 10", "-", "D"),
    "clipped 1000": ("gaussian", "noisy mean, clipped at 1000", "--", "v"),
}
_TITLES = {
    "cauchy": "Cauchy about 3: no mean",
    "pareto 1.5": "Pareto 1.5: infinite variance",
    "pareto 0.8": "Pareto 0.8: infinite mean",
}


def draw(results: DataFrame) -> dict[str, Figure]:
    """Errors against rows, one panel a law; and how many sessions had only true claims."""
    return {"error": _errors(results), "claims": _claims(results)}


def _errors(results: DataFrame) -> Figure:
    laws = [law for law in _TITLES if law in set(results["law"])]
    figure, axes = figures.panels([_TITLES[law] for law in laws], height=5.0)
    middle = results.groupby(["law", "responder", "rows"])["error"].median()
    for one, law in zip(axes, laws, strict=True):
        for responder, (look, label, line, marker) in _LOOKS.items():
            if (law, responder) in middle.index and not responder.startswith("interval"):
                curve = middle[law, responder]
                how = {"linestyle": line, "marker": marker, "linewidth": 1.6}
                figures.draw_curve(one, curve.index, curve, look, label, **how)
        if math.isinf(law_named(law).mean):
            told = "the mean is infinite:\nno answer is near it"
            shift = {"xycoords": "axes fraction", "va": "top"}
            figures.note(one, told, (0.97, 0.96), FAINT, **shift)
    figures.label_log_axes(axes, "rows", "worst relative error of a session")
    figures.legend_below(figure, axes, columns=3)
    return figure


def _claims(results: DataFrame) -> Figure:
    laws = [law for law in _TITLES if law in set(results["law"])]
    figure, axes = figures.panels([_TITLES[law] for law in laws], height=4.2)
    made = results[results["claims"] > 0]
    names = [name for name in _LOOKS if name in set(made["responder"])]
    for one, law in zip(axes, laws, strict=True):
        for place, name in enumerate(reversed(names)):
            rows = made[(made["law"] == law) & (made["responder"] == name)]
            if rows.empty:
                continue
            share = float((rows["false_claims"] == 0).mean())
            one.barh(place, share, color=figures.method_look(_LOOKS[name][0]).colour, height=0.6)
            told, inside = _true(rows), share > 0.5
            shift = {"xytext": (-4 if inside else 4, 0), "ha": "right" if inside else "left"}
            figures.note(one, told, (share, place), "white" if inside else INK, **shift)
        one.set_xlim(0, 1)
        one.set_xlabel("sessions with true claims only")
        one.grid(visible=False, axis="y")
    axes[0].set_yticks(
        range(len(names)), [_LOOKS[name][1] for name in reversed(names)], fontsize=8.5
    )
    return figure


def _true(rows: DataFrame) -> str:
    """How many sessions had true claims only, and how wide the claims are with the most rows."""
    most = rows[rows["rows"] == rows["rows"].max()]
    half = most["width"].median() / 2
    width = "" if math.isnan(half) else f", ± {half:.3g}"
    return f"{(rows['false_claims'] == 0).sum():,} of {len(rows):,}{width}"


def findings(results: DataFrame) -> list[Finding]:
    """Whether claims held, how fast errors fall, and how far ranks went."""
    return [*_of_claims(results), *_of_errors(results), *_of_ranks(results)]


def _of_claims(results: DataFrame) -> Iterator[Finding]:
    made = results[results["claims"] > 0]
    mine = made["responder"].str.startswith(("estimate", "interval"))
    for kind in ("estimate", "interval"):
        rows = made[made["responder"].str.startswith(kind)]
        if rows.empty:
            continue
        failed = int((rows["false_claims"] > 0).sum())
        told = f"{failed:,} of {len(rows):,}"
        told += f" (rate at most {failure_rate_bound(failed, len(rows)):.3g} with confidence 0.95)"
        what = f"sessions in which an {kind} of Holdfast's broke its promise, all laws together"
        yield Finding(what, told, "a rate of at most 0.05", can_be_rate(failed, len(rows), 0.05))
    for (law, name), rows in made[~mine].groupby(["law", "responder"], sort=False):
        what = f"sessions with true claims only, {law}: {_LOOKS[name][1]}"
        yield Finding(what, _true(rows) + " with the most rows")


def _of_errors(results: DataFrame) -> Iterator[Finding]:
    middle = results.groupby(["law", "responder", "rows"])[["error", "value"]].median()
    for law in _TITLES:
        if (law, "estimate median") in middle.index:
            curve = middle.loc[law, "estimate median"]["error"]
            slope = fitted_slope(curve.index, curve)
            if not math.isnan(slope):
                what = f"exponent of the rows in the worst error of Holdfast's medians, {law}"
                yield Finding(what, f"{slope:.2f}", "−1/2", abs(slope + 0.5) <= 0.15)
        if (law, "naive mean") in middle.index:
            values = middle.loc[law, "naive mean"]["value"]
            told = ", ".join(f"{value:,.3g} at {rows:,} rows" for rows, value in values.items())
            yield Finding(f"largest mean of all rows in a session, {law}", told)


def _of_ranks(results: DataFrame) -> Iterator[Finding]:
    ranks = results[results["responder"].str.startswith("estimate")]
    if not ranks.empty:
        ends = float(ranks["lowest_rank"].min()), float(ranks["highest_rank"].max())
        what = "ranks of all estimates in their own laws"
        told = f"from {ends[0]:.3f} to {ends[1]:.3f}"
        yield Finding(what, told, "inside (0.05, 0.95)", ends[0] > 0.05 and ends[1] < 0.95)
