"""A responder that is watched: what it says, beside what the rows say."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.lab.conversation import FloatArray, Replies, Responder

__all__ = ["Watched"]


class Watched(Responder):
    """Passes every mean on, and keeps the sample's own mean and the guess of each."""

    name: ClassVar[str] = "watched"

    def __init__(self, responder: Responder) -> None:
        self._responder = responder
        self._sample: list[FloatArray] = []
        self._guesses: list[FloatArray] = []

    @property
    def sample(self) -> FloatArray:
        """The means of the sample, of all questions so far."""
        return np.concatenate(self._sample)

    @property
    def guesses(self) -> FloatArray:
        """What the analyst expected of each; NaN where it did not say."""
        return np.concatenate(self._guesses)

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        self._sample.append(values.mean(axis=1, dtype=np.float64))
        self._guesses.append(np.full(len(values), np.nan) if guesses is None else guesses)
        return self._responder.means(values, guesses)

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        return self._responder.medians(values, points)
