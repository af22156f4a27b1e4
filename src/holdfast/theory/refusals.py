"""Paying by verdict: a price for a refusal, and a smaller one, or none, for a Yes (theory.md §6).

Lemma. Let g be the chance of No under M and z under the reference law Q. If for every pair that
a look can meet, in both directions,

    e^(−A)·gᵃ z¹⁻ᵃ + e^(−B)·(1−g)ᵃ (1−z)¹⁻ᵃ ≤ 1,

then any adaptive sequence of looks with at most ℓ refusals and k consents is
(ℓA + kB)/(a − 1)-stable at order a: the likelihood ratio to the power a, times
e^(−A·#No − B·#Yes), is a supermartingale under Q. Proof: docs/explanation/theory/refusals.md.

For a stored coin the pairs are finitely many, so the supremum is a maximum, and exact.
"""

from __future__ import annotations

import math
from itertools import pairwise

from holdfast.arguments import real_number
from holdfast.errors import Infeasible
from holdfast.theory.coin import Coin
from holdfast.theory.numerics import ROUNDING, log_co_ratio, log_ratio
from holdfast.theory.renyi import ORDER_MAX
from holdfast.theory.verdicts import VerdictCoin

__all__ = ["logistic_refusal_price", "refusal_budget", "refusal_price"]


def refusal_price(coin: Coin | VerdictCoin, order: float, yes_price: float = 0.0) -> float:
    """A: the smallest price of a No, when a Yes costs B = yes_price, in centred stability.

    Prices are exponents: divide by (order − 1) for stability (`refusal_budget`).

    >>> from holdfast.theory.coin import logistic_coin
    >>> refusal_price(logistic_coin(slope=0.01, floor=1e-9), order=10)
    0.00116...
    """
    a = real_number("order", order, 1, ORDER_MAX, open_low=True)
    b = real_number("yes_price", yes_price, 0)
    both = VerdictCoin.symmetric(coin) if isinstance(coin, Coin) else coin
    worst = 0.0
    for p, q in pairwise(both.above.halfsteps.tolist()):
        for error, other in ((p, q), (q, p)):
            no, yes = _log_terms(a, error, other)  # above the target the error is a No
            worst = max(worst, _price(no, yes, b))
    for p, q in pairwise(both.below.halfsteps.tolist()):
        for error, other in ((p, q), (q, p)):
            yes, no = _log_terms(a, error, other)
            worst = max(worst, _price(no, yes, b))
    return worst * (1 + ROUNDING)


def refusal_budget(order: float, no_price: float, yes_price: float, noes: int, yeses: int) -> float:
    """(ℓA + kB)/(a − 1), rounded up: the stability that ℓ refusals and k consents use."""
    return (noes * no_price + yeses * yes_price) / (order - 1) * (1 + ROUNDING)


def logistic_refusal_price(slope: float, order: float, shift: float = 0.5) -> float:
    """The limit g → 0 of the logistic coin's price: −κs − ln(1 − s(e^κ − 1)).

    Here s = a − 1 and κ = slope·shift. The other direction's limit is smaller. It bounds every
    floored table (tested), and needs s(e^κ − 1) < 1.
    """
    a = real_number("order", order, 1, ORDER_MAX, open_low=True)
    step = real_number("slope", slope, 0, open_low=True) * shift
    room = 1.0 - (a - 1) * math.expm1(step)
    if room <= 0:
        raise _unaffordable()
    slack = 1e-15 * (1 + a * step)  # the two terms nearly cancel; rounded up
    return -step * (a - 1) - math.log(room) + slack


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
