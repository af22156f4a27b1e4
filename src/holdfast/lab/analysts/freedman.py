"""Screening variables and then testing the survivors on the same rows (Freedman 1983).

("A note on screening regression equations", The American Statistician 37.) Nothing predicts
anything; a first pass keeps the variables that look useful, a second pass finds that they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from holdfast.errors import real_number, whole_number
from holdfast.lab.analysts.fair_bits import Bits, fair_bits
from holdfast.lab.conversation import Conversation, FloatArray, Means

__all__ = ["Freedman", "Noise"]

_MOST = 10**6


@dataclass(frozen=True, eq=False)
class Noise:
    """Rows of fair bits: does this variable agree with the outcome here? A line for each variable.

    Outcome and variables are independent fair signs, and so are their products.
    """

    holdout: Bits

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.holdout.shape[1])


@dataclass(frozen=True)
class Freedman:
    """Keeps the variables whose agreement with the outcome is significant at `level`, lets them
    vote, each for or against as its sign says, and asks how often the vote is right.

    A tied vote counts as half right: it is cast by a coin. In the population every vote is right
    half the time.
    """

    name: ClassVar[str] = "freedman"

    rows: int = 100
    variables: int = 50
    level: float = 0.25

    def __post_init__(self) -> None:
        whole_number("rows", self.rows, 1, _MOST)
        whole_number("variables", self.variables, 1, _MOST)
        real_number("level", self.level, 0, 1, open_low=True, open_high=True)

    @property
    def queries(self) -> int:
        """One for each variable, and the vote."""
        return self.variables + 1

    def draw(self, chance: np.random.Generator) -> Noise:
        return Noise(fair_bits(chance, self.variables, self.rows))

    def converse(self, world: Noise) -> Conversation:
        from scipy.special import ndtr, ndtri

        half = np.full(self.variables, 0.5)
        replies = yield Means(lambda table: table, half, half)
        leans = np.nan_to_num(2 * replies.values - 1)  # a refusal leans nowhere
        kept = np.abs(leans) * math.sqrt(world.rows) > ndtri(1 - self.level / 2)
        edge = np.abs(leans[kept]).sum() / math.sqrt(max(int(kept.sum()), 1))
        yield Means(_vote(np.sign(leans) * kept), np.array([0.5]), np.array([float(ndtr(edge))]))


def _vote(signs: FloatArray) -> Callable[[Any], FloatArray]:
    """How often the vote is right: for and against are counted apart, as bits."""

    def values(table: Any) -> FloatArray:
        margin = _lead(table[signs > 0]) - _lead(table[signs < 0])
        return np.asarray((1.0 + np.sign(margin)) / 2)[np.newaxis]

    return values


def _lead(agreeing: Bits) -> FloatArray:
    return np.asarray(2.0 * np.count_nonzero(agreeing, axis=0) - len(agreeing))
