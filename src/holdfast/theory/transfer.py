"""The transfer theorem: what holds on the sample holds on fresh data (replaces thm `gen`).

Let `bad` be the event that some answer breaks the promise, β its allowed probability, and ψ the
offending indicator, for which D[ψ] ≤ tail although the sample says much more. Write `mass` for
a lower bound on E[1(bad)·S[ψ]] when P[bad] = β, convex in β (flat: q·(β − b); better: the
profile of `holdfast.theory.profile`). The promise holds with probability > 1 − β if

    neighbouring stability:  F(tail·β)    < mass      (theory.md §4)
    centred stability:       F(tail·F(β)) < mass      (sharper in practice; our own)
    both directions at once: sharper still; our own   (`holdfast.theory.paired`, `meeting_mass`)

*Neighbouring*: F is the curve between M(S) and M(S′), S′ differing in one block.
*Centred*: F is the curve, both ways, between M(S) and a law Q(S₋ᵢ) that ignores block i. A
look's Q flips the coin half a count away, at about a quarter of the price. P[bad] may differ
between M and Q: hence the second F, a far smaller loss.
*Both at once*: the two directions of centred stability cannot both be at their worst.

Proofs: docs/explanation/theory/transfer.md.
"""

from __future__ import annotations

from holdfast.arguments import real_number
from holdfast.theory.curves import Curve, RenyiCurve
from holdfast.theory.numerics import ROUNDING
from holdfast.theory.paired import paired_mass

__all__ = [
    "decisive_mass",
    "flat_mass",
    "largest_sample_mass",
    "least_population_mass",
    "meeting_mass",
    "mirror_flat_mass",
    "mirror_transfers",
    "transfers",
]


def largest_sample_mass(curve: Curve, tail: float, failure: float, *, centred: bool) -> float:
    """The most that E[1(bad)·S[ψ]] can be when P[bad] = failure and D[ψ] ≤ tail, rounded up.

    >>> from holdfast.theory.curves import GaussianCurve
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


def flat_mass(quantile: float, failure: float, slip: float) -> float:
    """q·(β − b)₊: every answer has sample tails ≥ q, but for a slip of probability b."""
    return quantile * max(0.0, failure - slip)


def least_population_mass(curve: Curve, tail: float, failure: float, *, centred: bool) -> float:
    """The least that P[bad and ψ fresh] can be when P[bad] = failure and D[ψ] ≥ tail."""
    tail = real_number("tail", tail, 0, 1, open_low=True, open_high=True)
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    return tail * (curve.smallest(failure) if centred else failure)


def mirror_transfers(
    curve: Curve, tail: float, failure: float, mass: float, *, centred: bool
) -> bool:
    """The mirror: ψ with D[ψ] ≥ tail, although the sample mass is at most `mass`.

    Holds if F(mass) < tail·β (neighbouring), F(mass) < tail·F⁻¹(β) (centred).
    """
    return curve.largest(mass) < least_population_mass(curve, tail, failure, centred=centred)


def mirror_flat_mass(quantile: float, failure: float, slip: float) -> float:
    """uβ + (1 − u)b: sample tails are at most u, but for a slip of probability b."""
    return quantile * failure + (1 - quantile) * slip


def decisive_mass(curve: Curve, tail: float, failure: float, *, centred: bool = True) -> float:
    """The sample mass above which D[ψ] > tail is proved, by whichever theorem proves most.

    Theorem: mass > F(tail·F(β)). Mirror, on 1 − ψ, whose sample mass is β − mass: it suffices that
    β − mass < F⁻¹((1 − tail)·F⁻¹(β)). Centred stability has a third, both directions at once:
    `paired_mass` for Rényi divergence, `meeting_mass` for other curves. Rounded up.

    >>> from holdfast.theory.curves import GaussianCurve, RenyiCurve
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

    >>> from holdfast.theory.curves import GaussianCurve
    >>> round(meeting_mass(GaussianCurve(0.1), 0.25, 0.05) / 0.05, 4)
    0.348
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        met = curve.largest(tail * middle) + curve.smallest((1 - tail) * middle)
        low, high = (low, middle) if met > failure else (middle, high)
    return min(failure, curve.largest(tail * high))
