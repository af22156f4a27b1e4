"""Fresh splitting: every question gets rows that nobody has used."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.lab.conversation import FloatArray, Replies, Responder, Terms
from holdfast.theory.sizing import split_failure

__all__ = ["Split", "binomial_limits", "median_tail"]

_STEPS = 40  # of a bisection


class Split(Responder):
    """⌊n/k⌋ rows for each of k questions; whatever comes later is refused.

    All k claims hold at once with probability 1 − β, each with β/k: for questions with values 0
    and 1 the exact binomial limits (Clopper & Pearson 1934), for other means Hoeffding's, for the
    rank of a median the exact tails of `holdfast.theory.sizing`. With fewer rows than questions
    nothing at all is answered.
    """

    name: ClassVar[str] = "split"

    def __init__(self, terms: Terms) -> None:
        self._each = terms.rows // terms.queries
        self._left = terms.queries if self._each else 0
        self._share = terms.failure / terms.queries
        self._asked = 0

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:  # noqa: ARG002
        fresh, refused = self._fresh(values)
        means = fresh.mean(axis=1, dtype=np.float64)
        if values.dtype == np.bool_:
            limits = binomial_limits(fresh.sum(axis=1), max(self._each, 1), self._share)
            return _with_refusals(Replies(means, *limits), refused)
        half_width = math.sqrt(math.log(2 / self._share) / (2 * max(self._each, 1)))
        return _with_refusals(Replies.around(means, half_width), refused)

    def medians(self, values: NDArray[Any], points: int) -> Replies:  # noqa: ARG002
        fresh, refused = self._fresh(values)
        rank = (fresh.shape[1] - 1) // 2
        answers = np.partition(fresh, rank, axis=1)[:, rank].astype(np.float64)
        tail = median_tail(fresh.shape[1], self._share)
        low = np.full(len(answers), tail)
        return _with_refusals(Replies(answers, low, 1 - low), refused)

    def _fresh(self, values: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """Each question's own rows, and how many questions at the end get none."""
        served = min(len(values), self._left)
        self._left -= served
        first = (self._asked + np.arange(served)) * self._each
        self._asked += served
        columns = first[:, np.newaxis] + np.arange(max(self._each, 1))
        return np.take_along_axis(values[:served], columns, axis=1), len(values) - served


def binomial_limits(
    counts: NDArray[np.int64], rows: int, failure: float
) -> tuple[FloatArray, FloatArray]:
    """Clopper & Pearson's limits for the probability, two-sided at this failure.

    >>> low, high = binomial_limits(np.array([0, 5, 10]), 10, 0.05)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.187, 0.692], [0.308, 0.813, 1.0])
    """
    from scipy.special import betaincinv

    low = betaincinv(np.maximum(counts, 1), rows - np.maximum(counts, 1) + 1, failure / 2)
    under = np.minimum(counts, rows - 1)
    high = betaincinv(under + 1, rows - under, 1 - failure / 2)
    return np.where(counts > 0, low, 0.0), np.where(counts < rows, high, 1.0)


def median_tail(rows: int, failure: float) -> float:
    """The largest tail ρ, up to 1e-12, that the sample's median keeps but for this failure.

    >>> round(median_tail(43, 0.0005), 3), round(median_tail(3, 1e-6), 5)
    (0.254, 0.00041)
    """
    low, high = 0.0, 0.5
    for _ in range(_STEPS):
        middle = (low + high) / 2
        fits = split_failure(rows, (rows - 1) // 2 + 1, middle, middle) <= failure
        low, high = (middle, high) if fits else (low, middle)
    return low


def _with_refusals(replies: Replies, refused: int) -> Replies:
    nothing = Replies.unclaimed(np.full(refused, np.nan))
    return Replies(
        np.concatenate([replies.values, nothing.values]),
        np.concatenate([replies.low, nothing.low]),
        np.concatenate([replies.high, nothing.high]),
    )
