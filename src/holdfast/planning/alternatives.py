"""The same promise by every known method: what each needs, and what cannot be counted.

paper        the paper's own constants (thm `adaptive-iqr`; other tails re-derived from `gen`)
split        fresh blocks for every question
exponential  exponential-mechanism median      } the paper's mechanisms under our analysis
gaussian     noisy binary search               }
steepest     the steepest coin
interior     Bun et al. 2015, 2^O(log* r) blocks instead of log r        asymptotic only
linear       Steinke & Ullman 2016 for linear queries, without log k     asymptotic only
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.errors import InvalidInput
from holdfast.theory.paper import adaptive_iqr, adaptive_tails
from holdfast.theory.sizing import (
    Promise,
    Sized,
    Split,
    best_exponential,
    best_gaussian,
    fresh_split,
    split_failure,
)

__all__ = [
    "METHODS",
    "Alternative",
    "compare",
    "recommended",
    "split_blocks",
    "split_for",
    "split_tail",
]

METHODS = ("paper", "split", "exponential", "gaussian", "steepest")
_CERTIFYING = ("steepest", "split", "gaussian", "exponential")  # preferred in this order on a tie


@dataclass(frozen=True)
class Alternative:
    """A method, the blocks it needs for the promise (None where that cannot be stated), and the
    settings with which it keeps it.
    """

    method: str
    blocks: int | None
    note: str = ""
    settings: tuple[tuple[str, float], ...] = ()


def compare(
    promise: Promise, steepest: Sized, target: float | None = None
) -> tuple[Alternative, ...]:
    """Every method on the same promise, in the order of METHODS, those without a number last.

    With a target of one's own, only the methods that can aim at it are counted.
    """
    free = target is None or (promise.symmetric and target == 0.5)
    entries = (
        Alternative("paper", _paper_blocks(promise)) if free else _aimless("paper"),
        _split(promise) if free else _aimless("split"),
        _exponential(promise) if free else _aimless("exponential"),
        _gaussian(promise, target),
        Alternative("steepest", steepest.size.blocks),
        Alternative("interior", None, "asymptotic only: Bun et al. 2015 state no constants"),
        Alternative("linear", None, "asymptotic only: Steinke & Ullman 2016 state no constants"),
    )
    return tuple(sorted(entries, key=lambda entry: entry.blocks is None))


def recommended(alternatives: tuple[Alternative, ...]) -> Alternative:
    """The certifying method with the fewest blocks."""
    counted = {a.method: a for a in alternatives if a.blocks is not None}
    able = [counted[name] for name in _CERTIFYING if name in counted]
    return min(able, key=lambda a: a.blocks or 0)


def split_blocks(promise: Promise) -> int:
    """Fresh splitting: k times the blocks of one question."""
    return promise.queries * split_for(promise).blocks


def split_for(promise: Promise) -> Split:
    """What splitting gives one question of the promise: its blocks, and the rank that answers."""
    return fresh_split(promise.queries, promise.failure, promise.tail_low, promise.tail_high)


def split_tail(promise: Promise, blocks: int) -> float:
    """The largest tail, on both sides, that `blocks` fresh blocks for one question promise."""
    low, high, share = 0.0, 0.5, promise.failure / promise.queries
    for _ in range(40):
        middle = (low + high) / 2
        if split_failure(blocks, (blocks + 1) // 2, middle, middle) <= share:
            low = middle
        else:
            high = middle
    return low


def _split(promise: Promise) -> Alternative:
    one = split_for(promise)
    settings = (("blocks_per_question", one.blocks), ("rank", one.rank))
    return Alternative("split", promise.queries * one.blocks, "", settings)


def _paper_blocks(promise: Promise) -> int | None:
    """The paper's constants where it states them (ρ = 1/4), else re-derived from `gen`."""
    k, r, beta = promise.queries, promise.grid_size, promise.failure
    try:
        if promise.tail_low == promise.tail_high == 0.25:
            return adaptive_iqr(k, r, beta)
        return adaptive_tails(k, r, beta, promise.tail_low, promise.tail_high).blocks
    except InvalidInput:  # outside the range in which its theorems hold
        return None


def _gaussian(promise: Promise, target: float | None) -> Alternative:
    sized = best_gaussian(promise, target)
    settings = (("sigma", sized.parameters[0]), ("twice_target", sized.size.twice_target))
    return Alternative("gaussian", sized.size.blocks, "", settings)


def _exponential(promise: Promise) -> Alternative:
    if not promise.symmetric:
        return Alternative("exponential", None, "its score is built for the median: equal tails")
    sized = best_exponential(promise)
    return Alternative("exponential", sized.size.blocks, "", (("epsilon", sized.parameters[1]),))


def _aimless(method: str) -> Alternative:
    return Alternative(method, None, "aims where its own promise is cheapest, not at a target")
