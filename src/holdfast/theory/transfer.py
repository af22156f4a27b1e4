"""The transfer theorem: what holds on the sample holds on fresh data (replaces thm `gen`).

Let `bad` be the event that some answer breaks the promise, β its allowed probability, and ψ the
offending indicator, for which D[ψ] ≤ tail although the sample says much more. Write `mass` for
a lower bound on E[1(bad)·S[ψ]] when P[bad] = β, convex in β (flat: q·(β − b); better: the
profile of `holdfast.theory.coins`). The promise holds with probability > 1 − β if

    neighbouring stability:  F(tail·β)    < mass      (theory.md §4)
    centred stability:       F(tail·F(β)) < mass      (sharper in practice; our own)
    both directions at once: sharper still; our own   (`holdfast.theory.transfer`, `meeting_mass`)

*Neighbouring*: F is the curve between M(S) and M(S′), S′ differing in one block.
*Centred*: F is the curve, both ways, between M(S) and a law Q(S₋ᵢ) that ignores block i. A
look's Q flips the coin half a count away, at about a quarter of the price. P[bad] may differ
between M and Q: hence the second F, a far smaller loss.
*Both at once*: the two directions of centred stability cannot both be at their worst.

Proofs: docs/explanation/theory/transfer.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from holdfast.errors import real_number
from holdfast.theory.coins import Profile
from holdfast.theory.divergence import ORDER_MAX, Curve, RenyiCurve
from holdfast.theory.numerics import ROUNDING

__all__ = [
    "FailureClass",
    "all_hold",
    "conjugate",
    "decisive_mass",
    "largest_sample_mass",
    "least_population_mass",
    "meeting_mass",
    "paired_mass",
    "paired_tail",
    "place_target",
    "total_failure",
    "transfers",
]


# Both directions at once: the sharpest transfer that Rényi stability gives us.
#
# Let K = e^((a−1)R) − 1 and
#
#     φ(x) = ½·(xᵃ − 1 − a(x−1)) + ½·(x¹⁻ᵃ − 1 + (a−1)(x−1)) ≥ 0,
#
# convex, 0 at 1. Two laws whose divergences are at most R both ways have E[φ(ratio)] ≤ K. By
# Fenchel's inequality, for any slopes ν < 0 < ν + λ with  ρ·φ*(ν+λ) + (1−ρ)·φ*(ν) ≤ 0,
#
#     E[1(bad)·S[ψ]] ≤ (K − ν·P[bad])/λ        whenever D[ψ] ≤ ρ on bad.
#
# `F(ρ·F(β))` of `holdfast.theory.transfer` takes the worst case of either direction by itself;
# they do not occur together. Slopes are written as φ′(eᵘ): then φ*(φ′(x)) = x·φ′(x) − φ(x), and
#
#     φ′(eᵘ)     = ½·(a·(e^((a−1)u) − 1) − (a−1)·(e^(−au) − 1))  =: slope(u),
#     φ*(φ′(eᵘ)) = ½·((a−1)·(e^(au) − 1) − a·(e^((1−a)u) − 1))   =: conjugate(u),
#
# sums of terms of one sign; and slope(−u) = −conjugate(u), so that positive u are enough.
# Proof: docs/explanation/theory/transfer.md, both directions at once.


_LARGEST = 600.0  # exponents of e that stay far from overflow
_TINY = 1e-280  # a slope that stays far from underflow
_GOLDEN = (math.sqrt(5) - 1) / 2


def conjugate(order: float, slope: float) -> float:
    """φ*(s) = sup over x > 0 of s·x − φ(x), rounded up; inf where it does not fit a float.

    >>> conjugate(2, 0.0), round(conjugate(2, 1.0), 6), round(conjugate(2, -1.0), 6)
    (0.0, 1.311184, -0.805359)
    """
    a = real_number("order", order, 1, ORDER_MAX, open_low=True)
    if -_TINY < slope <= 0:
        return 0.0
    if slope < 0:
        return -_slope(a, _root(_conjugate, -slope, a)) * (1 - 10 * ROUNDING)
    u = _root(_slope, max(slope, _TINY), a)
    return math.inf if a * u >= _LARGEST else _conjugate(a, u) * (1 + 10 * ROUNDING)


def paired_mass(order: float, budget: float, tail: float, failure: float) -> float:
    """The most that E[1(bad)·S[ψ]] can be when P[bad] = failure and D[ψ] ≤ tail, rounded up.

    min over ν of (K − ν·β)/λ, λ the largest that the condition allows. Any ν gives a true bound,
    so the search for the best need not be exact. At most β itself.

    >>> paired_mass(25, 0.1335, 0.25, 0.05) / 0.05
    0.369...
    """
    a, rent, tail, failure = _checked(order, budget, tail, failure)
    odds = (1 - tail) / tail

    def share(log_step: float) -> float:
        below = math.exp(log_step) / a  # ν = −conjugate(below), φ*(ν) = −slope(below)
        # A little less than the root: the condition must hold, not nearly hold.
        above = _root(_conjugate, odds * _slope(a, below), a) * (1 - 10 * ROUNDING)
        return (rent + _conjugate(a, below)) / (_slope(a, above) + _conjugate(a, below))

    best = _least(share, -12.0, math.log(_LARGEST / 2))
    return min(1.0, best * (1 + 10 * ROUNDING)) * failure


def paired_tail(order: float, budget: float, share: float, failure: float) -> float:
    """The largest tail with paired_mass < share·failure, rounded down; 0 if there is none.

    >>> tail = paired_tail(25, 0.1335, 0.3693, 0.05)
    >>> round(tail, 4), paired_mass(25, 0.1335, tail, 0.05) < 0.3693 * 0.05
    (0.2501, True)
    """
    a, rent, share, failure = _checked(order, budget, share, failure)

    def minus_tail(log_step: float) -> float:
        below = math.exp(log_step) / a
        low = -_conjugate(a, below)
        wanted = low + (rent - low) / (share * (1 - 1e-5))  # room for the search of paired_mass
        if wanted <= 0 or math.isinf(wanted):
            return 0.0
        above = _root(_slope, wanted, a)
        if a * above >= _LARGEST:  # beyond what floats can say
            return 0.0
        ratio = _slope(a, below) / _conjugate(a, above)
        return -ratio / (1 + ratio)

    best = -_least(minus_tail, -12.0, math.log(_LARGEST / 2))
    return max(0.0, best * (1 - 1e-9))


def _checked(
    order: float, budget: float, inside: float, failure: float
) -> tuple[float, float, float, float]:
    """Order, K/β, and the two probabilities. A K beyond all floats proves nothing: infinity."""
    a = real_number("order", order, 1, ORDER_MAX, open_low=True)
    budget = real_number("budget", budget, 0)
    inside = real_number("tail", inside, 0, 1, open_low=True, open_high=True)
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    exponent = (a - 1) * budget
    rent = math.inf if exponent > _LARGEST else math.expm1(exponent) / failure * (1 + ROUNDING)
    return a, rent, inside, failure


def _slope(a: float, u: float) -> float:
    """φ′(eᵘ)."""
    return 0.5 * (a * math.expm1((a - 1) * u) - (a - 1) * math.expm1(-a * u))


def _conjugate(a: float, u: float) -> float:
    """φ*(φ′(eᵘ))."""
    return 0.5 * ((a - 1) * math.expm1(a * u) - a * math.expm1((1 - a) * u))


def _root(function: Callable[[float, float], float], value: float, a: float) -> float:
    """The u > 0 at which `_slope` or `_conjugate` has this value; at most 600/a."""
    low, high = 0.0, _LARGEST / a
    if function(a, high) <= value:
        return high
    # Either is front·(e^(fast·u) − 1) − back·(e^(slow·u) − 1), with the same rise.
    fast, slow, front, back = a - 1, -a, 0.5 * a, 0.5 * (a - 1)
    if function is _conjugate:
        fast, slow, front, back = a, 1 - a, back, front
    # Right near 0, where both terms are alike; short by ln 2/fast where the first is alone.
    u, goal = min(math.log1p(0.5 * value / front) / fast, high), math.log(value)
    for _ in range(200):
        up, down = math.expm1(fast * u), math.expm1(slow * u)
        at = front * up - back * down
        over = math.log(at) - goal
        low, high = (low, u) if over > 0 else (u, high)
        # Newton's method on the logarithm, nearly a straight line far out.
        step = u - over * at / (0.5 * a * (a - 1) * (up + down + 2))
        if abs(step - u) <= 1e-9 * u:  # what is left is of the order of its square
            return step
        u = step if low < step < high else 0.5 * (low + high)
    return u


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """The least value that a coarse scan and a golden-section search find; flat there, to 1e-6.

    The argument is the logarithm of a step. A step above 10 has to be met itself: exponentials of
    it are added up.
    """
    points = [low + (high - low) * i / 12 for i in range(13)]
    values = [function(x) for x in points]
    place = min(range(13), key=values.__getitem__)
    low, high = points[max(0, place - 1)], points[min(12, place + 1)]
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    turns = 0
    while turns < 16 or (high - low) * math.exp(high) > 0.0135:
        turns += 1
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return min(at_left, at_right, values[place])


def largest_sample_mass(curve: Curve, tail: float, failure: float, *, centred: bool) -> float:
    """The most that E[1(bad)·S[ψ]] can be when P[bad] = failure and D[ψ] ≤ tail, rounded up.

    >>> from holdfast.theory.divergence import GaussianCurve
    >>> largest_sample_mass(GaussianCurve(0.2), 0.25, 0.05, centred=False)
    0.0206...
    >>> largest_sample_mass(GaussianCurve(0.1), 0.25, 0.05, centred=True)
    0.0195...
    """
    tail = real_number("tail", tail, 0, 1, open_low=True, open_high=True)
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    reference = curve.largest(failure) if centred else failure
    return curve.largest(tail * reference)


def transfers(curve: Curve, tail: float, failure: float, mass: float, *, centred: bool) -> bool:
    """Whether the promise holds: sample mass `mass` is more than stability allows."""
    return largest_sample_mass(curve, tail, failure, centred=centred) < mass


def least_population_mass(curve: Curve, tail: float, failure: float, *, centred: bool) -> float:
    """The least that P[bad and ψ fresh] can be when P[bad] = failure and D[ψ] ≥ tail."""
    tail = real_number("tail", tail, 0, 1, open_low=True, open_high=True)
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    return tail * (curve.smallest(failure) if centred else failure)


def decisive_mass(curve: Curve, tail: float, failure: float, *, centred: bool = True) -> float:
    """The sample mass above which D[ψ] > tail is proved, by whichever theorem proves most.

    Theorem: mass > F(tail·F(β)). Mirror, on 1 − ψ, whose sample mass is β − mass: it suffices that
    β − mass < F⁻¹((1 − tail)·F⁻¹(β)). Centred stability has a third, both directions at once:
    `paired_mass` for Rényi divergence, `meeting_mass` for other curves. Rounded up.

    >>> from holdfast.theory.divergence import GaussianCurve, RenyiCurve
    >>> round(decisive_mass(GaussianCurve(0.1), 0.25, 0.05) / 0.05, 4)
    0.348
    >>> round(decisive_mass(GaussianCurve(0.1), 0.85, 0.05) / 0.05, 4)
    0.9034
    >>> round(decisive_mass(RenyiCurve(25, 0.1335), 0.25, 0.05) / 0.05, 4)
    0.3692
    """
    bounds = [largest_sample_mass(curve, tail, failure, centred=centred)]
    if tail >= 0.4:  # below, the mirror rarely wins: its time is not worth it
        least = least_population_mass(curve, 1 - tail, failure, centred=centred)
        bounds.append((failure - curve.smallest(least)) * (1 + ROUNDING))
    if centred:
        bounds.append(
            paired_mass(curve.order, curve.budget, tail, failure)
            if isinstance(curve, RenyiCurve)
            else meeting_mass(curve, tail, failure)
        )
    return min(bounds)


def meeting_mass(curve: Curve, tail: float, failure: float) -> float:
    """Both directions for any curve: F(tail·y), where F(tail·y) + F⁻¹((1 − tail)·y) = β.

    Whatever y = P[bad] is under the reference law, E[1(bad)·S[ψ]] is at most F(tail·y) and at most
    β − F⁻¹((1 − tail)·y). The one rises with y and the other falls. Rounded up.

    >>> from holdfast.theory.divergence import GaussianCurve
    >>> round(meeting_mass(GaussianCurve(0.1), 0.25, 0.05) / 0.05, 4)
    0.348
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        met = curve.largest(tail * middle) + curve.smallest((1 - tail) * middle)
        low, high = (low, middle) if met > failure else (middle, high)
    return min(failure, curve.largest(tail * high))


