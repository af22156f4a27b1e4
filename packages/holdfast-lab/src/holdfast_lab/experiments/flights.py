"""A search through subgroups of real flights: what is claimed of the finding, and what is true."""

from __future__ import annotations

import math
from collections.abc import Iterable

from holdfast_lab.attacks.analysts import Subgroups
from holdfast_lab.attacks.textbook import conversation_of
from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.figures import INK, DataFrame, Figure, look_of, new_figure

CAPTIONS = {
    "claims": "What is claimed of the found subgroup's share of late flights, one bar for each "
    "sample; the dark mark is the population's."
}

_FAILURE = 0.05
_TEXTBOOK = 1.959964  # standard errors to each side of a 95 % interval


def measure(cell: Cell) -> Iterable[Row]:
    """One search: the finding, as a share of the flights on the list."""
    analyst = Subgroups(cell["rows"], cell["queries"])
    world, _, session = conversation_of(cell, analyst, cell["responder"], failure=_FAILURE)
    listed = world.found
    value, low, high = (float(x[-1]) for x in (session.values, session.low, session.high))
    if cell["responder"] == "naive":  # what a textbook would claim
        half = _TEXTBOOK * math.sqrt(value * (1 - value) / cell["rows"])
        low, high = value - half, value + half
    yield {
        "value": value / listed.share,
        "low": max(0.0, low / listed.share),
        "high": min(1.0, high / listed.share),
        "truth": listed.rate,
        "all_flights": float(world.flights.late.mean()),
        "share": listed.share,
        "cells": len(listed.cells),
        "asked": session.asked,
        "wrong_claims": session.wrong_claims,
    }


def draw(results: DataFrame) -> dict[str, Figure]:
    """A panel for each responder."""
    names = list(dict.fromkeys(results["responder"])) or ["naive"]
    samples = results["repeat"].nunique()
    size = {"width": 2.4 * len(names) + 0.6, "height": 1.4 + min(0.2 * samples, 4.2)}
    figure, panels = new_figure(len(names), **size)
    for axes, name in zip(panels, names, strict=True):
        rows, look = results[results["responder"] == name], look_of(name)
        axes.hlines(rows["repeat"], rows["low"], rows["high"], color=look.colour, linewidth=3)
        axes.plot(rows["truth"], rows["repeat"], "|", color=INK, markersize=9, markeredgewidth=1.6)
        axes.set_title(look.label, fontsize=10, color=look.colour)
        axes.set_xlim(0, 1)
        axes.margins(y=0.15)
        axes.set_yticks([])
        axes.set_xlabel("late flights on the list")
    panels[0].set_ylabel("sample")
    return {"claims": figure}


def findings(results: DataFrame) -> list[Finding]:
    """How often the truth was missed, and by how much."""
    groups = [(str(name), rows) for name, rows in results.groupby("responder", sort=False)]
    found = []
    for name, rows in groups:
        missed = int(((rows["truth"] < rows["low"]) | (rows["truth"] > rows["high"])).sum())
        claimed, truth = rows["value"].mean(), rows["truth"].mean()
        half = (rows["high"] - rows["low"]).mean() / 2
        told = (
            f"{missed} of {len(rows)}; on average {claimed:.3f} ± {half:.3f} is claimed, "
            f"and {truth:.3f} is true"
        )
        most, few = ("most", missed > 0.5 * len(rows)), ("at most 5 %", missed <= 0.05 * len(rows))
        expected = most if name == "naive" else few
        found.append(Finding(f"{look_of(name).label}: claims that miss the truth", told, *expected))
    found += [_allowing_for_all(rows) for name, rows in groups if name == "naive"]
    if groups:
        rates = [f"{look_of(name).label} {rows['truth'].mean():.3f}" for name, rows in groups]
        told = f"{', '.join(rates)}; of all flights {results['all_flights'].iloc[0]:.3f}"
        found.append(Finding("late flights on the list, in truth", told))
    return found


def _allowing_for_all(naive: DataFrame) -> Finding:
    """The same answers with intervals at β/k, as if all k questions had been fixed in advance.

    Normal ones, of the last answer; and Hoeffding's, of all answers, which naive reuse has in the
    other experiments. It knows nothing of the variance, and is far too wide for shares this small.
    """
    from scipy.special import ndtri

    errors = float(ndtri(1 - _FAILURE / (2 * naive["queries"].iloc[0])))
    shares = naive["value"] * naive["share"]
    half = errors * (shares * (1 - shares) / naive["rows"]) ** 0.5 / naive["share"]
    missed = int(((naive["value"] - naive["truth"]).abs() > half).sum())
    wrong = int((naive["wrong_claims"] > 0).sum())
    told = (
        f"{missed} of {len(naive)} by normal intervals (± {half.mean():.3f} on average); samples "
        f"with any false claim by Hoeffding's: {wrong}"
    )
    what = "naive reuse, allowing for the number of questions: claims that miss the truth"
    return Finding(what, told)
