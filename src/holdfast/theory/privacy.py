"""Unit-level privacy: how far one unit's rows can move the law of all verdicts.

Two datasets are neighbours if they differ in the rows of one unit, which keeps its place. One unit
is in one block, and a block moves a count by at most 1: so a look's two coins are a *whole* step
apart, not the half step to a centre that a plan's budget is made of. With D the largest divergence
over all whole steps of the coin, in both directions,

    D_a(all verdicts on one dataset ‖ on its neighbour) ≤ Σ D_a over the looks,

and for every δ the verdicts are (ε, δ)-private with

    ε = R + ln(1 − 1/a) − (ln δ + ln a)/(a − 1),     R that sum, for any order a.

Proofs, and what the figure does not cover: docs/explanation/theory/unit-privacy.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import real_number
from holdfast.theory.coins import Coin, VerdictCoin
from holdfast.theory.divergence import ORDER_MAX, ORDER_MIN
from holdfast.theory.numerics import ROUNDING

__all__ = [
    "ORDERS",
    "Allowance",
    "UnitPrivacy",
    "largest_total",
    "look_divergence",
    "private_epsilon",
    "question_divergence",
    "unit_privacy",
    "verdict_divergences",
]

ORDERS = tuple(float(a) for a in 1 + np.geomspace(ORDER_MIN - 1, ORDER_MAX - 1, 61))
_SHARES = (1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7)  # of the way from free to flat
_ULPS = 8 * float(np.finfo(np.float64).eps)

Array = NDArray[np.float64]


class _Steps(NamedTuple):
    """Pairs of coins: the logs of each verdict's chance under Q, and of its ratio P/Q."""

    yes: Array
    no: Array
    yes_ratio: Array
    no_ratio: Array

    def reversed(self) -> _Steps:
        """P and Q exchanged."""
        yes, no = self.yes + self.yes_ratio, self.no + self.no_ratio
        return _Steps(yes, no, -self.yes_ratio, -self.no_ratio)


def look_divergence(coin: Coin | VerdictCoin, order: float) -> float:
    """What one look tells of one unit at this order: the worst whole step, rounded up.

    For a coin with equal sides it is `Coin.neighbour_price`.

    >>> from holdfast.theory.coins import logistic_coin
    >>> coin = logistic_coin(slope=0.01, floor=1e-9)
    >>> round(look_divergence(coin, 10), 9), round(coin.neighbour_price(10), 9)
    (0.000124984, 0.000124984)
    """
    a = _order(order)
    return _largest(_log_moments(_whole_steps(coin), a)) / (a - 1) * (1 + ROUNDING)


def question_divergence(coin: Coin, order: float) -> float:
    """What a search over one count tells of one unit, thresholds being 2τ apart; rounded up.

    A whole step is near one threshold, and is one look; or it leaves the reach of one and enters
    that of the next, a half step in each.

    >>> import numpy as np
    >>> coin = Coin("a cliff", np.array([0.5, 0.49, 0.1]))
    >>> question_divergence(coin, 2) > look_divergence(coin, 2)
    True
    """
    a = _order(order)
    last = np.asarray(coin.halfsteps[-2:])
    leaving = _pairs(last[:1], last[-1:])
    straddling = _largest(_log_moments(leaving, a)) + _largest(_log_moments(leaving.reversed(), a))
    return max(look_divergence(coin, a), straddling / (a - 1) * (1 + ROUNDING))


def verdict_divergences(
    coin: VerdictCoin, order: float, noes: int, yeses: int
) -> tuple[float, float]:
    """What a No and a Yes are charged so that so many of them are charged little; rounded up.

    Any two charges that satisfy (∗) of docs/explanation/theory/refusals.md for all whole steps will
    do. Of some such pairs, equal charges among them, the one with the smallest total is taken.

    >>> from holdfast.theory.coins import verdict_coin
    >>> coin = verdict_coin(20, no_price=0.2, yes_price=1e-3, false_yes=1e-6, false_no=1e-6)
    >>> no, yes = verdict_divergences(coin, 5, noes=3, yeses=1000)
    >>> yes < look_divergence(coin, 5) / 4 < no
    True
    """
    a = _order(order)
    steps = _whole_steps(coin)
    flat = _largest(_log_moments(steps, a))
    both = (steps, steps.reversed())
    terms = [(each.no + a * each.no_ratio, each.yes + a * each.yes_ratio) for each in both]
    free = max(0.0, max(float(np.max(yes)) for _, yes in terms))  # below, a Yes tells more
    charges = [(flat, flat)]
    for share in _SHARES:
        charge = free + share * (flat - free)
        charges.append((max(_no_charge(no, yes, charge) for no, yes in terms), charge))
    no, yes = min(charges, key=lambda pair: noes * pair[0] + yeses * pair[1])
    return no / (a - 1) * (1 + ROUNDING), yes / (a - 1) * (1 + ROUNDING)


