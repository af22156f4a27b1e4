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

from holdfast.errors import Infeasible, InvalidInput, real_number
from holdfast.theory.divergence import ORDER_MAX, bernoulli_divergence
from holdfast.theory.numerics import (
    ROUNDING,
    log_co_ratio,
    log_ratio,
    moment_excess,
)

__all__ = [
    "Coin",
    "Profile",
    "VerdictCoin",
    "coin_profile",
    "distance_of",
    "exponential_price",
    "exponential_profile",
    "gaussian_price",
    "logistic_coin",
    "probit_coin",
    "reach_of",
    "refusal_budget",
    "refusal_price",
    "steepest_coin",
    "steps_of",
    "verdict_coin",
]

_LENGTH_MAX = 4_000_000  # half steps a table may hold (32 MB)
_FLOOR_MIN = 1e-150


def _order(order: float) -> float:
    return real_number("order", order, 1, ORDER_MAX, open_low=True)


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
        a = _order(order)
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
    a = _order(order)
    price = real_number("price", price, 0, 300 / (a - 1), open_low=True)
    floor = real_number("floor", floor, _FLOOR_MIN, 0.5, open_high=True)
    return Coin("steepest", _down_to(floor, _steepest_values(a, price)))


def probit_coin(sigma: float, floor: float) -> Coin:
    """Gaussian noise of standard deviation sigma on the count: h(x) = Φ(−x/σ) (cor `SQ-med`)."""
    from scipy.special import ndtr

    sigma = real_number("sigma", sigma, 0, open_low=True)
    return Coin("probit", _table(lambda x: ndtr(-x / sigma), floor))


def logistic_coin(slope: float, floor: float) -> Coin:
    """Logistic noise of scale 1/slope on the count: h(x) = 1/(1 + e^(slope·x))."""
    slope = real_number("slope", slope, 0, open_low=True)
    return Coin("logistic", _table(lambda x: np.exp(-np.logaddexp(0.0, slope * x)), floor))


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


def _down_to(floor: float, values: Iterator[float]) -> NDArray[np.float64]:
    """1/2 and the falling values after it, until the floor."""
    table = [0.5]
    for value in values:
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


# Coins that are paid by verdict: steep where a No is dear and a Yes is cheap (theory.md §6).
#
# A verdict coin errs with probability `below.halfsteps` below its target (a false Yes) and
# `above.halfsteps` above it (a false No). A No costs A and a Yes costs B, as exponents, if for
# every pair of neighbouring half steps, in both directions,
#
#     e^(−A)·gᵃ z¹⁻ᵃ + e^(−B)·(1−g)ᵃ (1−z)¹⁻ᵃ ≤ 1,     g, z chances of No.
#
# The steepest such coin takes, from 1/2 outwards on both sides, the longest half step allowed.
# Equal prices give the flat steepest coin. Proof that prices add up:
# docs/explanation/theory/refusals.md.


@dataclass(frozen=True, eq=False)
class VerdictCoin:
    """A coin whose two sides may differ; both start at 1/2 on the target.

    >>> coin = verdict_coin(order=20, no_price=0.2, yes_price=1e-3, false_yes=1e-6, false_no=1e-6)
    >>> coin.below.tau, coin.above.tau
    (47.5, 120.0)
    """

    below: Coin
    above: Coin

    def side(self, twice_offset: int) -> Coin:
        """The coin for a count below (or on) the target, or above it."""
        return self.below if twice_offset <= 0 else self.above

    @classmethod
    def symmetric(cls, coin: Coin) -> VerdictCoin:
        """A flat coin as a verdict coin."""
        return cls(coin, coin)


def verdict_coin(
    order: float, no_price: float, yes_price: float, false_yes: float, false_no: float
) -> VerdictCoin:
    """The steepest coin at these prices, down to the chances `false_yes` and `false_no` of errors.

    Prices are exponents, (order − 1) times stability. What the stored coin costs is measured by
    `refusals.refusal_price`; this only aims at it.
    """
    a = _order(order)
    no = real_number("no_price", no_price, 0, 300, open_low=True)
    yes = real_number("yes_price", yes_price, 0, 300, open_low=True)
    low = real_number("false_yes", false_yes, _FLOOR_MIN, 0.5, open_high=True)
    high = real_number("false_no", false_no, _FLOOR_MIN, 0.5, open_high=True)
    below = _down_to(low, _values(a, rare=yes, common=no))
    above = _down_to(high, _values(a, rare=no, common=yes))
    return VerdictCoin(Coin("verdict", below), Coin("verdict", above))


