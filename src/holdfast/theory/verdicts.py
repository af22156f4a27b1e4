"""Coins that are paid by verdict: steep where a No is dear and a Yes is cheap (theory.md §6).

A verdict coin errs with probability `below.halfsteps` below its target (a false Yes) and
`above.halfsteps` above it (a false No). A No costs A and a Yes costs B, as exponents, if for
every pair of neighbouring half steps, in both directions,

    e^(−A)·gᵃ z¹⁻ᵃ + e^(−B)·(1−g)ᵃ (1−z)¹⁻ᵃ ≤ 1,     g, z chances of No.

The steepest such coin takes, from 1/2 outwards on both sides, the longest half step allowed. Equal
prices give the flat steepest coin. Proof that prices add up: docs/explanation/theory/refusals.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.arguments import real_number
from holdfast.errors import InvalidInput
from holdfast.theory.coin import Coin
from holdfast.theory.numerics import log_co_ratio, moment_excess
from holdfast.theory.renyi import ORDER_MAX

__all__ = ["VerdictCoin", "verdict_coin"]

_LENGTH_MAX = 4_000_000
_FLOOR_MIN = 1e-150


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
    a = real_number("order", order, 1, ORDER_MAX, open_low=True)
    no = real_number("no_price", no_price, 0, 300, open_low=True)
    yes = real_number("yes_price", yes_price, 0, 300, open_low=True)
    below = _table(a, yes, no, real_number("false_yes", false_yes, _FLOOR_MIN, 0.5, open_high=True))
    above = _table(a, no, yes, real_number("false_no", false_no, _FLOOR_MIN, 0.5, open_high=True))
    return VerdictCoin(Coin("verdict", below), Coin("verdict", above))


def _table(a: float, rare: float, common: float, floor: float) -> NDArray[np.float64]:
    table = [0.5]
    for value in _values(a, rare, common):
        table.append(max(value, floor))
        if value <= floor:
            return np.array(table)
        if len(table) > _LENGTH_MAX:
            break
    hint = "A flatter coin needs a larger table: raise the prices or the floor."
    raise InvalidInput("floor", floor, f"reached within {_LENGTH_MAX:,} half steps", hint)


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
    while _allowed(a, p, high, rare, common):
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


def _allowed(a: float, p: float, u: float, rare: float, common: float) -> bool:
    return _overdraft(a, p, u, rare, common) <= 0


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
