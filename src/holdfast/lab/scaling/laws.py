"""Heavy-tailed laws, and the laws of estimators on blocks of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids import Grid
from holdfast.grids import grid as make_grid

__all__ = ["ESTIMATORS", "BlockLaw", "Law", "block_law", "estimate", "law_named"]

FloatArray = NDArray[np.float64]

ESTIMATORS = ("median", "trimmed", "mean")
_TRIM = 0.1
_FRESH = 4_000  # blocks drawn for a law without a formula
_VALUES = 2 * 10**7  # but no more values than these
_SEED = 20_170


@dataclass(frozen=True)
class Law:
    """A law given by its quantiles. `mean` is infinite where it is, NaN where there is none."""

    name: str
    index: float  # of the tail: P[X > x] falls like x^−index
    centre: float  # where a symmetric law is; NaN for others

    @property
    def mean(self) -> float:
        """Its mean."""
        if not math.isnan(self.centre):
            return math.nan
        return self.index / (self.index - 1) if self.index > 1 else math.inf

    @property
    def median(self) -> float:
        """Its median."""
        return float(self.quantiles(np.array([0.5]))[0])

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """Values below which so much of the law lies: rows, from uniform numbers."""
        if not math.isnan(self.centre):
            return np.asarray(self.centre + np.tan(math.pi * (shares - 0.5)))
        return np.asarray((1 - shares) ** (-1 / self.index))

    def below(self, value: float) -> float:
        """How much of the law lies at or below a value."""
        if not math.isnan(self.centre):
            return 0.5 + math.atan(value - self.centre) / math.pi
        return 0.0 if value < 1 else float(1 - value**-self.index)

    def grid(self, points: int) -> Grid:
        """Possible answers: a wide range, in equal steps or in equal ratios."""
        if not math.isnan(self.centre):
            return make_grid(-20, 20, points=points)
        return make_grid(1, 10**6, points=points, scale="log")


def law_named(name: str) -> Law:
    """A Cauchy law about 3, or a Pareto law on [1, ∞) with the index in its name.

    >>> law_named("pareto 1.5").mean, round(law_named("pareto 1.5").median, 4)
    (3.0, 1.5874)
    >>> law_named("cauchy").median, law_named("pareto 0.8").mean
    (3.0, inf)
    """
    kind, _, index = name.partition(" ")
    if kind == "cauchy":
        return Law(name, 1.0, 3.0)
    if kind == "pareto":
        return Law(name, float(index), math.nan)
    raise InvalidInput("law", name, "'cauchy', or 'pareto' and its index")


def estimate(name: str, blocks: FloatArray) -> FloatArray:
    """The estimator's value on every line.

    >>> lines = np.array([[1.0, 2.0, 3.0, 4.0, 90.0, 5.0, 6.0, 7.0, 8.0, 9.0, 0.0]])
    >>> [float(estimate(name, lines)[0]) for name in ESTIMATORS]
    [5.0, 5.0, 12.27...]
    """
    size = blocks.shape[-1]
    if name == "mean":
        return np.asarray(blocks.mean(axis=-1))
    if name == "median":
        return np.asarray(np.median(blocks, axis=-1))
    cut = int(_TRIM * size)
    ordered = np.partition(blocks, (cut, size - 1 - cut), axis=-1)
    return np.asarray(ordered[..., cut : size - cut].mean(axis=-1))


@dataclass(frozen=True, eq=False)
class BlockLaw:
    """The law of an estimator on fresh blocks of so many values.

    Exact for the median of an odd number of values, and for means of Cauchy laws. Otherwise
    `fresh` holds its value on fresh blocks, in rising order.
    """

    law: Law
    estimator: str
    size: int
    fresh: FloatArray | None

    @property
    def median(self) -> float:
        """Its median; by symmetry, or for an odd number of values, that of the law itself."""
        if self.fresh is None or not math.isnan(self.law.centre):
            return self.law.median
        return float(np.median(self.fresh))

    def below(self, value: float) -> float:
        """How much of it lies at or below a value."""
        if self.fresh is not None:
            return float(np.searchsorted(self.fresh, value, side="right") / self.fresh.size)
        if self.estimator == "mean":
            return self.law.below(value)  # the mean of Cauchy laws is the same Cauchy law
        from scipy.special import betainc

        half = (self.size + 1) // 2
        return float(betainc(half, half, self.law.below(value)))


@cache
def block_law(law: Law, estimator: str, size: int) -> BlockLaw:
    """The law of an estimator; drawn once for each number of values."""
    exact = estimator == "median" and size % 2 == 1
    stable = estimator == "mean" and not math.isnan(law.centre)
    if exact or stable:
        return BlockLaw(law, estimator, size, None)
    chance = np.random.Generator(np.random.Philox(_SEED))
    blocks = max(100, min(_FRESH, _VALUES // size))
    pieces = [
        estimate(estimator, law.quantiles(chance.random((min(200, blocks - at), size))))
        for at in range(0, blocks, 200)
    ]
    return BlockLaw(law, estimator, size, np.sort(np.concatenate(pieces)))
