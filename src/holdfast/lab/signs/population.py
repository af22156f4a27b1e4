"""A population on which every rank is known: blocks of independent fair signs.

A block is a list of ±1, each sign +1 with probability exactly 1/2 and independent of the others.
What an attack makes of them, a sum of signs with chosen orientations, then has a symmetric
binomial law, whatever made the analyst choose them: no rank has to be estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import whole_number
from holdfast.randomness import Entropy

__all__ = ["FairBlocks", "SignSum", "central_rank"]

_MOST_SIGNS = 10**9


@dataclass(frozen=True)
class SignSum:
    """The law of a sum of n independent fair signs: 2·Bin(n, 1/2) − n."""

    terms: int

    def __post_init__(self) -> None:
        whole_number("terms", self.terms, 0, _MOST_SIGNS)

    def at_most(self, values: NDArray[np.int64] | int) -> NDArray[np.float64]:
        """P[sum ≤ value], right to 1e-10 relative (tested against whole-number arithmetic).

        >>> [float(p) for p in SignSum(3).at_most(np.array([-4, -3, -1, 0, 3]))]
        [0.0, 0.125, 0.5, 0.5, 1.0]
        """
        from scipy.special import betainc

        ups = np.clip((np.asarray(values, np.int64) + self.terms) // 2, -1, self.terms)
        inside = (ups >= 0) & (ups < self.terms)
        # P[Bin(n, 1/2) ≤ k] = I_{1/2}(n − k, k + 1)
        safe = np.where(inside, ups, 0)
        tail = betainc(np.maximum(self.terms - safe, 1), safe + 1, 0.5)
        return np.asarray(np.where(inside, tail, np.where(ups < 0, 0.0, 1.0)))

    def above(self, values: NDArray[np.int64] | int) -> NDArray[np.float64]:
        """P[sum > value], as exact where it is small: the law is symmetric."""
        return self.at_most(-np.asarray(values, np.int64) - 1)

    def rare(self, tail: float) -> int:
        """The smallest value that is exceeded with probability at most `tail`.

        >>> law = SignSum(4_999)
        >>> law.rare(0.01), float(law.above(law.rare(0.01)))
        (165, 0.0094...)
        """
        low, high = -self.terms - 1, self.terms  # above(low) = 1 > tail ≥ 0 = above(high)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.above(middle) <= tail else (middle, high)
        return high


def central_rank(
    below: NDArray[np.float64] | float, up_to: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """The population rank of an answer v, given D[φ < v] and D[φ ≤ v].

    Where the law has an atom v has a whole interval of ranks; this is the one nearest to 1/2, the
    kindest. So D[φ ≤ v] ≤ ρ just if the rank is ≤ ρ, and D[φ ≥ v] ≤ ρ just if it is ≥ 1 − ρ.

    >>> [float(central_rank(*pair)) for pair in ((0.1, 0.3), (0.3, 0.6), (0.7, 0.9))]
    [0.3, 0.5, 0.7]
    """
    return np.asarray(np.clip(0.5, below, up_to), np.float64)


class FairBlocks:
    """m blocks of n fair signs each, drawn from an entropy: one bit a sign, set for +1."""

    def __init__(self, blocks: int, features: int, entropy: Entropy) -> None:
        self.blocks = whole_number("blocks", blocks, 1, _MOST_SIGNS)
        self.features = whole_number("features", features, 1, _MOST_SIGNS)
        width = -(-self.features // 64)
        self._words = entropy.words(self.blocks * width).reshape(self.blocks, width)

    def signs(self, count: int) -> NDArray[np.int64]:
        """The first signs of all blocks: a table of ±1."""
        return 2 * self._bits(self._words, count).astype(np.int64) - 1

    def word(self, index: int) -> NDArray[np.uint64]:
        """For each block 64 of its signs, read as one number: uniform on 0 … 2⁶⁴ − 1."""
        return self._words[:, index]

    @cached_property
    def positive(self) -> NDArray[np.int64]:
        """For each sign, how many blocks have it +1."""
        total = np.zeros(self.features, np.int64)
        for start in range(0, self.blocks, 255):  # sums of 255 bits fit a byte, and bytes are fast
            bits = self._bits(self._words[start : start + 255], self.features)
            total += np.add.reduce(bits, axis=0, dtype=np.uint8)
        return total

    def sums(self, orientation: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each block Σ_j orientation_j·sign_j, orientation ±1 over the first signs.

        Of n signs those that disagree count −1: the sum is n − 2·#disagreeing.
        """
        wanted = self._packed(orientation > 0)
        asked = self._packed(np.ones(orientation.size, np.bool_))
        disagreeing = np.bitwise_count((self._words ^ wanted) & asked).sum(axis=1, dtype=np.int64)
        return orientation.size - 2 * np.asarray(disagreeing)

    def _packed(self, flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
        padded = np.zeros(64 * self._words.shape[1], np.bool_)
        padded[: flags.size] = flags
        return np.packbits(padded).view(np.uint64)

    @staticmethod
    def _bits(words: NDArray[np.uint64], count: int) -> NDArray[np.uint8]:
        return np.unpackbits(words.view(np.uint8), axis=1, count=count)