def _values(a: float, rare: float, common: float) -> Iterator[float]:
    """h₁, h₂, …: each the smallest chance of the rare verdict that one half step may reach."""
    p, u = 0.5, math.sqrt(2 * min(rare, common) / (a * (a - 1)))
    while True:
        u = _longest_step(a, p, rare, common, u)
        p *= math.exp(-u)
        yield p


def _longest_step(a: float, p: float, rare: float, common: float, start: float) -> float:
    """The largest u = ln(p/z) that the prices allow in both directions, to 1e-9 relative."""
    largest = min(690.0 / a, 660.0 + math.log(p))
    low, high = 0.0, min(start, largest)
    while _overdraft(a, p, high, rare, common) <= 0:
        if high == largest:
            return largest
        low, high = high, min(1.25 * high, largest)
    # Secant steps inside the bracket, halving where they stall (Illinois).
    at_low, at_high = _overdraft(a, p, low, rare, common), _overdraft(a, p, high, rare, common)
    side = 0
    while high - low > 1e-9 * high:
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        if not low < middle < high:
            middle = (low + high) / 2
        value = _overdraft(a, p, middle, rare, common)
        if value <= 0:
            low, at_low = middle, value
            at_high = at_high / 2 if side == -1 else at_high
            side = -1
            if value == 0:
                break
        else:
            high, at_high = middle, value
            at_low = at_low / 2 if side == 1 else at_low
            side = 1
    return low


def _overdraft(a: float, p: float, u: float, rare: float, common: float) -> float:
    """By how much the dearer direction of the half step p → p·e⁻ᵘ exceeds what its prices cover.

    With x, y the log ratios of the two verdicts, gᵃz¹⁻ᵃ + (1−g)ᵃ(1−z)¹⁻ᵃ − 1 is a sum of
    `moment_excess` and each price takes back (1 − e^(−price)) of its own term: nothing cancels.
    """
    z = p * math.exp(-u)
    y = log_co_ratio(p, z)
    s, kept_rare, kept_common = a - 1, -math.expm1(-rare), -math.expm1(-common)
    down = z * (moment_excess(s, u) - kept_rare * math.exp(a * u))
    down += (1 - z) * (moment_excess(s, y) - kept_common * math.exp(a * y))
    up = p * (moment_excess(s, -u) - kept_rare * math.exp(-a * u))
    up += (1 - p) * (moment_excess(s, -y) - kept_common * math.exp(-a * y))
    return max(down, up)


# Flat prices: what one use of a noise mechanism costs in centred stability, rounded up.
#
# Centred: against the law with the count half a count away (see `holdfast.theory.transfer`).
# Between neighbouring datasets the shift is a whole count: pass `shift=1`.


def gaussian_price(order: float, sigma: float, shift: float = 0.5) -> float:
    """a·shift²/(2σ²): a count with Gaussian noise (Mironov 2017, prop. 7).

    >>> gaussian_price(10, sigma=100)
    0.000125...
    """
    sigma = real_number("sigma", sigma, 0, open_low=True)
    return _order(order) * shift**2 / (2 * sigma**2) * (1 + ROUNDING)


def exponential_price(order: float, epsilon: float, shift: float = 0.5) -> float:
    """a·(shift·ε)²/8: one exponential-mechanism median (thm `EM-med`).

    Scores move by at most `shift`, so the log-likelihood ratio has range shift·ε, and bounded
    range η costs a·η²/8 (Cesar & Rogers 2021), not the a·η²/2 of pure differential privacy.

    >>> exponential_price(10, epsilon=0.01)
    3.125...e-05
    """
    epsilon = real_number("epsilon", epsilon, 0, open_low=True)
    return _order(order) * (shift * epsilon) ** 2 / 8 * (1 + ROUNDING)


# Paying by verdict: a price for a refusal, and a smaller one, or none, for a Yes (theory.md §6).
#
# Lemma. Let g be the chance of No under M and z under the reference law Q. If for every pair that
# a look can meet, in both directions,
#
#     e^(−A)·gᵃ z¹⁻ᵃ + e^(−B)·(1−g)ᵃ (1−z)¹⁻ᵃ ≤ 1,
#
# then any adaptive sequence of looks with at most ℓ refusals and k consents is
# (ℓA + kB)/(a − 1)-stable at order a: the likelihood ratio to the power a, times
# e^(−A·#No − B·#Yes), is a supermartingale under Q. Proof: docs/explanation/theory/refusals.md.
#
# For a stored coin the pairs are finitely many, so the supremum is a maximum, and exact.


