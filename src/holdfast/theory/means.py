"""Bounded means by one search per question, with error bars that narrow with the mean.

A question is ψ : block → [0, 1]. Its count C = Σ ψ(S_i) is compared, look by look, with thresholds
(whole or half counts); the answer is the cell between two of them, c_low and c_high, and

    D[ψ] ∈ ( tail(c_low/m),  1 − tail(1 − c_high/m) )     for all questions at once,
    tail(θ) = −φ*(ν) / (φ*(ν + λ) − φ*(ν)),   ν = A − λθ,   A > K/β + λ·shortfall(β)/m,

with K = e^((a−1)R) − 1, any slope λ > 0 and φ* of `conjugate`: one failure class for all thresholds
and both sides. And a question costs one look, not ⌈log₂ r⌉: with thresholds 2τ apart all coins but
one are at their floor, where one block changes nothing. Proofs: docs/explanation/theory/means.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.theory.coins import Coin, Profile, reach_of, steepest_coin
from holdfast.theory.divergence import ORDER_MAX, ORDER_MIN, RenyiCurve
from holdfast.theory.numerics import ROUNDING
from holdfast.theory.sizing import BLOCKS_MAX, QUERIES_MAX, minimise
from holdfast.theory.transfer import conjugate

__all__ = [
    "DirectBars",
    "DirectMeanSize",
    "best_direct",
    "direct_bars",
    "level_tail",
    "narrowest_direct",
    "scaled_direct",
    "search_profile",
    "separated",
]

_WEIGHT_ERROR = Fraction(1, 2**17)  # weights are rounded to the nearest multiple of 2⁻¹⁶
_LENGTH_MAX = 3e6  # half steps of a table that still takes well under a minute
_NEVER = 700.0  # the goal where parameters are outside the tables' reach


def level_tail(order: float, slope: float, toll: float, level: float) -> float:
    """tail(θ): more than this is proved of D[ψ] at level θ, rounded down. `toll` is A, `slope` λ.

    >>> round(level_tail(order=60, slope=24_400, toll=801.7, level=0.5), 4)
    0.4255
    """
    nu = toll * (1 + ROUNDING) - slope * level * (1 - ROUNDING)
    if nu >= 0:
        return 0.0
    none, whole = conjugate(order, nu), conjugate(order, nu + slope)
    return max(0.0, -none / (whole - none) * (1 - ROUNDING))


def separated(coin: Coin, twice_targets: Sequence[int]) -> bool:
    """Whether thresholds are at least 2τ counts apart: a question then costs one look."""
    return all(y - x >= 2 * (coin.halfsteps.size - 1) for x, y in pairwise(twice_targets))


def search_profile(coin: Coin, queries: int, looks: int) -> Profile:
    """Slips of k questions with separated thresholds, `looks` each: k·(h + (looks − 1)·floor)."""
    return Profile(float(queries) * (coin.halfsteps + (looks - 1) * coin.floor))


@dataclass(frozen=True)
class DirectBars:
    """For each cell of the search the ends of its bar; `slope` is the λ that proves them."""

    slope: float
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def half_width(self) -> float:
        """The most that a bar's middle, which is the answer, differs from its ends."""
        width = max(high - low for low, high in zip(self.low, self.high, strict=True))
        return min(0.5, math.nextafter(width / 2, 1.0))


