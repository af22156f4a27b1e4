"""Naive reuse: the sample's own mean or median, every time, with the textbook's interval."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.lab.conversation import FloatArray, Replies, Responder, Terms

__all__ = ["Naive"]


class Naive(Responder):
    """Exact answers about the sample.

    The claim is what a careful textbook gives for k means fixed in advance: Hoeffding's interval
    at β/k. It is false of questions chosen by earlier answers, which is the point. Medians come
    without a claim.
    """

    name: ClassVar[str] = "naive"

    def __init__(self, terms: Terms) -> None:
        self._half_width = math.sqrt(math.log(2 * terms.queries / terms.failure) / (2 * terms.rows))

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:  # noqa: ARG002
        return Replies.around(values.mean(axis=1, dtype=np.float64), self._half_width)

    def medians(self, values: NDArray[Any], points: int) -> Replies:  # noqa: ARG002
        middle = (values.shape[1] - 1) // 2
        return Replies.unclaimed(np.partition(values, middle, axis=1)[:, middle].astype(np.float64))
