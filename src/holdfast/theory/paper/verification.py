"""Verification with the printed constants of thm `sv` and a textbook sparse vector (`sv-emp`)."""

from __future__ import annotations

import math
from typing import NamedTuple

from holdfast.arguments import real_number, whole_number
from holdfast.errors import InvalidInput
from holdfast.theory.numerics import ROUNDING
from holdfast.theory.paper.generalization import Stability, gen
from holdfast.theory.paper.privacy import query_epsilon

__all__ = ["VerificationSize", "sparse_vector_blocks", "sv", "sv_stability"]


class VerificationSize(NamedTuple):
    """Blocks `sv` asks for: the larger of what `gen` and what the sparse vector needs."""

    blocks: int
    generalization: int
    sparse_vector: int


def sv_stability(queries: int, tail: float, alpha: float, failure: float) -> Stability:
    """ε, δ and the blocks that `gen` asks for in the proof of thm `sv` (`gne`).

    ε = ½ ln(1 + α/(8ρ)), δ = αβ/384, m ≥ 96/(εα)·ln(16k/β): thm `gen` at α/12, γ = α/(8ρ), 4k
    functions and β/2.

    >>> sv_stability(1_000, 0.25, 0.2, 0.05)
    Stability(epsilon=0.04765508..., delta=2.6041...e-05, blocks=127679)
    """
    tail, alpha = _tails(tail, alpha)
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    queries = whole_number("queries", queries, 1, 10**9)
    return gen(alpha / 12, alpha / (8 * tail), 4 * queries, failure / 2)


def sparse_vector_blocks(
    queries: int, refusals: int, gap: float, epsilon: float, delta: float, failure: float
) -> int:
    """Blocks of a textbook sparse vector: thm `sv-emp`, for which the paper gives only an O(·).

    One AboveThreshold per refusal (Dwork & Roth 2014, Algorithm 1), each ε̃-private, composed by
    thm `composition`: ½ ℓ ε̃² + ε̃ √(2ℓ ln(1/δ)) = ε. Each answers k questions within
    8 (ln k + ln(2ℓ/β))/ε̃ counts (their Theorem 3.24 with β/ℓ) on both sides of a threshold in the
    middle of the window `gap`, so m·gap ≥ 16 (ln k + ln(2ℓ/β))/ε̃. (Their own `Sparse`, Theorem
    3.26, has √(512 ℓ ln(1/δ))/ε for 8/ε̃: twice as much.)

    >>> sparse_vector_blocks(2_000, 10, 0.2 / 3, 0.0476550899, 2.6041666e-05, 0.025)
    1046522
    """
    queries = whole_number("queries", queries, 1, 10**9)
    refusals = whole_number("refusals", refusals, 1, 10**9)
    gap = real_number("gap", gap, 0, 1, open_low=True)
    failure = real_number("failure", failure, 0, 1, open_low=True, open_high=True)
    step = query_epsilon(refusals, epsilon, delta)
    counts = 16 * (math.log(queries) + math.log(2 * refusals / failure)) / step
    return math.ceil(counts / gap * (1 + ROUNDING))


def sv(queries: int, refusals: int, tail: float, alpha: float, failure: float) -> VerificationSize:
    """thm `sv` with its printed constants: k guesses, ℓ refusals, tails ρ (yes) and ρ − α (no).

    Two looks a guess, thresholds ρ − α/3, window α/3, β/2 for the sample and β/2 for `gen`.

    >>> sv(1_000, 10, 0.25, 0.2, 0.05)
    VerificationSize(blocks=1046522, generalization=127679, sparse_vector=1046522)
    """
    asked = sv_stability(queries, tail, alpha, failure)
    noisy = sparse_vector_blocks(
        2 * queries, refusals, alpha / 3, asked.epsilon, asked.delta, failure / 2
    )
    return VerificationSize(max(asked.blocks, noisy), asked.blocks, noisy)


def _tails(tail: float, alpha: float) -> tuple[float, float]:
    tail = real_number("tail", tail, 0, 0.5, open_low=True, open_high=True)
    alpha = real_number("alpha", alpha, 0, 0.5, open_low=True, open_high=True)
    if not alpha < tail:
        raise InvalidInput("alpha", alpha, f"below the tail, {tail:g}")
    return tail, alpha