# Failure classes: every promise, of every protocol, in one form that one theorem checks.
#
# A class is one way to break a promise. Its event: some answer has an indicator ψ of one block
# with
#
#     D[ψ] ≤ tail   on fresh data,  although   m·S[ψ] ≥ #{e : E < e ≤ reach}   on the sample,
#
# where E is the largest error of the looks that chose the answer, −∞ if none erred, e > 0 runs
# over the lattice of the reach (whole numbers, or half-integers), and `profile` bounds how many
# of them err by how much. For a whole reach that is reach − E; for a half-integer without an
# error it is reach + 1/2: there m·S[ψ] must be a whole number. "Too large" is the same statement
# about 1 − ψ, so that the mirror theorem needs no second form (`decisive_mass` uses whichever
# proves more).
#
#     protocol                      ψ                        tail            reach
#     estimate, below the answer    φ ≤ v                    ρ               target
#     estimate, above               φ ≥ v                    ρ               m − target
#     interval, encloses            φ ≥ v_low, φ ≤ v_high    1/2             m − target
#     interval, no wider than       φ ≤ v_low, φ ≥ v_high    ρ               target
#     verify, false Yes             φ ≤ v, or φ ≥ v          ρ_low           target
#     verify, false No              φ > v, or φ < v          1 − ρ_high      m − target
#
# A class that holds has probability below its own share of β: shares that add up to β certify all
# promises at once, whatever mixture of protocols the analyst uses, for the curve is that of the
# whole budget. Proof: docs/explanation/theory/budget.md.


