"""Sign aggregation: fair signs, asked one by one, and added up as they were answered.

Each answer agrees with a block's own sign a little more often than not, by 1/√(2πm) for an exact
median of m blocks. Over J questions the sum of a block's signs, each oriented as it was answered,
drifts by 2·√(J/2πm) standard deviations; that of a fresh block does not. So the last question, the
median of that sum, gets an answer that fresh blocks hardly ever have. `holdfast.lab.signs` has the
same attack on packed bits, fast, for looks and exact medians; here it can talk to everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import whole_number
from holdfast.lab.analysts.fair_bits import Bits, fair_bits
from holdfast.lab.conversation import Conversation, FloatArray, Medians
from holdfast.lab.signs.population import SignSum

__all__ = ["SignAggregation", "SignBlocks"]

_MOST = 10**6
_BATCH = 1_000  # questions at once
_POINTS = 1_024  # of the last question
_DEVIATIONS = 10  # that its grid covers


@dataclass(frozen=True, eq=False)
class SignBlocks:
    """Blocks of fair signs: a line for each sign."""

    holdout: Bits

    @property
    def rows(self) -> int:
        """How many blocks there are."""
        return int(self.holdout.shape[1])


@dataclass(frozen=True)
class SignAggregation:
    """Which way does each sign lean? And then the median of their sum, oriented like that."""

    name: ClassVar[str] = "sign-aggregation"

    rows: int = 500
    signs: int = 9_990

    def __post_init__(self) -> None:
        whole_number("rows", self.rows, 1, _MOST)
        whole_number("signs", self.signs, 1, _MOST)

    @property
    def queries(self) -> int:
        """The signs and their sum."""
        return self.signs + 1

    def draw(self, chance: np.random.Generator) -> SignBlocks:
        return SignBlocks(fair_bits(chance, self.signs, self.rows))

    def converse(self, world: SignBlocks) -> Conversation:
        del world  # nothing but the answers is used
        leaning: list[FloatArray] = []
        for first in range(0, self.signs, _BATCH):
            replies = yield _signs(first, min(first + _BATCH, self.signs))
            leaning.append(replies.values)
        answers = np.concatenate(leaning)
        # A refusal says nothing: its sign is left out of the sum.
        yield _sum(np.nan_to_num(2 * answers - 1).astype(np.int64))


def _signs(first: int, end: int) -> Medians:
    law = np.tile([0.5, 1.0], (end - first, 1))
    return Medians(lambda blocks: blocks[first:end], law)


def _sum(orientation: NDArray[np.int64]) -> Medians:
    """The oriented sum on a grid of whole numbers about 0; what lies beyond is at its ends."""
    terms = int(np.count_nonzero(orientation))
    step = max(1, -(-int(_DEVIATIONS * np.sqrt(terms)) // _POINTS))
    middle = _POINTS // 2
    law = SignSum(terms).at_most(step * (np.arange(_POINTS) - middle))
    law[-1] = 1.0

    def values(blocks: Bits) -> NDArray[np.int64]:
        sums = 2 * (orientation @ blocks.astype(np.int64)) - orientation.sum()
        return np.asarray(np.clip(-(-sums // step) + middle, 0, _POINTS - 1)[np.newaxis])

    return Medians(values, law[np.newaxis])
