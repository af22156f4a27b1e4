"""The demo's picture: every answer of both searches against the truth, and the two findings.

Needs matplotlib (the extra `plot`), which is imported when the picture is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.demo.analyst import Hunt
from holdfast.demo.finding import Finding
from holdfast.demo.result import DemoResult
from holdfast.lab.style import save_figure
from holdfast.lab.worlds.flights import Flights

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_demo", "draw_pictures"]

# Okabe & Ito's palette, as in the lab's pictures.
_NAIVE, _HOLDFAST, _TRUTH = "#D55E00", "#0072B2", "#222222"
_FAINT = "#767676"


def draw_pictures(result: DemoResult, flights: Flights, folder: Path) -> list[Path]:
    """Write demo.svg and demo.png; nothing where matplotlib is missing."""
    try:
        return save_figure(draw_demo(result, flights), folder, "demo")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        return []


def draw_demo(result: DemoResult, flights: Flights) -> Figure:
    """Left: answers against truths, cell by cell. Right: the two findings with their intervals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.25])
    _answers(left, result, flights)
    _findings(right, result)
    figure.suptitle(
        f"The worst flights from New York, after {result.questions} questions",
        fontsize=14,
        fontweight="bold",
        color=_TRUTH,
    )
    return figure


def _answers(axes: Axes, result: DemoResult, flights: Flights) -> None:
    axes.axline((0, 0), slope=1, color=_FAINT, linewidth=1, zorder=1)
    _scatter(axes, result.naive_hunt, flights, _NAIVE, "^", "exact answers")
    _scatter(axes, result.hunt, flights, _HOLDFAST, "o", "Holdfast's answers")
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.02, 1)
    axes.set_xlabel("truth: late flights among the cell's, in the population")
    axes.set_ylabel("answer")
    axes.set_title("Every question of the two searches", fontsize=11, color=_FAINT)
    axes.text(0.97, 0.03, "planes: no answer to chase", ha="right", color=_HOLDFAST, fontsize=9)
    axes.annotate(
        "answer = truth",
        (0.88, 0.88),
        xytext=(-8, 2),
        textcoords="offset points",
        ha="right",
        color=_FAINT,
        fontsize=9,
    )
    axes.legend(frameon=False, loc="upper left")
    _percent(axes.xaxis, axes.yaxis)
    _bare(axes)


def _scatter(
    axes: Axes, found: Hunt, flights: Flights, colour: str, marker: str, label: str
) -> None:
    listed = set(found.finding)
    for chosen in (False, True):
        cells = [cell for cell in found.answers if (cell in listed) == chosen]
        axes.scatter(
            [float(flights.late[flights.rows(cell)].mean()) for cell in cells],
            [found.answers[cell] for cell in cells],
            s=46 if chosen else 16,
            marker=marker,
            facecolor=colour if chosen else "none",
            edgecolor=colour,
            linewidth=0.8,
            alpha=0.95 if chosen else 0.55,
            label=f"{label}: its list" if chosen else label,
            zorder=3 if chosen else 2,
            clip_on=False,
        )


def _findings(axes: Axes, result: DemoResult) -> None:
    rows = (
        (2.0, _NAIVE, "^", "Naive reuse", "textbook 95 % interval", result.naive),
        (1.0, _HOLDFAST, "o", "Holdfast", "95 % for all answers at once", result.holdfast),
        (0.0, _HOLDFAST, "o", "Holdfast", "all flights", result.everything),
    )
    for height, colour, marker, name, about, finding in rows:
        _interval(axes, height, colour, marker, finding)
        axes.text(0.0, height + 0.2, name, color=colour, fontweight="bold", fontsize=11)
        axes.text(0.215, height + 0.2, about, color=_FAINT, fontsize=9.5)
    axes.scatter([], [], marker="D", s=30, color=_TRUTH, label="truth in the population")
    axes.legend(frameon=False, loc="lower right")
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.6, 2.5)
    axes.set_yticks([])
    axes.set_xlabel("late flights among those on the list")
    axes.set_title("What each search found: a list of ten cells", fontsize=11, color=_FAINT)
    _percent(axes.xaxis)
    _bare(axes)
    axes.spines["left"].set_visible(False)


def _interval(axes: Axes, height: float, colour: str, marker: str, finding: Finding) -> None:
    axes.plot(
        [finding.low, finding.high],
        [height, height],
        color=colour,
        linewidth=7,
        alpha=0.3,
        solid_capstyle="butt",
    )
    axes.scatter([finding.value], [height], marker=marker, s=120, color=colour, zorder=3)
    axes.scatter([finding.truth], [height], marker="D", s=30, color=_TRUTH, zorder=4)
    verdict = "contains the truth" if finding.contains else "misses the truth"
    axes.text(
        max(finding.high, finding.truth) + 0.02,
        height,
        f"{verdict}\n{finding.flights:,} flights",
        va="center",
        fontsize=9,
        color=colour,
    )


def _percent(*scales: object) -> None:
    from matplotlib.ticker import PercentFormatter

    for scale in scales:
        scale.set_major_formatter(PercentFormatter(1, decimals=0))  # type: ignore[attr-defined]


def _bare(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
