"""How the lab's pictures look: one colour and one mark for each method, in all of them.

Nothing here uses pyplot: no window, no global state. Needs matplotlib, the extra `plot`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # neither is imported before something is drawn
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from pandas import DataFrame as DataFrame
else:
    Axes = DataFrame = Figure = Any


class Look(NamedTuple):
    """How a method is drawn."""

    label: str
    colour: str
    marker: str
    line: str = "-"


INK, FAINT, PROMISED = "#222222", "#767676", "#009E73"

# Okabe & Ito's palette: told apart by every kind of colour vision, and by lightness in grey.
LOOKS: dict[str, Look] = {
    "holdfast": Look("Holdfast", "#0072B2", "o"),
    "naive": Look("naive reuse", "#D55E00", "^"),
    "split": Look("fresh splitting", "#009E73", "s"),
    "paper": Look("Feldman & Steinke 2017", "#CC79A7", "v"),
    "gaussian": Look("Gaussian noise", "#E69F00", "D"),
    "laplace": Look("Laplace noise", "#56B4E9", "P"),
    "thresholdout": Look("Thresholdout", "#8B6BB1", "X"),
    "ladder": Look("Ladder", "#A6761D", "<"),
    "guess-and-check": Look("guess and check", "#666666", ">"),
    "sparse-vector": Look("sparse vector", "#B2A000", "p"),
    "bassily": Look("Bassily et al. 2016", "#999933", "v"),
    "rogers": Look("Rogers et al. 2020", "#332288", "D"),
    "jung": Look("Jung et al. 2020", "#AA4499", "^"),
    "holdfast-mean": Look("Holdfast, means", "#0072B2", "o"),
    "holdfast-split": Look("Holdfast, splitting", "#0072B2", "s", ":"),
    "truth": Look("truth", INK, "", "--"),
}
_OTHER = Look("", FAINT, "o")


def look_of(name: str) -> Look:
    """The look of a method; `holdfast-mean` is drawn as `holdfast` is, under its own name."""
    if name in LOOKS:
        return LOOKS[name]
    family = LOOKS.get(name.split("-")[0], _OTHER)
    return family._replace(label=name.replace("-", " ", 1).replace("holdfast", "Holdfast"))


def new_figure(
    columns: int = 1, *, width: float = 7.2, height: float = 4.2
) -> tuple[Figure, list[Axes]]:
    """A figure with its axes side by side, without the frame that nobody needs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = [figure.add_subplot(1, columns, i + 1) for i in range(columns)]
    for one in axes:
        for side in ("top", "right"):
            one.spines[side].set_visible(False)
        one.grid(visible=True, which="major", color="#DDDDDD", linewidth=0.6)
        one.set_axisbelow(True)
        one.tick_params(colors=FAINT)
    return figure, axes


def save_figure(figure: Figure, folder: Path, stem: str) -> list[Path]:
    """Write the picture as SVG and PNG, the same bytes for the same picture; return the paths."""
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem}.svg", folder / f"{stem}.png"]
    # Text stays text: it can be read aloud, searched and copied, and takes a third of the space.
    with matplotlib.rc_context({"svg.hashsalt": "holdfast", "svg.fonttype": "none"}):
        figure.savefig(paths[0], metadata={"Date": None})
        figure.savefig(paths[1], dpi=150)
    return paths


# Means over sessions, one standard deviation around them, and what is claimed.


def draw_average(
    axes: Axes,
    rows: DataFrame,
    x: str,
    y: str,
    name: str,
    label: str | None = None,
    *,
    band: bool = True,
    **how: Any,
) -> None:
    """The mean over sessions as a curve in its method's look, one standard deviation around it."""
    rows = rows.dropna(subset=[y])
    if rows.empty:
        return
    look = look_of(name)
    found = rows.groupby(x)[y].agg(["mean", "std"]).fillna(0.0)
    own = {"color": look.colour, "marker": look.marker, "linestyle": look.line, "markersize": 4}
    style = {**own, "linewidth": 1.5, "label": label or look.label, **how}
    axes.plot(found.index, found["mean"], **style)
    if band:
        low, high = found["mean"] - found["std"], found["mean"] + found["std"]
        axes.fill_between(found.index, low, high, color=style["color"], alpha=0.15, linewidth=0)


