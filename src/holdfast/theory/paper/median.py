"""The paper's stable medians: blocks for one question (`EM-med`, `SQ-med`), and ε for k of them."""

from __future__ import annotations

import math

from holdfast.arguments import real_number, whole_number
from holdfast.theory.numerics import ROUNDING
from holdfast.theory.paper.privacy import interactive_composition

__all__ = [
    "exponential_median_blocks",
    "exponential_median_epsilon",
    "exponential_medians_epsilon",
    "noisy_search_blocks",
]


def exponential_median_blocks(grid_size: int, failure: float, epsilon: float, alpha: float) -> int:
    """thm `EM-med`: m ≥ 4 ln(r/β)/(ε α) makes an (ε, 0)-private α-approximate median.

    >>> exponential_median_blocks(32, 0.05, 0.1, 0.25)
    1034
    """
    epsilon = _positive("epsilon", epsilon)
    needed = _em_constant(grid_size, failure, alpha) / epsilon
    return max(1, math.ceil(needed * (1 + ROUNDING)))


def exponential_median_epsilon(blocks: int, grid_size: int, failure: float, alpha: float) -> float:
    """The ε with which m blocks give an α-approximate median: 4 ln(r/β)/(m α), rounded up.

    >>> round(exponential_median_epsilon(1034, 32, 0.05, 0.25), 6)
    0.099984
    """
    blocks = whole_number("blocks", blocks, 1, 10**15)
    return _em_constant(grid_size, failure, alpha) / blocks * (1 + ROUNDING)


def exponential_medians_epsilon(
    queries: int, blocks: int, grid_size: int, failure: float, alpha: float, slack: float
) -> float:
    """ε of k α-approximate medians, all good with probability ≥ 1 − β (`em-adapt`, `comp-dp`).

    ½ k ε̃² + ε̃ √(2k ln(1/δ)) with ε̃ = 4 ln(k r/β)/(m α). The printed `em-adapt` has ln(r/β): it
    leaves out the union bound over the k questions; `comp-dp` and this function have it.

    >>> round(exponential_medians_epsilon(100, 228_705, 32, 0.025, 0.25, 0.025 / 256), 5)
    0.03539
    """
    queries = whole_number("queries", queries, 1, 10**12)
    share = real_number("failure", failure, 0, 1, open_low=True, open_high=True) / queries
    step = exponential_median_epsilon(blocks, grid_size, share, alpha)
    return interactive_composition(queries, step, 0.0, slack)[0]


def noisy_search_blocks(
    grid_size: int, failure: float, epsilon: float, delta: float, alpha: float
) -> int:
    """cor `SQ-med`: 12 √(N ln(1/δ) ln(N/β))/(ε α), N = 2⌈log₂ r⌉ noisy counts; all below 1/2.

    The constant, which the paper does not derive: noise σ = α/(4 √(2 ln(N/β))) on each mean keeps
    every error ≤ α/4 with probability 1 − β, since P[|N(0,1)| > x] ≤ exp(−x²/2). N means cost
    z = N/(2 m² σ²) in zero-concentrated privacy, so √z = ε/(3 √ln(1/δ)) at this m, and
    z + 2 √(z ln(1/δ)) = ε²/(9 ln(1/δ)) + 2ε/3 ≤ ε.

    >>> noisy_search_blocks(32, 0.05, 0.1, 1e-6, 0.25)
    12987
    """
    size = whole_number("grid_size", grid_size, 1, 2**62)
    failure, delta = _half("failure", failure), _half("delta", delta)
    epsilon, alpha = _half("epsilon", epsilon), _half("alpha", alpha)
    counts = 2 * (size - 1).bit_length()
    if not counts:
        return 1  # one grid point: nothing is asked of the data
    root = math.sqrt(counts * -math.log(delta) * math.log(counts / failure))
    return math.ceil(12 * root / (epsilon * alpha) * (1 + ROUNDING))


def _em_constant(grid_size: int, failure: float, alpha: float) -> float:
    size = whole_number("grid_size", grid_size, 1, 2**62)
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    alpha = real_number("alpha", alpha, 0, 1, open_low=True)
    return 4 * math.log(size / failure) / alpha


def _positive(parameter: str, value: float) -> float:
    return real_number(parameter, value, 0, open_low=True)


def _half(parameter: str, value: float) -> float:
    return real_number(parameter, value, 0, 0.5, open_low=True, open_high=True)
