"""Methods: how near each of them brings every answer to the truth, for the planner.

The task is the same for all: so many rows, so many adaptively chosen means of terms between 0 and
1, all of them within the half-width at once. What is shown is certified: where a short search or a
rounding leaves something open, the half-width is larger, never smaller. Half-widths of 1/2 are none
at all, for 1/2 ± 1/2 needs no data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from holdfast.baselines.published import WIDTHS
from holdfast.errors import Infeasible, real_number, whole_number
from holdfast.planning.alternatives import split_blocks
from holdfast.planning.solve import steepest
from holdfast.theory.bars import mean_half_width
from holdfast.theory.means import DirectMean, narrowest_direct
from holdfast.theory.sizing import Promise, steepest_at, table_length

__all__ = ["LONGEST", "METHODS", "Method", "Study", "Width", "direct", "half_steps", "shown"]

_TRIVIAL = 0.5
LONGEST = 2e5  # half steps of a coin's table: built in less than ten seconds
_LOOKS = (5, 7, 9, 12, 16)  # grids of 2^looks points, for medians
_USUAL = 100  # questions for which the coin of a tail is found; it hardly depends on them
_TOO_LONG = "More than the planner computes while a page waits: try `holdfast plan`."
_TRIVIAL_REASON = "Nothing narrower than ± 0.5, which needs no data."


@dataclass(frozen=True)
class Study:
    """What the sliders say.

    >>> Study(100_000, 1_000, 0.25, 0.95).failure
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

    def at(self, queries: int) -> Study:
        """The same with other questions."""
        return Study(self.rows, queries, self.tail, self.confidence)


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
    width: Callable[[Study], Width]
    certified: bool = True

    def told(self, study: Study) -> dict[str, Any]:
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
def direct(rows: int, queries: int, confidence: float) -> DirectMean:
    """The narrowest bars of means that so many rows allow; every row is a block."""
    return narrowest_direct(queries, rows, confidence, exact=False)


def half_steps(study: Study) -> float:
    """About how long the table of the direct search's coin is."""
    return 1.25 * math.sqrt(study.rows * math.sqrt(-study.queries * math.log(study.failure)))


def _mean(study: Study) -> Width:
    if half_steps(study) > LONGEST:
        return Width(None, reason=_TOO_LONG)
    try:
        return shown(direct(study.rows, study.queries, study.confidence))
    except Infeasible:
        return Width(None, reason=_TRIVIAL_REASON)


def shown(plan: DirectMean) -> Width:
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


def _median(study: Study) -> Width:
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


def _on_grid(study: Study, looks: int) -> Width:
    blocks = _fewest(study.queries, looks, study.tail, study.confidence)
    if blocks > study.rows:
        return Width(None, reason=f"At this tail it needs {blocks:,} blocks of at least a row.")
    return Width(_by_blocks(study, looks, blocks), blocks)


def _by_blocks(study: Study, looks: int, blocks: int) -> float:
    """The error of the mean of a block, and half a cell of the grid."""
    if blocks > study.rows:
        return math.inf
    rounding = 0.5 / (2.0**looks - 1.0)
    return (mean_half_width(study.rows // blocks, study.tail) + rounding) * (1 + 1e-15)


# The others


def _split(study: Study) -> Width:
    units = study.rows // study.queries
    if units == 0:
        return Width(None, reason="There are more questions than rows.")
    return _known(mean_half_width(units, study.failure / (2 * study.queries)), study.queries)


def _naive(study: Study) -> Width:
    return _known(mean_half_width(study.rows, study.failure / (2 * study.queries)))


def _published(name: str) -> Callable[[Study], Width]:
    return lambda study: _known(WIDTHS[name](study.rows, study.queries, study.failure))


_NOISE = "Gaussian noise on every mean, by the theorem of"
METHODS = (
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
