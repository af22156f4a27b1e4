"""The boosting attack on a leaderboard (Blum & Hardt 2015, "The Ladder", section 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from holdfast.errors import InvalidInput, whole_number
from holdfast.lab.analysts.fair_bits import Bits, fair_bits
from holdfast.lab.conversation import Conversation, FloatArray, Means

__all__ = ["Boosting", "Keep", "Leaderboard"]

Keep = Literal["half", "lower"]

_MOST = 10**6


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Random labels that nobody can predict, and random predictions of them.

    Everybody sees what the predictions are made from, nobody the labels: the rows held back. So
    whatever the analyst makes of the predictions has loss 1/2 in the population.
    """

    holdout: Bits
    predictions: Bits

    @property
    def rows(self) -> int:
        """How many labels there are."""
        return self.holdout.size


@dataclass(frozen=True)
class Boosting:
    """Submits random predictions, keeps those that did well, submits their majority vote.

    What "well" means depends on what the leaderboard shows. If it shows each submission's loss, a
    loss of at most 1/2 (`keep="half"`). If it shows the best so far, as the Ladder does, a score
    below the one before, or a first one below 1/2 (`keep="lower"`). Both rules, and ties that vote
    for 1, are those of the authors' experiment.
    """

    name: ClassVar[str] = "boosting"

    rows: int = 4_000
    submissions: int = 400
    keep: Keep = "half"

    def __post_init__(self) -> None:
        whole_number("rows", self.rows, 1, _MOST)
        whole_number("submissions", self.submissions, 1, _MOST)
        if self.keep not in ("half", "lower"):
            raise InvalidInput("keep", self.keep, "'half' or 'lower'")

    @property
    def queries(self) -> int:
        """The submissions and the vote."""
        return self.submissions + 1

    def draw(self, chance: np.random.Generator) -> Leaderboard:
        return Leaderboard(
            fair_bits(chance, self.rows), fair_bits(chance, self.submissions, self.rows)
        )

    def converse(self, world: Leaderboard) -> Conversation:
        half = np.full(self.submissions, 0.5)
        replies = yield _losses(world.predictions, half)
        kept = self._kept(replies.values)
        votes = np.count_nonzero(world.predictions[kept], axis=0)
        majority = 2 * votes >= np.count_nonzero(kept)
        yield _losses(majority[np.newaxis], np.array([_promised_loss(replies.values[kept])]))

    def _kept(self, scores: FloatArray) -> Bits:
        if self.keep == "half":
            return np.asarray(scores <= 0.5)  # a refusal is not
        before = np.concatenate([[0.5], scores[:-1]])
        return np.asarray(scores < before)


def _losses(predictions: Bits, guesses: FloatArray) -> Means:
    def values(labels: Any) -> Bits:
        return np.asarray(predictions ^ labels)

    return Means(values, np.full(len(predictions), 0.5), guesses)


def _promised_loss(scores: FloatArray) -> float:
    """The loss of the vote as the scores promise it: Φ(−√K · mean of 1 − 2·score), K votes.

    If the scores were losses on fresh rows, a row's K votes would have this mean and variance 1.

    >>> round(_promised_loss(np.full(200, 0.4937)), 3)
    0.429
    """
    if not scores.size:
        return 0.5
    edge = math.sqrt(scores.size) * float(np.mean(1 - 2 * scores))
    return 0.5 * math.erfc(edge / math.sqrt(2))
