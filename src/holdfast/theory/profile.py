"""The profile: how far off the answers can be on the sample, look by look (theory.md §4).

`slips[i]` bounds the expected number of looks that err by i/2 counts or more, whatever the data
(for one coin and N looks: N·h_i). With target count c* the sample mass of the side below obeys,
whenever P[bad] = β,

    m·E[1(bad)·S[ψ]]  ≥  Σ_{0 < e ≤ c*} (β − slips(e))₊,

e running over the lattice of the target: whole counts, or half-integers. The sum is convex in β,
as the transfer theorem requires. Proof: docs/explanation/theory/transfer.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.theory.coin import Coin
from holdfast.theory.numerics import ROUNDING

__all__ = ["Profile", "coin_profile", "exponential_profile"]


@dataclass(frozen=True, eq=False)
class Profile:
    """Expected number of slips of at least i/2 counts, i = 0, 1, …; held flat after the last."""

    slips: NDArray[np.float64]

    def shortfall(self, failure: float, twice_target: int) -> float:
        """Σ min(1, slips/β) over the lattice up to the target, rounded up."""
        first = 2 - twice_target % 2
        inside = np.minimum(1.0, self.slips[first : twice_target + 1 : 2] / failure)
        beyond = _terms(twice_target) - inside.size
        flat = min(1.0, float(self.slips[-1]) / failure)
        return float(inside.sum()) * (1 + ROUNDING) + beyond * flat

    def mass(self, failure: float, twice_target: int, blocks: int) -> float:
        """Lower bound on E[1(bad)·S[ψ]] at P[bad] = failure, rounded down."""
        kept = _terms(twice_target) - self.shortfall(failure, twice_target)
        return max(0.0, failure * kept / blocks * (1 - ROUNDING))


def _terms(twice_target: int) -> int:
    """Lattice points e with 0 < e ≤ target."""
    return (twice_target + 1) // 2


def coin_profile(coin: Coin, looks: int) -> Profile:
    """N looks with one coin: slips N·h."""
    return Profile(coin.halfsteps * float(looks))


def exponential_profile(
    epsilon: float, grid_size: int, queries: int, negligible: float = 1e-9
) -> Profile:
    """The exponential-mechanism median (thm `EM-med`): slips k·(r − 1)·e^(−ε·x/2).

    A point whose score exceeds the best by x has weight at most e^(−ε·x/2) relative to it, and
    there are r − 1 other points. Slips below `negligible` are held there.
    """
    most = max(1.0, float(queries) * (grid_size - 1))
    length = int(np.ceil(4.0 / epsilon * np.log(most / negligible))) + 1
    return Profile(most * np.exp(-epsilon / 4.0 * np.arange(length + 1)))
