"""How many blocks a promise needs: conditions checked exactly, parameters found numerically.

`Promise` is what is asked for; a *stable method* (coin looks, or the exponential mechanism)
supplies a stability curve and a profile for each choice of its parameters; `smallest_blocks`
finds the fewest blocks for one choice, and the optimisers of `holdfast.theory.methods` the best
choice. They may be as rough as they like: whatever they return is checked by the theorem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from holdfast.arguments import real_number, whole_number
from holdfast.errors import InvalidInput
from holdfast.theory.curves import Curve
from holdfast.theory.profile import Profile
from holdfast.theory.transfer import decisive_mass

__all__ = [
    "BLOCKS_MAX",
    "QUERIES_MAX",
    "Promise",
    "Size",
    "certified",
    "check_target",
    "minimise",
    "smallest_blocks",
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
