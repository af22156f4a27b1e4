"""Noisy means: k adaptively chosen bounded means, each with Laplace or Gaussian noise.

The oldest answer to adaptive questions (Dwork, Feldman, Hardt, Pitassi, Reingold & Roth 2014,
"Preserving statistical validity in adaptive data analysis"; Bassily, Nissim, Smith, Steinke,
Stemmer & Ullman 2016, "Algorithmic stability for adaptive data analysis"): each question is a
function of one row with values in [0, 1], and its mean over the n rows is answered with noise.

**What holds.** With Laplace noise of scale b every answer is ε₀-private, ε₀ = 1/(nb), and k of them
kε₀-private, or (½ k ε₀² + ε₀ √(2k ln(1/δ)), δ)-private (thm `composition`). With Gaussian noise of
standard deviation σ every answer has concentrated privacy ρ₀ = 1/(2n²σ²) and k of them ρ = kρ₀,
hence (ρ + 2√(ρ ln(1/δ)), δ) (Bun & Steinke 2016, Proposition 1.3). Both hold for whole-number
noise on exact sums, which is what is drawn. By how much an answer misses the mean *of the sample*
follows from the noise alone.

**What does not.** Holdfast promises nothing about the mean *of the population*. The two papers do,
by transfer theorems with explicit constants: `rows_by_dwork` and `rows_by_bassily` say how many
rows they ask for. Both ask for more than fresh splitting does at a thousand questions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, NamedTuple

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.randomness import Entropy
from holdfast.theory.numerics import ROUNDING
from holdfast.theory.paper import interactive_composition, step_epsilon
from holdfast_lab.baselines.noise import (
    CELLS,
    Uncertified,
    as_mean,
    bounded_sum,
    discrete_gaussian,
    discrete_laplace,
)

Kind = Literal["laplace", "gaussian"]

_MOST_ROWS = 2**40  # sums stay below 2^63


@dataclass(frozen=True, slots=True)
class NoisyMean(Uncertified):
    """The mean of the sample plus noise, or None when all questions are used up."""

    statement: ClassVar[str] = (
        "differential privacy, and the mean of the sample up to noise; nothing about the population"
    )

    value: float | None
    queries_left: int


class NoisyMeans:
    """Answers k means over the same rows, with noise of a given scale (in units of the mean).

    >>> from holdfast.randomness import SeededEntropy
    >>> means = NoisyMeans(rows=1_000, queries=2, sigma=0.01, entropy=SeededEntropy(1))
    >>> half = [0.0] * 500 + [1.0] * 500
    >>> means.ask(half)
    NoisyMean(value=0.49..., queries_left=1)
    >>> means.ask(half).value, means.ask(half)
    (0.48..., NoisyMean(value=None, queries_left=0))
    >>> round(means.epsilon(delta=1e-6), 3)
    0.753
    """

    def __init__(
        self, rows: int, queries: int, sigma: float, entropy: Entropy, *, noise: Kind = "gaussian"
    ) -> None:
        self._rows = whole_number("rows", rows, 1, _MOST_ROWS)
        self._queries = self._left = whole_number("queries", queries, 1, 10**9)
        self._sigma = real_number("sigma", sigma, 1e-9, 1e9)
        self._noise = _kind(noise)
        self._entropy = entropy

    def epsilon(self, delta: float) -> float:
        """The ε of all k answers together at this δ, rounded up; δ = 0 for Laplace noise alone.

        >>> from holdfast.randomness import SeededEntropy
        >>> entropy = SeededEntropy(1)
        >>> means = NoisyMeans(1_000, 100, sigma=0.1, entropy=entropy, noise="laplace")
        >>> round(means.epsilon(0.0), 6), round(means.epsilon(1e-6), 6)
        (1.0, 0.530652)
        """
        delta = real_number("delta", delta, 0, 1, open_high=True)
        if self._noise == "laplace":
            one = 1 / (self._rows * self._sigma)
            equal = self._queries * one * (1 + ROUNDING)
            if delta == 0:
                return equal
            return min(equal, interactive_composition(self._queries, one, 0.0, delta)[0])
        if delta == 0:
            hint = "Gaussian noise is private only for a positive delta."
            raise InvalidInput("delta", delta, "a number in (0, 1)", hint)
        rho = self._queries / (2 * (self._rows * self._sigma) ** 2)
        return (rho + 2 * math.sqrt(rho * -math.log(delta))) * (1 + ROUNDING)

    def ask(self, values: object) -> NoisyMean:
        """The mean of one value per row, each in [0, 1], plus noise."""
        total = bounded_sum(values, self._rows)
        if self._left == 0:
            return NoisyMean(None, 0)
        self._left -= 1
        scale = Fraction(self._sigma) * self._rows * CELLS
        if self._noise == "laplace":
            drawn = discrete_laplace(scale, self._entropy)
        else:
            drawn = discrete_gaussian(scale**2, self._entropy)
        return NoisyMean(as_mean(total + drawn, self._rows), self._left)


class MeansSize(NamedTuple):
    """Rows that a theorem asks for, the noise in units of the mean, and the privacy it uses."""

    rows: int
    sigma: float
    epsilon: float
    log_delta: float


def rows_by_dwork(
    queries: int, half_width: float, failure: float, *, noise: Kind = "laplace"
) -> MeansSize:
    """Rows by the transfer theorem of Dwork et al. 2014 for (ε, δ)-private algorithms.

    It says: if ε ≤ τ/4, δ ≤ exp(−4 ln(8/β)/τ) and n ≥ 48 ln(4/β)/τ², then every function that the
    algorithm's transcript points to has |S[φ] − D[φ]| ≤ τ, but for probability β. Here it is used
    at τ/2 and β/2; the other halves are for the noise, by a union bound over the k answers.

    >>> rows_by_dwork(1_000, 0.1, 0.05)[:2]
    (16288294, 0.0047...)
    >>> rows_by_dwork(1_000, 0.1, 0.05, noise="gaussian")[:2]
    (7304078, 0.0105...)
    """
    queries, half_width, failure = _target(queries, half_width, failure)
    tau, share = half_width / 2, failure / 2
    nats = 4 * math.log(8 / share) / tau
    found = _noisy(queries, tau, share, tau / 4, nats, _kind(noise))
    least = math.ceil(48 * math.log(4 / share) / tau**2 * (1 + ROUNDING))
    return found._replace(rows=max(found.rows, least))


def rows_by_bassily(
    queries: int, half_width: float, failure: float, *, noise: Kind = "gaussian"
) -> MeansSize:
    """Rows by the transfer theorem of Bassily et al. 2016, with the constants they print.

    It says: if ε < 1/3, δ < ε/4 and n ≥ ln(4ε/δ)/ε², then a function that an (ε, δ)-private
    algorithm picks has |S[φ] − D[φ]| < 18ε, but for probability δ/ε. Here half of the width and
    half of β are used for it, ε = τ/36 and δ = εβ/2, and the other halves for the noise.

    >>> rows_by_bassily(1_000, 0.1, 0.05)[:2]
    (4734846, 0.0105...)
    >>> rows_by_bassily(1_000, 0.1, 0.05, noise="laplace")[:2]
    (10558835, 0.0047...)
    """
    queries, half_width, failure = _target(queries, half_width, failure)
    epsilon = half_width / 36
    share = min(failure / 2, 0.2)  # the theorem's δ/ε must be below 1/4
    nats = -math.log(epsilon * share)
    found = _noisy(queries, half_width / 2, failure / 2, epsilon, nats, _kind(noise))
    least = math.ceil(math.log(4 / share) / epsilon**2 * (1 + ROUNDING))
    return found._replace(rows=max(found.rows, least))


def _noisy(
    queries: int, width: float, failure: float, epsilon: float, nats: float, noise: Kind
) -> MeansSize:
    """Rows so that k noisy answers are (ε, δ)-private, nats = ln(1/δ), and within `width`.

    Laplace: k·e^(−width/b) ≤ β. Gaussian: 2k·e^(−width²/(2σ²)) ≤ β.
    """
    if noise == "laplace":
        one = max(epsilon / queries, step_epsilon(queries, epsilon, nats))
        sigma = width / math.log(queries / failure)
        rows = 1 / (one * sigma)
    else:
        root = epsilon / (math.sqrt(nats + epsilon) + math.sqrt(nats))  # √(total ρ)
        sigma = width / math.sqrt(2 * math.log(2 * queries / failure))
        rows = math.sqrt(queries / 2) / (root * sigma)
    return MeansSize(math.ceil(rows * (1 + ROUNDING)), sigma, epsilon, -nats)


def _target(queries: int, half_width: float, failure: float) -> tuple[int, float, float]:
    return (
        whole_number("queries", queries, 1, 10**9),
        real_number("half_width", half_width, 0, 1, open_low=True),
        real_number("failure", failure, 0, 1, open_low=True, open_high=True),
    )


def _kind(noise: str) -> Kind:
    if noise == "laplace":
        return "laplace"
    if noise == "gaussian":
        return "gaussian"
    raise InvalidInput("noise", noise, "'laplace' or 'gaussian'")
