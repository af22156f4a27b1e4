"""What a study gets from each method: recommendations, their picture, widths for many questions."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError, Infeasible, InvalidInput, real_number, whole_number
from holdfast.planning.plan import METHODS, Alternative, compare, split_blocks
from holdfast.planning.proposals import (
    Proposal,
    propose_amplified,
    propose_correct,
    propose_estimate,
    propose_rounds,
    propose_split,
    propose_weights,
)
from holdfast.planning.solve import steepest
from holdfast.theory.bars import mean_half_width
from holdfast.theory.means import DirectMeanSize, narrowest_direct, scaled_direct
from holdfast.theory.published import WIDTHS
from holdfast.theory.sizing import QUERIES_MAX, Promise, steepest_at, table_length

__all__ = [
    "LONGEST",
    "PLOT_FORMATS",
    "PLOT_QUERIES",
    "WIDTH_METHODS",
    "Method",
    "PlannerInput",
    "Recommendation",
    "Width",
    "check_plot_file",
    "compare_widths",
    "comparison",
    "direct",
    "draw_comparison",
    "half_steps",
    "recommend",
    "shown",
    "start",
    "tail_between",
]


# Which protocol: k questions, at most ℓ surprises, over such data, and the cheapest way to ask.
#
# All candidates promise the same of their answers: in qi(tail, 1 − tail), for all questions at
# once. Those with guesses end after their refusals. They differ in what they need besides blocks:
# open data to guess from (correct, rounds), a finite universe (weights), sub-blocks (amplified),
# blocks that serve nothing else (split).


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
    ('split', 660)
    """
    queries = whole_number("queries", queries, 1, 10**8)
    tail = real_number("tail", tail, 0, 0.5, open_low=True, open_high=True)
    high = tail_between(tail) if tail_high is None else tail_high
    candidates: dict[str, Callable[[], Proposal]] = {
        "estimate": partial(propose_estimate, queries, grid, tail, confidence),
        "amplified": partial(propose_amplified, queries, grid, tail, confidence),
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


# Methods: how near each of them brings every answer to the truth, for the planner.
#
# The task is the same for all: so many rows, so many adaptively chosen means of terms between 0
# and 1, all of them within the half-width at once. What is shown is certified: where a short
# search or a rounding leaves something open, the half-width is larger, never smaller. Half-widths
# of 1/2 are none at all, for 1/2 ± 1/2 needs no data.


_TRIVIAL = 0.5
LONGEST = 2e5  # half steps of a coin's table: built in less than ten seconds
_LOOKS = (5, 7, 9, 12, 16)  # grids of 2^looks points, for medians
_USUAL = 100  # questions for which the coin of a tail is found; it hardly depends on them
_TOO_LONG = "More than the planner computes while a page waits: try `holdfast plan`."
_TRIVIAL_REASON = "Nothing narrower than ± 0.5, which needs no data."


@dataclass(frozen=True)
class PlannerInput:
    """What the sliders say.

    >>> PlannerInput(100_000, 1_000, 0.25, 0.95).failure
    0.05
    """

    rows: int
    queries: int
    tail: float
    confidence: float

    def __post_init__(self) -> None:
        whole_number("rows", self.rows, 1, 10**9)
        whole_number("queries", self.queries, 1, 10**7)
        real_number("tail", self.tail, 0, 0.5, open_low=True, open_high=True)
        real_number("confidence", self.confidence, 0, 1, open_low=True, open_high=True)

    @property
    def failure(self) -> float:
        """β, as written."""
        return float(1 - Fraction(repr(float(self.confidence))))

    def at(self, queries: int) -> PlannerInput:
        """The same with other questions."""
        return PlannerInput(self.rows, queries, self.tail, self.confidence)


@dataclass(frozen=True)
class Width:
    """A half-width, and the blocks that reach it; or the reason why there is none."""

    half_width: float | None
    blocks: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Method:
    """One way to answer."""

    name: str
    label: str
    about: str
    width: Callable[[PlannerInput], Width]
    certified: bool = True

    def told(self, study: PlannerInput) -> dict[str, Any]:
        found = self.width(study)
        told = {
            "name": self.name,
            "label": self.label,
            "half_width": found.half_width,
            "blocks": found.blocks,
            "certified": self.certified,
            "about": self.about,
        }
        return told if found.reason is None else {**told, "reason": found.reason}


# Holdfast's means


@lru_cache(maxsize=32)
def direct(rows: int, queries: int, confidence: float) -> DirectMeanSize:
    """The narrowest bars of means that so many rows allow; every row is a block."""
    return narrowest_direct(queries, rows, confidence, exact=False)


def half_steps(study: PlannerInput) -> float:
    """About how long the table of the direct search's coin is."""
    return 1.25 * math.sqrt(study.rows * math.sqrt(-study.queries * math.log(study.failure)))


def _mean(study: PlannerInput) -> Width:
    if half_steps(study) > LONGEST:
        return Width(None, reason=_TOO_LONG)
    try:
        return shown(direct(study.rows, study.queries, study.confidence))
    except Infeasible:
        return Width(None, reason=_TRIVIAL_REASON)


def shown(plan: DirectMeanSize) -> Width:
    """The half-width of a plan. All bars are built by the theorem when it is made."""
    return _known(plan.half_width, plan.blocks)


def _known(half_width: float, blocks: int | None = None) -> Width:
    if half_width >= _TRIVIAL:
        return Width(None, reason=_TRIVIAL_REASON)
    return Width(half_width, blocks)


# Holdfast's median of blocks


@lru_cache(maxsize=256)
def _coin(tail: float, confidence: float) -> tuple[float, ...] | None:
    """Order, budget and share that are good for a tail, whatever the number of questions."""
    try:
        return steepest(Promise(_USUAL, 2 ** _LOOKS[0], tail, tail, confidence)).parameters
    except Infeasible:
        return None


@lru_cache(maxsize=4096)
def _fewest(queries: int, looks: int, tail: float, confidence: float) -> int:
    """The fewest blocks, certified, by the coin of the tail or by splitting."""
    promise = Promise(queries, 2**looks, tail, tail, confidence)
    fewest, coin = split_blocks(promise), _coin(tail, confidence)
    if coin is None or table_length(promise, coin[0], coin[1]) > LONGEST:
        return fewest
    sized = steepest_at(promise, *coin)
    return fewest if sized is None else min(fewest, sized.size.blocks)


def _median(study: PlannerInput) -> Width:
    first = _on_grid(study, _LOOKS[0])
    if first.blocks is None:
        return first
    # Blocks grow like √looks: good enough to choose a grid by, and what it gives is then computed.
    best = min(_LOOKS, key=lambda looks: _by_blocks(study, looks, _grown(first, looks)))
    found = [first, _on_grid(study, best)]
    narrowest = min(each.half_width or 1.0 for each in found)
    return _known(*next((w, b) for w, b in map(_pair, found) if w == narrowest))


def _pair(width: Width) -> tuple[float, int | None]:
    return width.half_width or 1.0, width.blocks


def _grown(first: Width, looks: int) -> int:
    assert first.blocks is not None
    return math.ceil(first.blocks * math.sqrt(looks / _LOOKS[0]))


def _on_grid(study: PlannerInput, looks: int) -> Width:
    blocks = _fewest(study.queries, looks, study.tail, study.confidence)
    if blocks > study.rows:
        return Width(None, reason=f"At this tail it needs {blocks:,} blocks of at least a row.")
    return Width(_by_blocks(study, looks, blocks), blocks)


def _by_blocks(study: PlannerInput, looks: int, blocks: int) -> float:
    """The error of the mean of a block, and half a cell of the grid."""
    if blocks > study.rows:
        return math.inf
    rounding = 0.5 / (2.0**looks - 1.0)
    return (mean_half_width(study.rows // blocks, study.tail) + rounding) * (1 + 1e-15)


# The others


def _split(study: PlannerInput) -> Width:
    units = study.rows // study.queries
    if units == 0:
        return Width(None, reason="There are more questions than rows.")
    return _known(mean_half_width(units, study.failure / (2 * study.queries)), study.queries)


def _naive(study: PlannerInput) -> Width:
    return _known(mean_half_width(study.rows, study.failure / (2 * study.queries)))


def _published(name: str) -> Callable[[PlannerInput], Width]:
    return lambda study: _known(WIDTHS[name](study.rows, study.queries, study.failure))


_NOISE = "Gaussian noise on every mean, by the theorem of"
WIDTH_METHODS = (
    Method(
        "mean",
        "Holdfast: means",
        "A search over the sum of all rows, for the price of one look.",
        _mean,
    ),
    Method(
        "median",
        "Holdfast: medians of blocks",
        "The middle of all blocks' means, at this tail; it serves any estimator.",
        _median,
    ),
    Method("split", "Fresh rows for every question", "Every row is used once.", _split),
    Method(
        "bassily", "Bassily et al. 2016", f"{_NOISE} Bassily et al. 2016.", _published("bassily")
    ),
    Method("rogers", "Rogers et al. 2020", f"{_NOISE} Rogers et al. 2020.", _published("rogers")),
    Method("jung", "Jung et al. 2020", f"{_NOISE} Jung et al. 2020.", _published("jung")),
    Method(
        "naive",
        "Naive: not valid when questions are chosen adaptively",
        "The sample's own mean and a union bound. Not valid when questions are chosen adaptively.",
        _naive,
        certified=False,
    ),
)


# Widths: half-widths by method, at a point and along a curve, for the planner.


_POINTS = 12  # of a curve
_CURVE = 5e4  # half steps of all coins that a curve is drawn with


def compare_widths(
    rows: int, queries: int, tail: float, confidence: float, *, curve: bool = True
) -> dict[str, Any]:
    """Every method's half-width; with a curve also for fewer and for more questions.

    >>> found = compare_widths(10_000, 50, 0.25, 0.95, curve=False)
    >>> {each["name"]: round(each["half_width"], 3) for each in found["methods"]}
    {'mean': 0.087, 'median': 0.291, 'split': 0.138, 'bassily': 0.361, 'rogers': 0.154, \
'jung': 0.232, 'naive': 0.019}
    """
    study = PlannerInput(rows, queries, tail, confidence)
    methods = [method.told(study) for method in WIDTH_METHODS]
    told = {"rows": rows, "queries": queries, "tail": tail, "confidence": confidence}
    drawn = _curve(study) if curve else []
    return {**told, "methods": methods, "curve": drawn}


def start(_: object) -> Callable[[tuple[int, int, float, float, bool]], bytes]:
    """What a process of its own does with a message; see `holdfast.engines.process`."""

    def handle(message: tuple[int, int, float, float, bool]) -> bytes:
        rows, queries, tail, confidence, curve = message
        try:
            found = compare_widths(rows, queries, tail, confidence, curve=curve)
        except Infeasible as refused:
            found = {"refused": str(refused)}
        return json.dumps(found, allow_nan=False).encode()

    return handle


def _curve(study: PlannerInput) -> list[dict[str, Any]]:
    """Half-widths for about twelve numbers of questions, the last ten times as many."""
    numbers = _numbers(study.queries)
    lines = {
        method.name: _line(map(method.width, map(study.at, numbers)))
        for method in WIDTH_METHODS[1:]
    }
    means = _means(study, numbers)
    return [
        {
            "queries": queries,
            "mean": means.get(queries),
            **{name: line[i] for name, line in lines.items()},
        }
        for i, queries in enumerate(numbers)
    ]


def _numbers(queries: int) -> list[int]:
    """1, 2, 5, 10, … up to ten times as many, and the number itself.

    >>> _numbers(3)
    [1, 2, 3, 5, 10, 20]
    >>> _numbers(1_000)
    [2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]
    """
    most = min(10 * queries, QUERIES_MAX)
    steps = [step * 10**power for power in range(9) for step in (1, 2, 5)]
    return sorted({queries, *[k for k in steps if k <= most][-_POINTS:]})


def _line(found: Iterable[Width]) -> list[float | None]:
    """Half-widths that never fall: what holds for more questions holds for fewer."""
    least, line = math.inf, []
    for width in reversed([*found]):
        least = min(least, math.inf if width.half_width is None else width.half_width)
        line.append(None if least == math.inf else least)
    return line[::-1]


def _means(study: PlannerInput, numbers: list[int]) -> dict[int, float | None]:
    """Means at as many of the numbers as can be computed soon, scaled from the study's own plan."""
    if WIDTH_METHODS[0].width(study).half_width is None:
        return {}
    total = sum(half_steps(study.at(k)) for k in numbers)
    stride = max(1, min(math.ceil(total / _CURVE), len(numbers) // 3))
    place = numbers.index(study.queries)
    kept = [k for k in numbers[place % stride :: stride] if half_steps(study.at(k)) <= LONGEST]
    plan = direct(study.rows, study.queries, study.confidence)
    found = [plan if k == study.queries else scaled_direct(plan, k) for k in kept]
    return dict(zip(kept, _line(map(shown, found)), strict=True))
