"""Where to aim: the target count that leaves both failure classes of an answer their due."""

from __future__ import annotations

import math

from holdfast.theory.classes import FailureClass
from holdfast.theory.curves import Curve
from holdfast.theory.transfer import decisive_mass

__all__ = ["place_target"]


def place_target(
    curve: Curve,
    blocks: int,
    below: FailureClass,
    above: FailureClass | None = None,
    *,
    quantile: float | None = None,
) -> int | None:
    """A whole count c so that `below` holds with reach c and `above` with reach m − c; or None.

    The reaches that the classes carry are ignored. The smallest c that proves the class below
    leaves the class above the most room; a wanted quantile fixes c instead.
    """
    if quantile is None:
        drift = decisive_mass(curve, below.tail, below.failure) / below.failure
        first = math.ceil(blocks * drift + below.profile.shortfall(below.failure, 2 * blocks))
        candidates: tuple[int, ...] = (first, first + 1)
    else:
        candidates = (round(quantile * blocks),)
    for count in candidates:
        sides = [_with_reach(below, 2 * count)]
        if above is not None:
            sides.append(_with_reach(above, 2 * (blocks - count)))
        if all(side.holds(curve, blocks) for side in sides):
            return count
    return None


def _with_reach(side: FailureClass, twice_reach: int) -> FailureClass:
    return FailureClass(side.name, side.tail, twice_reach, side.failure, side.profile)
