"""Whether so many failures can come from a promised rate."""

from __future__ import annotations

from holdfast.lab.statistics import failure_rate_bound

__all__ = ["can_be_rate"]

_SURPRISE = 1e-6


def can_be_rate(failed: int, sessions: int, rate: float) -> bool:
    """False if so many failures, or more, have a chance below a millionth at the rate.

    >>> can_be_rate(1, 4, 0.05), can_be_rate(4, 4, 0.05), can_be_rate(5, 5, 0.05)
    (True, True, False)
    """
    return 1 - failure_rate_bound(sessions - failed, sessions, 1 - _SURPRISE) <= rate