def refusal_price(coin: Coin | VerdictCoin, order: float, yes_price: float = 0.0) -> float:
    """A: the smallest price of a No, when a Yes costs B = yes_price, in centred stability.

    Prices are exponents: divide by (order − 1) for stability (`refusal_budget`).

    >>> refusal_price(logistic_coin(slope=0.01, floor=1e-9), order=10)
    0.00116...
    """
    a = _order(order)
    b = real_number("yes_price", yes_price, 0)
    both = VerdictCoin.symmetric(coin) if isinstance(coin, Coin) else coin
    worst = 0.0
    for side, above in ((both.above, True), (both.below, False)):
        for p, q in pairwise(side.halfsteps.tolist()):
            for error, other in ((p, q), (q, p)):
                wrong, right = _log_terms(a, error, other)
                no, yes = (wrong, right) if above else (right, wrong)  # the error is a No above
                worst = max(worst, _price(no, yes, b))
    return worst * (1 + ROUNDING)


def refusal_budget(order: float, no_price: float, yes_price: float, noes: int, yeses: int) -> float:
    """(ℓA + kB)/(a − 1), rounded up: the stability that ℓ refusals and k consents use."""
    return (noes * no_price + yeses * yes_price) / (order - 1) * (1 + ROUNDING)


def _log_terms(a: float, p: float, q: float) -> tuple[float, float]:
    """ln(pᵃ q¹⁻ᵃ) and ln((1−p)ᵃ (1−q)¹⁻ᵃ)."""
    return math.log(q) + a * log_ratio(p, q), math.log1p(-q) + a * log_co_ratio(p, q)


def _price(no: float, yes: float, yes_price: float) -> float:
    """A with e^(no − A) + e^(yes − B) = 1, or 0 if no price is needed."""
    if no == yes == 0.0:
        return 0.0
    room = -math.expm1(yes - yes_price)
    if room <= 0:
        raise _unaffordable()
    # Both terms are logarithms of small numbers, their difference may be far smaller: the slack
    # covers the ulps lost in it.
    slack = 1e-15 * (2.0 + abs(no))
    return max(0.0, no - math.log(room) + slack)


def _unaffordable() -> Infeasible:
    return Infeasible(
        "Paying only for refusals",
        "a flatter coin or a lower order",
        "at this order a Yes alone reveals more than its price covers",
        "Lower the slope or the order, or give a Yes a price.",
    )


# The profile: how far off the answers can be on the sample, look by look (theory.md §4).
#
# `slips[i]` bounds the expected number of looks that err by i/2 counts or more, whatever the data
# (for one coin and N looks: N·h_i). With target count c* the sample mass of the side below obeys,
# whenever P[bad] = β,
#
#     m·E[1(bad)·S[ψ]]  ≥  Σ_{0 < e ≤ c*} (β − slips(e))₊,
#
# e running over the lattice of the target: whole counts, or half-integers. The sum is convex in β,
# as the transfer theorem requires. Proof: docs/explanation/theory/transfer.md.


@dataclass(frozen=True, eq=False)
class Profile:
    """Expected number of slips of at least i/2 counts, i = 0, 1, …; held flat after the last."""

    slips: NDArray[np.float64]

    def shortfall(self, failure: float, twice_target: int) -> float:
        """Σ min(1, slips/β) over the lattice up to the target, rounded up."""
        first = 2 - twice_target % 2
        inside = np.minimum(1.0, self.slips[first : twice_target + 1 : 2] / failure)
        beyond = _terms(twice_target) - inside.size
        flat = min(1.0, float(self.slips[-1]) / failure)
        return float(inside.sum()) * (1 + ROUNDING) + beyond * flat

    def mass(self, failure: float, twice_target: int, blocks: int) -> float:
        """Lower bound on E[1(bad)·S[ψ]] at P[bad] = failure, rounded down."""
        kept = _terms(twice_target) - self.shortfall(failure, twice_target)
        return max(0.0, failure * kept / blocks * (1 - ROUNDING))


def _terms(twice_target: int) -> int:
    """Lattice points e with 0 < e ≤ target."""
    return (twice_target + 1) // 2


def coin_profile(coin: Coin, looks: int) -> Profile:
    """N looks with one coin: slips N·h."""
    return Profile(coin.halfsteps * float(looks))


def exponential_profile(
    epsilon: float, grid_size: int, queries: int, negligible: float = 1e-9
) -> Profile:
    """The exponential-mechanism median (thm `EM-med`): slips k·(r − 1)·e^(−ε·x/2).

    A point whose score exceeds the best by x has weight at most e^(−ε·x/2) relative to it, and
    there are r − 1 other points. Slips below `negligible` are held there.
    """
    most = max(1.0, float(queries) * (grid_size - 1))
    length = int(np.ceil(4.0 / epsilon * np.log(most / negligible))) + 1
    return Profile(most * np.exp(-epsilon / 4.0 * np.arange(length + 1)))


