"""Blocks against questions for all methods, on log axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from holdfast.errors import HoldfastError, InvalidInput
from holdfast.planning.alternatives import METHODS, Alternative, compare
from holdfast.planning.cache import steepest
from holdfast.theory.sizing import Promise

__all__ = ["PLOT_FORMATS", "PLOT_QUERIES", "check_plot_file", "comparison", "draw_comparison"]

PLOT_FORMATS = ("svg", "png", "pdf")
PLOT_QUERIES = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)

# Okabe–Ito colours, and markers: told apart without colour too.
_STYLES = {
    "paper": ("#999999", "s", "paper's constants"),
    "split": ("#E69F00", "^", "fresh splitting"),
    "exponential": ("#009E73", "D", "exponential mechanism"),
    "gaussian": ("#56B4E9", "v", "Gaussian counts"),
    "steepest": ("#0072B2", "o", "steepest coin"),
}


def check_plot_file(path: Path) -> None:
    """Refuse what cannot be drawn, before the work starts."""
    if path.suffix.lstrip(".").lower() not in PLOT_FORMATS:
        raise InvalidInput("plot", str(path), f"a file ending in {', '.join(PLOT_FORMATS)}")
    if path.is_dir():
        raise InvalidInput("plot", str(path), "a file, not a folder")
    if not path.absolute().parent.is_dir():
        raise InvalidInput("plot", str(path), "a file in an existing folder")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise HoldfastError("Drawing needs matplotlib: pip install matplotlib.") from None


def comparison(
    promise: Promise, queries: Iterable[int], done: Callable[[int], None] = lambda _: None
) -> dict[int, tuple[Alternative, ...]]:
    """Every method at every number of questions; `done` is told each number as it is finished."""
    table = {}
    for k in queries:
        asked = Promise(
            k, promise.grid_size, promise.tail_low, promise.tail_high, promise.confidence
        )
        table[k] = compare(asked, steepest(asked))
        done(k)
    return table


def draw_comparison(
    path: Path, promise: Promise, table: dict[int, tuple[Alternative, ...]]
) -> None:
    """One curve a method, the planned number of questions marked."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    axes = figure.subplots()
    for method in METHODS:
        colour, marker, label = _STYLES[method]
        points = [(k, a.blocks) for k, row in table.items() for a in row if a.method == method]
        known = [(k, blocks) for k, blocks in points if blocks is not None]
        if known:
            width = 2.6 if method == "steepest" else 1.3
            axes.plot(
                [k for k, _ in known],
                [blocks for _, blocks in known],
                color=colour,
                marker=marker,
                markersize=5,
                linewidth=width,
                label=label,
            )
    axes.axvline(promise.queries, color="#444444", linewidth=0.8, linestyle=":")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("questions, all certified at once")
    axes.set_ylabel("blocks needed")
    low, high = promise.tail_low, promise.tail_high
    axes.set_title(
        f"Blocks for the ({low:.4g}, {1 - high:.4g}) quantile promise, "
        f"confidence {promise.confidence:.4g}, grid of {promise.grid_size:,}",
        fontsize=10,
    )
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False, fontsize=9)
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else None  # the same file each time
    figure.savefig(path, dpi=160, metadata=metadata)
