"""Which protocol: k questions, at most ℓ surprises, over such data, and the cheapest way to ask.

All candidates promise the same of their answers: in qi(tail, 1 − tail), for all questions at once.
Those with guesses end after their refusals. They differ in what they need besides blocks: open data
to guess from (correct, rounds), a finite universe (weights), sub-blocks (amplified), blocks that
serve nothing else (exact, split).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from holdfast.errors import HoldfastError, Infeasible, InvalidInput, real_number, whole_number
from holdfast.planning.alternatives import METHODS, Alternative, compare
from holdfast.planning.proposals import (
    Proposal,
    propose_amplified,
    propose_correct,
    propose_estimate,
    propose_exact,
    propose_rounds,
    propose_split,
    propose_weights,
)
from holdfast.planning.solve import steepest
from holdfast.theory.sizing import Promise

__all__ = [
    "PLOT_FORMATS",
    "PLOT_QUERIES",
    "Recommendation",
    "check_plot_file",
    "comparison",
    "draw_comparison",
    "recommend",
    "tail_between",
]


@dataclass(frozen=True)
class Recommendation:
    """Proposals for the same promise, the cheapest first, and why others are missing."""

    proposals: tuple[Proposal, ...]
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def best(self) -> Proposal:
        """The cheapest."""
        return self.proposals[0]

    @property
    def saving(self) -> float | None:
        """How many times more blocks the next one needs."""
        if len(self.proposals) < 2:
            return None
        return self.proposals[1].blocks / self.best.blocks

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and text."""
        return {
            **self.best.to_dict(),
            "saving": self.saving,
            "candidates": [{"protocol": p.protocol, "blocks": p.blocks} for p in self.proposals],
            "refused": [{"protocol": name, "reason": reason} for name, reason in self.refused],
        }


def tail_between(tail: float) -> float:
    """The tail above which a guess must be confirmed, where none is given: half way to 1/2."""
    return (tail + 0.5) / 2


def recommend(
    queries: int,
    *,
    refusals: int | None = None,
    universe: int | None = None,
    grid: int = 32,
    tail: float = 0.25,
    tail_high: float | None = None,
    confidence: float = 0.95,
) -> Recommendation:
    """The cheapest protocol for `queries` questions, and what every other one needs.

    refusals    how many guesses from open data may turn out wrong (a wrong one has a tail below
                tail_high); without it no protocol with guesses is considered
    universe    how many different blocks there can be; without it no weights are

    >>> advice = recommend(20, tail=0.25)
    >>> advice.best.protocol, advice.best.blocks
    ('exact', 461)
    """
    queries = whole_number("queries", queries, 1, 10**8)
    tail = real_number("tail", tail, 0, 0.5, open_low=True, open_high=True)
    high = tail_between(tail) if tail_high is None else tail_high
    candidates: dict[str, Callable[[], Proposal]] = {
        "estimate": partial(propose_estimate, queries, grid, tail, confidence),
        "amplified": partial(propose_amplified, queries, grid, tail, confidence),
        "exact": partial(propose_exact, queries, grid, tail, confidence),
        "split": partial(propose_split, queries, tail, confidence),
    }
    if refusals is not None:
        guesses = (tail, high, confidence)
        candidates["correct"] = partial(propose_correct, queries, refusals, grid, *guesses)
        candidates["rounds"] = partial(propose_rounds, queries, refusals, *guesses)
    if universe is not None:
        sizes = (queries, universe, tail, grid, confidence)
        candidates["weights"] = partial(propose_weights, *sizes)
    found, refused = [], []
    for name, propose in candidates.items():
        try:
            found.append(propose())
        except (Infeasible, InvalidInput) as why:
            refused.append((name, str(why)))
    if not found:
        raise HoldfastError(f"No protocol can be planned: {refused[0][1]}")
    # Of equals the first: the order above is that of fewest further needs.
    return Recommendation(tuple(sorted(found, key=lambda p: p.blocks)), tuple(refused))


# Blocks against questions for all methods, on log axes.


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
