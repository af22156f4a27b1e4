"""The blocks that each method needs for the same promise; no alternatives, nothing twice.

holdfast        looks with the steepest coin
holdfast-exact  exact answers, certified by counting transcripts
split           fresh blocks for every question
gaussian        noisy binary search, Gaussian counts           } the paper's mechanisms under
exponential     exponential-mechanism median for each question } our analysis
paper           the exponential mechanism with the paper's constants (thm `adaptive-iqr`), for
                other tails than 1/4 re-derived from its theorems and optimised
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.errors import HoldfastError, InvalidInput
from holdfast.planning.alternatives import split_blocks
from holdfast.planning.exact import exact_estimates
from holdfast.planning.solve import steepest
from holdfast.theory.paper import adaptive_iqr, adaptive_tails
from holdfast.theory.sizing import Promise, best_exponential, best_gaussian

__all__ = ["blocks_by", "equal_tails"]


def equal_tails(queries: int, grid: int, tail: float, confidence: float = 0.95) -> Promise:
    """Every answer in qi(tail, 1 − tail), all at once."""
    return Promise(queries, grid, tail, tail, confidence)


def blocks_by(method: str, promise: Promise) -> int | None:
    """The blocks by which a method keeps the promise; None where no number is certified.

    >>> promise = equal_tails(queries=100, grid=32, tail=0.25)
    >>> [blocks_by(method, promise) for method in ("holdfast-exact", "split", "paper")]
    [2383, 4300, 228705]
    """
    if method not in _SIZES:
        raise InvalidInput("method", method, f"one of {', '.join(_SIZES)}")
    try:
        return _SIZES[method](promise)
    except HoldfastError:  # outside of what its theorems, or our tables, cover
        return None


def _exact(promise: Promise) -> int:
    tails = promise.tail_low, promise.tail_high
    return exact_estimates(promise.queries, promise.grid_size, *tails, promise.confidence).blocks


def _paper(promise: Promise) -> int:
    asked = promise.queries, promise.grid_size, promise.failure
    if promise.tail_low == promise.tail_high == 0.25:
        return adaptive_iqr(*asked)
    return adaptive_tails(*asked, promise.tail_low, promise.tail_high).blocks


_SIZES: dict[str, Callable[[Promise], int]] = {
    "holdfast": lambda promise: steepest(promise).size.blocks,
    "holdfast-exact": _exact,
    "split": split_blocks,
    "gaussian": lambda promise: best_gaussian(promise).size.blocks,
    "exponential": lambda promise: best_exponential(promise).size.blocks,
    "paper": _paper,
}
