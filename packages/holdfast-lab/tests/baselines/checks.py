"""The checks that the baselines pass and their mutants do not: exact, by trying all noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from tests.baselines.laws import (
    Choose,
    Draw,
    Law,
    Laws,
    Rule,
    laplace_law,
    outcomes,
    privacy_loss,
    worst_loss,
)

from holdfast.randomness import Entropy, SeededEntropy
from holdfast_lab.baselines import noise
from holdfast_lab.baselines.guess_and_check import log_questions
from holdfast_lab.baselines.noise import discrete_gaussian, discrete_laplace
from holdfast_lab.baselines.sparse_vector import SparseRule, ThresholdoutRule, sparse_step
from holdfast_lab.baselines.subsample_aggregate import (
    Quantile,
    QuantileScores,
    aggregate,
    quantile_scores,
)

Question = tuple[int, int]
Questions = list[Question]
Sampler = Callable[[Fraction, Entropy], int]
Scores = Callable[[NDArray[np.int64], int, Fraction], QuantileScores]
Combine = Callable[[NDArray[np.int64], int, Fraction, Quantile, Draw], tuple[Fraction, int, int]]

ROUNDING = 1e-6  # of the logarithm of a ratio of sums of floats


# The sparse vector.


def counts(*values: int) -> Questions:
    """Questions with these counts and the threshold 0."""
    return [(value, 0) for value in values]


def run(length: int) -> tuple[Questions, Questions]:
    """Yes, Yes, …, and then No: on the second dataset every answer is harder to give."""
    return counts(*[0] * (length + 1)), counts(*[-1] * length, 1)


def neighbouring_counts() -> Iterator[tuple[Questions, Questions]]:
    """A few lists of counts on two datasets that differ in one block."""
    yield counts(0, 1), counts(1, 0)
    for length in (1, 2, 3):
        here, there = run(length)
        yield here, there
        yield here + here, there + there
        yield counts(*[0] * 2 * length), counts(*[1] * length, *[-1] * length)
        yield counts(*[0] * 2 * length), counts(*[-1] * length, *[1] * length)


def right_sparse_vector(refusals: int, epsilon: Fraction) -> Rule:
    return SparseRule(refusals, sparse_step(refusals, float(epsilon)))


def sparse_vector_is_private(make: Callable[[int, Fraction], Rule] = right_sparse_vector) -> bool:
    """ε = 2, one refusal: no transcript is more than e^ε times as likely on a neighbour."""
    epsilon = Fraction(2)
    loss = worst_loss(Laws(make(1, epsilon)), neighbouring_counts())
    return loss <= float(epsilon) + ROUNDING


# Thresholdout.


def right_thresholdout(threshold: Fraction, sigma: Fraction, budget: int) -> Rule:
    return ThresholdoutRule(threshold, sigma, budget)


def thresholdout_is_private(
    make: Callable[[Fraction, Fraction, int], Rule] = right_thresholdout,
) -> bool:
    """2B/σ for sums that move by 1, with σ = 1/2 and B = 1: ε = 4."""
    laws = Laws(make(Fraction(2), Fraction(1, 2), 1), tail=1e-6)
    totals = [((2,), (3,)), ((2, 2), (3, 1)), ((2, 2), (1, 3))]
    pairs = [
        tuple([(total, Fraction(0)) for total in side] for side in (here, there))
        for here, there in totals
    ]
    return worst_loss(laws, [(a, b) for a, b in pairs], least=1e-4) <= 4 + ROUNDING


# The samplers of noise.


class _Again(Exception):
    """A sampler has rejected and starts again."""


class _Primitives:
    """What the samplers draw with, each draw a choice; the second use of `first` is `_Again`."""

    def __init__(self, choose: Choose, first: str) -> None:
        self.choose = choose
        self.first = first
        self.started = False

    def begin(self, name: str) -> None:
        if name == self.first:
            if self.started:
                raise _Again
            self.started = True

    def _uniform(self, size: int, entropy: Entropy) -> int:
        self.begin("_uniform")
        return self.uniform_index(size, entropy)

    def uniform_index(self, size: int, entropy: Entropy) -> int:
        return int(self.choose([(x, 1 / size) for x in range(size)]))

    def flip_exponential(self, factor: Fraction, exponent: Fraction, entropy: Entropy) -> bool:
        chance = float(factor) * math.exp(-exponent)
        return bool(self.choose([(True, chance), (False, 1 - chance)]))

    def discrete_laplace(self, scale: Fraction, entropy: Entropy) -> int:
        self.begin("discrete_laplace")
        return int(self.choose(laplace_law(scale, 1e-14)))


def trial_law(sampler: Sampler, parameter: Fraction, first: str) -> dict[int, float]:
    """The exact law of a rejection sampler, from one trial: P[x] / (1 − P[again]).

    Its primitives are replaced by choices, one branch for each value; `first` is the one that a
    trial starts with. Nothing is kept from a rejected trial, so the next has the same law.
    """
    replaced = {"_uniform", "uniform_index", "flip_exponential", first}

    def trial(choose: Choose) -> int | str:
        fakes = _Primitives(choose, first)
        with ExitStack() as stack:
            for name in replaced:
                stack.enter_context(patch.object(noise, name, getattr(fakes, name)))
            try:
                return sampler(parameter, SeededEntropy(0))
            except _Again:
                return "again"

    law: dict[Any, float] = outcomes(trial)
    again = law.pop("again", 0.0)
    return {value: chance / (1 - again) for value, chance in law.items()}


def has_law(found: dict[int, float], weight: Callable[[int], float]) -> bool:
    """Whether found is ∝ weight on the whole numbers, up to 1e-9."""
    total = math.fsum(weight(x) for x in range(-2_000, 2_001))
    wanted = {x: weight(x) / total for x in range(-60, 61)}
    return all(abs(found.get(x, 0.0) - p) <= 1e-9 for x, p in wanted.items())


SCALES = [Fraction(1), Fraction(3), Fraction(5, 2), Fraction(2, 3), Fraction(7, 4)]
VARIANCES = [Fraction(1), Fraction(1, 3), Fraction(9, 2), Fraction(16), Fraction(25, 3)]


def laplace_has_its_law(sampler: Sampler = discrete_laplace) -> bool:
    return all(
        has_law(trial_law(sampler, scale, "_uniform"), lambda x: math.exp(-abs(x) / scale))  # noqa: B023
        for scale in SCALES
    )


def gaussian_has_its_law(sampler: Sampler = discrete_gaussian) -> bool:
    return all(
        has_law(
            trial_law(sampler, variance, "discrete_laplace"),
            lambda x: math.exp(-x * x / (2 * variance)),  # noqa: B023
        )
        for variance in VARIANCES
    )


# Subsample and aggregate.


def quantile_law(scores: QuantileScores, epsilon: Fraction) -> list[tuple[int, float]]:
    """P ∝ e^(−ε·score/2), from the definition."""
    weights = {
        point: math.exp(-epsilon * score / 2)
        for first, last, score in zip(*scores, strict=True)
        for point in range(first, last + 1)
    }
    total = math.fsum(weights.values())
    return [(point, weight / total) for point, weight in weights.items()]


def all_neighbours(blocks: int, cells: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for data in product(range(cells + 1), repeat=blocks):
        for place, new in product(range(blocks), range(cells + 1)):
            if new != data[place]:
                yield data, (*data[:place], new, *data[place + 1 :])


def quantiles_are_private(scores: Scores = quantile_scores) -> bool:
    """Each quartile loses at most ε, over all datasets of 2 and 3 blocks on small lattices."""
    epsilon = Fraction(1)
    for share, (blocks, cells) in product(
        (Fraction(1, 4), Fraction(3, 4)), ((2, 2), (3, 2), (2, 3))
    ):
        for here, there in all_neighbours(blocks, cells):
            law = dict(quantile_law(scores(np.array(here), cells, share), epsilon))
            other = dict(quantile_law(scores(np.array(there), cells, share), epsilon))
            if max(math.log(law[x] / other[x]) for x in law) > float(epsilon) + ROUNDING:
                return False
    return True


def aggregate_law(data: tuple[int, ...], cells: int, epsilon: Fraction, combine: Combine) -> Law:
    values = np.array(data)

    def whole(choose: Choose) -> tuple[Fraction, int, int]:
        return combine(
            values,
            cells,
            epsilon,
            lambda share: int(
                choose(quantile_law(quantile_scores(values, cells, share), epsilon / 4))
            ),
            lambda scale: int(choose(laplace_law(scale, 1e-10))),
        )

    law = outcomes(whole)
    return Law(law, max(0.0, 1 - math.fsum(law.values())))


def winsorised_mean_is_private(combine: Combine = aggregate) -> bool:
    """ε = 4, two blocks with values 0, 1 or 2: all datasets, all neighbours, limits and noise."""
    epsilon, cells = Fraction(4), 2
    laws = {
        data: aggregate_law(data, cells, epsilon, combine)
        for data in product(range(cells + 1), repeat=2)
    }
    return all(
        privacy_loss(laws[here], laws[there], least=1e-6) <= float(epsilon) + ROUNDING
        for here, there in all_neighbours(2, cells)
    )


# Description length.


def count_questions(queries: int, refusals: int, points: int) -> int:
    """How many questions an analyst can ever ask, who asks a new one after every transcript."""
    if queries == 0 or refusals == 0:
        return 0
    after_yes = count_questions(queries - 1, refusals, points)
    after_no = count_questions(queries - 1, refusals - 1, points)
    return 1 + after_yes + points * after_no


def transcripts_are_counted(log_count: Callable[[int, int, int], float] = log_questions) -> bool:
    """No fewer than there are, and no more than rounding adds."""
    cases = product(range(1, 9), range(1, 9), (1, 2, 5))
    return all(
        count_questions(k, min(r, k), p) <= math.exp(log_count(k, r, p)) * (1 + 1e-12)
        and math.exp(log_count(k, r, p)) <= count_questions(k, min(r, k), p) * (1 + 1e-9)
        for k, r, p in cases
    )
