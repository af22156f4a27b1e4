"""Stability curves: how likely an event can be under one law, given its chance under a close one.

A curve F says of two laws M and Q: every event of probability q under Q has probability at most
F(q) under M. All that the transfer theorem needs is that F is concave and nondecreasing; it can
come from a Rényi divergence, from Gaussian differential privacy, from an (ε, δ) profile, or from
a numerically composed one (`holdfast.theory.composition`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.arguments import real_number
from holdfast.errors import InvalidInput
from holdfast.theory.numerics import ROUNDING
from holdfast.theory.renyi import largest_probability, smallest_probability

__all__ = ["ApproximateCurve", "Curve", "GaussianCurve", "RenyiCurve"]


class Curve(Protocol):
    """A concave, nondecreasing F with F(q) ≥ q, rounded up, and its inverse, rounded down."""

    def largest(self, q: float) -> float:
        """F(q): the most an event of probability q can become."""
        ...

    def smallest(self, p: float) -> float:
        """min{q : F(q) ≥ p}: the least an event of probability p can have been."""
        ...


@dataclass(frozen=True)
class RenyiCurve:
    """F(q) = max{P : D_order(P‖q) ≤ budget} (theory.md §4)."""

    order: float
    budget: float

    def largest(self, q: float) -> float:
        return largest_probability(self.order, self.budget, q)

    def smallest(self, p: float) -> float:
        return smallest_probability(self.order, self.budget, p)


@dataclass(frozen=True)
class GaussianCurve:
    """F(q) = Φ(Φ⁻¹(q) + mu): mu-Gaussian differential privacy (Dong, Roth & Su 2022).

    >>> round(GaussianCurve(mu=1.0).largest(0.05), 4)
    0.2595
    """

    mu: float

    def largest(self, q: float) -> float:
        return self._shift(q, self.mu, 1 + ROUNDING)

    def smallest(self, p: float) -> float:
        return self._shift(p, -self.mu, 1 - ROUNDING)

    @staticmethod
    def _shift(probability: float, mu: float, rounding: float) -> float:
        from scipy.special import ndtr, ndtri

        probability = real_number("probability", probability, 0, 1)
        return min(1.0, float(ndtr(ndtri(probability) + mu)) * rounding)


@dataclass(frozen=True)
class ApproximateCurve:
    """F(q) = min over the given pairs of e^ε·q + δ: a profile of (ε, δ) guarantees.

    >>> ApproximateCurve(((0.0, 0.1), (0.5, 0.01))).largest(0.05)
    0.0924...
    """

    pairs: tuple[tuple[float, float], ...]

    def __init__(self, pairs: Sequence[tuple[float, float]]) -> None:
        kept = tuple((real_number("ε", e, 0), real_number("δ", d, 0, 1)) for e, d in pairs)
        if not kept:
            raise InvalidInput("pairs", pairs, "at least one pair (ε, δ)")
        object.__setattr__(self, "pairs", kept)

    def largest(self, q: float) -> float:
        q = real_number("q", q, 0, 1)
        return min(1.0, min(math.exp(e) * q + d for e, d in self.pairs) * (1 + ROUNDING))

    def smallest(self, p: float) -> float:
        p = real_number("p", p, 0, 1)
        # F(q) ≥ p needs every line to reach p.
        return max(0.0, max((p - d) * math.exp(-e) for e, d in self.pairs) * (1 - ROUNDING))
