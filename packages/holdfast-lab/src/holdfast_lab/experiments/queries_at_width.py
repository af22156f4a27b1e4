"""How many questions at a given width: each method's own theorem, on the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.theory.bars import units_for_half_width
from holdfast.theory.published import QUERIES_AT, jung_queries
from holdfast.theory.sizing import QUERIES_MAX
from holdfast_lab import figures
from holdfast_lab.attacks.targets import DirectMeans, confidence_of, joint_plan
from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.figures import Axes, DataFrame, Figure, look_of

CAPTIONS = {
    f"half-width-{width}": f"Questions that a table answers within {width} of the truth, all at "
    "once, by each method's own theorem. Where a method answers none it has no mark."
    for width in ("0.1", "0.05", "0.02")
}

_FINENESS = 1_000  # a plan takes seconds: the number of questions is right to a part in so many
_STATED = {0.05: {"split": 288, "bassily": 29, "rogers": 935, "jung": 153}}


def measure(cell: Cell) -> Iterable[Row]:
    """The most questions; `published` is the figure with the authors' own choices."""
    method, rows = cell["method"], cell["rows"]
    half_width, failure = cell["half_width"], cell["failure"]
    if method in HOLDFAST:
        yield {"queries": HOLDFAST[method](rows, half_width, failure), "published": math.nan}
        return
    if method not in QUERIES_AT:
        raise InvalidInput("method", method, f"one of {', '.join((*QUERIES_AT, *HOLDFAST))}")
    queries = QUERIES_AT[method](rows, half_width, failure)
    published = queries
    if method == "jung":
        published = jung_queries(rows, half_width, failure, shares="equal")
    yield {"queries": queries, "published": float(published)}


# Holdfast's plans