# How far a coin reaches, as a smooth function: what the optimisers of plans work with.
#
# Along the steepest coin of prices (rare, common) the log-odds x of an error move by a half step
# Δ(x). So ∫ dx/Δ(x) counts half steps, and
#
#     reach = Σ_e min(1, N·h(e)/β)  ≈  ∫ min(1, N·h/β) de
#
# is an integral over x: a hundred values of Δ, found together, instead of a table of thousands.
# Nothing certified rests on it: every plan is built in full and checked by the theorem.


_NODES = 48
_ROUNDS = 7
_BOTH_WAYS = np.array([[[1.0]], [[-1.0]]])


def reach_of(order: float, rare: float, common: float, slips: float) -> float:
    """Σ min(1, slips·h(e)) over whole counts e, for the steepest side whose error costs `rare`.

    Prices are exponents; `slips` is N/β.

    >>> reach_of(order=37, rare=3e-4, common=0.19, slips=2000 / 0.02)
    87.0...
    """
    lowest = -math.log(max(slips, 2.0)) - 14.0  # what lies beyond adds less than 1e-6 counts
    log_odds = np.linspace(0.0, lowest, _NODES)
    error = 1 / (1 + np.exp(-log_odds))
    density = np.minimum(1.0, slips * error) / steps_of(order, rare, common, error)
    return float(np.trapezoid(density, -log_odds)) / 2


def distance_of(order: float, rare: float, common: float, level: float) -> float:
    """Counts from the target to where the error is `level`, for the same side.

    >>> distance_of(order=37, rare=0.19, common=3e-4, level=1e-6)
    266.9...
    """
    log_odds = np.linspace(0.0, math.log(level) - math.log1p(-level), _NODES)
    error = 1 / (1 + np.exp(-log_odds))
    return float(np.trapezoid(1 / steps_of(order, rare, common, error), -log_odds)) / 2


def steps_of(
    order: float, rare: float, common: float, error: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The half step in log-odds that the prices allow at each error probability, to about 1e-4.

    Secant steps on ln(covered/cost) as a function of ln u. What a step costs grows at least with
    its square and what the prices cover hardly changes, so that the slope is about −2 or steeper.
    """
    a, last = order, math.log(200.0 / order)
    kept = np.array([[-math.expm1(-rare)], [-math.expm1(-common)]])
    log_u = np.full(error.shape, 0.5 * math.log(2 * min(rare, common) / (a * (a - 1))))
    slope = np.full(error.shape, -2.0)
    room = _log_room(a, kept, error, np.exp(log_u))
    for _ in range(_ROUNDS):
        step = np.minimum(np.maximum(-room / slope, -2.0), 2.0)
        moved = np.minimum(log_u + step, last)
        after = _log_room(a, kept, error, np.exp(moved))
        distance = moved - log_u
        far = np.abs(distance) > 1e-6
        measured = (after - room) / np.where(far, distance, 1.0)
        slope = np.where(far, np.minimum(np.maximum(measured, -2 - 400.0), -1.0), slope)
        log_u, room = moved, after
    u = np.exp(log_u)
    z = error * np.exp(-u)
    return np.asarray(u - np.log1p((z - error) / (1 - z)))


def _log_room(
    a: float, kept: NDArray[np.float64], error: NDArray[np.float64], u: NDArray[np.float64]
) -> NDArray[np.float64]:
    """ln of (what the prices cover)/(what the half step costs), in the dearer direction.

    Errors are in the first row of each table, what is no error in the second.
    """
    z = error * np.exp(-u)
    here, there = np.array([error, 1 - error]), np.array([z, 1 - z])
    steps = np.array([u, np.log1p((z - error) / there[1])])
    grown, (down_excess, up_excess) = np.exp(a * steps), _excess(a - 1, steps * _BOTH_WAYS)
    down = (kept * there * grown).sum(axis=0) / (there * down_excess).sum(axis=0)
    up = (kept * here / grown).sum(axis=0) / (here * up_excess).sum(axis=0)
    return np.asarray(np.log(np.minimum(down, up)))


def _excess(s: float, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """`numerics.moment_excess`, vectorised: e^((s+1)x) − 1 − (s+1)(eˣ − 1), to about 1e-6."""
    a = s + 1
    if a * float(np.abs(x).max()) > 0.01:
        return np.asarray(np.expm1(a * x) - a * np.expm1(x))
    # Σ_{n≥2} (aⁿ − a)·xⁿ/n!, for all of them are small
    high = x * ((a**4 - a) / 24 + x * (a**5 - a) / 120)
    return np.asarray(x * x * ((a * a - a) / 2 + x * ((a**3 - a) / 6 + high)))
