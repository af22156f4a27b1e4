"""A second, slow verifier of a promise, written from the theorem alone.

It shares no code with `holdfast.theory`: 50-digit arithmetic, the definitions as they are written
on paper, roots by bracketing. Its input is plain numbers, its output one word: certified or not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from mpmath import mp, mpf, workdps

__all__ = [
    "check",
    "conjugate",
    "divergence",
    "exact_tail",
    "largest",
    "mass",
    "paired",
    "phi",
    "phi_slope",
    "proves",
    "smallest",
    "steepest",
]

_DIGITS = 50
Real = Any  # mpmath has no types


def divergence(order: Real, p: Real, q: Real, digits: int = _DIGITS) -> Real:
    """D_a(p‖q) = ln(pᵃ q¹⁻ᵃ + (1−p)ᵃ (1−q)¹⁻ᵃ) / (a−1), as it stands."""
    with workdps(digits):
        a, p, q = mpf(order), mpf(p), mpf(q)
        if p == q:
            return mpf(0)
        if q in (0, 1):
            return mp.inf
        total = (p**a * q ** (1 - a) if p else 0) + (
            (1 - p) ** a * (1 - q) ** (1 - a) if p < 1 else 0
        )
        return mp.log(total) / (a - 1)


@cache
def largest(order: Real, budget: Real, q: Real, digits: int = _DIGITS) -> Real:
    """F(q) = max{P : D(P‖q) ≤ budget}: the log-odds of P by bisection."""
    with workdps(digits):
        q, budget = mpf(q), mpf(budget)
        if q == 0 or budget == 0 or divergence(order, 1, q, digits) <= budget:
            return q if q == 0 or budget == 0 else mpf(1)
        low, high = _logit(q), _logit(q) + 1
        while divergence(order, _logistic(high), q, digits) <= budget:
            low, high = high, high + 2 * (high - low)
        for _ in range(int(3.4 * digits)):
            middle = (low + high) / 2
            if divergence(order, _logistic(middle), q, digits) <= budget:
                low = middle
            else:
                high = middle
        return _logistic(high)


@cache
def smallest(order: Real, budget: Real, p: Real, digits: int = _DIGITS) -> Real:
    """min{Q : D(p‖Q) ≤ budget}: the logarithm of Q by bisection."""
    with workdps(digits):
        p, budget = mpf(p), mpf(budget)
        if p == 0 or budget == 0:
            return p
        high = mp.log(p)
        low = high - 1
        while divergence(order, p, mp.exp(low), digits) <= budget:
            low, high = low - 2 * (high - low), low
        for _ in range(int(3.4 * digits)):
            middle = (low + high) / 2
            if divergence(order, p, mp.exp(middle), digits) <= budget:
                high = middle
            else:
                low = middle
        return mp.exp(low)


def phi(a: Real, x: Real) -> Real:
    """φ(x) = ½(xᵃ − 1 − a(x−1)) + ½(x¹⁻ᵃ − 1 + (a−1)(x−1)), as it stands."""
    return (x**a - 1 - a * (x - 1)) / 2 + (x ** (1 - a) - 1 + (a - 1) * (x - 1)) / 2


def phi_slope(a: Real, x: Real) -> Real:
    return (a * x ** (a - 1) - a) / 2 + ((1 - a) * x ** (-a) + (a - 1)) / 2


def conjugate(order: Real, slope: Real, digits: int = _DIGITS) -> Real:
    """φ*(s) = sup over x > 0 of s·x − φ(x): the logarithm of x by bisection, φ′(x) = s."""
    with workdps(digits):
        a, s = mpf(order), mpf(slope)
        far = mpf(1)
        while phi_slope(a, mp.exp(-far)) > s or phi_slope(a, mp.exp(far)) < s:
            far *= 2
        low, high = -far, far
        for _ in range(int(3.4 * digits)):
            middle = (low + high) / 2
            low, high = (middle, high) if phi_slope(a, mp.exp(middle)) < s else (low, middle)
        x = mp.exp(low)
        return s * x - phi(a, x)


@cache
def paired(order: Real, budget: Real, tail: Real, failure: Real, digits: int = _DIGITS) -> Real:
    """The least (K − ν·β)/λ over slopes with ρ·φ*(ν+λ) + (1−ρ)·φ*(ν) ≤ 0, K = e^((a−1)R) − 1.

    Slopes are those of φ at x < 1 < y, so that φ*(φ′(x)) = x·φ′(x) − φ(x). Golden section over the
    logarithm of −ln x (the bound has one valley: a quotient of affine functions on a convex set);
    the condition is then checked once more, from the definition of φ*.
    """
    with workdps(digits):
        a, tail, failure = mpf(order), mpf(tail), mpf(failure)
        rent = mp.exp((a - 1) * mpf(budget)) - 1

        def touch(x: Real) -> Real:
            return x * phi_slope(a, x) - phi(a, x)

        def slopes(step: Real) -> tuple[Real, Real]:
            x = mp.exp(-mp.exp(step) / a)
            limit = -(1 - tail) / tail * touch(x)
            # touch(eᵘ) is above ½(a−1)(e^(au) − 1) and grows at least like u.
            beyond = mp.log(mp.log1p(2 * limit / (a - 1)) / a)
            y = _root(lambda t: mp.log(touch(mp.exp(mp.exp(t))) / limit), beyond, 1e-25)
            return phi_slope(a, x), phi_slope(a, mp.exp(mp.exp(y)))

        def bound(step: Real) -> Real:
            below, above = slopes(step)
            return (rent - below * failure) / (above - below)

        step = _valley(bound, -16, 6)
        below, above = slopes(step)
        above *= 1 - mpf(10) ** -20
        room = tail * conjugate(a, above, digits) + (1 - tail) * conjugate(a, below, digits)
        assert room <= 0
        return (rent - below * failure) / (above - below)


def _valley(function: Callable[[Real], Real], first: int, last: int) -> Real:
    """Where a function with one valley is least, to about 1e-7."""
    best = min(range(first, last + 1), key=function)
    low, high = mpf(best - 1), mpf(best + 1)
    golden = (mp.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > 1e-7:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = function(right)
    return left


def proves(order: Real, budget: Real, tail: Real, failure: Real, mass: Real) -> bool:
    """Whether a sample mass `mass` at P[bad] = β is more than one of the three theorems allows.

    F(ρ·F(β)) < ℓ; or the mirror, F(β − ℓ) < (1 − ρ)·F⁻¹(β); or both directions at once, `paired`.
    """
    with workdps(_DIGITS):
        mass = mpf(mass)
        if largest(order, budget, tail * largest(order, budget, failure)) < mass:
            return True
        if paired(order, budget, tail, failure) < mass:
            return True
        fresh = (1 - mpf(tail)) * smallest(order, budget, failure)
        return bool(largest(order, budget, failure - mass) < fresh)


def exact_tail(n: int, p: Real, c: int) -> Real:
    """P[Bin(n, p) ≥ c]: terms from c on, until they add nothing."""
    if c <= 0 or p >= 1:
        return mpf(1)
    term, total = mp.binomial(n, c) * p**c * (1 - p) ** (n - c), mpf(0)
    for i in range(c, n + 1):
        total += term
        term *= (n - i) * p / ((i + 1) * (1 - p))
        if term < total * mpf(10) ** -45 and i > n * p:
            break
    return total


def _logit(p: Real) -> Real:
    return mp.log(p) - mp.log(1 - p)


def _logistic(x: Real) -> Real:
    return 1 / (1 + mp.exp(-x))


@cache
def steepest(order: float, price: float, floor: float, digits: int = 30) -> tuple[Real, ...]:
    """½ = h₀ > h₁ > …: each the smallest z with D(h‖z) ≤ price and D(z‖h) ≤ price, to the floor."""
    with workdps(digits):
        a, limit = mpf(order), mp.log(mpf(price))
        table = [mpf(1) / 2]
        step = mp.log(2 * mpf(price) / a) / 2  # the logarithm of ln(h/z), for small prices
        while table[-1] > floor:
            here = table[-1]
            ln_here, ln_not_here = mp.log(here), mp.log(1 - here)

            def excess(step: Real) -> Real:
                """ln(D/price) for z = h·exp(−eˢᵗᵉᵖ): nearly a straight line of slope 2."""
                ln_z = ln_here - mp.exp(step)  # noqa: B023 (used before the loop goes on)
                ln_not_z = mp.log1p(-mp.exp(ln_z))
                down = _ln_sum(a, ln_here, ln_not_here, ln_z, ln_not_z)  # noqa: B023
                up = _ln_sum(a, ln_z, ln_not_z, ln_here, ln_not_here)  # noqa: B023
                return mp.log(max(down, up) / (a - 1)) - limit

            step = _root(excess, step)
            table.append(max(here * mp.exp(-mp.exp(step)), mpf(floor)))
        return tuple(table)


def _ln_sum(a: Real, ln_p: Real, ln_not_p: Real, ln_q: Real, ln_not_q: Real) -> Real:
    return mp.log(mp.exp(a * ln_p + (1 - a) * ln_q) + mp.exp(a * ln_not_p + (1 - a) * ln_not_q))


def _root(rising: Callable[[Real], Real], near: Real, tolerance: float = 1e-17) -> Real:
    """Where a rising function crosses 0: a bracket around a guess, then the Illinois method."""
    low = high = near
    f_low = f_high = rising(near)
    width = max(abs(f_low), mpf(tolerance))
    while f_low > 0:
        low, width = low - width, 2 * width
        f_low = rising(low)
    while f_high < 0:
        high, width = high + width, 2 * width
        f_high = rising(high)
    side = 0
    while high - low > tolerance and f_low < 0 < f_high:
        middle = (low * f_high - high * f_low) / (f_high - f_low)
        value = rising(middle)
        if abs(value) < tolerance:
            return middle
        if value > 0:
            high, f_high, f_low = middle, value, f_low / 2 if side > 0 else f_low
        else:
            low, f_low, f_high = middle, value, f_high / 2 if side < 0 else f_high
        side = 1 if value > 0 else -1
    return low if f_high > 0 else high


def mass(table: tuple[Real, ...], looks: int, failure: Real, twice_target: int) -> Real:
    """Σ (β − N·h(e))₊ over e = c*, c* − 1, … > 0: what ψ counts on the sample, at least."""
    first = 1 if twice_target % 2 else 2
    total = mpf(0)
    index = first
    while index <= min(twice_target, len(table) - 1):
        total += max(mpf(0), failure - looks * table[index])
        index += 2
    if index <= twice_target:  # the floor, for the rest
        terms = (twice_target - index) // 2 + 1
        total += terms * max(mpf(0), failure - looks * table[-1])
    return total


def check(
    order: float,
    look_price: float,
    floor: float,
    looks: int,
    blocks: int,
    twice_target: int,
    tail_low: float,
    tail_high: float,
    failure_low: float,
    failure_high: float,
    central: bool,
) -> bool:
    """Whether centred stability proves both sides with the steepest coin.

    `central`: equal tails and target m/2, one failure class, with all of β for both sides;
    otherwise two classes, and that their shares add up to at most β is the caller's to check (β is
    not an argument). A side holds if one of the theorems `proves` it for ℓ = Σ (β − N·h(e))₊ / m.
    """
    if central and (twice_target != blocks or tail_low != tail_high or failure_low != failure_high):
        return False
    if not 0 <= twice_target <= 2 * blocks:
        return False
    with workdps(_DIGITS):
        budget = looks * mpf(look_price)
        table = steepest(order, look_price, floor)
        sides = {
            (tail_low, failure_low, twice_target),
            (tail_high, failure_high, 2 * blocks - twice_target),
        }
        for tail, failure, twice_reach in sides:
            sample = mass(table, looks, mpf(failure), twice_reach) / blocks
            if not proves(order, budget, tail, failure, sample):
                return False
        return True
