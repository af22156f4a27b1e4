"""The number of questions from which each method needs fewer blocks than fresh splitting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from holdfast_lab import figures
from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.figures import Axes, DataFrame, Figure
from holdfast_lab.scaling import blocks_by, equal_tails
from holdfast_lab.statistics import first_below

CAPTIONS = {
    "ratio": "Blocks of fresh splitting divided by those of Holdfast, on a grid of 32 points: "
    "above the grey line Holdfast needs fewer.",
    "crossing": "The number of questions from which each method needs fewer blocks than fresh "
    "splitting.",
}

_METHODS = ("holdfast", "paper")
_LAST = 10**7
_SHOWN = (1, 2, 3, 5, 10, 20, 50, 100, 200, 300, 500, 1_000)
_PICTURED = 32  # grid points in the picture of ratios
_FIRST_KNOWN = 42  # r = 32, ρ = 1/4, before profiles and centred transfer (theory.md §9)


def measure(cell: Cell) -> Iterable[Row]:
    """Blocks at some numbers of questions, and the crossings: rows with `crossing` = true."""
    grid, tail, confidence = cell["grid"], cell["tail"], cell["confidence"]

    def curve(method: str) -> Callable[[int], float]:
        @cache
        def blocks(queries: int) -> float:
            found = blocks_by(method, equal_tails(queries, grid, tail, confidence))
            return math.inf if found is None else found

        return blocks

    curves = {method: curve(method) for method in (*_METHODS, "split")}
    for queries in _SHOWN:
        if queries <= cell["most"]:
            yield _row(curves, "holdfast", queries, crossing=False)
    for method in _METHODS:
        first = first_below(curves[method], curves["split"], _LAST)
        if first is not None:
            yield _row(curves, method, first, crossing=True)


def _row(
    curves: Mapping[str, Callable[[int], float]], method: str, queries: int, *, crossing: bool
) -> Row:
    blocks = {"blocks": int(curves[method](queries)), "theirs": int(curves["split"](queries))}
    return {"method": method, "queries": queries, **blocks, "crossing": crossing}


def draw(results: DataFrame) -> dict[str, Figure]:
    """Ratios against k for one grid, crossings for all."""
    return {"ratio": _ratios(results), "crossing": _crossings(results)}


def _ratios(results: DataFrame) -> Figure:
    figure, axes = figures.panels([""])
    (one,), shown = axes, results[~results["crossing"] & (results["grid"] == _PICTURED)]
    for place, tail in enumerate(_tails(results)):
        rows = shown[shown["tail"] == tail]
        _curve(one, rows["queries"], rows["theirs"] / rows["blocks"], place, tail)
    if not shown.empty:
        figures.guide(one, [shown["queries"].min(), shown["queries"].max()], [1, 1], "as many")
    figures.label_log_axes(axes, "questions k", "splitting's blocks ÷ Holdfast's")
    one.set_yticks([0.1, 0.2, 0.5, 1, 2, 5, 10], ["0.1", "0.2", "0.5", "1", "2", "5", "10"])
    one.minorticks_off()
    figures.legend_below(figure, axes, columns=6)
    return figure


def _crossings(results: DataFrame) -> Figure:
    figure, axes = figures.panels(("Holdfast", "Feldman & Steinke 2017"), width=8.8)
    found = results[results["crossing"]]
    for one, method in zip(axes, _METHODS, strict=True):
        here = found[found["method"] == method]
        for place, tail in enumerate(_tails(results)):
            rows = here[here["tail"] == tail]
            _curve(one, rows["grid"], rows["queries"], place, tail)
    figures.label_log_axes(axes, "grid points r", "questions k at the crossing")
    for one in axes:
        one.set_xscale("log", base=2)
    figures.legend_below(figure, axes, columns=6)
    return figure


def _curve(axes: Axes, x: Iterable[float], y: Iterable[float], place: int, tail: float) -> None:
    colours = ("#0B3C5D", "#0072B2", "#56B4E9", "#E69F00", "#D55E00")
    markers = ("o", "s", "^", "D", "v")
    how = {"color": colours[place % 5], "marker": markers[place % 5], "linewidth": 1.6}
    figures.draw_curve(axes, x, y, "holdfast", f"ρ = {tail:g}", **how)


def _tails(results: DataFrame) -> list[float]:
    return sorted(results["tail"].unique(), reverse=True)


def findings(results: DataFrame) -> list[Finding]:
    """Every crossing of the looks, with the blocks there; those of the paper in a line."""
    found = results[results["crossing"]]
    return [*_of_looks(found), *_of_the_paper(found)]


def _of_looks(found: DataFrame) -> Iterator[Finding]:
    looks = found[found["method"] == "holdfast"]
    for row in looks.sort_values(["grid", "tail"]).itertuples():
        what = f"looks need fewer blocks than splitting, ρ = {row.tail:g}, r = {row.grid:,}"
        told = f"from k = {row.queries:,} ({row.blocks:,} against {row.theirs:,})"
        known = row.tail == 0.25 and row.grid == _PICTURED
        expected = f"by k = {_FIRST_KNOWN}, where our first analysis crossed" if known else ""
        yield Finding(what, told, expected, bool(row.queries <= _FIRST_KNOWN) if known else None)


def _of_the_paper(found: DataFrame) -> Iterator[Finding]:
    here = found[found["method"] == "paper"].sort_values(["grid", "tail"])
    if not here.empty:
        each = (
            f"{row.queries:,} (ρ = {row.tail:g}, r = {row.grid:,})" for row in here.itertuples()
        )
        what = "the paper's constants need fewer blocks than splitting, from k ="
        yield Finding(what, "; ".join(each))
