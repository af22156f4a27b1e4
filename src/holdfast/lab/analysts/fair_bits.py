"""Fair bits, many at once: one random bit each."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bits", "fair_bits"]

Bits = NDArray[np.bool_]


def fair_bits(chance: np.random.Generator, *shape: int) -> Bits:
    """A table of independent fair bits.

    >>> fair_bits(np.random.default_rng(2), 2, 3).shape
    (2, 3)
    """
    size = math.prod(shape)
    packed = np.frombuffer(chance.bytes(-(-size // 8)), np.uint8)
    return np.unpackbits(packed, count=size).reshape(shape).view(np.bool_)