def direct_bars(
    curve: RenyiCurve,
    profile: Profile,
    blocks: int,
    twice_targets: Sequence[int],
    failure: float,
    *,
    exact: bool = True,
    slope: float | None = None,
) -> DirectBars:
    """The bars of all cells: all of them hold, but for a probability below `failure`.

    `curve` is that of the whole budget, `profile` bounds the slips of all questions; without a
    slope the best for the middle cells is found. `exact`: ψ is 0 or 1. Otherwise counts are
    quantised, and m·2⁻¹⁷ is allowed for at both ends and one count at the upper one.
    """
    m = whole_number("blocks", blocks, 1, BLOCKS_MAX)
    beta = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    a = real_number("order", curve.order, 1, ORDER_MAX, open_low=True)
    budget = real_number("budget", curve.budget, 0, 300 / (a - 1), open_low=True)
    targets, last = list(twice_targets), len(twice_targets)
    if not targets or targets != sorted({*targets}) or not 0 <= targets[0] <= targets[-1] <= 2 * m:
        raise InvalidInput("targets", targets[:4], "rising half counts from 0 to the blocks")
    rent = math.expm1((a - 1) * budget) / beta * (1 + ROUNDING)
    # Errors at whole targets are whole, at half-integers half-integers.
    short = max(profile.shortfall(beta, 2 * m - odd) for odd in {t % 2 for t in targets}) / m
    below, above = (0, 0) if exact else (_WEIGHT_ERROR, _WEIGHT_ERROR + Fraction(1, m))
    ups = [max(0.0, float(Fraction(-(-t // 2), m) - below)) for t in targets]
    downs = [max(0.0, float(Fraction(m - t // 2, m) - above)) for t in targets]

    def bars(slope: float, cells: range) -> DirectBars:
        toll = (rent + slope * short) * (1 + ROUNDING)
        low = (level_tail(a, slope, toll, ups[j - 1]) if j else 0.0 for j in cells)
        top = (level_tail(a, slope, toll, downs[j]) if j < last else 0.0 for j in cells)
        high = (min(1.0, math.nextafter(1 - tail, 2.0)) for tail in top)
        return DirectBars(slope, tuple(low), tuple(high))

    if slope is None:
        from scipy.optimize import minimize_scalar

        def widest(log_share: float) -> float:
            return bars(rent * math.exp(-log_share), middle).half_width

        middle = range(max(0, last // 2 - 1), min(last, last // 2 + 2) + 1)
        # The share rent/slope is part of a bar: at `most` the tails in the middle would be 0.
        most = math.log(max(1e-6, min(ups[last // 2], downs[last // 2]) - short))
        found = minimize_scalar(widest, bounds=(most - 14.0, most), method="bounded")
        slope = rent * math.exp(-float(found.x))
    return bars(real_number("slope", slope, 0, open_low=True), range(last + 1))


@dataclass(frozen=True)
class DirectMeanSize:
    """k questions about bounded means on m blocks, and all that is needed to check the promise."""

    queries: int
    confidence: float
    blocks: int
    order: float
    price: float  # asked of `steepest_coin`, as are order and floor
    floor: float
    twice_targets: tuple[int, ...]
    exact: bool = True
    slope: float | None = None
    half_width: float = 0.5

    @cached_property
    def coin(self) -> Coin:
        return steepest_coin(self.order, self.price, self.floor)

    @cached_property
    def budget(self) -> float:
        """What all questions cost: one look each, priced from the stored table."""
        return self.queries * self.coin.price(self.order) * (1 + 1e-15)

    @property
    def looks(self) -> int:
        return len(self.twice_targets).bit_length()  # ⌈log₂ r⌉ for r cells

    @cached_property
    def bars(self) -> DirectBars:
        """The bars of all cells, by the theorem."""
        curve = RenyiCurve(self.order, self.budget)
        slips = search_profile(self.coin, self.queries, self.looks)
        m, targets, beta = self.blocks, self.twice_targets, _failure(self.confidence)
        return direct_bars(curve, slips, m, targets, beta, exact=self.exact, slope=self.slope)

    def verify(self) -> bool:
        """Whether the theorem proves `half_width` for these parameters, all computed afresh."""
        return separated(self.coin, self.twice_targets) and self.bars.half_width <= self.half_width


def best_direct(
    queries: int, half_width: float, confidence: float, *, exact: bool = True
) -> DirectMeanSize:
    """The fewest blocks (rows, at block size 1) whose bars are all within ± half_width.

    >>> plan = best_direct(queries=100, half_width=0.1, confidence=0.95)
    >>> 10_000 < plan.blocks < 10_400, len(plan.bars.low), plan.verify()
    (True, 19, True)
    """
    width = real_number("half_width", half_width, 0, 0.5, open_low=True, open_high=True)

    def log_size(rough: Callable[[float], float]) -> float:
        from scipy.optimize import brentq

        return float(brentq(lambda x: rough(math.exp(x)) - width, 0.0, math.log(BLOCKS_MAX)))

    least, plan = _search(queries, confidence, width, log_size, exact)
    sizes = range(1, min(BLOCKS_MAX, math.ceil(1.3 * math.exp(least)) + 10))
    blocks = 1 + bisect_left(sizes, True, key=lambda m: plan(m).half_width <= width)
    if blocks == sizes.stop:
        raise _too_much(queries, confidence)
    return plan(blocks)


def narrowest_direct(
    queries: int, blocks: int, confidence: float, *, exact: bool = True
) -> DirectMeanSize:
    """The narrowest bars that so many blocks allow."""
    m = whole_number("blocks", blocks, 1, BLOCKS_MAX)
    near = 2.5 * (queries * -math.log(_failure(confidence))) ** 0.25 / math.sqrt(m)
    return _search(queries, confidence, min(0.4, near), lambda rough: rough(m), exact)[1](m)


def scaled_direct(plan: DirectMeanSize, queries: int) -> DirectMeanSize:
    """The bars of other questions on the same blocks, without a search: quick, a little wide.

    Good parameters follow the half-width, which is about proportional to k^(1/4): order − 1 like
    its inverse, budget like itself, floor like β/k times its square. Coin and bars are then built
    in full, so that what they promise holds wherever the parameters came from.

    >>> plan = narrowest_direct(100, blocks=10_000, confidence=0.95)
    >>> other = scaled_direct(plan, 300)
    >>> other.verify(), other.half_width < 1.01 * narrowest_direct(300, 10_000, 0.95).half_width
    (True, True)
    """
    k = whole_number("queries", queries, 1, QUERIES_MAX)
    ratio = math.sqrt(math.sqrt(k / plan.queries))
    base = replace(
        plan,
        queries=k,
        order=min(max(ORDER_MIN, 1 + (plan.order - 1) / ratio), ORDER_MAX),
        price=plan.price / ratio**3,
        floor=min(plan.floor / ratio**2, 0.1 * _failure(plan.confidence) / k),
        slope=None,
    )
    return _placed(base, plan.blocks)


def _failure(confidence: float) -> float:
    confidence = real_number("confidence", confidence, 0, 1, open_low=True, open_high=True)
    return float(1 - Fraction(repr(confidence)))  # 0.05 for 0.95, as written


def _too_much(queries: int, confidence: float) -> Infeasible:
    needed = "more blocks or a finer coin than can be computed"
    asked = f"{queries:,} question(s) at confidence {confidence:g} were asked for"
    return Infeasible("Means", needed, asked, "Ask fewer questions or allow wider bars.")


def _search(
    k: int, confidence: float, width: float, goal: Callable[..., float], exact: bool
) -> tuple[float, Callable[[int], DirectMeanSize]]:
    """The smallest goal, and the plans of its parameters by the number of blocks.

    Nelder–Mead over the logs of order − 1, budget, share = K/(β·λ) and floor. It starts where
    Gaussian counts have their best order: near b = 2·ln(2/β)/w, and a budget near w/2.
    """
    k, beta = whole_number("queries", k, 1, QUERIES_MAX), _failure(confidence)

    def parameters(x: Sequence[float]) -> tuple[float, float, float, float]:
        excess, budget, share, floor = (math.exp(min(max(v, -60.0), 9.0)) for v in x)
        return max(ORDER_MIN, 1 + excess), budget / k, share, min(floor, 0.1) * beta / k

    def value(x: Sequence[float]) -> float:
        a, price, share, floor = parameters(x)
        c = (a - 1) * price
        try:
            length, slipped = 2 * reach_of(a, c, c, 1 / floor), reach_of(a, c, c, k / beta)
            rent = math.expm1(k * c) / beta

            def rough(m: float) -> float:
                short = slipped / m + math.log2(2 + m / length) * floor * k / beta
                toll = rent + rent / share * short
                return length / m / 2 + 0.5 - level_tail(a, rent / share, toll, 0.5)

            return goal(rough) if length < _LENGTH_MAX else _NEVER
        except (InvalidInput, OverflowError, ValueError):
            return _NEVER

    b = 2 * math.log(2 / beta) / width
    start = (min(0.9 * b, ORDER_MAX / 4), 0.45 * width, 0.6 / b, 1e-3 * width**2)
    x = minimise(value, minimise(value, [math.log(v) for v in start], 0.4), 0.1)
    if value(x) == _NEVER:
        raise _too_much(k, confidence)
    a, price, _, floor = parameters(x)
    base = DirectMeanSize(k, confidence, 1, a, price, floor, (1,), exact)
    return value(x), lambda m: _placed(base, m)


def _placed(base: DirectMeanSize, m: int) -> DirectMeanSize:
    """Thresholds 2τ apart and placed evenly; the slope and the bars of the theorem."""
    apart = base.coin.halfsteps.size - 1
    count = max(1, m // apart)
    targets = tuple(m + apart * j for j in range(1 - count, count, 2))
    draft = replace(base, blocks=m, twice_targets=targets)
    vars(draft).update(coin=base.coin, budget=base.budget)  # the same for every m
    return replace(draft, slope=draft.bars.slope, half_width=draft.bars.half_width)
