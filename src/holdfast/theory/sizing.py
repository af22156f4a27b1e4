"""How many blocks a promise needs: conditions checked exactly, parameters found numerically.

`Promise` is what is asked for; a *stable method* (coin looks, or the exponential mechanism)
supplies a stability curve and a profile for each choice of its parameters; `smallest_blocks`
finds the fewest blocks for one choice, and the optimisers of `holdfast.theory.sizing` the best
choice. They may be as rough as they like: whatever they return is checked by the theorem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.theory.coins import (
    Coin,
    Profile,
    coin_profile,
    exponential_price,
    exponential_profile,
    probit_coin,
    steepest_coin,
)
from holdfast.theory.divergence import ORDER_MAX, ORDER_MIN, Curve, GaussianCurve, RenyiCurve
from holdfast.theory.numerics import ROUNDING, binomial_tail, smallest_whole
from holdfast.theory.transfer import decisive_mass, paired_tail

__all__ = [
    "BLOCKS_MAX",
    "FULL",
    "LENGTH_MAX",
    "QUERIES_MAX",
    "TAIL_MAX",
    "TAIL_MIN",
    "Builder",
    "FreshShare",
    "Promise",
    "Size",
    "Sized",
    "best_exponential",
    "best_gaussian",
    "best_rank",
    "best_steepest",
    "best_tail",
    "certified",
    "exponential_draft",
    "floor_for",
    "fresh_blocks",
    "fresh_split",
    "gaussian_draft",
    "hoeffding_failure",
    "largest_tail",
    "median_failure",
    "median_samples",
    "minimise",
    "order_from",
    "reach",
    "rough_blocks",
    "smallest_blocks",
    "split_failure",
    "steepest_at",
    "steepest_draft",
    "table_length",
]

BLOCKS_MAX = 10**12
QUERIES_MAX = 10**8
_WINDOW = 300  # sizes tried again below the one that bisection finds


@dataclass(frozen=True)
class Promise:
    """For all `queries` answers at once: D[φ ≤ v] > tail_low and D[φ ≥ v] > tail_high.

    In the paper's words v ∈ qi(tail_low, 1 − tail_high), with probability ≥ confidence.
    """

    queries: int
    grid_size: int
    tail_low: float
    tail_high: float
    confidence: float

    def __post_init__(self) -> None:
        whole_number("queries", self.queries, 1, QUERIES_MAX)
        whole_number("grid", self.grid_size, 2, 2**62)
        real_number("tail", self.tail_low, 0, 1, open_low=True, open_high=True)
        real_number("tail", self.tail_high, 0, 1, open_low=True, open_high=True)
        if self.tail_low + self.tail_high >= 1:
            hint = "Equal tails must each be below 1/2: the answer has to fit between them."
            received = (self.tail_low, 1 - self.tail_high)
            raise InvalidInput("tails", received, "an interval (a, b) with a < b", hint)
        real_number("confidence", self.confidence, 0, 1, open_low=True, open_high=True)

    @property
    def failure(self) -> float:
        """β, the probability with which the promise may fail: 0.05 for 0.95, as written."""
        return float(1 - Fraction(repr(float(self.confidence))))

    @property
    def looks_per_query(self) -> int:
        """⌈log₂ r⌉."""
        return (self.grid_size - 1).bit_length()

    @property
    def looks(self) -> int:
        """N = k·⌈log₂ r⌉."""
        return self.queries * self.looks_per_query

    @property
    def symmetric(self) -> bool:
        """Both tails equal: one failure class, and the target is the median."""
        return self.tail_low == self.tail_high


@dataclass(frozen=True)
class Size:
    """Blocks, the target count (doubled, so that m/2 is whole) and the share of β per side."""

    blocks: int
    twice_target: int
    failure_low: float
    failure_high: float


def check_target(promise: Promise, target: float | None) -> None:
    """A target outside the tails can never be promised: refuse it before any search."""
    if target is not None and not promise.tail_low < target < 1 - promise.tail_high:
        allowed = f"between the tails, in ({promise.tail_low:g}, {1 - promise.tail_high:g})"
        raise InvalidInput("target", target, allowed)


def certified(promise: Promise, curve: Curve, profile: Profile, size: Size) -> bool:
    """Whether centred transfer proves the promise at this size.

    Equal tails with the target at m/2 are one failure class and may both use all of β;
    otherwise the two sides are two classes, and their shares must add up to at most β.
    """
    central = promise.symmetric and size.twice_target == size.blocks
    spent = size.failure_low if central else size.failure_low + size.failure_high
    if spent > promise.failure or not 0 <= size.twice_target <= 2 * size.blocks:
        return False
    if central and size.failure_low != size.failure_high:
        return False
    sides = (
        (promise.tail_low, size.failure_low, size.twice_target),
        (promise.tail_high, size.failure_high, 2 * size.blocks - size.twice_target),
    )
    return all(
        decisive_mass(curve, tail, failure) < profile.mass(failure, twice_reach, size.blocks)
        for tail, failure, twice_reach in sides
    )


def smallest_blocks(
    promise: Promise,
    curve: Curve,
    profile: Profile,
    *,
    share: float = 0.5,
    target: float | None = None,
) -> Size | None:
    """The fewest blocks at which `certified` holds, or None if no number is enough.

    `share` of β goes to the low side when the tails differ; `target` fixes the quantile asked
    for (default: m/2 for equal tails, else the best one).
    """
    check_target(promise, target)
    low = promise.failure * share
    high = (promise.failure - low) * (1 - 1e-15)  # their float sum must not exceed β
    if promise.symmetric and target in (None, 0.5):
        return _smallest_central(promise, curve, profile)
    f_low = decisive_mass(curve, promise.tail_low, low) / low
    f_high = decisive_mass(curve, promise.tail_high, high) / high

    def at(blocks: int) -> Size | None:
        if target is None:
            # The low side needs c* ≥ m·f + shortfall: take the smallest such whole target.
            far = profile.shortfall(low, 2 * blocks)
            count = math.ceil(blocks * f_low + far)
        else:
            count = round(target * blocks)
        for candidate in (count, count + 1) if target is None else (count,):
            size = Size(blocks, 2 * candidate, low, high)
            if 0 <= candidate <= blocks and certified(promise, curve, profile, size):
                return size
        return None

    room = 1 - f_low - f_high
    if target is not None:
        room = min(target - f_low, 1 - target - f_high)
    if room <= 0:
        return None
    last = _first(at, 1, 1)
    if last is None:
        return None
    # The target is a whole count: rounding it makes single sizes fail above ones that pass, so
    # smaller ones are tried once more, as far down as a count or two of rounding can reach.
    first = last.blocks - min(_WINDOW, math.ceil(3 / room) + 1)
    earlier = map(at, range(max(1, first), last.blocks))
    return next((size for size in earlier if size is not None), last)


def _smallest_central(promise: Promise, curve: Curve, profile: Profile) -> Size | None:
    beta = promise.failure
    needed = decisive_mass(curve, promise.tail_low, beta)
    if needed / beta >= 0.5:
        return None

    def at(blocks: int) -> Size | None:
        passes = needed < profile.mass(beta, blocks, blocks)
        return Size(blocks, blocks, beta, beta) if passes else None

    # Even and odd m have different lattices; each parity passes from some m on.
    found = [size for size in (_first(at, 2, 2), _first(at, 1, 2)) if size is not None]
    return min(found, key=lambda size: size.blocks, default=None)


def _first(at: Callable[[int], Size | None], start: int, stride: int) -> Size | None:
    """The first of start, start + stride, … at which `at` succeeds.

    Bisection: exact where success lasts once it has come, which the profiles of coins give.
    Wherever it ends, `at` has succeeded there and failed one stride before.
    """
    low, high = -1, 1
    while at(start + stride * high) is None:
        low, high = high, 2 * high
        if start + stride * high > BLOCKS_MAX:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if at(start + stride * middle) is None:
            low = middle
        else:
            high = middle
    return at(start + stride * high)


def minimise(
    objective: Callable[[Sequence[float]], float], start: Sequence[float], spread: float = 0.5
) -> tuple[float, ...]:
    """Nelder–Mead from `start` with an initial simplex of the given spread."""
    import numpy as np
    from scipy.optimize import minimize

    corner = np.array(start, dtype=float)
    simplex = np.vstack([corner, corner + spread * np.eye(corner.size)])
    options = {"xatol": 2e-3, "fatol": 1e-6, "initial_simplex": simplex, "maxiter": 400}
    found = minimize(objective, corner, method="Nelder-Mead", options=options)
    return tuple(float(value) for value in found.x)


# Drafts: a stable method at given parameters, and the size it would need, as a real number.
#
# The optimisers work with drafts. For the steepest coin a draft may be thinned: half steps s times
# as long cost s² times as much and trace the same shape with s times fewer entries. Whatever an
# optimiser returns is built in full and checked by the theorem (`holdfast.theory.sizing`).


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


# The stable methods, each at the parameters that need the fewest blocks for a promise.
#
# steepest      looks with the steepest coin (theory.md §3)           order, budget
# gaussian      noisy binary search, Gaussian counts (cor `SQ-med`)    noise sd (exact Gaussian DP)
# exponential   exponential-mechanism median (thm `EM-med`)           order, ε
#
# All are sized by the same centred transfer theorem and profile: only the mechanism differs.


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


# Choosing the tail: the best one for the rows at hand, or the largest one for given blocks.
#
# The tail ρ trades two things: a larger one keeps answers nearer the middle of the estimator's
# distribution, a smaller one needs fewer blocks and so leaves larger ones. Both searches move ρ
# together with the coin's order and budget, so they cost no more than one plan; the plan made
# with the tail they return is then sized, and certified, in full.


TAIL_MIN, TAIL_MAX = 1e-12, 0.49
_STAGES = ((300, 0.5), (2500, 0.1))  # half steps of the thinned coin, spread of the first simplex
_TAILS_NEVER = 1e6


def best_tail(promise: Promise, score: Callable[[float, float], float]) -> float:
    """The tail with the smallest score(blocks, tail), blocks being what that tail needs.

    The promise's own tails are ignored; both sides get the tail that is found.
    """

    def objective(x: Sequence[float], half_steps: int) -> float:
        tail = _tail(x[2])
        candidate = replace(promise, tail_low=tail, tail_high=tail)
        try:
            draft = steepest_draft(candidate)((math.exp(x[0]), math.exp(x[1])), half_steps)
            return score(rough_blocks(candidate, draft, 0.5, None), tail)
        except (InvalidInput, OverflowError):
            return _TAILS_NEVER

    start = replace(promise, tail_low=0.05, tail_high=0.05)
    x: Sequence[float] = [*map(math.log, start_parameters(start)), math.log(0.05 / 0.45)]
    for half_steps, spread in _STAGES:
        x = minimise(partial(objective, half_steps=half_steps), x, spread)
    return _tail(x[2])


def largest_tail(promise: Promise, blocks: int) -> float | None:
    """The largest tail, on both sides, that `blocks` blocks can promise; None if there is none.

    At given order and budget the profile leaves a sample mass q = 1/2 − reach/m. Then F(ρ·F(β)) =
    q·β solves to ρ = F⁻¹(q·β)/F(β), and the paired theorem has its own inverse: the larger counts.
    """

    def shortfall(x: Sequence[float], half_steps: int) -> float:
        try:
            draft = steepest_draft(promise)((math.exp(x[0]), math.exp(x[1])), half_steps)
        except (InvalidInput, OverflowError):
            return _TAILS_NEVER
        beta = promise.failure
        quantile = 0.5 - reach(draft, beta) / blocks
        if quantile <= 0:
            return -quantile
        one_direction = draft.curve.smallest(quantile * beta) / draft.curve.largest(beta)
        assert isinstance(draft.curve, RenyiCurve)
        both = paired_tail(draft.curve.order, draft.curve.budget, quantile, beta)
        return -max(one_direction, both)

    (rough, first), (fine, second) = _STAGES
    starts = [replace(promise, tail_low=t, tail_high=t) for t in (0.25, 0.05, 0.005)]
    found = [
        minimise(
            partial(shortfall, half_steps=rough), list(map(math.log, start_parameters(s))), first
        )
        for s in starts
    ]
    best = min(found, key=partial(shortfall, half_steps=rough))
    best = minimise(partial(shortfall, half_steps=fine), best, second)
    tail = -shortfall(best, fine)
    return min(tail, TAIL_MAX) if tail >= TAIL_MIN else None


def _tail(logit: float) -> float:
    """ρ in (0, 1/2) from an unbounded number."""
    half = 0.5 / (1 + math.exp(-min(max(logit, -40.0), 40.0)))
    return min(max(half, TAIL_MIN), TAIL_MAX)


# Amplification by median (lem `amp-med`): the median of ℓ draws leaves the tails quickly.
#
# Let X₁, …, X_ℓ be independent draws from D. The median is outside qi(ρ, 1 − ρ) only if half the
# draws or more are in one of two sets of probability at most ρ each, {P[Y ≤ ·] ≤ ρ} and
# {P[Y ≥ ·] ≤ ρ}. (True for every convention about the median of an even number.) Hence
#
#     P[outside] ≤ 2·P[Bin(ℓ, ρ) ≥ ℓ/2] ≤ 2·exp(−2 (1/2 − ρ)² ℓ).
#
# The first bound is reached for odd ℓ, by the three-valued law with masses ρ, 1 − 2ρ, ρ. The
# second, Hoeffding's, is the paper's. Its exponent is ℓ/8 at ρ = 1/4 and ℓ/32 at ρ = 3/8, where
# the removed proof of `intro-iqr` writes ℓ/8.


def hoeffding_failure(samples: int, tail: float) -> float:
    """2·exp(−2 (1/2 − ρ)² ℓ), as printed in `amp-med`, rounded up and at most 1.

    >>> hoeffding_failure(80, 0.25)  # 2·exp(−10)
    9.07...e-05
    >>> math.isclose(hoeffding_failure(320, 0.375), 2 * math.exp(-10))
    True
    """
    samples, tail = _samples(samples), _amplification_tail(tail)
    return min(1.0, 2 * math.exp(-2 * (0.5 - tail) ** 2 * samples) * (1 + ROUNDING))


def median_failure(samples: int, tail: float) -> float:
    """2·P[Bin(ℓ, ρ) ≥ ℓ/2], rounded up and at most 1: the worst case itself when ℓ is odd.

    >>> median_failure(43, 0.25)
    0.00040...
    >>> median_failure(80, 0.25) < hoeffding_failure(80, 0.25) / 15
    True
    """
    samples, tail = _samples(samples), _amplification_tail(tail)
    return min(1.0, 2 * binomial_tail(samples, tail, (samples + 1) // 2))


def median_samples(failure: float, tail: float) -> int:
    """The smallest ℓ with 2·P[Bin(ℓ, ρ) ≥ ℓ/2] ≤ failure. It is always odd.

    An even number is never better than the odd one before it: the same count must be reached
    with one more draw.

    >>> median_samples(0.0005, 0.25), median_samples(0.0005, 0.01)
    (43, 5)
    """
    failure, tail = _failure(failure), _amplification_tail(tail)
    steps = smallest_whole(lambda n: median_failure(2 * n - 1, tail) <= failure, _LIMIT)
    return 2 * steps - 1


def _samples(samples: int) -> int:
    return whole_number("samples", samples, 1, 2 * _LIMIT)


def _amplification_tail(tail: float) -> float:
    return real_number("tail", tail, 0, 0.5, open_low=True, open_high=True)


def _failure(failure: float) -> float:
    return real_number("failure", failure, 0, 1, open_low=True, open_high=True)


# Fresh splitting, the method everybody knows: every question gets blocks that nobody has used.
#
# A question gets m₁ blocks of its own, and its answer is the s-th smallest of their values. It is
# outside qi(a, b) only if at least s blocks fall in a set of probability ≤ a, or at least
# m₁ − s + 1 blocks in one of probability ≤ 1 − b. With `tail_low` = a and `tail_high` = 1 − b:
#
#     failure(m₁, s) ≤ P[Bin(m₁, a) ≥ s] + P[Bin(m₁, 1−b) ≥ m₁ − s + 1] = P_a[X ≥ s] + P_b[X < s],
#
# where X counts the blocks below. That is the sum of the two errors of a test between a coin of
# bias a and one of bias b, so the best s is where their likelihoods cross, and the best sum,
# 1 − TV(Bin(m₁, a), Bin(m₁, b)), never grows with m₁: bisection finds the smallest m₁. A union
# bound gives each of the k questions failure β/k; adaptivity costs nothing because no block is
# used twice. For equal tails s is the middle and m₁ the smallest odd number with
# 2·P[Bin(m₁, ρ) ≥ m₁/2] ≤ β/k (theory.md §9).


_LIMIT = 10**12


class FreshShare(NamedTuple):
    """What one question gets: `blocks` fresh blocks, answered by the `rank`-th smallest value."""

    blocks: int
    rank: int


def fresh_blocks(queries: int, failure: float, tail: float) -> int:
    """Blocks that `queries` questions need together: k·m₁, for the tail ρ on both sides.

    >>> [fresh_blocks(k, 0.05, 0.25) for k in (100, 1_000, 10_000)]
    [4300, 57000, 730000]
    >>> [fresh_blocks(k, 0.05, 0.01) for k in (100, 1_000, 10_000)]
    [500, 5000, 70000]
    """
    queries, share = _share(queries, failure)
    return queries * median_samples(share, tail)


def fresh_split(queries: int, failure: float, tail_low: float, tail_high: float) -> FreshShare:
    """The fewest blocks for one of `queries` questions, and the rank that answers it.

    Promises D[φ ≤ v] > tail_low and D[φ ≥ v] > tail_high, that is v ∈ qi(tail_low, 1 − tail_high),
    for all questions at once with probability ≥ 1 − failure.

    >>> fresh_split(1_000, 0.05, 0.25, 0.25)
    FreshShare(blocks=57, rank=29)
    >>> fresh_split(1_000, 0.05, 0.85, 0.05)
    FreshShare(blocks=548, rank=498)
    """
    _, share = _share(queries, failure)
    tail_low, tail_high = _tails(tail_low, tail_high)

    def enough(blocks: int) -> bool:
        rank = best_rank(blocks, tail_low, tail_high)
        return split_failure(blocks, rank, tail_low, tail_high) <= share

    blocks = smallest_whole(enough, _LIMIT)
    return FreshShare(blocks, best_rank(blocks, tail_low, tail_high))


def split_failure(blocks: int, rank: int, tail_low: float, tail_high: float) -> float:
    """P[Bin(m₁, a) ≥ s] + P[Bin(m₁, 1−b) ≥ m₁ − s + 1], rounded up and at most 1.

    >>> split_failure(43, 22, 0.25, 0.25)
    0.00040...
    """
    blocks = whole_number("blocks", blocks, 1, 2 * _LIMIT)
    rank = whole_number("rank", rank, 1, blocks)
    tail_low, tail_high = _tails(tail_low, tail_high)
    low = binomial_tail(blocks, tail_low, rank)
    high = binomial_tail(blocks, tail_high, blocks - rank + 1)
    return min(1.0, low + high)


def best_rank(blocks: int, tail_low: float, tail_high: float) -> int:
    """The rank s that fails least: the first count that bias b explains at least as well as bias a.

    (b/a)ˢ ((1−b)/(1−a))^(m₁−s) ≥ 1. Rounding may move s by one where two ranks are equally good.

    >>> best_rank(43, 0.25, 0.25), best_rank(100, 0.85, 0.05)
    (22, 91)
    """
    blocks = whole_number("blocks", blocks, 1, 2 * _LIMIT)
    tail_low, tail_high = _tails(tail_low, tail_high)
    if tail_low == 0:
        return 1
    if tail_high == 0:
        return blocks
    gain = math.log((1 - tail_high) / tail_low)
    loss = math.log((1 - tail_low) / tail_high)
    return min(blocks, max(1, math.ceil(blocks * loss / (gain + loss))))


def _share(queries: int, failure: float) -> tuple[int, float]:
    """k, and β/k rounded down."""
    queries = whole_number("queries", queries, 1, 10**9)
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    return queries, math.nextafter(failure / queries, 0.0)


def _tails(tail_low: float, tail_high: float) -> tuple[float, float]:
    low = real_number("tail_low", tail_low, 0, 1, open_high=True)
    high = real_number("tail_high", tail_high, 0, 1, open_high=True)
    if low + high >= 1:
        hint = "The answer has to fit between the tails."
        raise InvalidInput("tails", (tail_low, tail_high), "two numbers with a sum below 1", hint)
    return low, high
