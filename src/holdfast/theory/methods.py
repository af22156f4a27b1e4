"""The stable methods, each at the parameters that need the fewest blocks for a promise.

steepest      looks with the steepest coin (theory.md §3)           order, budget
gaussian      noisy binary search, Gaussian counts (cor `SQ-med`)    noise sd (exact Gaussian DP)
laplace       noisy binary search, Laplace counts                   order, noise scale
exponential   exponential-mechanism median (thm `EM-med`)           order, ε

All are sized by the same centred transfer theorem and profile: only the mechanism differs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from holdfast.arguments import real_number
from holdfast.errors import Infeasible, InvalidInput
from holdfast.theory.coin import Coin
from holdfast.theory.curves import Curve
from holdfast.theory.drafts import (
    FULL,
    Builder,
    exponential_draft,
    gaussian_draft,
    laplace_draft,
    order_from,
    rough_blocks,
    start_parameters,
    steepest_draft,
    table_length,
)
from holdfast.theory.profile import Profile
from holdfast.theory.renyi import ORDER_MAX
from holdfast.theory.sizing import Promise, Size, check_target, minimise, smallest_blocks

__all__ = [
    "LENGTH_MAX",
    "Sized",
    "best_exponential",
    "best_gaussian",
    "best_laplace",
    "best_steepest",
    "steepest_at",
]

_ROUGH, _FINE = 300, 2500  # half steps of the thinned coins the two search stages work with
LENGTH_MAX = 3e6  # half steps of a table that still takes well under a minute
_NEVER = 700.0  # the log of the blocks where parameters are outside the tables' reach


@dataclass(frozen=True)
class Sized:
    """A method at its parameters: curve, profile, and the size they need."""

    parameters: tuple[float, ...]
    curve: Curve
    profile: Profile
    size: Size
    coin: Coin | None = None


def steepest_at(
    promise: Promise,
    order: float,
    budget: float,
    share: float = 0.5,
    target: float | None = None,
) -> Sized | None:
    """Steepest-coin looks at this order and budget; None if no number of blocks is enough."""
    order = real_number("order", order, 1, ORDER_MAX, open_low=True)
    budget = real_number("budget", budget, 0, open_low=True)
    draft = steepest_draft(promise)((order - 1, budget), FULL)
    size = smallest_blocks(promise, draft.curve, draft.profile, share=share, target=target)
    if size is None:
        return None
    return Sized((order, budget, share), draft.curve, draft.profile, size, draft.coin)


def best_steepest(promise: Promise, target: float | None = None) -> Sized:
    """The order and budget that need the fewest blocks."""
    check_target(promise, target)
    start = start_parameters(promise, target)
    if table_length(promise, order_from(start[0]), start[1]) > LENGTH_MAX:
        return _found(None, promise)
    (excess, budget), share = _search(promise, steepest_draft(promise), start, target)
    try:
        return _found(steepest_at(promise, order_from(excess), budget, share, target), promise)
    except InvalidInput:  # an order or a table outside what can be computed
        return _found(None, promise)


def best_gaussian(promise: Promise, target: float | None = None) -> Sized:
    """The noise of a Gaussian-count search that needs the fewest blocks (exact Gaussian DP)."""
    check_target(promise, target)
    excess, budget = start_parameters(promise, target)
    start = (math.sqrt(promise.looks * (1 + excess) / (8 * budget)),)
    return _best(promise, gaussian_draft(promise), start, target)


def best_laplace(promise: Promise, target: float | None = None) -> Sized:
    """The noise of a Laplace-count search that needs the fewest blocks."""
    check_target(promise, target)
    excess, budget = start_parameters(promise, target)
    start = (excess, math.sqrt(promise.looks * (1 + excess) / (8 * budget)))
    return _best(promise, laplace_draft(promise), start, target)


def best_exponential(promise: Promise) -> Sized:
    """The ε of an exponential-mechanism median that needs the fewest blocks."""
    if not promise.symmetric:
        raise InvalidInput(
            "tails",
            (promise.tail_low, 1 - promise.tail_high),
            "equal on both sides",
            "The exponential mechanism's score is built for the median.",
        )
    excess, budget = start_parameters(promise)
    start = (excess, math.sqrt(32 * budget / (promise.queries * (1 + excess))))
    return _best(promise, exponential_draft(promise), start, None)


def _best(promise: Promise, build: Builder, start: Sequence[float], target: float | None) -> Sized:
    parameters, share = _search(promise, build, start, target)
    try:
        draft = build(parameters, FULL)
    except InvalidInput:
        return _found(None, promise)
    size = smallest_blocks(promise, draft.curve, draft.profile, share=share, target=target)
    if size is None:
        return _found(None, promise)
    return Sized((*parameters, share), draft.curve, draft.profile, size, draft.coin)


def _found(sized: Sized | None, promise: Promise) -> Sized:
    if sized is None:
        raise Infeasible(
            "Size of the plan",
            "more blocks, or finer coins, than can be computed",
            f"{promise.queries:,} question(s) on a grid of {promise.grid_size:,} were asked for, "
            f"between tails {promise.tail_low:g} and {1 - promise.tail_high:g} at confidence "
            f"{promise.confidence:g}",
            "Ask fewer questions, use a coarser grid, or choose tails further apart.",
        )
    return sized


def _search(
    promise: Promise, build: Builder, start: Sequence[float], target: float | None
) -> tuple[tuple[float, ...], float]:
    """Rough then fine Nelder–Mead over the logs of the parameters (and the share of β)."""
    shared = not promise.symmetric or target not in (None, 0.5)
    x: Sequence[float] = [*map(math.log, start), *([0.0] if shared else [])]

    def split(x: Sequence[float]) -> tuple[tuple[float, ...], float]:
        # A side with next to none of β would need a lower floor than the coin has.
        logs, logit = (x[:-1], min(max(x[-1], -6.0), 6.0)) if shared else (x, 0.0)
        share = 1 / (1 + math.exp(-logit))
        return tuple(math.exp(min(max(v, -50.0), 50.0)) for v in logs), share

    def objective(x: Sequence[float], half_steps: int) -> float:
        parameters, share = split(x)
        try:
            draft = build(parameters, half_steps)
            return math.log(rough_blocks(promise, draft, share, target))
        except (InvalidInput, OverflowError):
            return _NEVER

    # The usual start is a guess: the search begins at the best of some around it.
    near = [(-2.0, -1.0, 0.0, 1.0, 2.0)] * len(start) + [(-6.0, -3.0, 0.0, 3.0, 6.0)] * shared
    around = [[a + b for a, b in zip(x, shift, strict=True)] for shift in product(*near)]
    x = min(around, key=partial(objective, half_steps=_ROUGH))
    for half_steps, spread in ((_ROUGH, 0.5), (_FINE, 0.1)):
        x = minimise(partial(objective, half_steps=half_steps), x, spread)
    return split(x)