def most_planned(
    needed: Callable[[int], float], rows: int, guess: float = 1.0, growth: float = 1.0
) -> int:
    """The most questions whose plan fits into the rows, to a part in a thousand; 0 if none does.

    What is returned fits. `needed` says how many rows so many questions need. Questions grow about
    like rows^growth, which only makes the search short.

    >>> most_planned(lambda k: 100 * math.sqrt(k), 1_000), most_planned(lambda k: 7, 5)
    (100, 0)
    """
    low, high = 0, QUERIES_MAX + 1
    tried = min(max(1, round(guess)), QUERIES_MAX)
    while high - low > max(1, low // _FINENESS):
        size = needed(tried)
        step = max(1, tried // (2 * _FINENESS))
        if size <= rows:
            low, toward = tried, max(tried * (rows / size) ** growth, tried + step)
        else:
            high, toward = tried, min(tried * (rows / size) ** growth, tried - step)
        if not low < toward < high:  # beyond what is known already
            toward = math.sqrt(low * high) if high <= QUERIES_MAX and low else (low + high) / 2
        tried = min(max(round(toward), low + 1), high - 1)
    return low


def _by_search(rows: int, half_width: float, failure: float) -> int:
    """The direct search for means, as `holdfast plan --protocol mean` makes it."""

    def needed(queries: int) -> float:
        request = DirectMeans(queries, half_width)
        return joint_plan(request, confidence=confidence_of(failure)).blocks

    return most_planned(needed, rows, (rows * half_width**2 / 9) ** 2, growth=2.0)


def _by_splitting(rows: int, half_width: float, failure: float) -> int:
    """Fresh rows, as Holdfast plans them: one block a question, its mean the answer."""

    def needed(queries: int) -> float:
        tail = failure / (2 * queries) * (1 - 1e-9)
        return queries * units_for_half_width(half_width, tail)

    return most_planned(needed, rows)


HOLDFAST: dict[str, Callable[[int, float, float], int]] = {
    "holdfast-mean": _by_search,
    "holdfast-split": _by_splitting,
}


# Pictures


def draw(results: DataFrame) -> dict[str, Figure]:
    """Questions against rows: a figure for each half-width, a panel for each failure."""
    return {
        f"half-width-{width:g}": _figure(results[results["half_width"] == width], float(width))
        for width in sorted(results["half_width"].unique(), reverse=True)
    }


def _figure(results: DataFrame, half_width: float) -> Figure:
    failures = sorted(results["failure"].unique(), reverse=True)
    figure, axes = figures.new_figure(max(1, len(failures)), width=4.4 * max(1, len(failures)))
    for panel, failure in zip(axes, failures, strict=False):
        _panel(panel, results[results["failure"] == failure])
        panel.set_title(f"half-width {half_width:g}, failure {failure:g}", fontsize="medium")
        panel.set_ylim(0.7, 2 * max(1, results["queries"].max()))  # the same in all panels
    axes[0].set_ylabel("questions answered")
    if axes[0].get_legend_handles_labels()[0]:
        axes[0].legend(fontsize="small", frameon=False)
    return figure


def _panel(panel: Axes, results: DataFrame) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("rows")
    for method in results["method"].unique():
        line = results[(results["method"] == method) & (results["queries"] > 0)].sort_values("rows")
        look = look_of(method)
        if len(line):
            panel.plot(
                line["rows"],
                line["queries"],
                look.line,
                color=look.colour,
                marker=look.marker,
                markersize=4,
                label=look.label,
            )


# Findings


def findings(results: DataFrame) -> list[Finding]:
    """The table at 100,000 rows, by how much Holdfast leads, and where it does not."""
    found: list[Finding] = []
    for failure in sorted(results["failure"].unique(), reverse=True):
        some = results[results["failure"] == failure]
        table = some[(some["rows"] == 100_000) & (some["half_width"] == 0.1)]
        found += _table(table, float(failure))
        for width in sorted(some["half_width"].unique(), reverse=True):
            found += _crossing(some[some["half_width"] == width], float(width), float(failure))
    return found


def _counts(results: DataFrame, column: str = "queries") -> dict[str, int]:
    kept = results.dropna(subset=[column])
    return {str(m): int(q) for m, q in zip(kept["method"], kept[column], strict=True)}


def _table(results: DataFrame, failure: float) -> list[Finding]:
    counts, published = _counts(results), _counts(results, "published")
    if not counts:
        return []
    where = f"100,000 rows, half-width 0.1, failure {failure:g}"
    stated = {k: v for k, v in _STATED.get(failure, {}).items() if k in published}
    found = [
        Finding(
            f"Questions answered by the published theorems: {where}",
            _listed(published),
            _listed(stated),
            {k: published[k] for k in stated} == stated if stated else None,
        ),
        Finding(
            f"All methods, each with the best choice of what its theorem leaves open: {where}",
            _listed(counts),
        ),
    ]
    others = {k: v for k, v in counts.items() if k in QUERIES_AT}
    if "holdfast-mean" in counts and others:
        best = max(others, key=others.__getitem__)
        ratio = counts["holdfast-mean"] / max(1, others[best])
        what = f"Holdfast answers so many times the questions of the best of them ({best}): {where}"
        found.append(Finding(what, f"{ratio:.1f}", "more than 1", ratio > 1))
    return found


def _listed(counts: dict[str, Any]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _crossing(results: DataFrame, half_width: float, failure: float) -> list[Finding]:
    """Where the best of the others is ahead, and where the lines cross."""
    ours = results[results["method"] == "holdfast-mean"].set_index("rows")["queries"]
    theirs = results[results["method"].isin([*QUERIES_AT])].groupby("rows")["queries"].max()
    shared = [rows for rows in sorted(ours.index) if rows in theirs.index]
    behind = [rows for rows in shared if ours[rows] < theirs[rows]]
    if not shared:
        return []
    what = f"Where Holdfast does not lead: half-width {half_width:g}, failure {failure:g}"
    if not behind:
        return [Finding(what, f"nowhere from {shared[0]:,} rows on")]
    last, ahead = behind[-1], [rows for rows in shared if rows > behind[-1]]
    text = f"up to {last:,} rows: {ours[last]:,} questions against {theirs[last]:,} of the others"
    if ahead:
        first = ahead[0]
        text += f"; ahead from {first:,} rows on: {ours[first]:,} against {theirs[first]:,}"
        if ours[last] > 0 and theirs[first] > 0:
            text += f"; the lines cross near {_between(ours, theirs, last, first):,.0f} rows"
    return [Finding(what, text)]


def _between(ours: Any, theirs: Any, last: int, first: int) -> float:
    """Where two lines cross that are straight on logarithmic axes."""
    before, after = (math.log(int(ours[rows]) / int(theirs[rows])) for rows in (last, first))
    return float(last * (first / last) ** (before / (before - after)))
