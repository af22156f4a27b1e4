"""Failure classes: every promise, of every protocol, in one form that one theorem checks.

A class is one way to break a promise. Its event: some answer has an indicator ψ of one block with

    D[ψ] ≤ tail   on fresh data,  although   m·S[ψ] ≥ #{e : E < e ≤ reach}   on the sample,

where E is the largest error of the looks that chose the answer, −∞ if none erred, e > 0 runs over
the lattice of the reach (whole numbers, or half-integers), and `profile` bounds how many of them
err by how much. For a whole reach that is reach − E; for a half-integer without an error it is
reach + 1/2: there m·S[ψ] must be a whole number. "Too large" is the same statement about 1 − ψ,
so that the mirror theorem needs no second form (`decisive_mass` uses whichever proves more).

    protocol                      ψ                        tail            reach
    estimate, below the answer    φ ≤ v                    ρ               target
    estimate, above               φ ≥ v                    ρ               m − target
    interval, encloses            φ ≥ v_low, φ ≤ v_high    1/2             m − target
    interval, no wider than       φ ≤ v_low, φ ≥ v_high    ρ               target
    verify, false Yes             φ ≤ v, or φ ≥ v          ρ_low           target
    verify, false No              φ > v, or φ < v          1 − ρ_high      m − target

A class that holds has probability below its own share of β: shares that add up to β certify all
promises at once, whatever mixture of protocols the analyst uses, for the curve is that of the
whole budget. Proof: docs/explanation/theory/budget.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from holdfast.theory.curves import Curve
from holdfast.theory.profile import Profile
from holdfast.theory.transfer import decisive_mass

__all__ = ["FailureClass", "all_hold", "total_failure"]


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
