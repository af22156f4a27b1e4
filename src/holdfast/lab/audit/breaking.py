"""Below the certified size: how often an analyst breaks the promise there, and where it stops.

The coin stays that of the plan; only the blocks become fewer. So this is about the certificate: a
plan made for fewer blocks would have another, flatter coin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.lab.audit.sessions import Sessions

__all__ = ["SHARES", "Breaking", "Measured", "find_breaking"]

SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.2, 0.1)
_FINE = 400  # parts of a size that are told apart
_SIGMAS = 1.96
_GROWTH = 1.25
_MOST_GROWTH = 50

Measure = Callable[[int], Sessions]


@dataclass
class Measured:
    """Sessions of one analyst at sizes, each played when it is first asked for."""

    measure: Measure
    sizes: dict[int, Sessions] = field(default_factory=dict)

    def at(self, blocks: int) -> Sessions:
        """The sessions at this size."""
        if blocks not in self.sizes:
            self.sizes[blocks] = self.measure(blocks)
        return self.sizes[blocks]

    def breaks(self, blocks: int, failure: float) -> bool:
        """Whether the rate of failure at this size is more than is promised."""
        return self.at(blocks).rate > failure


@dataclass(frozen=True)
class Breaking:
    """Where an analyst stops breaking the promise.

    `blocks` is the smallest size at which it does not, `surely_broken` the largest at which the
    rate of failure is above β by 1.96 standard errors or more, and `surely_kept` the smallest at
    which it is below by as much; None where no size that was tried is so.
    """

    blocks: int
    surely_broken: int | None
    surely_kept: int | None


def find_breaking(measured: Measured, certified: int, failure: float) -> Breaking | None:
    """The smallest size at which the promise is kept; None if it is at a tenth of the blocks."""
    bracket = _bracket(measured, certified, failure)
    if bracket is None:
        return None
    low, high = bracket  # broken, kept
    while high - low > max(1, high // _FINE):
        middle = (low + high) // 2
        low, high = (middle, high) if measured.breaks(middle, failure) else (low, middle)
    margins = {blocks: _SIGMAS * played.error for blocks, played in measured.sizes.items()}
    rates = {blocks: played.rate for blocks, played in measured.sizes.items()}
    broken = [blocks for blocks in rates if rates[blocks] - margins[blocks] > failure]
    kept = [blocks for blocks in rates if rates[blocks] + margins[blocks] <= failure]
    return Breaking(high, max(broken, default=None), min(kept, default=None))


def _bracket(measured: Measured, certified: int, failure: float) -> tuple[int, int] | None:
    """Two sizes: the promise is broken on the smaller, and kept on the larger one."""
    low = None
    for share in sorted(SHARES):
        blocks = max(1, round(share * certified))
        if not measured.breaks(blocks, failure):
            return None if low is None else (low, blocks)
        low = blocks
    for _ in range(_MOST_GROWTH):  # the certificate itself is broken
        assert low is not None
        blocks = int(low * _GROWTH) + 1
        if not measured.breaks(blocks, failure):
            return low, blocks
        low = blocks
    return None
