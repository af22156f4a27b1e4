"""Coins: how likely a look says Yes, given how far the count is from its target.

A coin is stored on half counts: h₀ = 1/2 > h₁ > … > h_L, then flat. At distance |x| from the
target it errs with probability h at index 2|x|; so

    P[Yes | x] = h(2|x|) for x ≤ 0,     1 − h(2|x|) for x > 0.

One table serves both lattices: whole counts (even indices; m even, or a whole target) and
half-integers (odd indices; m odd and target m/2). And the entries in between are the *centres*:
the two coins a block can choose between, at x and x + 1, both lie one half step from the entry
between them. That entry is the reference law of the centred transfer theorem, so a look costs
the largest divergence over one half step, not over a whole one
(proofs: docs/explanation/theory/coins.md and transfer.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from holdfast.arguments import real_number
from holdfast.errors import InvalidInput
from holdfast.theory.numerics import ROUNDING, log_co_ratio, moment_excess
from holdfast.theory.renyi import ORDER_MAX, bernoulli_divergence

__all__ = ["Coin", "laplace_coin", "logistic_coin", "probit_coin", "steepest_coin"]

_LENGTH_MAX = 4_000_000  # half steps a table may hold (32 MB)
_FLOOR_MIN = 1e-150


@dataclass(frozen=True, eq=False)
class Coin:
    """An error probability for every half count of distance from the target.

    >>> coin = logistic_coin(slope=1.0, floor=1e-3)
    >>> coin.yes(twice_offset=0), round(coin.yes(twice_offset=-2), 4)
    (0.5, 0.2689)
    """

    name: str
    halfsteps: NDArray[np.float64]

    def __post_init__(self) -> None:
        table = np.array(self.halfsteps, dtype=np.float64)
        whole = table.ndim == 1 and table.size > 0 and bool(np.all(np.isfinite(table)))
        if not whole or table[0] != 0.5 or table[-1] <= 0 or bool(np.any(np.diff(table) > 0)):
            allowed = "probabilities that start at 1/2 and never rise, all above 0"
            raise InvalidInput("halfsteps", table, allowed)
        table.flags.writeable = False
        object.__setattr__(self, "halfsteps", table)

    @property
    def floor(self) -> float:
        """The error probability far from the target."""
        return float(self.halfsteps[-1])

    @property
    def tau(self) -> float:
        """Counts from the target at which the floor is reached."""
        return (self.halfsteps.size - 1) / 2

    def error(self, twice_distance: NDArray[np.int64]) -> NDArray[np.float64]:
        """Probability of the wrong verdict at each distance ≥ 0, given as twice the counts."""
        if np.any(np.less(twice_distance, 0)):  # an index from the end would be a wrong price
            raise InvalidInput("twice_distance", "a negative one", "distances of at least 0")
        return self.halfsteps[np.minimum(twice_distance, self.halfsteps.size - 1)]

    def yes(self, twice_offset: int) -> float:
        """Probability of Yes at one offset (twice the counts above the target)."""
        wrong = float(self.halfsteps[min(abs(twice_offset), self.halfsteps.size - 1)])
        return wrong if twice_offset <= 0 else 1.0 - wrong

    def price(self, order: float) -> float:
        """What one look costs in centred stability at this order, rounded up.

        The largest divergence, either way, between neighbouring half steps. The mirror side has
        the same divergences, for D(1−p‖1−q) = D(p‖q) and both sides flip the same stored number.
        """
        return self._largest_divergence(order, pairwise(self.halfsteps.tolist()))

    def neighbour_price(self, order: float) -> float:
        """What one look costs between two datasets that differ in one block, rounded up.

        Whole steps: from every half count to the one a full count further, across the target too.
        """
        lower = self.halfsteps.tolist()
        # The float 1 − h is rounded: take it outwards, for a price is rounded up.
        above = math.nextafter(1.0 - lower[1], 1.0) if len(lower) > 1 else 0.5
        full = [above, 0.5, *lower[1:]]
        return self._largest_divergence(order, zip(full, full[2:], strict=False))

    def _largest_divergence(self, order: float, pairs: Iterator[tuple[float, float]]) -> float:
        a = real_number("order", order, 1, ORDER_MAX, open_low=True)
        worst = 0.0
        for p, q in pairs:
            if p != q:
                there, back = bernoulli_divergence(a, p, q), bernoulli_divergence(a, q, p)
                worst = max(worst, there, back)
        return worst * (1 + ROUNDING)


def steepest_coin(order: float, price: float, floor: float) -> Coin:
    """The steepest coin whose looks cost at most `price` at `order` (theory.md §3, centred).

    From 1/2 downwards each half step takes the smallest z with D_order(p‖z) ≤ price, until the
    floor. For z < p ≤ 1/2 the other direction costs less; the price is measured from the
    stored table all the same.

    >>> coin = steepest_coin(order=10, price=1e-4, floor=1e-6)
    >>> coin.tau, coin.price(10) <= 1e-4 * (1 + 1e-9)
    (185.0, True)
    """
    a = real_number("order", order, 1, ORDER_MAX, open_low=True)
    price = real_number("price", price, 0, 300 / (a - 1), open_low=True)
    floor = real_number("floor", floor, _FLOOR_MIN, 0.5, open_high=True)
    return Coin("steepest", _steepest_table(a, price, floor))


def probit_coin(sigma: float, floor: float) -> Coin:
    """Gaussian noise of standard deviation sigma on the count: h(x) = Φ(−x/σ) (cor `SQ-med`)."""
    from scipy.special import ndtr

    sigma = real_number("sigma", sigma, 0, open_low=True)
    return Coin("probit", _table(lambda x: ndtr(-x / sigma), floor))


def logistic_coin(slope: float, floor: float) -> Coin:
    """Logistic noise of scale 1/slope on the count: h(x) = 1/(1 + e^(slope·x))."""
    slope = real_number("slope", slope, 0, open_low=True)
    return Coin("logistic", _table(lambda x: np.exp(-np.logaddexp(0.0, slope * x)), floor))


def laplace_coin(scale: float, floor: float) -> Coin:
    """Laplace noise of the given scale on the count: h(x) = e^(−x/scale)/2."""
    scale = real_number("scale", scale, 0, open_low=True)
    return Coin("laplace", _table(lambda x: 0.5 * np.exp(-x / scale), floor))


def _table(
    error: Callable[[NDArray[np.float64]], NDArray[np.float64]], floor: float
) -> NDArray[np.float64]:
    """Error probabilities on half counts 0, 1/2, 1, … down to the floor."""
    floor = real_number("floor", floor, _FLOOR_MIN, 0.5, open_high=True)
    length = 64
    while length <= 2 * _LENGTH_MAX:
        values = error(np.arange(length) / 2)
        if values[-1] <= floor:
            reached = int(np.argmax(values <= floor))
            table = np.maximum(values[: reached + 1], floor)
            table[0] = 0.5  # exactly: Φ(0) and its like may be an ulp off
            return table
        length *= 2
    raise _too_flat(floor)


def _steepest_table(a: float, price: float, floor: float) -> NDArray[np.float64]:
    table = [0.5]
    for value in _steepest_values(a, price):
        table.append(max(value, floor))
        if value <= floor:
            return np.array(table)
        if len(table) > _LENGTH_MAX:
            break
    raise _too_flat(floor)


def _too_flat(floor: float) -> InvalidInput:
    hint = "A flatter coin needs a larger table: raise the price or the floor."
    return InvalidInput("floor", floor, f"reached within {_LENGTH_MAX:,} half steps", hint)


def _steepest_values(a: float, price: float) -> Iterator[float]:
    """h₁, h₂, …: each the root z < p of D_a(p‖z) = price.

    In u = ln(p/z) the root solves ln excess(u) = ln(e^((a−1)·price) − 1), nearly a straight line
    in ln u: Newton's method needs two or three steps from the extrapolated last answer.
    """
    s = a - 1.0
    goal = math.log(math.expm1(s * price))
    p = 0.5
    u = math.sqrt(2.0 * price / a)
    growth = 1.0
    while True:
        before, u = u, _solve_half_step(a, s, goal, p, u * growth)
        growth = u / before
        p *= math.exp(-u)
        yield p


def _solve_half_step(a: float, s: float, goal: float, p: float, u: float) -> float:
    # e^(a·u) and z fit a float; a root beyond lies below every floor, or is a less steep coin.
    largest = min(690.0 / a, 660.0 + math.log(p))
    for _ in range(100):
        u = min(u, largest)
        z = p * math.exp(-u)
        y = log_co_ratio(p, z)
        excess = z * moment_excess(s, u) + (1 - z) * moment_excess(s, y)
        slope = s * z * u * (math.exp(a * u) - math.exp(a * y)) / excess
        step = (goal - math.log(excess)) / slope
        if step > 0 and u == largest:
            break
        u *= math.exp(max(-1.0, min(1.0, step)))
        if abs(step) < 1e-8:  # quadratic convergence: the error left is of the order of its square
            break
    return min(u, largest)