def private_epsilon(divergence: float, order: float, delta: float) -> float:
    """ε with (ε, δ)-privacy for laws within a divergence of this order, rounded up.

    ε = R + ln(1 − 1/a) − (ln δ + ln a)/(a − 1), at least 0 (Canonne, Kamath & Steinke 2020,
    prop. 12; Balle et al. 2020, thm 21). Mironov (2017, prop. 3) has the larger R − ln δ/(a − 1).

    >>> round(private_epsilon(0.1, order=20, delta=1e-6), 4)
    0.6182
    """
    a = _order(order)
    total = real_number("divergence", divergence, 0)
    small = real_number("delta", delta, 0, 1, open_low=True, open_high=True)
    epsilon = total + math.log1p(-1 / a) - (math.log(small) + math.log(a)) / (a - 1)
    return max(0.0, epsilon + ROUNDING * (1 + abs(epsilon)))


@dataclass(frozen=True)
class UnitPrivacy:
    """(ε, δ), and the order that shows it."""

    epsilon: float
    delta: float
    order: float


def unit_privacy(total: Callable[[float], float], delta: float) -> UnitPrivacy:
    """The smallest ε that the divergences `total(order)` show, over a fixed list of orders.

    >>> found = unit_privacy(lambda order: 0.02 * order, delta=1e-6)
    >>> round(found.epsilon, 2), 20 < found.order < 30
    (0.9, True)
    """
    found = (UnitPrivacy(private_epsilon(total(a), a, delta), delta, a) for a in ORDERS)
    return min(found, key=lambda each: each.epsilon)


class Allowance(NamedTuple):
    """At most `most` verdicts of one kind, what each takes of a budget, what each tells."""

    most: int
    price: float
    divergence: float


def largest_total(allowances: Iterable[Allowance], budget: float) -> float:
    """The most that verdicts within their counts and a common budget can tell, rounded up.

    Fractions of verdicts are allowed for, so the dearest in divergence for its price goes first.

    >>> largest_total([Allowance(10, 1.0, 2.0), Allowance(10, 1.0, 1.0)], budget=15)
    25.00...
    """
    total, rest = 0.0, budget * (1 + ROUNDING)
    for each in sorted(allowances, key=lambda each: each.divergence / each.price, reverse=True):
        bought = min(float(each.most), rest / each.price)
        total, rest = total + bought * each.divergence, rest - bought * each.price
    return total * (1 + ROUNDING)


def _order(order: float) -> float:
    return real_number("order", order, 1, ORDER_MAX, open_low=True)


@lru_cache(maxsize=8)
def _whole_steps(coin: Coin | VerdictCoin) -> _Steps:
    """From every half count to the one a full count further, across the target too."""
    sided = VerdictCoin.symmetric(coin) if isinstance(coin, Coin) else coin
    below, above, across = _apart(sided.below), _apart(sided.above), _across(sided)
    mirrored = _Steps(above.no, above.yes, above.no_ratio, above.yes_ratio)
    return _Steps(*(np.concatenate(parts) for parts in zip(below, mirrored, across, strict=True)))


def _apart(coin: Coin) -> _Steps:
    """Whole steps on one side, in chances of its rare verdict, as if that were Yes."""
    table = np.append(coin.halfsteps, coin.floor)  # a step may begin one half step before the end
    return _pairs(table[:-2], table[2:])


def _pairs(p: Array, q: Array) -> _Steps:
    return _Steps(np.log(q), np.log1p(-q), _log_ratio(p - q, q), _log_ratio(q - p, 1 - q))


def _log_ratio(gap: Array, base: Array) -> Array:
    """ln(1 + gap/base): the difference of near-equal floats is exact, their quotient is not."""
    return np.asarray(np.log1p(gap / base))


def _across(coin: VerdictCoin) -> _Steps:
    """From half a count below the target to half a count above it."""
    low, high = (float(side.error(np.array([1]))[0]) for side in (coin.below, coin.above))
    logs = (math.log1p(-high), math.log(high))
    ratios = (math.log(low) - logs[0], math.log1p(-low) - logs[1])
    return _Steps(*(np.array([value]) for value in (*logs, *ratios)))


def _log_moments(steps: _Steps, a: float) -> Array:
    """ln E_Q[(P/Q)ᵃ] of every pair, either way; rounded up by a few ulps of its largest term."""
    both = [_one_way(each, a) for each in (steps, steps.reversed())]
    return np.maximum(both[0], both[1])


def _one_way(steps: _Steps, a: float) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        yes = np.exp(steps.yes) * np.expm1(a * steps.yes_ratio)
        no = np.exp(steps.no) * np.expm1(a * steps.no_ratio)
        small = np.log1p(yes + no + _ULPS * (np.abs(yes) + np.abs(no)))
    large = np.logaddexp(steps.yes + a * steps.yes_ratio, steps.no + a * steps.no_ratio)
    fits = np.isfinite(small) & (large < 1.0)
    return np.where(fits, small, large + _ULPS * (1 + a))


def _largest(values: Array) -> float:
    return max(0.0, float(np.max(values, initial=0.0)))


def _no_charge(no: Array, yes: Array, charge: float) -> float:
    """The smallest charge of a No that covers every pair, when a Yes is charged this much."""
    room = -np.expm1(yes - charge)
    if bool(np.any(room <= 0)):
        return math.inf
    return _largest(no - np.log(room) + _ULPS * (2 + np.abs(no)))
