"""The Ladder of Blum & Hardt 2015: every submission is told the best score so far."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.baselines.ladder import Ladder as Board
from holdfast.lab.conversation import FloatArray, Replies, Terms
from holdfast.lab.responders.translate import MeanResponder

__all__ = ["Ladder"]


class Ladder(MeanResponder):
    """Means are losses, and the reply is the least so far; without a step it is parameter-free.

    Of a question that does not lead, the reply says only that. So it claims nothing, and searches
    for medians are led astray by it: it was made for leaderboards.
    """

    name: ClassVar[str] = "ladder"

    def __init__(self, terms: Terms, *, step: float | None = None) -> None:
        self._board = Board(terms.rows, step)

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:  # noqa: ARG002
        return Replies.unclaimed(np.array([self._board.ask(losses).value for losses in values]))
