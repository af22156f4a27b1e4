"""A source for simulated blocks: whoever asks brings the values, one for each block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds

__all__ = ["GivenBlocks"]


class GivenBlocks:
    """So many blocks of so many units. An estimator is the list of its values on them.

    A function for `sums` is the list of the blocks' sums, whole numbers. Only a simulation can ask
    like that: it has drawn the values from their law, and spares itself the rows.

    >>> source = GivenBlocks(blocks=3, units=10)
    >>> source.values([0.5, 0.25, 1.0])
    [0.5, 0.25, 1.0]
    >>> source.sums(np.array([5, 0, 10])).tolist()
    [327680, 0, 655360]
    """

    def __init__(self, blocks: int, units: int) -> None:
        self.blocks, self.units = blocks, units

    def values(self, estimator: Any, /) -> object:
        return estimator

    def sums(self, function: Any, /, where: Any = None, bounds: Bounds = UNIT) -> NDArray[np.int64]:
        assert where is None
        assert bounds == UNIT
        return np.asarray(function, np.int64) * WEIGHT_SCALE

    def part(self, start: int, stop: int, /) -> GivenBlocks:
        return GivenBlocks(stop - start, self.units)
