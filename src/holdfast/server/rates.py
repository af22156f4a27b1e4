"""Rates: how many requests one token, or one address without a token, may make."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

__all__ = ["Rates"]


class Rates:
    """A bucket for every name: it holds `burst` requests and fills by `rate` a second.

    >>> now = [0.0]
    >>> rates = Rates(rate=1.0, burst=2, clock=lambda: now[0])
    >>> [rates.wait("a") for _ in range(3)]
    [0.0, 0.0, 1.0]
    >>> now[0] = 1.0
    >>> rates.wait("a"), rates.wait("b")
    (0.0, 0.0)
    """

    def __init__(
        self,
        rate: float,
        burst: int,
        *,
        names: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate, self._burst, self._names, self._clock = rate, float(burst), names, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, name: str) -> float:
        """0 if a request may be made now, which counts it; else the seconds until one may."""
        with self._lock:
            full = self._filled(name)
            if full < 1.0:
                return (1.0 - full) / self._rate
            self._buckets[name] = (full - 1.0, self._clock())
            self._buckets.move_to_end(name)
            while len(self._buckets) > self._names:  # the one that has been quiet for longest
                self._buckets.popitem(last=False)
            return 0.0

    def _filled(self, name: str) -> float:
        full, then = self._buckets.get(name, (self._burst, 0.0))
        return min(self._burst, full + (self._clock() - then) * self._rate)
