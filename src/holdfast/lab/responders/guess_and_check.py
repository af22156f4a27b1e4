"""Guess and check, of Rogers et al. 2020: guesses are confirmed, or corrected without noise."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.baselines.guess_and_check import GuessAndCheck as Holdout
from holdfast.baselines.guess_and_check import check_rows
from holdfast.lab.conversation import FloatArray, Replies, Terms
from holdfast.lab.responders.translate import MeanResponder, known_guesses

__all__ = ["GuessAndCheck", "check_width"]

_CORRECTIONS = 20
_STEPS = 20  # of a bisection
_LEAST = 1e-3


class GuessAndCheck(MeanResponder):
    """Every answer within one half-width of the truth, which is its authors' claim.

    The half-width is that of the terms, else the smallest that the rows can keep for all the
    questions if 20 guesses have to be corrected. If more have to be, it may fall silent.
    """

    name: ClassVar[str] = "guess-and-check"

    def __init__(self, terms: Terms) -> None:
        self._holdout = Holdout(terms.rows, terms.failure)
        self._half_width = terms.half_width or check_width(terms.rows, terms.queries, terms.failure)

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        known = known_guesses(guesses, len(values)).tolist()
        said = [
            self._holdout.ask(line, guess, self._half_width).value
            for line, guess in zip(values, known, strict=True)
        ]
        return Replies.around(np.array(said, np.float64), self._half_width)  # None is NaN


@lru_cache(maxsize=64)
def check_width(rows: int, queries: int, failure: float) -> float:
    """The smallest half-width, up to 1e-6, at which a last question can still be corrected.

    >>> round(check_width(10_000, 10_020, 0.05), 3)
    0.12
    """
    corrections = min(_CORRECTIONS, queries - 1)
    low, high = _LEAST, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        enough = check_rows(queries, corrections, middle, failure).rows <= rows
        low, high = (low, middle) if enough else (middle, high)
    return high
