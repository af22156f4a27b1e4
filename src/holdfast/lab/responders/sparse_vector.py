"""The textbook's sparse vector: verdicts on guesses, and silence after too many refusals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.baselines.sparse_vector import SparseRule, sparse_step
from holdfast.lab.conversation import FloatArray, Replies, Terms
from holdfast.lab.responders.draws import floats_from
from holdfast.lab.responders.translate import MeanResponder, known_guesses

__all__ = ["SparseVector"]

_REFUSALS = 20
_EPSILON = 1.0
_WIDTHS = 4.0  # of 1/√n


class SparseVector(MeanResponder):
    """Is the holdout's mean within a tolerance of the guess? At most 20 times No.

    Yes is answered by the guess itself, No and "exhausted" by NaN: a verdict is all there is. The
    tolerance is that of the terms, else 4/√n. The count that is compared is n − |Σφ − n·guess|,
    rounded down, which one row moves by at most 1; all verdicts together are 1-private.

    Without a guess the verdict is on "at least 1/2", and the answer the middle of the half in
    which the mean then lies: 3/4 for Yes, 1/4 for No. Nothing is claimed.
    """

    name: ClassVar[str] = "sparse-vector"

    def __init__(self, terms: Terms) -> None:
        refusals = min(_REFUSALS, terms.queries)
        self._rule = SparseRule(refusals, sparse_step(refusals, _EPSILON))
        self._state = self._rule.start()
        self._chance = floats_from(terms.entropy)
        self._rows = terms.rows
        self._tolerance = terms.half_width or _WIDTHS / math.sqrt(terms.rows)

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        sums = values.sum(axis=1, dtype=np.float64)
        if guesses is None:
            yes, no = np.full(len(sums), 0.75), np.full(len(sums), 0.25)
            counts, threshold = sums, self._rows / 2
        else:
            yes, no = known_guesses(guesses, len(sums)), np.full(len(sums), np.nan)
            counts = self._rows - np.abs(sums - self._rows * yes)
            threshold = self._rows * (1 - self._tolerance)
        verdicts = self._verdicts(np.floor(counts).astype(np.int64), math.floor(threshold))
        answers = {"yes": yes, "no": no, "exhausted": np.full(len(sums), np.nan)}
        return Replies.unclaimed(
            np.array([answers[word][place] for place, word in enumerate(verdicts)], np.float64)
        )

    def _verdicts(self, counts: NDArray[np.int64], threshold: int) -> list[str]:
        said: list[str] = []
        for count in counts.tolist():
            word, self._state = self._rule.ask(self._state, (count, threshold), self._draw)
            said.append(word)
        return said

    def _draw(self, scale: Fraction) -> int:
        return round(self._chance.laplace(0.0, float(scale)))
