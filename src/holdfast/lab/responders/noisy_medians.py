"""Medians with textbook noise: Gaussian counts, and the exponential mechanism.

Both are tuned for the promise that Holdfast makes, tails of 1/2 − `Terms.half_width`: the noise is
the one at which the same theorem certifies them on the fewest blocks. They are asked on the rows
there are, enough or not, and claim nothing; `blocks` is what their own certificates would need.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids import Grid, grid
from holdfast.lab.conversation import FloatArray, Replies, Responder, Terms
from holdfast.lab.responders.holdfast.base import confidence_of, tail_of
from holdfast.mechanisms.exponential import exponential_median
from holdfast.mechanisms.looks import search_many
from holdfast.theory.sizing import Promise, Sized, best_exponential, best_gaussian

__all__ = ["ExponentialMedian", "GaussianMedian"]

_TAIL = 0.01


class _NoisyMedian(Responder):
    """Medians alone: what is planned for is questions on two points."""

    def __init__(self, terms: Terms) -> None:
        tail = _TAIL if terms.half_width is None else tail_of(terms.half_width)
        promise = Promise(terms.queries, 2, tail, tail, confidence_of(terms.failure))
        self._sized = self._size(promise)
        self._entropy = terms.entropy

    @property
    def blocks(self) -> int:
        """The fewest blocks on which the method keeps the promise."""
        return self._sized.size.blocks

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:  # noqa: ARG002
        raise InvalidInput("question", "means", f"medians for {self.name}")

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        answers = self._answers(values, grid(0, points - 1, scale="integer"))
        return Replies.unclaimed(answers.astype(np.float64))

    @staticmethod
    @abstractmethod
    def _size(promise: Promise) -> Sized:
        """The method at its best parameters."""

    @abstractmethod
    def _answers(self, values: NDArray[Any], points: Grid) -> NDArray[np.int64]:
        """One grid index for each line."""


class GaussianMedian(_NoisyMedian):
    """Noisy binary search: every count with Gaussian noise (cor `SQ-med`)."""

    name: ClassVar[str] = "gaussian-median"

    @staticmethod
    @lru_cache(maxsize=32)
    def _size(promise: Promise) -> Sized:
        return best_gaussian(promise)

    def _answers(self, values: NDArray[Any], points: Grid) -> NDArray[np.int64]:
        coin = self._sized.coin
        assert coin is not None  # noise on counts is a coin of its own
        return search_many(values, points, coin, self._entropy)


class ExponentialMedian(_NoisyMedian):
    """The exponential mechanism's median (thm `EM-med`)."""

    name: ClassVar[str] = "exponential-median"

    @staticmethod
    @lru_cache(maxsize=32)
    def _size(promise: Promise) -> Sized:
        return best_exponential(promise)

    def _answers(self, values: NDArray[Any], points: Grid) -> NDArray[np.int64]:
        epsilon = self._sized.parameters[1]
        return np.array([exponential_median(v, points, epsilon, self._entropy) for v in values])
