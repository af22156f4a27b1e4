"""What an answer claims of a mean or of a median, and nothing more than it certifies."""

from __future__ import annotations

import math

import numpy as np

from holdfast.lab.conversation import Replies
from holdfast.planning.shapes import BoundedMean
from holdfast.protocols.answers import Answer, Verdict
from holdfast.protocols.guesses import Corrected

__all__ = [
    "NOTHING",
    "Told",
    "as_replies",
    "mean_claim",
    "of_answer",
    "of_corrected",
    "of_verdict",
    "rank_claim",
]

Told = tuple[float, float, float]
"""A value, and the two ends of what is claimed of it."""

NOTHING: Told = (math.nan, -math.inf, math.inf)
_MEAN = BoundedMean()


def rank_claim(tail_low: float, tail_high: float) -> tuple[float, float]:
    """The open interval of ranks (tail_low, 1 − tail_high) as the closed one inside of it."""
    return math.nextafter(tail_low, 1.0), math.nextafter(1 - tail_high, 0.0)


def mean_claim(
    first: float | None, last: float | None, units: int, tail_low: float, tail_high: float
) -> tuple[float, float]:
    """Bounds on a mean, where blocks reach `last` from below and `first` from above with tails.

    >>> [round(end, 3) for end in mean_claim(0.5, 0.5, units=100, tail_low=0.01, tail_high=0.01)]
    [0.352, 0.648]
    """
    low, high = _MEAN.bar((first, last), units, tail_low, tail_high)
    assert low is not None  # the range [0, 1] bounds what an edge does not
    assert high is not None
    return low, high


def of_answer(answer: Answer, *, mean: bool) -> Told:
    """The claim of an answer: its bar for a mean, its open interval of ranks for a median."""
    if not mean:
        return (answer.value, *rank_claim(answer.tail_low, answer.tail_high))
    low = -math.inf if answer.low is None else answer.low
    return answer.value, low, math.inf if answer.high is None else answer.high


def of_verdict(verdict: Verdict, units: int, *, mean: bool) -> Told:
    """Confirmed, a guess is a value whose tails are both above `tail_low`; else there is none."""
    if verdict.refused is not False:
        return NOTHING
    guess, tails = verdict.guess, (verdict.tail_low, verdict.tail_low)
    if mean:
        return (guess, *mean_claim(guess, guess, units, *tails))
    return (guess, *rank_claim(*tails))


def of_corrected(told: Corrected, units: int, *, mean: bool) -> Told:
    """The correction's claim, or that of the confirmed guess; nothing if exhausted."""
    if told.correction is not None:
        return of_answer(told.correction, mean=mean)
    return of_verdict(told.verdict, units, mean=mean)


def as_replies(told: list[Told]) -> Replies:
    """Replies in the order of their questions."""
    return Replies(*np.array(told, np.float64).reshape(-1, 3).T.copy())
