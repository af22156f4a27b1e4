"""Feldman & Steinke (2017) as printed: every statement that has constants, as a pure function.

The reference planner: what the same promise costs by the paper's own theorems. Where a printed
statement and its proof differ, the function follows the proof and says so; the list is in
docs/explanation/deviations.md, and docs/explanation/paper-map.md leads from each label to its
function and test. Natural logarithms throughout. `failure` is the paper's β, `queries` its k,
`grid_size` its |T| = r, `blocks` its m, `tail` its ρ, `refusals` its ℓ in verification.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from holdfast.errors import InvalidInput, real_number, whole_number
from holdfast.theory.numerics import ROUNDING, smallest_whole

__all__ = [
    "Stability",
    "TailSize",
    "adaptive_iqr",
    "adaptive_simple",
    "adaptive_tails",
    "composition",
    "escape_probability",
    "expectation_gap",
    "exponential_median_blocks",
    "exponential_median_epsilon",
    "exponential_medians_epsilon",
    "gen",
    "gen_adapt",
    "gen_error",
    "indicator_deviation",
    "interactive_composition",
    "intro_sq_error",
    "intro_var_error",
    "intro_var_grid_size",
    "mad_range_error",
    "mad_range_grid_size",
    "noisy_search_blocks",
    "query_epsilon",
    "selected_overfit",
    "smallest_delta",
    "sparse_vector_blocks",
    "sv",
    "sv_stability",
]


# From the sample to the population: `gen`, `gen-adapt`, `gen-simp`, and the lemmas under them.


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


# The paper's answers to adaptive questions: `adaptive-iqr` and its corollaries, with constants.


_LIMIT = 10**18


class SimpleSize(NamedTuple):
    """Blocks, and the tail they reach: a result of `adaptive-simple-general`."""

    blocks: int
    tail: float


def adaptive_iqr(queries: int, grid_size: int, failure: float) -> int:
    """thm `adaptive-iqr` (main text: `intro-iqr`): blocks for qi(1/4, 3/4), as the proof sets them.

    m = 640 √(max(k, 16) ln(256/β′)) ln(kr/β′) and m ≥ 2560 ln(2k/β′). The proof ends with 1 − 2β′
    where the theorem states 1 − β, so β′ = β/2.

    >>> [adaptive_iqr(k, 32, 0.05) for k in (100, 1_000, 10_000)]
    [228705, 864839, 3182667]
    """
    queries, failure = _queries(queries), _failure(failure)
    size = whole_number("grid_size", grid_size, 1, 2**62)
    half = failure / 2
    root = math.sqrt(max(queries, 16) * math.log(256 / half))
    noisy = 640 * root * math.log(queries * size / half)
    return max(math.ceil(noisy * (1 + ROUNDING)), gen_adapt(queries, half).blocks)


def adaptive_simple(queries: int, grid_size: int, failure: float) -> SimpleSize:
    """thm `adaptive-simple-general`, repaired: the smallest m and its tail ρ = β/(10km).

    m ≥ 8 ln(2kr/β) √(2k ln(1/δ)) with δ = β/(10km). The paper drops k in the first logarithm and
    states ρ = β/(4km), for which the last inequality of its proof fails.

    >>> adaptive_simple(100, 32, 0.05)
    SimpleSize(blocks=5732, tail=8.72...e-09)
    """
    queries, failure = _queries(queries), _failure(failure)
    size = whole_number("grid_size", grid_size, 1, 2**62)
    steps = 8 * math.log(2 * queries * size / failure) * (1 + ROUNDING)

    def enough(blocks: int) -> bool:
        return blocks >= steps * math.sqrt(2 * queries * math.log(10 * queries * blocks / failure))

    blocks = smallest_whole(enough, _LIMIT)
    return SimpleSize(blocks, failure / (10 * queries * blocks) * (1 - ROUNDING))


def mad_range_grid_size(precision: float) -> int:
    """Grid points of cor `mad-range`: the multiples of ζ in [−5, 5], 2⌊5/ζ⌋ + 1 of them.

    The paper says at most 10/ζ; it is at most 10/ζ + 1.

    >>> mad_range_grid_size(1), mad_range_grid_size(0.01)
    (11, 1001)
    """
    return _multiples(precision, 5)


def mad_range_error(deviation: float, precision: float) -> float:
    """cor `mad-range`: |v − E φ| ≤ 4·MAD + ζ, if |E φ| ≤ 1 and MAD ≤ 1.

    `holdfast.theory.bars.deviation_bar` needs half of it, and neither condition.

    >>> round(mad_range_error(0.1, 0.01), 12)
    0.41
    """
    deviation = real_number("deviation", deviation, 0, 1)
    return (4 * deviation + _precision(precision)) * (1 + ROUNDING)


def intro_var_grid_size(precision: float) -> int:
    """Grid points of thm `intro-var`: the multiples of ζ in [−1, 1].

    >>> intro_var_grid_size(0.02)
    101
    """
    return _multiples(precision, 1)


def intro_var_error(sd: float, precision: float) -> float:
    """thm `intro-var`: |v − E φ| ≤ 2·sd + ζ for φ with values in [−1, 1].

    >>> round(intro_var_error(0.1, 0.02), 12)
    0.22
    """
    sd = real_number("sd", sd, 0, 1)
    return (2 * sd + _precision(precision)) * (1 + ROUNDING)


def intro_sq_error(sd: float, units: int, precision: float) -> float:
    """thm `intro-sq`: |v − E ψ| ≤ 2·sd/√t + ζ for the mean of t values of ψ in [−1, 1].

    >>> round(intro_sq_error(1.0, 400, 0.02), 12)
    0.12
    """
    units = whole_number("units", units, 1, 10**15)
    sd = real_number("sd", sd, 0, 1)
    return (2 * sd / math.sqrt(units) + _precision(precision)) * (1 + ROUNDING)


def _multiples(precision: float, end: int) -> int:
    # The decimal the caller wrote: 0.01 means 1/100, as it does for grids.
    step = Fraction(str(_precision(precision)))
    return 2 * math.floor(end / step) + 1


def _precision(precision: float) -> float:
    return real_number("precision", precision, 0, open_low=True)


def _queries(queries: int) -> int:
    return whole_number("queries", queries, 1, 10**12)


def _failure(failure: float) -> float:
    return real_number("failure", failure, 0, 1, open_low=True, open_high=True)


# Differential privacy as the paper uses it: `def:DP`, `composition`, `interactive-composition`.
#
# Post-processing (`thm:post`) needs no function: it says that whatever is computed from a
# transcript is as stable as the transcript.


def smallest_delta(law: Sequence[float], other: Sequence[float], epsilon: float) -> float:
    """The smallest δ for which two laws on the same outcomes are (ε, δ)-indistinguishable.

    max over both directions of Σ_y max(0, p(y) − e^ε q(y)) (`def:DP`, the condition for one pair
    of neighbouring datasets). Evaluated as written: for outcomes that can be listed.

    >>> round(smallest_delta([0.6, 0.4], [0.4, 0.6], math.log(1.25)), 12)
    0.1
    """
    if len(law) != len(other):
        raise InvalidInput("other", other, f"a law on the same {len(law)} outcomes")
    factor = math.exp(real_number("epsilon", epsilon, 0))
    return max(
        math.fsum(max(0.0, p - factor * q) for p, q in pairs)
        for pairs in (list(zip(law, other, strict=True)), list(zip(other, law, strict=True)))
    )


def composition(
    epsilons: Sequence[float], deltas: Sequence[float], slack: float
) -> tuple[float, float]:
    """thm `composition`: (½ Σ εⱼ² + √(2 ln(1/δ′) Σ εⱼ²), δ′ + Σ δⱼ), δ′ = slack, rounded up.

    The paper asks for δⱼ > 0; its proof needs only δⱼ ≥ 0, and the paper uses δⱼ = 0.

    >>> [round(x, 6) for x in composition([0.01] * 100, [0.0] * 100, 1e-6)]
    [0.530652, 1e-06]
    """
    if len(epsilons) != len(deltas):
        raise InvalidInput("deltas", deltas, f"one for each of the {len(epsilons)} epsilons")
    squares = math.fsum(real_number("epsilon", e, 0) ** 2 for e in epsilons)
    spent = math.fsum(real_number("delta", d, 0, 1) for d in deltas)
    return _composed(squares, spent, _slack(slack))


def interactive_composition(
    queries: int, epsilon: float, delta: float, slack: float
) -> tuple[float, float]:
    """thm `interactive-composition`: (½ k ε² + ε √(2k ln(1/δ′)), δ′ + k δ), rounded up.

    >>> [round(x, 6) for x in interactive_composition(100, 0.01, 0.0, 1e-6)]
    [0.530652, 1e-06]
    """
    queries = whole_number("queries", queries, 1, 10**12)
    epsilon = real_number("epsilon", epsilon, 0)
    delta = real_number("delta", delta, 0, 1)
    return _composed(queries * epsilon**2, queries * delta, _slack(slack))


def query_epsilon(queries: int, total: float, slack: float) -> float:
    """The largest ε per question with ½ k ε² + ε √(2k ln(1/δ′)) ≤ total, rounded down.

    >>> round(query_epsilon(100, 0.530652, 1e-6), 6)
    0.01
    """
    queries = whole_number("queries", queries, 1, 10**12)
    total = real_number("total", total, 0)
    return step_epsilon(queries, total, -math.log(_slack(slack)))


def step_epsilon(queries: int, total: float, nats: float) -> float:
    """`query_epsilon` for arguments already checked, nats = ln(1/δ′)."""
    root = math.sqrt(2 * queries * nats)
    # The positive root of the quadratic, in the form that does not cancel.
    return 2 * total / (root + math.sqrt(root**2 + 2 * queries * total)) * (1 - ROUNDING)


def _slack(slack: float) -> float:
    return real_number("slack", slack, 0, 1, open_low=True, open_high=True)


def _composed(squares: float, spent: float, slack: float) -> tuple[float, float]:
    epsilon = squares / 2 + math.sqrt(2 * -math.log(slack) * squares)
    return epsilon * (1 + ROUNDING), (slack + spent) * (1 + ROUNDING)


# The paper's stable medians: blocks for one question (`EM-med`, `SQ-med`), and ε for k of them.


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


# `adaptive-iqr` for other tails, from the same three theorems, with their parameters optimised.
#
# Promise: D[φ ≤ v] > a and D[φ ≥ v] > c for every answer (a = tail_low, c = tail_high; the paper
# has a = c = 1/4). Take failure β′ = β/2 for each of two events.
#
# 1. `EM-med`, with its score recentred: max(#less − τm, #greater − (1−τ)m) still moves by at most
# 1
#    and is ≤ 0 at the ⌈τm⌉-th smallest value. So an ε̃-private answer has S[φ ≤ v] > τ − w and
#    S[φ ≥ v] > 1 − τ − w with w = 2 ln(kr/β′)/(ε̃m), for all k questions with probability 1 − β′.
# 2. `gen`, applied as in `gen-adapt` to the one indicator ψ that breaks the promise most: with
#    probability 1 − β′, S[ψ] ≤ p + α + γ·2p(1−p) for p = D[ψ], whose MAD is 2p(1−p). Were p ≤ a,
#    then
#    S[ψ] ≤ A = α + max over p ≤ a of p + 2γp(1−p); likewise C for c. Reaching τ − w = A and
#    1 − τ − w = C therefore keeps the promise; it means 2w = 1 − A − C and τ = A + w.
# 3. `composition`: ½ k ε̃² + ε̃ √(2k ln(1/δ)) ≤ ε.
#
# `gen` asks ε = ½ ln(1+γ), δ = αβ′/16 and m ≥ 8/(εα)·ln(2k/β′); step 1 asks
# m ≥ 4 ln(kr/β′)/(ε̃(1−A−C)). Both logarithms are convex in (α, γ), but for the small quadratic
# term of composition, so nested golden sections find the smallest maximum. Any (α, γ) would be
# valid.


_GOLDEN = (math.sqrt(5) - 1) / 2
_STEPS = 40  # each keeps 0.618 of the interval: the minimum is found to 5e-9 of it
_GAMMA_MAX = math.expm1(2.0)  # the appendix proves `gen` for ε < 1


class TailSize(NamedTuple):
    """Blocks, the quantile τ that is searched for, and the parameters that certify them."""

    blocks: int
    target: float
    alpha: float
    gamma: float
    epsilon: float
    delta: float
    query_epsilon: float


def adaptive_tails(
    queries: int, grid_size: int, failure: float, tail_low: float, tail_high: float
) -> TailSize:
    """Blocks for qi(tail_low, 1 − tail_high) by the paper's own theorems, constants optimised.

    >>> [adaptive_tails(1_000, 32, 0.05, tail, tail).blocks for tail in (0.25, 0.05, 0.01)]
    [248728, 30535, 12055]
    >>> adaptive_tails(1_000, 32, 0.05, 0.85, 0.05).blocks
    2865581
    """
    queries = whole_number("queries", queries, 1, 10**12)
    size = whole_number("grid_size", grid_size, 1, 2**62)
    half = real_number("failure", failure, 0, 1, open_low=True, open_high=True) / 2
    low = real_number("tail_low", tail_low, 0, 1, open_low=True, open_high=True)
    high = real_number("tail_high", tail_high, 0, 1, open_low=True, open_high=True)
    if low + high >= 1:
        hint = "The answer has to fit between the tails."
        raise InvalidInput("tails", (tail_low, tail_high), "two numbers with a sum below 1", hint)
    question = math.log(queries * size / half)
    union = math.log(2 * queries / half)

    def needed(alpha: float, gamma: float) -> float:
        room = 1 - 2 * alpha - _worst(low, gamma) - _worst(high, gamma)
        if room <= 0:
            return math.inf
        epsilon, _, step = stability(alpha, gamma)
        return max(4 * question / (step * room), 8 * union / (epsilon * alpha))

    def stability(alpha: float, gamma: float) -> tuple[float, float, float]:
        epsilon, delta = 0.5 * math.log1p(gamma) * (1 - ROUNDING), alpha * half / 16
        return epsilon, delta, step_epsilon(queries, epsilon, -math.log(delta))

    def best_alpha(gamma: float) -> float:
        room = 1 - _worst(low, gamma) - _worst(high, gamma)
        return _golden(lambda alpha: needed(alpha, gamma), max(room, 0.0) / 2)

    most = (1 - low - high) / (indicator_deviation(low) + indicator_deviation(high))
    gamma = _golden(lambda g: needed(best_alpha(g), g), min(most, _GAMMA_MAX))
    alpha = best_alpha(gamma)
    blocks = math.ceil(needed(alpha, gamma) * (1 + ROUNDING))
    target = (1 + _worst(low, gamma) - _worst(high, gamma)) / 2  # A + (1 − A − C)/2
    return TailSize(blocks, target, alpha, gamma, *stability(alpha, gamma))


def _worst(tail: float, gamma: float) -> float:
    """max over p ≤ tail of p + 2γp(1−p); the maximum is inside only for tails above 1/2."""
    top = (1 + 2 * gamma) / (4 * gamma)
    p = min(tail, top)
    return p + 2 * gamma * p * (1 - p)


def _golden(f: Callable[[float], float], high: float) -> float:
    """The minimum of a function with one valley on (0, high)."""
    low = 0.0
    one, two = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_one, at_two = f(one), f(two)
    for _ in range(_STEPS):
        if at_one <= at_two:
            high, two, at_two = two, one, at_one
            one = high - _GOLDEN * (high - low)
            at_one = f(one)
        else:
            low, one, at_one = one, two, at_two
            two = low + _GOLDEN * (high - low)
            at_two = f(two)
    return one if at_one <= at_two else two


# Verification with the printed constants of thm `sv` and a textbook sparse vector (`sv-emp`).


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
