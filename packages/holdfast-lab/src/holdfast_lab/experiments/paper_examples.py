"""The errors that the paper's examples predict, beside those that real answers have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from holdfast.grids import grid as make_grid
from holdfast.theory.bars import deviation_bar
from holdfast.theory.paper import mad_range_error
from holdfast_lab import figures
from holdfast_lab.experiments.base import Cell, Finding, Row
from holdfast_lab.figures import INK, DataFrame, Figure
from holdfast_lab.scaling import StableMedians, interquartile, tiny_tail
from holdfast_lab.statistics import can_be_rate

FloatArray = NDArray[np.float64]

CAPTIONS = {
    "subgaussian": "Subgaussian estimators: what the theorems promise (dashed) and the worst of 50 "
    "real answers (faint: in each session; line: their median), against the rows they take.",
    "low-sensitivity": "The lowest of ten mean losses: what is promised (dashed) and the worst "
    "real answer of a session, against the rows they take.",
    "deviation": "The worst real answer of each session in mean absolute deviations, for three "
    "laws of the estimator; the lines are what is promised.",
}

_STEP = 0.005  # of the grid of the subgaussian example, on [−1, 1]
_PRECISION = 0.05  # of the grid of the third example, on [−5, 5], in deviations
_EXPERTS, _OF = 10, 60  # losses whose least is asked for, out of so many
_NAMES = {"paper": "the paper's blocks", "holdfast": "Holdfast's blocks"}
_SOURCES = {"paper": "corollary mad-range", "holdfast": "our bar"}


def measure(cell: Cell) -> Iterable[Row]:
    """One session of one example."""
    return {
        "subgaussian": _subgaussian,
        "low sensitivity": _low_sensitivity,
        "deviation": _deviation,
    }[cell["example"]](cell)


def _subgaussian(cell: Cell) -> Iterator[Row]:
    """Means of t normal numbers, k − 1 features; then their sum, each signed as answered."""
    units, queries, chance = cell["units"], cell["queries"], cell.chance()
    grid = make_grid(-1, 1, step=_STEP)
    medians = tiny_tail(cell["sized_by"], queries, grid, cell["confidence"], units, cell.entropy())
    features = chance.standard_normal((queries - 1, medians.blocks)) / math.sqrt(units)
    answers = [medians.answer(values) for values in features]
    signs = np.where(np.array(answers) > 0, 1.0, -1.0)  # the law of this sum is that of each
    answers.append(medians.answer(signs @ features / math.sqrt(queries - 1)))
    within = math.sqrt(-2 * math.log(medians.tail) / units)
    yield _row(cell, medians, "normal", np.abs(answers), within + _STEP)


def _low_sensitivity(cell: Cell) -> Iterator[Row]:
    """The least of ten mean losses in [−1/2, 1/2]; last, that of the ten that looked best."""
    units, queries, chance = cell["units"], cell["queries"], cell.chance()
    alpha = 4 / math.sqrt(units)
    grid = make_grid(-1, 1, step=alpha / 2)
    medians = interquartile(
        cell["sized_by"], queries, grid, cell["confidence"], units, cell.entropy()
    )
    losses = chance.binomial(units, 0.5, (_OF, medians.blocks)) / units - 0.5
    seen, total, answers = np.zeros(_OF), np.zeros(_OF), []
    for _ in range(queries - 1):
        chosen = chance.permutation(_OF)[:_EXPERTS]
        answers.append(medians.answer(losses[chosen].min(axis=0)))
        seen[chosen] += 1
        total[chosen] += answers[-1]
    best = np.argsort(total / np.maximum(seen, 1))[:_EXPERTS]
    answers.append(medians.answer(losses[best].min(axis=0)))
    errors = np.abs(np.array(answers) - expected_least(units, _EXPERTS))
    yield _row(cell, medians, "least of ten", errors, alpha)


def _deviation(cell: Cell) -> Iterator[Row]:
    """Estimators of three laws, each about 0 and with a mean absolute deviation of 1."""
    units, chance = cell["units"], cell.chance()
    grid = make_grid(-5, 5, step=_PRECISION)
    medians = interquartile(
        cell["sized_by"], cell["queries"], grid, cell["confidence"], units, cell.entropy()
    )
    each = cell["queries"] // len(_LAWS)
    for law in _LAWS:
        answers = [
            medians.answer(_centred(law, units, medians.blocks, chance) / spread(law, units))
            for _ in range(each)
        ]
        _, ours = deviation_bar(0.0, 0.0, 1.0, medians.tail, medians.tail)
        assert ours is not None
        paper = cell["sized_by"] == "paper"
        predicted = mad_range_error(1.0, _PRECISION) if paper else ours + _PRECISION
        yield _row(cell, medians, law, np.abs(answers), predicted)


_LAWS = ("normal", "exponential", "rare")
_RARE = 1.2  # rare events that a block has on average


def _centred(law: str, units: int, blocks: int, chance: np.random.Generator) -> FloatArray:
    """The mean of t normal or exponential numbers, or the share of rare events, less its mean."""
    if law == "normal":
        return chance.standard_normal(blocks) / math.sqrt(units)
    if law == "exponential":
        return chance.standard_gamma(units, blocks) / units - 1
    return np.asarray((chance.binomial(units, _RARE / units, blocks) - _RARE) / units)


def spread(law: str, units: int) -> float:
    """The mean absolute deviation of an estimator of the third example, by its formula.

    Normal: √(2/(πt)). Mean of t exponentials: 2·tᵗ·e⁻ᵗ/t!, a gamma law's. Binomial: de Moivre's,
    2·s·C(t, s)·pˢ·q^(t−s+1) with s = ⌊tp⌋ + 1, divided by t.

    >>> [round(10 * spread(law, 100), 4) for law in ("normal", "exponential", "rare")]
    [0.7979, 0.7972, 0.0863]
    """
    t = float(units)
    if law == "normal":
        return math.sqrt(2 / (math.pi * t))
    if law == "exponential":
        return 2 * math.exp(t * math.log(t) - t - math.lgamma(t + 1))
    p, s = _RARE / t, math.floor(_RARE) + 1
    chosen = math.lgamma(t + 1) - math.lgamma(s + 1) - math.lgamma(t - s + 1)
    logs = chosen + s * math.log(p) + (t - s + 1) * math.log1p(-p)
    return 2 * s * math.exp(logs) / t


def expected_least(units: int, experts: int) -> float:
    """E of the least of so many means of t fair coins, less 1/2: Σ P[Bin > x]^experts / t − 1/2.

    >>> round(expected_least(1, 2), 12), round(expected_least(100, 10), 4)
    (-0.25, -0.0768)
    """
    from scipy.special import bdtrc

    above = bdtrc(np.arange(units), units, 0.5)
    return float((above**experts).sum() / units - 0.5)


def _row(cell: Cell, medians: StableMedians, law: str, errors: FloatArray, predicted: float) -> Row:
    return {
        "law": law,
        "blocks": medians.blocks,
        "rows": medians.blocks * cell["units"],
        "predicted": predicted,
        "error": float(np.max(errors)),
        "broken": int(np.count_nonzero(errors > predicted)),
    }


def draw(results: DataFrame) -> dict[str, Figure]:
    """One picture an example; an example without results has none."""
    drawn = {
        "subgaussian": ("subgaussian", _draw_errors),
        "low-sensitivity": ("low sensitivity", _draw_errors),
        "deviation": ("deviation", _draw_deviations),
    }
    found = set(results["example"])
    return {
        name: one(results[results["example"] == example])
        for name, (example, one) in drawn.items()
        if example in found
    }


def _draw_errors(results: DataFrame) -> Figure:
    figure, axes = figures.panels([""], height=4.6)
    for sized_by in ("paper", "holdfast"):
        here = results[results["sized_by"] == sized_by]
        rows = here.groupby("rows")
        promised, worst = rows["predicted"].max(), rows["error"].median()
        look = {"linestyle": "--", "marker": "", "linewidth": 1.4}
        told = f"promised, {_NAMES[sized_by]}"
        figures.draw_curve(axes[0], promised.index, promised, sized_by, told, **look)
        told = f"worst answer, {_NAMES[sized_by]}"
        figures.draw_curve(axes[0], worst.index, worst, sized_by, told)
        each = {"linestyle": "", "alpha": 0.35, "markersize": 3.5}
        figures.draw_curve(axes[0], here["rows"], here["error"], sized_by, "_each session", **each)
    figures.label_log_axes(axes, "rows: blocks × units a block", "error")
    figures.plain_heights(axes[0])
    figures.legend_below(figure, axes, columns=2)
    return figure


def _draw_deviations(results: DataFrame) -> Figure:
    figure, axes = figures.panels([""], height=4.2)
    for shift, sized_by in ((-0.16, "paper"), (0.16, "holdfast")):
        here, look = results[results["sized_by"] == sized_by], figures.method_look(sized_by)
        if here.empty:
            continue
        places = [_LAWS.index(law) + shift for law in here["law"]]
        told = f"worst answer, {_NAMES[sized_by]}"
        axes[0].plot(places, here["error"], look.marker, color=look.colour, label=told)
        promised, source = here["predicted"].max(), _SOURCES[sized_by]
        axes[0].axhline(promised, color=look.colour, linestyle="--", linewidth=1.2)
        told, at = f"promised by {source}", (2.45, promised)
        figures.note(axes[0], told, at, look.colour, xytext=(0, -4), va="top")
    names = ["mean of normals", "mean of exponentials", "rare events"]
    axes[0].set_xticks(range(len(_LAWS)), names, color=INK)
    axes[0].set_xlim(-0.5, len(_LAWS) - 0.5)
    axes[0].set_ylim(0, None)
    axes[0].set_ylabel("error ÷ mean absolute deviation")
    figures.legend_below(figure, axes, columns=2)
    return figure


def findings(results: DataFrame) -> list[Finding]:
    """Whether predictions held, by how much they are too careful, and what they cost in rows."""
    return [*_of_errors(results), *_of_rows(results)]


def _of_errors(results: DataFrame) -> Iterator[Finding]:
    for (example, sized_by), rows in results.groupby(["example", "sized_by"], sort=False):
        sessions = rows.groupby(["units", "repeat"])["broken"].sum()
        broken, share = int((sessions > 0).sum()), (rows["error"] / rows["predicted"]).median()
        what = f"{example}, {_NAMES[sized_by]}: sessions with an answer beyond the promised error"
        told = f"{broken} of {len(sessions)}; the worst answer is usually at {share:.2f} of it"
        holds = can_be_rate(broken, len(sessions), 0.05)
        yield Finding(what, told, "a rate of at most 0.05", holds)


def _of_rows(results: DataFrame) -> Iterator[Finding]:
    for example, rows in results.groupby("example", sort=False):
        # Rows for the same error: both promises fall like 1/√rows, but for the grid's step.
        need = {
            sized_by: float(
                (
                    here["rows"]
                    * (here["predicted"] - (_STEP if example == "subgaussian" else 0.0)) ** 2
                ).min()
            )
            for sized_by, here in rows.groupby("sized_by")
        }
        if len(need) == 2 and example != "deviation":
            times = need["paper"] / need["holdfast"]
            what = f"{example}: rows for the same promised error, the paper's ÷ Holdfast's"
            yield Finding(what, f"{times:.3g}", "more than 1", times > 1)
