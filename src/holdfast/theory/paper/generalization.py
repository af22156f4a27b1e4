"""From the sample to the population: `gen`, `gen-adapt`, `gen-simp`, and the lemmas under them."""

from __future__ import annotations

import math
from typing import NamedTuple

from holdfast.arguments import real_number, whole_number
from holdfast.theory.numerics import ROUNDING

__all__ = [
    "GEN_ADAPT_EPSILON",
    "Stability",
    "escape_probability",
    "expectation_gap",
    "gen",
    "gen_adapt",
    "gen_error",
    "indicator_deviation",
    "selected_overfit",
]

GEN_ADAPT_EPSILON = 1 / 20


class Stability(NamedTuple):
    """What a theorem asks of the algorithm: (ε, δ)-privacy in the blocks, and enough blocks."""

    epsilon: float
    delta: float
    blocks: int


def gen(alpha: float, gamma: float, queries: int, failure: float) -> Stability:
    """thm `gen`: what makes S[φⱼ] − D[φⱼ] ≤ α + γ·MAD(φⱼ(D)) for all k functions, sure to 1 − β.

    ε = ½ ln(1+γ), δ = αβ/16, m ≥ 8/(εα)·ln(2k/β).

    >>> gen(1 / 16, 1 / 8, 1_000, 0.05)
    Stability(epsilon=0.0588915..., delta=0.000195312..., blocks=23032)
    """
    alpha, failure = _open("alpha", alpha), _open("failure", failure)
    gamma = real_number("gamma", gamma, 0, math.expm1(2.0), open_low=True, open_high=True)
    queries = whole_number("queries", queries, 1, 10**12)
    epsilon = 0.5 * math.log1p(gamma) * (1 - ROUNDING)
    blocks = 8 / (epsilon * alpha) * math.log(2 * queries / failure)
    delta = alpha * failure / 16 * (1 - ROUNDING)
    return Stability(epsilon, delta, math.ceil(blocks * (1 + ROUNDING)))


def gen_error(
    epsilon: float, delta: float, blocks: int, queries: int, failure: float
) -> tuple[float, float]:
    """thm `gen` in its appendix form: (α, γ) = (4/(εm)·ln(2k/β) + 8δ/β, e^(2ε) − 1), rounded up.

    >>> [round(x, 6) for x in gen_error(0.05, 0.05 / 256, 27_127, 1_000, 0.05)]
    [0.0625, 0.105171]
    """
    epsilon, delta = _open("epsilon", epsilon), real_number("delta", delta, 0, 1)
    failure = _open("failure", failure)
    blocks = whole_number("blocks", blocks, 1, 10**15)
    queries = whole_number("queries", queries, 1, 10**12)
    alpha = 4 / (epsilon * blocks) * math.log(2 * queries / failure) + 8 * delta / failure
    return alpha * (1 + ROUNDING), math.expm1(2 * epsilon) * (1 + ROUNDING)


def gen_adapt(queries: int, failure: float) -> Stability:
    """thm `gen-adapt`: (1/20, β/256)-private, m ≥ 2560 ln(2k/β); then qi(3/8, 5/8) of the sample

    implies qi(1/4, 3/4) of the population, for all answers at once, with probability ≥ 1 − 2β.
    Printed constants. (The proof uses `gen` for one function, so ln(2/β) would do.)

    >>> gen_adapt(1_000, 0.025).blocks
    28902
    """
    queries = whole_number("queries", queries, 1, 10**12)
    failure = _open("failure", failure)
    blocks = math.ceil(2560 * math.log(2 * queries / failure) * (1 + ROUNDING))
    return Stability(GEN_ADAPT_EPSILON, failure / 256, blocks)


def escape_probability(epsilon: float, delta: float, tail: float) -> float:
    """thm `gen-simp`: P[φ(S_i) outside qi(ρ, 1 − ρ) of φ(D)] ≤ 2ρe^ε + δ, rounded up, at most 1.

    >>> round(escape_probability(math.log(2), 1e-6, 1e-4), 9)
    0.000401
    """
    epsilon = real_number("epsilon", epsilon, 0)
    delta = real_number("delta", delta, 0, 1)
    tail = real_number("tail", tail, 0, 0.5, open_high=True)
    return min(1.0, (2 * tail * math.exp(epsilon) + delta) * (1 + ROUNDING))


def expectation_gap(epsilon: float, delta: float, deviation: float, half_width: float) -> float:
    """lem `DPEX`: |E X − E Y| ≤ (e^ε − 1)·E|X − μ| + 2δΔ for (ε, δ)-indistinguishable X and Y.

    Both lie in [μ − Δ, μ + Δ]; `deviation` is E|X − μ|, `half_width` is Δ. Rounded up.

    >>> round(expectation_gap(0.1, 0.01, 0.5, 1.0), 6)
    0.072585
    """
    epsilon = real_number("epsilon", epsilon, 0)
    delta = real_number("delta", delta, 0, 1)
    half_width = real_number("half_width", half_width, 0)
    deviation = real_number("deviation", deviation, 0)
    return (math.expm1(epsilon) * deviation + 2 * delta * half_width) * (1 + ROUNDING)


def selected_overfit(epsilon: float, delta: float, samples: int, magnitude: float) -> float:
    """lem `MultiEx`: E[S^k[φ] − D[φ]] ≤ (e^ε − 1)·E|φ(Z)| + 2δℓ, k one of ℓ samples of choice.

    φ takes values in [−1, 1]; `magnitude` is E|φ(Z)|. The statement prints 2δm; its proof gives
    2δℓ, and for ℓ > m the printed form is false (docs/explanation/deviations.md).

    >>> round(selected_overfit(0.0, 0.1, 2, 1.0), 12)
    0.4
    """
    samples = whole_number("samples", samples, 1, 10**15)
    magnitude = real_number("magnitude", magnitude, 0, 1)
    return expectation_gap(epsilon, delta, magnitude, float(samples))


def indicator_deviation(probability: float) -> float:
    """MAD of an indicator (eq `def-mad`): p·(1−p) + (1−p)·p = 2p(1−p), largest at p = 1/2.

    >>> indicator_deviation(0.25)
    0.375
    """
    probability = real_number("probability", probability, 0, 1)
    return 2 * probability * (1 - probability)


def _open(parameter: str, value: float) -> float:
    return real_number(parameter, value, 0, 1, open_low=True, open_high=True)
