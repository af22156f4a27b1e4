"""Gaussian noise on k means over n rows: how private it is, and how far it goes.

Noise of standard deviation σ on the mean of values in [0, 1], of which a row moves 1/n, has
concentrated privacy ρ = 1/(2n²σ²), and k such answers, adaptively chosen, κ = kρ (Bun & Steinke
2016). Answers are clipped to [0, 1], which only brings them nearer.
"""

from __future__ import annotations

import math

__all__ = ["dp_epsilon", "sigma_of", "tail_reach", "union_reach"]


def sigma_of(rows: int, queries: int, kappa: float) -> float:
    """σ of one answer so that k of them have concentrated privacy κ: √(k/(2κ))/n.

    >>> sigma_of(1_000, 50, 0.01)
    0.05
    """
    return math.sqrt(queries / (2 * kappa)) / rows


def dp_epsilon(kappa: float, delta: float) -> float:
    """ε for which concentrated privacy κ is (ε, δ)-privacy: κ + 2√(κ ln(min(1, √(πκ))/δ)).

    Bun & Steinke 2016, Lemma 3.6: δ ≤ e^(−x²)·2/(1 + y + √((1 + y)² + 4/(πκ))) for ε = κ + 2x√κ
    and y = x/√κ ≥ 0, and the fraction is at most 1 and at most √(πκ).

    >>> round(dp_epsilon(0.01, 1e-6), 6), round(0.01 + 2 * math.sqrt(0.01 * math.log(1e6)), 6)
    (0.705278, 0.753384)
    """
    return kappa + 2 * math.sqrt(
        kappa * max(0.0, math.log(min(1.0, math.sqrt(math.pi * kappa))) - math.log(delta))
    )


def tail_reach(queries: int, sigma: float, failure: float) -> float:
    """t with 2k·e^(−t²/(2σ²)) = failure: no noise of k is larger, but for that probability.

    >>> round(tail_reach(100, 0.01, 0.05), 6)
    0.040728
    """
    return sigma * math.sqrt(2 * math.log(2 * queries / failure))


def union_reach(queries: int, sigma: float, failure: float) -> float:
    """t with k·P[|N(0, σ²)| > t] = failure, by the Gaussian's own tail.

    >>> round(union_reach(100, 0.01, 0.05), 6)
    0.034808
    """
    from scipy.special import erfcinv

    return sigma * math.sqrt(2) * float(erfcinv(min(1.0, failure / queries)))
