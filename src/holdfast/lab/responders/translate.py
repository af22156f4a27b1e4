"""From medians to means and back, so that every responder can answer every analyst.

A median on a grid is found from means by binary search (cor `SQ-med`): is the mean of 1(φ ≤ point)
at least 1/2? A mean is found from medians as the median of the means of blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.lab.conversation import FloatArray, Replies, Responder

__all__ = ["MeanResponder", "block_means", "known_guesses", "looks_of"]


def looks_of(points: int) -> int:
    """How many means a binary search of so many points takes.

    >>> [looks_of(points) for points in (2, 3, 32)]
    [1, 2, 5]
    """
    return (points - 1).bit_length()


class MeanResponder(Responder):
    """A responder that knows means only: medians are searched for, all questions in step."""

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        lines = np.arange(len(values))
        low, high = np.zeros_like(lines), np.full_like(lines, points - 1)
        refused = np.zeros(len(lines), np.bool_)
        for _ in range(looks_of(points)):
            middle = (low + high) // 2
            below = values <= middle[:, np.newaxis]
            means = self.means(below, None).values
            refused |= np.isnan(means) & (low < high)
            up_to = means >= 0.5  # NaN is not
            low, high = (
                np.where(up_to | (low == high), low, middle + 1),
                np.where(up_to & (low < high), middle, high),
            )
        return Replies.unclaimed(np.where(refused, np.nan, low))


def block_means(values: NDArray[Any], units: int) -> FloatArray:
    """The means of blocks of so many rows, a line for each question; rows left over are not used.

    >>> block_means(np.array([[0, 1, 1, 1, 0]]), units=2)
    array([[0.5, 1. ]])
    """
    blocks = values.shape[1] // units
    kept = values[:, : blocks * units]
    return np.asarray(kept.reshape(len(values), blocks, units).mean(axis=2, dtype=np.float64))


def known_guesses(guesses: FloatArray | None, count: int) -> FloatArray:
    """A guess for every mean, in [0, 1]: 1/2 where the analyst has none.

    >>> known_guesses(np.array([0.2, np.nan, 1.5]), 3), known_guesses(None, 2)
    (array([0.2, 0.5, 1. ]), array([0.5, 0.5]))
    """
    if guesses is None:
        return np.full(count, 0.5)
    return np.clip(np.where(np.isnan(guesses), 0.5, guesses), 0.0, 1.0)
