"""Broken versions of the baselines, each with the check that must reject it.

Four of them were published: algorithms 3 to 6 in figure 1 of Lyu, Su & Li 2017, "Understanding the
sparse vector technique for differential privacy", which shows that none is ε-private. They are
written in the words of this project: a refusal is their ⊤, the count is minus their query.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.baselines.checks import (
    Combine,
    gaussian_has_its_law,
    laplace_has_its_law,
    quantiles_are_private,
    sparse_vector_is_private,
    thresholdout_is_private,
    transcripts_are_counted,
    winsorised_mean_is_private,
)
from tests.baselines.laws import Draw, Rule

from holdfast.randomness import Entropy
from holdfast_lab.baselines import noise
from holdfast_lab.baselines.sparse_vector import Kept, SparseRule
from holdfast_lab.baselines.subsample_aggregate import Quantile, QuantileScores, quantile_scores
from tests.mutants.theory import Mutant

__all__ = ["MUTANTS"]


# The sparse vector.


@dataclass(frozen=True)
class Variant:
    """A sparse vector whose threshold is drawn once."""

    refusals: int
    threshold_scale: Fraction | None  # None: no noise
    question_scale: Fraction | None
    stops: bool = True
    shows: bool = False  # the noisy count instead of No

    def start(self) -> Kept:
        return Kept(None, self.refusals)

    def ask(self, state: Kept, question: tuple[int, int], draw: Draw) -> tuple[str | int, Kept]:
        if state.left == 0:
            return "exhausted", state
        count, threshold = question
        level = state.noise
        if level is None:
            level = draw(self.threshold_scale) if self.threshold_scale else 0
        noisy = count + (draw(self.question_scale) if self.question_scale else 0)
        if noisy > threshold + level:
            return "yes", Kept(level, state.left)
        return (noisy if self.shows else "no"), Kept(level, state.left - self.stops)


def algorithm_3(refusals: int, epsilon: Fraction) -> Rule:
    """Roth 2011, lecture notes: the answer shown is the noisy count that was compared."""
    return Variant(refusals, 2 / epsilon, 2 * refusals / epsilon, shows=True)


def algorithm_4(refusals: int, epsilon: Fraction) -> Rule:
    """Lee & Clifton 2014: a quarter of ε for the threshold, noise that ignores ℓ."""
    return Variant(refusals, 4 / epsilon, 4 / (3 * epsilon))


def algorithm_5(refusals: int, epsilon: Fraction) -> Rule:
    """Stoddard, Chen & Machanavajjhala 2014: no noise on the questions, no limit."""
    return Variant(refusals, 2 / epsilon, None, stops=False)


def algorithm_6(refusals: int, epsilon: Fraction) -> Rule:
    """Chen, Xiao, Zhang & Xu 2015: noise on both, no limit on the refusals."""
    return Variant(refusals, 2 / epsilon, 2 / epsilon, stops=False)


def half_the_noise(refusals: int, epsilon: Fraction) -> Rule:
    """Lap(2/ε̃) on the questions, as on the threshold."""
    return Variant(refusals, 2 * refusals / epsilon, 2 * refusals / epsilon)


def exact_threshold(refusals: int, epsilon: Fraction) -> Rule:
    """Every question pays when the threshold has no noise."""
    return Variant(refusals, None, 4 * refusals / epsilon)


def one_refusal_more(refusals: int, epsilon: Fraction) -> Rule:
    return SparseRule(refusals + 1, epsilon / refusals)


# Thresholdout.


@dataclass(frozen=True)
class BrokenThresholdout:
    threshold: Fraction
    sigma: Fraction
    budget: int
    comparison: Fraction = Fraction(4)
    answer: Fraction | None = Fraction(1)
    spends: bool = True

    def start(self) -> Kept:
        return Kept(None, self.budget)

    def ask(
        self, state: Kept, question: tuple[int, Fraction], draw: Draw
    ) -> tuple[int | str | None, Kept]:
        if state.left == 0:
            return "exhausted", state
        total, guess = question
        level = draw(2 * self.sigma) if state.noise is None else state.noise
        if abs(total - guess) <= self.threshold + level + draw(self.comparison * self.sigma):
            return None, Kept(level, state.left)
        noisy = total + (draw(self.answer * self.sigma) if self.answer else 0)
        return noisy, Kept(None, state.left - self.spends)


def broken_thresholdout(**how: Any) -> Callable[[Fraction, Fraction, int], Rule]:
    return lambda threshold, sigma, budget: BrokenThresholdout(threshold, sigma, budget, **how)


# Noise.


draws: Any = noise  # looked up when used: the check replaces what is in it


def zero_twice(scale: Fraction, entropy: Entropy) -> int:
    """The sign of 0 is not rejected: 0 comes twice as often."""
    while True:
        low = draws._uniform(scale.numerator, entropy)
        if not draws.flip_exponential(Fraction(1), Fraction(low, scale.numerator), entropy):
            continue
        high = 0
        while draws.flip_exponential(Fraction(1), Fraction(1), entropy):
            high += 1
        size = (low + scale.numerator * high) // scale.denominator
        return int(-size if draws.uniform_index(2, entropy) else size)


def whole_scale(scale: Fraction, entropy: Entropy) -> int:
    """A fractional scale is rounded."""
    return int(draws.discrete_laplace(Fraction(max(1, round(scale))), entropy))


def no_shift(variance: Fraction, entropy: Entropy) -> int:
    """Kept with e^(−Y²/(2σ²)), as if Y were uniform and not Laplace."""
    scale = math.isqrt(math.floor(variance)) + 1
    while True:
        drawn = int(draws.discrete_laplace(Fraction(scale), entropy))
        if draws.flip_exponential(Fraction(1), drawn**2 / (2 * variance), entropy):
            return drawn


def deviation_for_variance(variance: Fraction, entropy: Entropy) -> int:
    return int(draws.discrete_gaussian(variance**2, entropy))


# Subsample and aggregate.


def noise_scale(scale: Callable[[int, Fraction, int], Fraction]) -> Combine:
    """The winsorised mean with noise of another scale: of (width, ε, blocks)."""

    def combine(
        values: NDArray[np.int64], cells: int, epsilon: Fraction, quantile: Quantile, draw: Draw
    ) -> tuple[Fraction, int, int]:
        first, third = quantile(Fraction(1, 4)), quantile(Fraction(3, 4))
        reach = 4 * values.size ** (13 / 30) * abs(third - first)
        low = max(0, math.floor((first + third) / 2 - reach))
        high = min(cells, math.ceil((first + third) / 2 + reach))
        total = int(np.clip(values, low, high).sum())
        if low < high:
            total += draw(scale(high - low, epsilon, values.size))
        return Fraction(total, values.size), low, high

    return combine


def whole_exponent(values: NDArray[np.int64], cells: int, share: Fraction) -> QuantileScores:
    """Weights e^(−ε·score), as they are often printed."""
    scores = quantile_scores(values, cells, share)
    return scores._replace(score=[2 * score for score in scores.score])


# Description length.


def log_sum(terms: Callable[[int, int, int], int]) -> Callable[[int, int, int], float]:
    """ln Σ_{j<ℓ} terms(k, r, j)."""
    return lambda queries, refusals, points: math.log(
        sum(terms(queries, points, j) for j in range(min(refusals, queries)))
    )


_BROKEN: dict[Callable[..., bool], dict[str, Any]] = {
    sparse_vector_is_private: {
        "algorithm 3 of Lyu, Su & Li": algorithm_3,
        "algorithm 4 of Lyu, Su & Li": algorithm_4,
        "algorithm 5 of Lyu, Su & Li": algorithm_5,
        "algorithm 6 of Lyu, Su & Li": algorithm_6,
        "questions get the threshold's noise": half_the_noise,
        "the threshold gets no noise": exact_threshold,
        "there is one refusal more": one_refusal_more,
    },
    thresholdout_is_private: {
        "Thresholdout compares with too little noise": broken_thresholdout(comparison=Fraction(1)),
        "Thresholdout answers without noise": broken_thresholdout(answer=None),
        "Thresholdout answers with half the noise": broken_thresholdout(answer=Fraction(1, 2)),
        "Thresholdout does not spend its budget": broken_thresholdout(spends=False),
    },
    laplace_has_its_law: {
        "the zero of the noise counts twice": zero_twice,
        "the scale of the noise is rounded": whole_scale,
    },
    gaussian_has_its_law: {
        "the Gaussian's rejection is not shifted": no_shift,
        "the variance is squared": deviation_for_variance,
    },
    winsorised_mean_is_private: {
        "the winsorised mean has the noise of w/(2ε)": noise_scale(lambda w, e, _: w / (2 * e)),
        "the winsorised mean has all of ε for its noise": noise_scale(lambda w, e, _: w / e),
        "the noise of a mean is added to the sum": noise_scale(lambda w, e, m: 2 * w / (e * m)),
    },
    quantiles_are_private: {"the quantile's weight has ε for ε/2": whole_exponent},
    transcripts_are_counted: {
        "where the corrections were is not counted": log_sum(lambda k, r, j: k * r**j),
        "what the corrections were is not counted": log_sum(lambda k, r, j: math.comb(k, j + 1)),
        "transcripts are counted, not questions": log_sum(lambda k, r, j: math.comb(k, j) * r**j),
    },
}
MUTANTS = [
    Mutant(name, check, broken)
    for check, mistakes in _BROKEN.items()
    for name, broken in mistakes.items()
]
