"""Blocks for the attacks: labels and levels, drawn uniformly, so that every mass is known exactly.

A block's *label* is a whole number below a power of two. Its *levels* are numbers below 2¹⁶, one
for each of many features, all independent. An estimator is a function of the whole array that acts
on each block by itself, so that a question costs one numpy pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds
from holdfast.randomness import Entropy, SeededEntropy, system_entropy

__all__ = ["LEVELS", "Sample", "Trial", "Unerring", "draw_labels", "draw_levels"]

LEVELS = 2**16

Estimator = Callable[[NDArray[Any]], NDArray[Any]]


class Sample:
    """A source over an array whose last axis runs over blocks, and over the units of each.

    >>> source = Sample(np.array([3, 1, 2, 0]), units=2)
    >>> source.blocks, source.part(1, 2).values(lambda labels: labels > 1).tolist()
    (2, [True, False])
    >>> source.sums(lambda labels: labels > 1).tolist()
    [65536, 65536]
    """

    def __init__(self, data: NDArray[Any], units: int = 1) -> None:
        self.data, self.units = data, units
        self.blocks: int = data.shape[-1] // units

    def values(self, estimator: Estimator, /) -> NDArray[Any]:
        return estimator(self.data)

    def sums(
        self, function: Estimator, /, where: Estimator | None = None, bounds: Bounds = UNIT
    ) -> NDArray[np.int64]:
        assert bounds == UNIT
        parts = np.floor(function(self.data) * WEIGHT_SCALE + 0.5).astype(np.int64)
        if where is not None:
            parts = parts * where(self.data)
        return np.asarray(parts.reshape(self.blocks, self.units).sum(axis=1))

    def part(self, start: int, stop: int, /) -> Sample:
        return Sample(self.data[..., start * self.units : stop * self.units], self.units)


@final
class Unerring(Entropy):
    """No entropy at all: the highest word, again and again, with which no look ever errs.

    >>> from holdfast.mechanisms.looks import look
    >>> from holdfast.theory.coins import logistic_coin
    >>> look(np.arange(-2, 3), logistic_coin(slope=0.1, floor=1e-3), Unerring())
    array([False, False, False,  True,  True])
    """

    __slots__ = ()

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.full(count, 2**64 - 1, np.uint64)


@dataclass(frozen=True)
class Trial:
    """One run: where its blocks, the coins and the analyst's own choices come from.

    The blocks are the same for all responders, whatever any of them draws.
    """

    seed: int | None
    number: int
    unerring: bool = False

    @property
    def blocks(self) -> Entropy:
        """For the blocks."""
        return self._stream(0)

    @property
    def coins(self) -> Entropy:
        """For the looks."""
        return Unerring() if self.unerring else self._stream(1)

    @property
    def choices(self) -> Entropy:
        """For the analyst."""
        return self._stream(2)

    def _stream(self, part: int) -> Entropy:
        if self.seed is None:
            return system_entropy()
        return SeededEntropy((self.seed, self.number, part))


def draw_labels(count: int, size: int, entropy: Entropy) -> NDArray[np.int64]:
    """Independent labels, uniform on 0 … size − 1, size a power of two."""
    return (entropy.words(count) & np.uint64(size - 1)).astype(np.int64)


def draw_levels(features: int, count: int, entropy: Entropy) -> NDArray[np.uint16]:
    """A table of independent levels, one row for each feature."""
    words = entropy.words(-(-features * count // 4))
    return words.view(np.uint16)[: features * count].reshape(features, count)
