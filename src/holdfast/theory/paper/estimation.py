"""The paper's answers to adaptive questions: `adaptive-iqr` and its corollaries, with constants."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from holdfast.arguments import real_number, whole_number
from holdfast.theory.binomial import smallest_whole
from holdfast.theory.numerics import ROUNDING
from holdfast.theory.paper.generalization import gen_adapt

__all__ = [
    "SimpleSize",
    "adaptive_iqr",
    "adaptive_simple",
    "intro_sq_error",
    "intro_var_error",
    "intro_var_grid_size",
    "mad_range_error",
    "mad_range_grid_size",
]

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
