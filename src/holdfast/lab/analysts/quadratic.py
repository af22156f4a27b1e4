"""The strategy of Rogers et al. 2020, "Guaranteed Validity for Empirical Approaches to Adaptive
Data Analysis" (AISTATS), with which they test their mechanisms.

A row has k + 1 fair signs x(1), …, x(k + 1), all independent. Most questions ask how often a sign
agrees with the last one,

    φ_j(x) = (1 + x(j)·x(k + 1)) / 2,

and those whose numbers are in a set S how often the last sign is predicted by all signs asked about
before, each with the log-odds of its answer a_i as weight:

    φ_j(x) = 1  if  sign(Σ_i x(i)·ln((1 + c_i)/(1 − c_i))) = x(k + 1),   c_i = 2·a_i − 1,

with sign(0) = 1. The truth of every question is 1/2. Their "quadratic" strategy, that of section 3,
has S = {4, 9, 16, …}; the "single-adaptive" one, that of figure 2, asks one such question, the
last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from holdfast.errors import InvalidInput, whole_number
from holdfast.lab.analysts.fair_bits import Bits, fair_bits
from holdfast.lab.conversation import Conversation, FloatArray, Means

__all__ = ["Agreements", "FairSigns", "Quadratic"]

_MOST = 10**6
_BATCH = 500  # questions at once: their table is as long as the rows
_TIE = 1e-9  # of the largest weight: what rounding makes of a vote that is tied
_SURE = 1 - 1e-15  # an answer of 0 or 1 would weigh without end


@dataclass(frozen=True, eq=False)
class Agreements:
    """Rows of signs: whether each agrees with the last one, packed, and the last one itself.

    Signs and agreements have the same law: fair and independent of each other and of the last.
    """

    packed: np.ndarray[tuple[int, int], np.dtype[np.uint8]]
    last: Bits

    def agree(self, first: int, end: int) -> Bits:
        """A line for each of these signs."""
        bits = np.unpackbits(self.packed[first:end], axis=1, count=self.last.size)
        return bits.view(np.bool_)


@dataclass(frozen=True, eq=False)
class FairSigns:
    """A sample of a population of fair signs."""

    holdout: Agreements

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.holdout.last.size


@dataclass(frozen=True)
class Quadratic:
    """Asks for agreements, and every so often how well their weighted vote predicts."""

    name: ClassVar[str] = "quadratic"

    rows: int = 10_000
    queries: int = 2_500
    adaptive: Literal["squares", "last"] = "squares"

    def __post_init__(self) -> None:
        whole_number("rows", self.rows, 1, _MOST)
        whole_number("queries", self.queries, 2, _MOST)
        if self.adaptive not in ("squares", "last"):
            raise InvalidInput("adaptive", self.adaptive, "'squares' or 'last'")

    @property
    def votes(self) -> tuple[int, ...]:
        """S: the numbers of the questions about the vote, counted from 1."""
        if self.adaptive == "last":
            return (self.queries,)
        return tuple(root**2 for root in range(2, math.isqrt(self.queries) + 1))

    def draw(self, chance: np.random.Generator) -> FairSigns:
        signs = self.queries - len(self.votes)
        width = -(-self.rows // 8)
        packed = np.frombuffer(chance.bytes(signs * width), np.uint8).reshape(signs, width)
        return FairSigns(Agreements(packed, fair_bits(chance, self.rows)))

    def converse(self, world: FairSigns) -> Conversation:
        del world  # nothing but the answers is used
        vote, signs, asked = _Vote(), 0, 0
        for number in (*self.votes, self.queries + 1):
            while asked < number - 1:
                count = min(_BATCH, number - 1 - asked)
                replies = yield _agreements(signs, signs + count)
                vote.learn(replies.values)
                signs, asked = signs + count, asked + count
            if number <= self.queries:
                yield Means(vote, np.array([0.5]), np.array([vote.promised]))
                asked += 1


def _agreements(first: int, end: int) -> Means:
    half = np.full(end - first, 0.5)
    return Means(lambda rows: rows.agree(first, end), half, half)


class _Vote:
    """The weighted vote of the signs asked about so far, as a question.

    It remembers the votes it has added up: a function may.
    """

    def __init__(self) -> None:
        self._weights: list[FloatArray] = []
        self._squares = 0.0
        self._added = 0
        self._sums: FloatArray | None = None

    def learn(self, answers: FloatArray) -> None:
        """The weights of the next signs; one whose question was refused has none."""
        edge = np.clip(np.nan_to_num(2 * answers - 1), -_SURE, _SURE)
        self._weights.append(np.log((1 + edge) / (1 - edge)))
        self._squares += float(edge @ edge)

    @property
    def promised(self) -> float:
        """How often the vote predicts the last sign if the answers are true: Φ(√(Σ c²))."""
        return 0.5 * math.erfc(-math.sqrt(self._squares / 2))

    def __call__(self, rows: Agreements) -> Bits:
        weights = np.concatenate(self._weights)
        sums = np.zeros(rows.last.size) if self._sums is None else self._sums
        for first in range(self._added, weights.size, _BATCH):
            end = min(first + _BATCH, weights.size)
            sums = sums + weights[first:end] @ (2.0 * rows.agree(first, end) - 1)
        self._sums, self._added = sums, weights.size
        tied = np.abs(sums) <= _TIE * np.abs(weights).max(initial=0.0)
        return np.where(tied, rows.last, sums > 0)[np.newaxis]
