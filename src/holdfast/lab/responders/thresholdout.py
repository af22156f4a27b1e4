"""Thresholdout, as in the experiment of its authors (Dwork et al. 2015, Science 349:636)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.lab.conversation import FloatArray, Replies, Terms
from holdfast.lab.responders.draws import floats_from
from holdfast.lab.responders.translate import MeanResponder, known_guesses

__all__ = ["Thresholdout"]

_THRESHOLD, _TOLERANCE = 4.0, 1.0  # in units of 1/√n


class Thresholdout(MeanResponder):
    """The guess, if the holdout's mean is near it; otherwise that mean with noise.

    T = 4/√n and τ = 1/√n. Near is: within T plus Gaussian noise of standard deviation τ, fresh for
    every question; the noise on the answer has the same. No budget is kept. So did the authors'
    experiment; the algorithm of their theorem,
    `holdfast.baselines.thresholdout.Thresholdout`, has Laplace noise
    of scale 4σ on the comparison, wider than T at σ = τ. Nothing is claimed. Without a guess it
    is 1/2.

    T and τ belong to one scale. `span` is how long the range [0, 1] of the questions is on it:
    for correlations that were mapped from [−c, c] it is 2c.
    """

    name: ClassVar[str] = "thresholdout"

    def __init__(self, terms: Terms, *, span: float = 1.0) -> None:
        unit = 1 / (span * math.sqrt(terms.rows))
        self._threshold, self._tolerance = _THRESHOLD * unit, _TOLERANCE * unit
        self._chance = floats_from(terms.entropy)

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:
        means = values.mean(axis=1, dtype=np.float64)
        expected = known_guesses(guesses, len(means))
        noise = self._chance.normal(0.0, self._tolerance, (2, len(means)))
        far = np.abs(means - expected) > self._threshold + noise[0]
        return Replies.unclaimed(np.where(far, means + noise[1], expected))
