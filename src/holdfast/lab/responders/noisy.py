"""Noisy means: the sample's mean with Gaussian or Laplace noise, scaled for the terms."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.baselines.published import rogers
from holdfast.lab.conversation import FloatArray, Replies, Terms
from holdfast.lab.responders.draws import floats_from
from holdfast.lab.responders.translate import MeanResponder

__all__ = ["Gaussian", "Laplace"]


class Gaussian(MeanResponder):
    """Means with Gaussian noise, as much as makes the published bound smallest.

    Both the noise and the half-width that is claimed are those of Rogers et al. 2020, theorem 2.1
    (`holdfast.baselines.published.rogers`), the best published for this many rows and questions.
    """

    name: ClassVar[str] = "gaussian"

    def __init__(self, terms: Terms) -> None:
        found = rogers.best(terms.rows, terms.queries, terms.failure)
        self._sigma, self._half_width = found.sigma, found.width
        self._chance = floats_from(terms.entropy)

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:  # noqa: ARG002
        noise = self._chance.normal(0.0, self._sigma, len(values))
        return Replies.around(values.mean(axis=1, dtype=np.float64) + noise, self._half_width)


class Laplace(MeanResponder):
    """Means with Laplace noise of the same standard deviation; nothing is claimed."""

    name: ClassVar[str] = "laplace"

    def __init__(self, terms: Terms) -> None:
        found = rogers.best(terms.rows, terms.queries, terms.failure)
        self._scale = found.sigma / math.sqrt(2)
        self._chance = floats_from(terms.entropy)

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:  # noqa: ARG002
        noise = self._chance.laplace(0.0, self._scale, len(values))
        return Replies.unclaimed(values.mean(axis=1, dtype=np.float64) + noise)
