"""What a number of failures says about the rate of failure."""

from __future__ import annotations

from holdfast.errors import real_number, whole_number

__all__ = ["failure_rate_bound"]


def failure_rate_bound(failures: int, trials: int, confidence: float = 0.95) -> float:
    """The one-sided Clopper–Pearson upper bound: rates above it would show more failures.

    The largest p with P[Bin(n, p) ≤ k] ≥ 1 − confidence, which is I⁻¹_confidence(k + 1, n − k)
    (Clopper & Pearson 1934). With no failure at all it is 1 − (1 − confidence)^(1/n).

    >>> round(failure_rate_bound(0, 300), 5), round(failure_rate_bound(3, 300), 5)
    (0.00994, 0.02564)
    """
    trials = whole_number("trials", trials, 1, 10**12)
    failures = whole_number("failures", failures, 0, trials)
    confidence = real_number("confidence", confidence, 0, 1, open_low=True, open_high=True)
    if failures == trials:
        return 1.0
    from scipy.special import betaincinv

    return float(betaincinv(failures + 1, trials - failures, confidence))
