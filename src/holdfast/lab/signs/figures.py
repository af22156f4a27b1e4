"""The picture of an attack: the population rank of every run's answer, against the promise.

Needs matplotlib (the extra `plot`), which is imported when a picture is drawn. Nothing here uses
pyplot: no window, no global state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.lab.signs.attack import HOLDFAST, NAIVE, AttackResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_attack"]

# Okabe & Ito's palette: told apart by every kind of colour vision, and by lightness in grey.
_COLOURS = {NAIVE: "#D55E00", HOLDFAST: "#0072B2"}
_MARKERS = {NAIVE: "^", HOLDFAST: "o"}
_LABELS = {NAIVE: "Naive median", HOLDFAST: "Holdfast"}
_PROMISED = "#009E73"
_INK, _FAINT = "#222222", "#767676"
_DEEP, _SHALLOW = (
    1e-5,
    2e-3,
)  # tails that are shown: where marks are, and where none are
_TICKS = (0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)


def draw_attack(result: AttackResult) -> Figure:
    """A point per run and responder, on a logit scale; the promised interval is shaded."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    axes = figure.add_subplot()
    _limits(axes, np.concatenate(list(result.ranks.values())))
    _promise(axes, result.plan.tail)
    for column, name in enumerate(result.ranks):
        _column(axes, column, name, result)
    axes.set_xlim(-0.5, len(result.ranks) - 0.5)
    axes.set_xticks(range(len(result.ranks)))
    labels = [
        f"{_LABELS[name]}\n{result.failures(name):,} of {result.runs:,} runs outside"
        for name in result.ranks
    ]
    for name, text in zip(result.ranks, axes.set_xticklabels(labels, fontsize=13), strict=True):
        text.set_color(_COLOURS[name])
        text.set_fontweight("bold")
    axes.tick_params(axis="x", length=0, pad=8)
    _titles(figure, axes, result)
    return figure


def _limits(axes: Axes, ranks: NDArray[np.float64]) -> None:
    low = _DEEP if float(ranks.min()) < _SHALLOW else _SHALLOW
    high = 1 - (_DEEP if float(ranks.max()) > 1 - _SHALLOW else _SHALLOW)
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axes.set_yscale("logit")
    axes.set_ylim(low, high)
    axes.set_yticks(ticks)
    axes.set_yticklabels([f"{tick:g}" for tick in ticks])
    axes.minorticks_off()


def _promise(axes: Axes, tail: float) -> None:
    axes.axhspan(tail, 1 - tail, color=_PROMISED, alpha=0.13, linewidth=0)
    for edge in (tail, 1 - tail):
        axes.axhline(edge, color=_PROMISED, linewidth=1.2)
    axes.text(
        0.5,  # between the two columns
        tail * 1.2,
        f"promised: rank between {tail:g} and {1 - tail:g}",
        ha="center",
        va="bottom",
        color="#00664B",
        fontsize=10,
    )
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", colors=_FAINT)


def _column(axes: Axes, column: int, name: str, result: AttackResult) -> None:
    ranks = np.clip(result.ranks[name], *axes.get_ylim())  # those beyond are drawn at the edge
    axes.scatter(
        column + _spread(ranks),
        ranks,
        s=26,
        marker=_MARKERS[name],
        color=_COLOURS[name],
        alpha=0.65,
        linewidth=0,
        clip_on=False,
        zorder=3,
    )


def _spread(ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sideways places in run order: the same picture for the same result, without more chance."""
    return np.linspace(-0.22, 0.22, ranks.size) if ranks.size > 1 else np.zeros(1)


def _titles(figure: Figure, axes: Axes, result: AttackResult) -> None:
    looks, blocks = result.plan.promise.looks, result.blocks
    figure.suptitle(
        "One attack, the same blocks, two ways to answer",
        fontsize=14,
        fontweight="bold",
        color=_INK,
    )
    axes.set_title(
        f"{looks:,} looks on {blocks:,} blocks; the last question is made from all earlier answers",
        fontsize=10,
        color=_FAINT,
        pad=10,
    )
    axes.set_ylabel("population rank of the last answer", color=_INK, fontsize=11)
    figure.supxlabel(
        f"one mark per run, {result.runs:,} runs; {result.entropy}", fontsize=9, color=_FAINT
    )
