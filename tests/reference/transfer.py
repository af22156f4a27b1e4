"""Transfer beside what plans use: flat masses, the mirror theorem, numerically composed curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.theory.coins import Coin
from holdfast.theory.divergence import Curve
from holdfast.theory.numerics import ROUNDING
from holdfast.theory.transfer import least_population_mass

__all__ = [
    "ApproximateCurve",
    "LossDistribution",
    "coin_losses",
    "mirror_transfers",
    "pair_losses",
]


def mirror_transfers(
    curve: Curve, tail: float, failure: float, mass: float, *, centred: bool
) -> bool:
    """The mirror: ψ with D[ψ] ≥ tail, although the sample mass is at most `mass`.

    Holds if F(mass) < tail·β (neighbouring), F(mass) < tail·F⁻¹(β) (centred).
    """
    return curve.largest(mass) < least_population_mass(curve, tail, failure, centred=centred)


@dataclass(frozen=True)
class ApproximateCurve:
    """F(q) = min over the given pairs of e^ε·q + δ: a profile of (ε, δ) guarantees.

    >>> ApproximateCurve(((0.0, 0.1), (0.5, 0.01))).largest(0.05)
    0.0924...
    """

    pairs: Sequence[tuple[float, float]]

    def largest(self, q: float) -> float:
        return min(1.0, min(math.exp(e) * q + d for e, d in self.pairs) * (1 + ROUNDING))

    def smallest(self, p: float) -> float:
        # F(q) ≥ p needs every line to reach p.
        return max(0.0, max((p - d) * math.exp(-e) for e, d in self.pairs) * (1 - ROUNDING))


# Numerically composed curves: the (ε, δ) profile of many looks, without a moment bound.
#
# A pair of laws is handled through its privacy loss L = ln(dP/dQ) under P, on a grid of losses
# rounded up (so every δ is rounded up). Composition adds independent losses: a convolution, done
# by fast Fourier transform. A law that dominates every pair a look can meet dominates adaptively
# chosen looks too (Zhu, Dong & Wang 2022, thm 10).


_TAIL = 1e-16  # mass dropped at each end of a convolution, and charged to δ
# A transform of length n has a relative error of about 7·2⁻⁵³·log₂ n in the Euclidean norm (Higham
# 2002, thm 24.2, radix 2). A convolution has three, and its cells are summed: charged to δ.
_FFT_ERROR = 24 * 2.0**-53


@dataclass(frozen=True, eq=False)
class LossDistribution:
    """P[L = (first + i)·step] = masses[i], and P[L = ∞] ≤ infinite."""

    step: float
    first: int
    masses: NDArray[np.float64]
    infinite: float

    def composed(self, count: int) -> LossDistribution:
        """The loss of `count` independent (or adaptively chosen) uses, by repeated squaring."""
        power, total = self, None
        while True:
            if count % 2:
                total = power if total is None else total._plus(power)
            count //= 2
            if not count:
                return total if total is not None else power
            power = power._plus(power)

    def _plus(self, other: LossDistribution) -> LossDistribution:
        from scipy.signal import fftconvolve

        size = self.masses.size + other.masses.size - 1
        masses = np.maximum(fftconvolve(self.masses, other.masses), 0.0)
        # ‖a∗b‖₂ ≤ ‖a‖₂·‖b‖₁, and masses add up to 1 or a little less; the length is padded.
        norms = float(max(np.linalg.norm(self.masses), np.linalg.norm(other.masses)))
        error = _FFT_ERROR * math.sqrt(size) * math.log2(2 * size + 2) * norms
        cut = max(_TAIL, error)  # what is left of a tail below the error is noise
        below = int(np.searchsorted(np.cumsum(masses), cut))
        above = int(np.searchsorted(np.cumsum(masses[::-1]), cut))
        kept = masses[below : masses.size - above]
        # Losses cut off below are moved up to the first one kept; those above become infinite.
        kept[0] += float(masses[:below].sum())
        infinite = min(1.0, self.infinite + other.infinite + cut + error)
        return LossDistribution(self.step, self.first + other.first + below, kept, infinite)

    def delta(self, epsilon: float) -> float:
        """δ(ε) = E_P[(1 − e^(ε − L))₊], rounded up."""
        losses = (self.first + np.arange(self.masses.size)) * self.step
        above = losses > epsilon
        gain = -np.expm1(epsilon - losses[above])
        return min(1.0, float(self.masses[above] @ gain) * (1 + ROUNDING) + self.infinite)

    def curve(self, epsilons: NDArray[np.float64] | None = None) -> ApproximateCurve:
        """F(q) = min over ε of e^ε·q + δ(ε)."""
        if epsilons is None:
            top = min(30.0, max(self.step, (self.first + self.masses.size) * self.step))
            epsilons = np.linspace(0.0, top, 400)
        return ApproximateCurve([(float(e), self.delta(float(e))) for e in epsilons])


def pair_losses(p: NDArray[np.float64], q: NDArray[np.float64], step: float) -> LossDistribution:
    """The loss of one pair of finite laws, rounded up to multiples of `step`."""
    finite = (p > 0) & (q > 0)
    losses = (np.log(p[finite]) - np.log(q[finite])) / step
    cells = np.ceil(losses + ROUNDING * (1 + np.abs(losses))).astype(np.int64)  # never down
    first = int(cells.min(initial=0))
    masses = np.bincount(cells - first, weights=p[finite]).astype(float)
    return LossDistribution(step, first, masses, float(p[(p > 0) & (q == 0)].sum()))


def coin_losses(coin: Coin, step: float, *, centred: bool = True) -> LossDistribution:
    """A law that dominates every pair one look can meet, both ways and on both sides.

    Its hockey-stick curve is the largest of theirs, max(0, p − e^ε q): convex in e^ε, hence the
    curve of some pair; between grid points the chord lies above it, so the rounding is upwards.
    """
    lower = np.asarray(coin.halfsteps)
    stride = 1 if centred else 2
    left, right = lower[:-stride], lower[stride:]
    co_left, co_right = 1 - left, 1 - right
    if not centred and lower.size > 1:  # the whole step across the target, from h₁ to 1 − h₁
        left, right = np.append(left, lower[1]), np.append(right, 1 - lower[1])
        co_left, co_right = np.append(co_left, 1 - lower[1]), np.append(co_right, lower[1])
    p = np.concatenate([left, right, co_left, co_right])
    q = np.concatenate([right, left, co_right, co_left])
    top = math.ceil(float(np.max(np.log(p) - np.log(q))) / step)
    grid = np.exp(np.arange(-top, top + 1) * step)
    heights = np.array([float(np.max(np.maximum(p - x * q, 0.0), initial=0.0)) for x in grid])
    heights = np.maximum(heights, 1 - grid)  # δ(e^ε) ≥ 1 − e^ε always
    # Q has mass at x where the slope jumps; P there has x times as much.
    slopes = np.diff(heights) / np.diff(grid)
    jumps = np.diff(np.concatenate([[-1.0], slopes, [0.0]]))
    masses = np.maximum(jumps, 0.0) * grid
    missing = max(0.0, 1.0 - float(masses.sum()))
    return LossDistribution(step, -top, masses, missing)
