"""Widths and errors of answers about error rates, against the error rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from holdfast.grids import Grid
from holdfast.grids import grid as make_grid
from holdfast.theory import published
from holdfast.theory.bars import mean_bar
from holdfast_lab import figures
from holdfast_lab.attacks.conversation import Replies
from holdfast_lab.attacks.targets import (
    DirectMeans,
    GivenBlocks,
    HoldfastMean,
    HoldfastMedianMean,
    JointPlan,
    MedianMeans,
    MemoryHoldout,
)
from holdfast_lab.baselines.noise import discrete_gaussian
from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.figures import DataFrame, Figure
from holdfast_lab.scaling import failure_of, planned
from holdfast_lab.statistics import fitted_slope

CAPTIONS = {
    "width": "Half the width of the certified bar against the error rate p, the mean of all "
    "questions. The grey line is the standard deviation of a block's mean, √(p(1−p)/t).",
    "error": "How far the answers really are from p: the root of the mean square. The direct "
    "search answers with the middle of a cell: its error is the distance of p from it.",
}

_NAMES = {
    "holdfast": "Holdfast, median of block means",
    "holdfast-direct": "Holdfast, direct search",
    "split": "fresh splitting, kl bound",
    "split-hoeffding": "fresh splitting, Hoeffding",
    "gaussian": "Gaussian noise, Rogers et al. 2020",
}


class _Told(NamedTuple):
    """An answer and its bar."""

    value: float
    low: float
    high: float


Ask = Callable[[], _Told]  # about a new classifier


def measure(cell: Cell) -> Iterable[Row]:
    """So many classifiers of the same error rate, asked about one after the other."""
    truth = cell["error_rate"]
    ask = _RESPONDERS[cell["method"]](cell)
    for _ in range(cell["asked"]):
        told = ask()
        yield {
            "width": (told.high - told.low) / 2,
            "error": abs(told.value - truth),
            "covered": told.low <= truth <= told.high,
            "block_size": cell["rows"] // _median_plan(cell).blocks,
        }


def sine_grid(points: int) -> Grid:
    """Cells from 0 to 1 as wide as √(p(1−p)) wants them: sin² of equal steps.

    >>> [round(sine_grid(5).point(i), 3) for i in range(5)]
    [0.0, 0.146, 0.5, 0.854, 1.0]
    """
    return make_grid([math.sin(math.pi / 2 * i / (points - 1)) ** 2 for i in range(points)])


def _median_plan(cell: Cell) -> JointPlan:
    request = MedianMeans(cell["queries"], cell["points"], cell["tail"])
    return planned(request, cell["confidence"])


def _told(replies: Replies) -> _Told:
    return _Told(*(float(each[0]) for each in (replies.values, replies.low, replies.high)))


def _median(cell: Cell) -> Ask:
    plan, chance, rate = _median_plan(cell), cell.chance(), cell["error_rate"]
    source = GivenBlocks(plan.blocks, cell["rows"] // plan.blocks)
    means = HoldfastMedianMean.on(MemoryHoldout(plan, source, cell.entropy()))
    grid = sine_grid(cell["points"])

    def ask() -> _Told:
        wrong = chance.binomial(source.units, rate, size=source.blocks)
        return _told(means.means_on(wrong[np.newaxis], grid=grid))

    return ask


def _direct(cell: Cell) -> Ask:
    rows, chance, rate = cell["rows"], cell.chance(), cell["error_rate"]
    request = DirectMeans(cell["queries"], cell["direct_half_width"], exact=True)
    plan = planned(request, cell["confidence"], rows)
    means = HoldfastMean.on(MemoryHoldout(plan, GivenBlocks(rows, 1), cell.entropy()))
    return lambda: _told(means.means_on(np.arange(rows)[np.newaxis] < chance.binomial(rows, rate)))


def _split(cell: Cell) -> Ask:
    """Rows of its own for every question; t·kl(v, μ) ≤ ln(2k/β) on both sides (Chernoff)."""
    units, chance = cell["rows"] // cell["queries"], cell.chance()
    tail = failure_of(cell) / (2 * cell["queries"])

    def ask() -> _Told:
        value = chance.binomial(units, cell["error_rate"]) / units
        low, high = mean_bar(value, value, units, tail, tail)
        assert low is not None
        assert high is not None
        return _Told(value, low, high)

    return ask


def _hoeffding(cell: Cell) -> Ask:
    """The same rows; the bound that knows nothing but the range."""
    units, chance = cell["rows"] // cell["queries"], cell.chance()
    half = math.sqrt(math.log(2 * cell["queries"] / failure_of(cell)) / (2 * units))
    return lambda: _around(chance.binomial(units, cell["error_rate"]) / units, half)


def _gaussian(cell: Cell) -> Ask:
    """All rows and Gaussian noise, by the published theorem with the smallest width here."""
    rows, chance, entropy = cell["rows"], cell.chance(), cell.entropy()
    found = published.rogers_best(rows, cell["queries"], failure_of(cell))
    variance = (Fraction(found.sigma) * rows) ** 2

    def ask() -> _Told:
        total = int(chance.binomial(rows, cell["error_rate"]))
        return _around((total + discrete_gaussian(variance, entropy)) / rows, found.width)

    return ask


_RESPONDERS: dict[str, Callable[[Cell], Ask]] = {
    "holdfast": _median,
    "holdfast-direct": _direct,
    "split": _split,
    "split-hoeffding": _hoeffding,
    "gaussian": _gaussian,
}


def _around(value: float, half: float) -> _Told:
    return _Told(value, value - half, value + half)


def draw(results: DataFrame) -> dict[str, Figure]:
    """Widths and real errors, each against p."""
    widths = results.groupby(["method", "error_rate"])["width"].mean()
    squares = results.assign(error=results["error"] ** 2)
    errors = squares.groupby(["method", "error_rate"])["error"].mean() ** 0.5
    size = results["block_size"].iloc[0]
    pictures = {}
    for name, table, up in (
        ("width", widths, "half-width of the bar"),
        ("error", errors, "error of the answer"),
    ):
        figure, axes = figures.panels([""])
        for method, label in _NAMES.items():
            twice = name == "error" and method == "split-hoeffding"  # the answers are split's
            if method in table.index.get_level_values(0) and not twice:
                curve = table[method]
                how = (
                    {"linestyle": "--"} if method in ("holdfast-direct", "split-hoeffding") else {}
                )
                figures.draw_curve(axes[0], curve.index, curve, method, label, **how)
        rates = sorted(results["error_rate"].unique())
        deviation = [math.sqrt(p * (1 - p) / size) for p in rates]
        figures.guide(axes[0], rates, deviation, f"√(p(1−p)/t), t = {size:,}")
        figures.label_log_axes(axes, "error rate p", up)
        figures.legend_below(figure, axes, columns=3)
        pictures[name] = figure
    return pictures


def findings(results: DataFrame) -> list[Finding]:
    """Exponents, the gain at the ends, and whether all bars were right."""
    table = results.groupby(["method", "error_rate"])["width"].mean().unstack("method")
    return [*_exponents(table), *_gains(table), *_coverage(results)]


def _exponents(table: DataFrame) -> Iterator[Finding]:
    variance = [p * (1 - p) for p in table.index]
    for method, wanted in (("holdfast", 0.5), ("split-hoeffding", 0.0), ("gaussian", 0.0)):
        if method not in table:
            continue
        slope = fitted_slope(variance, table[method])
        if not math.isnan(slope):
            what = f"exponent of p(1−p) in the width: {_NAMES[method]}"
            holds = abs(slope - wanted) <= 0.05
            yield Finding(what, f"{slope:.3f}", "1/2" if wanted else "0", holds)


def _gains(table: DataFrame) -> Iterator[Finding]:
    for rate in (table.index.min(), table.index.max()):
        row = table.loc[rate]
        if math.isnan(row.get("holdfast", math.nan)):
            continue
        others = [name for name in _NAMES if name != "holdfast" and row.get(name, 0) > 0]
        told = ", ".join(f"{_NAMES[name]} ×{row[name] / row['holdfast']:.3g}" for name in others)
        what = f"half-width at p = {rate:g}: Holdfast's medians {row['holdfast']:.5f}; others"
        yield Finding(what, told)


def _coverage(results: DataFrame) -> Iterator[Finding]:
    for method, rows in results.groupby("method", sort=False):
        right = int(rows["covered"].sum())
        told = f"{right:,} of {len(rows):,}"
        yield Finding(f"bars that hold p: {_NAMES[method]}", told, "all", right == len(rows))
