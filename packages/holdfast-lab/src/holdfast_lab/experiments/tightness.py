"""The rate of failure against the share of the certified blocks, and where it passes β."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from holdfast_lab import figures
from holdfast_lab.audit import Subject, analyst_named, planned, play
from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.figures import FAINT, INK, Axes, DataFrame, Figure
from holdfast_lab.statistics import failure_rate_bound

CAPTIONS = {
    "tightness": "Rate of failure against the share of the certified blocks, the plan's coin "
    "unchanged: the tuned analyst against looks, the aggregator against exact medians. The promise "
    "is broken above the horizontal line."
}

_PLAN = re.compile(r"(\d+) questions, tail ([\d.]+)")
_LEAST = 1e-4  # rates below are drawn at the edge
_MARKS = ("o", "s", "D", "^", "v")
_LINES = ("-", "--", ":", "-.")


@lru_cache(maxsize=8)
def _subject(plan: str, grid: int, confidence: float) -> Subject:
    found = _PLAN.fullmatch(plan)
    if found is None:
        raise ValueError(f"no plan: {plan!r}")
    return planned(int(found[1]), grid, float(found[2]), confidence)


def measure(cell: Cell) -> Iterable[Row]:
    """Some sessions at one size; the same ones for all sizes and analysts of a repeat."""
    certified = _subject(cell["plan"], cell["grid"], cell["confidence"])
    subject = certified.on(max(1, round(cell["share"] * certified.blocks)))
    analyst = analyst_named(cell["analyst"], subject)
    sessions = cell["sessions"]
    played = play(subject, analyst, cell.seed, (cell.repeat * sessions, sessions))
    yield {
        "certified": certified.blocks,
        "blocks": subject.blocks,
        "looks": subject.looks,
        "rate": played.rate,
        "squares": float((played.chances**2).mean()),
        "failures": played.failures,
        "naive_failures": played.naive_failures,
    }


def draw(results: DataFrame) -> dict[str, Figure]:
    """A line for each plan, of the strongest analyst, and naive beside it."""
    figure, (axes,) = figures.new_figure(width=8.6, height=4.8)
    allowed = 1 - float(results["confidence"].iloc[0])
    for number, plan in enumerate(results["plan"].unique()):
        here = results[results["plan"] == plan]
        tuned = _points(here[here["analyst"] == "tuned"])
        _line(axes, tuned, f"Holdfast, {plan} (tuned)", number, "holdfast")
        _line(axes, _naive(here), f"naive, {plan} (aggregator)", number, "naive")
    axes.axhline(allowed, color=INK, linewidth=1.0)
    axes.text(0.1, allowed * 1.15, f"allowed: {allowed:.2g}", color=INK, fontsize=9)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(_LEAST / 1.5, 1.6)
    shares = [0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 1.0]
    axes.set_xticks(shares, [f"{share:g}" for share in shares])
    rates = [1.0, 0.1, 0.01, 0.001, _LEAST]
    axes.set_yticks(rates, [*(f"{rate:g}" for rate in rates[:-1]), f"≤ {_LEAST:g}"])
    axes.minorticks_off()
    axes.set_xlabel("share of the certified blocks", color=FAINT)
    axes.set_ylabel("rate of failure", color=FAINT)
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    return {"tightness": figure}


def _line(axes: Axes, points: list[_Point], label: str, number: int, look: str) -> None:
    if not points:
        return
    axes.plot(
        [point.share for point in points],
        [max(point.rate, _LEAST) for point in points],
        label=label,
        color=figures.LOOKS[look].colour,
        marker=_MARKS[number % len(_MARKS)],
        linestyle=_LINES[number % len(_LINES)],
        markersize=4,
        linewidth=1.4,
    )


class _Point(NamedTuple):
    """A size, and the rate of failure there with its standard error."""

    share: float
    rate: float
    error: float


def _points(rows: DataFrame) -> list[_Point]:
    """From the smallest size on; all cells of a size have the same number of sessions."""
    points = []
    for share, here in sorted(rows.groupby("share")):
        rate, count = float(here["rate"].mean()), int(here["sessions"].sum())
        variance = max(0.0, float(here["squares"].mean()) - rate**2)
        points.append(_Point(float(share), rate, math.sqrt(variance / count)))
    return points


def _naive(rows: DataFrame) -> list[_Point]:
    here = rows[rows["analyst"] == "aggregator"].groupby("share")
    shares = here["naive_failures"].sum() / here["sessions"].sum()
    return [_Point(float(share), float(rate), 0.0) for share, rate in shares.items()]


def findings(results: DataFrame) -> list[Finding]:
    """The factor of each plan with the best attack, every attack's, and the certified size."""
    found: list[Finding] = []
    for plan in results["plan"].unique():
        here = results[results["plan"] == plan]
        found += _factors(plan, here)
        found += _at_certified(plan, here[here["share"] == 1])
    return found