@dataclass(frozen=True, eq=False)
class FailureClass:
    """One way to break a promise, and the share of β that it may use."""

    name: str
    tail: float
    twice_reach: int
    failure: float
    profile: Profile

    def holds(self, curve: Curve, blocks: int) -> bool:
        """Whether centred transfer gives the class a probability below `failure`."""
        if not 0 < self.tail < 1 or not 0 < self.failure < 1:
            return False
        if not 0 < self.twice_reach <= 2 * blocks:
            return False
        kept = self.profile.mass(self.failure, self.twice_reach, blocks)
        return decisive_mass(curve, self.tail, self.failure) < kept


def all_hold(classes: Iterable[FailureClass], curve: Curve, blocks: int) -> bool:
    """Whether every class keeps to its share."""
    return all(failure_class.holds(curve, blocks) for failure_class in classes)


def total_failure(shares: Iterable[float]) -> Fraction:
    """The shares of β added up, without rounding.

    >>> total_failure([0.1] * 10) > 1  # 0.1 is stored as a little more than 1/10
    True
    """
    return sum((Fraction(share) for share in shares), start=Fraction(0))


# Where to aim: the target count that leaves both failure classes of an answer their due.


def place_target(
    curve: Curve,
    blocks: int,
    below: FailureClass,
    above: FailureClass | None = None,
    *,
    quantile: float | None = None,
) -> int | None:
    """A whole count c so that `below` holds with reach c and `above` with reach m − c; or None.

    The reaches that the classes carry are ignored. The smallest c that proves the class below
    leaves the class above the most room; a wanted quantile fixes c instead.
    """
    if quantile is None:
        drift = decisive_mass(curve, below.tail, below.failure) / below.failure
        first = math.ceil(blocks * drift + below.profile.shortfall(below.failure, 2 * blocks))
        # `first` is rounded up twice: where it leaves the class above too little, one less may do.
        candidates: tuple[int, ...] = (first, first + 1, first - 1)
    else:
        candidates = (round(quantile * blocks),)
    for count in candidates:
        sides = [_with_reach(below, 2 * count)]
        if above is not None:
            sides.append(_with_reach(above, 2 * (blocks - count)))
        if all(side.holds(curve, blocks) for side in sides):
            return count
    return None


def _with_reach(side: FailureClass, twice_reach: int) -> FailureClass:
    return FailureClass(side.name, side.tail, twice_reach, side.failure, side.profile)
