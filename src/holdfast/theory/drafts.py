"""Drafts: a stable method at given parameters, and the size it would need, as a real number.

The optimisers work with drafts. For the steepest coin a draft may be thinned: half steps s times
as long cost s² times as much and trace the same shape with s times fewer entries. Whatever an
optimiser returns is built in full and checked by the theorem (`holdfast.theory.sizing`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.theory.coin import Coin, laplace_coin, probit_coin, steepest_coin
from holdfast.theory.curves import Curve, GaussianCurve, RenyiCurve
from holdfast.theory.prices import exponential_price, laplace_price
from holdfast.theory.profile import Profile, coin_profile, exponential_profile
from holdfast.theory.renyi import ORDER_MAX, ORDER_MIN
from holdfast.theory.sizing import Promise
from holdfast.theory.transfer import decisive_mass

__all__ = [
    "FULL",
    "Builder",
    "Draft",
    "exponential_draft",
    "floor_for",
    "gaussian_draft",
    "laplace_draft",
    "order_from",
    "reach",
    "rough_blocks",
    "start_parameters",
    "steepest_draft",
    "table_length",
]

FULL = 10**9  # more half steps than any table has: no thinning
_FLOOR = 1e-6  # floor·N/β. A lower floor costs nothing, and buys less than m/10⁶ counts.


@dataclass(frozen=True)
class Draft:
    """Curve and profile at some parameters; entries of a thinned profile are `stride` apart."""

    curve: Curve
    profile: Profile
    coin: Coin | None = None
    stride: int = 1


Builder = Callable[[Sequence[float], int], Draft]  # positive parameters, half steps wanted


def floor_for(promise: Promise) -> float:
    """The coin's floor: all N looks together slip past τ with probability ≤ β/10⁶."""
    return _FLOOR * promise.failure / promise.looks


def start_parameters(promise: Promise, target: float | None = None) -> tuple[float, float]:
    """Where good orders (less 1) and budgets have been found: narrower tails and higher
    confidence want higher orders, narrower tails smaller budgets.
    """
    width = 1 - promise.tail_low - promise.tail_high
    if target is not None:  # the nearer tail decides
        width = 2 * min(target - promise.tail_low, 1 - promise.tail_high - target)
    nats = max(1.0, -math.log(promise.failure) / 3)
    return min(0.5 * ORDER_MAX, (4 + 28 * (1 - width) / width) * nats), 0.8 * width**3


def order_from(excess: float) -> float:
    """The order 1 + excess, but no closer to 1 than the divergence is tested for."""
    return max(ORDER_MIN, 1 + excess)


def table_length(promise: Promise, order: float, budget: float) -> float:
    """About how many half steps the steepest coin takes: Fisher's length π over that of a step."""
    return math.pi / math.sqrt(2 * budget / promise.looks / order)


def steepest_draft(promise: Promise) -> Builder:
    """Parameters: order − 1, budget."""
    looks = promise.looks

    def build(parameters: Sequence[float], half_steps: int) -> Draft:
        order, budget = order_from(parameters[0]), parameters[1]
        stride = max(1, round(table_length(promise, order, budget) / half_steps))
        coin = steepest_coin(order, budget / looks * stride**2, floor_for(promise))
        # Only the full table's price is measured: a draft's budget is what was asked for.
        spent = budget if half_steps < FULL else looks * coin.price(order) * (1 + 1e-15)
        return Draft(RenyiCurve(order, spent), coin_profile(coin, looks), coin, stride)

    return build


def gaussian_draft(promise: Promise) -> Builder:
    """Parameter: the noise's standard deviation. Half a count of it, N times: √N/(2σ)-GDP."""

    def build(parameters: Sequence[float], _: int) -> Draft:
        coin = probit_coin(parameters[0], floor_for(promise))
        # The table stores rounded probabilities: its steps exceed 1/(2σ) by up to 1e-10 or so.
        curve = GaussianCurve(math.sqrt(promise.looks) / (2 * parameters[0]) * (1 + 1e-9))
        return Draft(curve, coin_profile(coin, promise.looks), coin)

    return build


def laplace_draft(promise: Promise) -> Builder:
    """Parameters: order − 1, the noise's scale."""

    def build(parameters: Sequence[float], _: int) -> Draft:
        order, scale = order_from(parameters[0]), parameters[1]
        coin = laplace_coin(scale, floor_for(promise))
        curve = RenyiCurve(order, promise.looks * laplace_price(order, scale))
        return Draft(curve, coin_profile(coin, promise.looks), coin)

    return build


def exponential_draft(promise: Promise) -> Builder:
    """Parameters: order − 1, ε of one median."""

    def build(parameters: Sequence[float], _: int) -> Draft:
        order, epsilon = order_from(parameters[0]), parameters[1]
        budget = promise.queries * exponential_price(order, epsilon)
        held = _FLOOR * promise.failure
        profile = exponential_profile(epsilon, promise.grid_size, promise.queries, held)
        return Draft(RenyiCurve(order, budget), profile)

    return build


def reach(draft: Draft, failure: float) -> float:
    """Σ min(1, slips/β) over whole counts, by the trapezoid rule where the profile is thinned."""
    total = float(np.minimum(1.0, draft.profile.slips[1:] / failure).sum())
    return (draft.stride * total + (draft.stride - 1) / 2) / 2


def rough_blocks(promise: Promise, draft: Draft, share: float, target: float | None) -> float:
    """The size as a real number: what the search minimises."""
    beta = promise.failure

    def drift(tail: float, failure: float) -> float:
        return decisive_mass(draft.curve, tail, failure) / failure

    if promise.symmetric and target in (None, 0.5):
        f = drift(promise.tail_low, beta)
        return reach(draft, beta) / (0.5 - f) if f < 0.5 else _hopeless(f)
    low, high = beta * share, beta * (1 - share)
    f_low, f_high = drift(promise.tail_low, low), drift(promise.tail_high, high)
    if target is None:
        room = 1 - f_low - f_high
        total = reach(draft, low) + reach(draft, high)
        return total / room if room > 0 else _hopeless(f_low + f_high)
    if f_low >= target or f_high >= 1 - target:
        return _hopeless(max(0.0, f_low - target) + max(0.0, f_high - (1 - target)))
    return max(reach(draft, low) / (target - f_low), reach(draft, high) / (1 - target - f_high))


def _hopeless(drift: float) -> float:
    """No number of blocks is enough; the drift still tells the search which way is better."""
    return math.exp(100.0 + math.log1p(drift))