def draw_claim(axes: Axes, rows: DataFrame, x: str, name: str, label: str) -> None:
    """What is claimed, from the mean lower end to the mean upper one, as a pale band."""
    rows = rows.dropna(subset=["low", "high"])
    if rows.empty:
        return
    ends = rows.groupby(x)[["low", "high"]].mean()
    colour = look_of(name).colour
    axes.fill_between(ends.index, ends["low"], ends["high"], color=colour, alpha=0.1, label=label)


def log_ticks(axes: Axes, values: Any) -> None:
    """A horizontal log axis with a tick for each value, as a plain number."""
    known = sorted(set(values))
    axes.set_xscale("log")
    axes.set_xticks(known, [f"{each:,}" for each in known])
    axes.minorticks_off()


# Curves on log axes, each in its method's colour and mark, named below.


_OURS = LOOKS["holdfast"]
_LOOKS = {
    "exponential": Look("exponential mechanism", "#882255", "h"),
    "gaussian": LOOKS["gaussian"]._replace(label="Gaussian counts"),
}


def method_look(name: str) -> Look:
    """The look of a method, those that only plans know included."""
    return _LOOKS.get(name) or look_of(name)


def panels(
    titles: Sequence[str], *, width: float = 0.0, height: float = 4.4
) -> tuple[Figure, list[Axes]]:
    """A figure with one panel for each title, all with the same vertical axis."""
    width = width or (7.2 if len(titles) < 2 else 3.6 * len(titles))
    figure, axes = new_figure(max(1, len(titles)), width=width, height=height)
    for one, title in zip(axes, titles, strict=False):
        one.set_title(title, fontsize=10, loc="left", color=INK)
        if one is not axes[0]:
            one.sharey(axes[0])
            one.tick_params(labelleft=False)
    return figure, axes


def tail_panels(
    results: DataFrame, *, rising: bool = False, width: float = 0.0
) -> tuple[Figure, list[Axes], list[DataFrame]]:
    """A panel for each tail, and its rows; the largest tail first unless they are rising."""
    tails = sorted(results["tail"].unique(), reverse=not rising)
    figure, axes = panels([f"ρ = {tail:g}" for tail in tails], width=width)
    return figure, axes, [results[results["tail"] == tail] for tail in tails]


def draw_curve(
    axes: Axes,
    x: Iterable[float],
    y: Iterable[float],
    name: str,
    label: str | None = None,
    **how: Any,
) -> None:
    """One curve through its points, from left to right; ours is thicker. No points, no curve."""
    points = sorted((a, b) for a, b in zip(x, y, strict=True) if b > 0 and math.isfinite(b))
    if not points:
        return
    look = method_look(name)
    own: dict[str, Any] = {
        "color": look.colour,
        "marker": look.marker,
        "linestyle": look.line,
        "markersize": 4.5,
        "linewidth": 2.2 if look.colour == _OURS.colour else 1.3,
        "label": look.label if label is None else label,
    }
    axes.plot([a for a, _ in points], [b for _, b in points], **{**own, **how})


def guide(axes: Axes, x: Sequence[float], y: Sequence[float], label: str) -> None:
    """A line that nobody measured: an exponent, or a formula."""
    axes.plot(x, y, color=FAINT, linestyle=(0, (4, 3)), linewidth=1.2, label=label, zorder=1.5)


def label_log_axes(axes: Sequence[Axes], across: str, up: str) -> None:
    """Both axes logarithmic; what they measure."""
    for one in axes:
        one.set_xscale("log")
        one.set_yscale("log")
        one.set_xlabel(across)
    axes[0].set_ylabel(up)


def plain_heights(axes: Axes) -> None:
    """Plain numbers at 1, 2 and 5 on a vertical log axis: for heights of a decade or two."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def legend_below(figure: Figure, axes: Sequence[Axes], columns: int = 4, size: float = 8.5) -> None:
    """One legend for all panels, under them; every name once."""
    found: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        figure.legend(
            list(found.values()),
            list(found),
            loc="outside lower center",
            ncols=min(columns, len(found)),
            frameon=False,
            fontsize=size,
        )


def note(axes: Axes, text: str, at: tuple[float, float], colour: Any, **how: Any) -> None:
    """Small words that end at a point, unless `ha` says otherwise; `xytext` moves them."""
    own = {"xytext": (0, 0), "ha": "right", "va": "center", "annotation_clip": False}
    axes.annotate(
        text, at, textcoords="offset points", fontsize=8.5, color=colour, **{**own, **how}
    )
