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
from holdfast.theory.methods import Sized, best_exponential, best_gaussian
from holdfast.theory.paper import adaptive_iqr, adaptive_tails
from holdfast.theory.sizing import Promise
from holdfast.theory.splitting import fresh_split

__all__ = ["METHODS", "Alternative", "compare", "recommended", "split_blocks"]

METHODS = ("paper", "split", "exponential", "gaussian", "steepest")
_CERTIFYING = ("steepest", "split", "gaussian", "exponential")  # preferred in this order on a tie


@dataclass(frozen=True)
class Alternative:
    """A method and the blocks it needs for the promise; None where that cannot be stated."""

    method: str
    blocks: int | None
    note: str = ""


def compare(promise: Promise, steepest: Sized) -> tuple[Alternative, ...]:
    """Every method on the same promise, in the order of METHODS, those without a number last."""
    entries = (
        Alternative("paper", _paper_blocks(promise)),
        Alternative("split", split_blocks(promise)),
        _exponential(promise),
        Alternative("gaussian", best_gaussian(promise).size.blocks),
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
    one = fresh_split(promise.queries, promise.failure, promise.tail_low, promise.tail_high)
    return promise.queries * one.blocks


def _paper_blocks(promise: Promise) -> int | None:
    """The paper's constants where it states them (ρ = 1/4), else re-derived from `gen`."""
    k, r, beta = promise.queries, promise.grid_size, promise.failure
    try:
        if promise.tail_low == promise.tail_high == 0.25:
            return adaptive_iqr(k, r, beta)
        return adaptive_tails(k, r, beta, promise.tail_low, promise.tail_high).blocks
    except InvalidInput:  # outside the range in which its theorems hold
        return None


def _exponential(promise: Promise) -> Alternative:
    if not promise.symmetric:
        return Alternative("exponential", None, "its score is built for the median: equal tails")
    return Alternative("exponential", best_exponential(promise).size.blocks)