def _factors(plan: str, rows: DataFrame) -> Iterator[Finding]:
    allowed, certified = 1 - float(rows["confidence"].iloc[0]), int(rows["certified"].iloc[0])
    points = {analyst: _points(here) for analyst, here in rows.groupby("analyst")}
    winners = [
        name
        for name, here in points.items()
        if any(point.share >= 1 and point.rate > allowed for point in here)
    ]
    if winners:
        told = f"below 1: {', '.join(winners)} above β on the certified {certified:,} blocks"
        yield Finding(f"{plan}: tightness", told, "at least 1", holds=False)
        return
    crossings = {analyst: _crossing(here, allowed) for analyst, here in points.items()}
    known = {analyst: share for analyst, share in crossings.items() if share is not None}
    if not known:
        return
    best = max(known, key=lambda analyst: known[analyst])
    measured = (
        f"{1 / known[best]:.2f}{_between(points[best], allowed)}: {best} breaks the promise below "
        f"{known[best] * certified:,.0f} of {certified:,} blocks"
    )
    yield Finding(f"{plan}: tightness", measured, "at least 1", known[best] <= 1)
    others = (f"{name} {1 / share:.2f}" for name, share in known.items() if name != best)
    if len(known) > 1:
        yield Finding(f"{plan}: the factor of weaker attacks", ", ".join(others))


def _between(points: list[_Point], allowed: float) -> str:
    """The factors of sizes where the rate is off what is allowed by 1.96 standard errors."""
    kept = [p.share for p in points if p.rate + 1.96 * p.error <= allowed]
    broken = [p.share for p in points if p.rate - 1.96 * p.error > allowed]
    if not kept or not broken:
        return ""
    return f" ({1 / min(kept):.2f} to {1 / max(broken):.2f})"


def _crossing(points: list[_Point], allowed: float) -> float | None:
    """The share at which the rate falls below what is allowed, between sizes by log-odds."""
    broken = [n for n, point in enumerate(points) if point.rate > allowed]
    if not broken or broken[-1] + 1 == len(points):
        return None
    below, above = points[broken[-1]], points[broken[-1] + 1]
    start, end, goal = (_log_odds(rate) for rate in (below.rate, above.rate, allowed))
    return below.share + (above.share - below.share) * (start - goal) / (start - end)


def _log_odds(rate: float) -> float:
    rate = min(max(rate, 1e-6), 1 - 1e-6)
    return math.log(rate / (1 - rate))


def _at_certified(plan: str, rows: DataFrame) -> Iterator[Finding]:
    if rows.empty:
        return
    allowed = 1 - float(rows["confidence"].iloc[0])
    sums = rows.groupby("analyst")[["failures", "naive_failures", "sessions"]].sum()
    worst, naive = (sums.loc[sums[which].idxmax()] for which in ("failures", "naive_failures"))
    bound = failure_rate_bound(int(worst["failures"]), int(worst["sessions"]))
    measured = f"{worst['failures']:,} of {worst['sessions']:,} sessions, at most {bound:.4f}"
    # Without a failure a bound above β says that there were too few sessions, not that it broke.
    held = None if bound > allowed and not worst["failures"] else bool(bound <= allowed)
    what = f"{plan}: failures on the certified blocks, under the worst of the analysts"
    yield Finding(what, measured, f"at most {allowed:.2g}", held)
    told = f"{naive['naive_failures']:,} of {naive['sessions']:,} sessions, under {naive.name}"
    yield Finding(f"{plan}: failures of the naive holdout there", told)
