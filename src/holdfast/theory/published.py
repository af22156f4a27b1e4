"""Published widths: how near the papers prove k answers to be, in numbers one can compare.

The task is the same in all of them: n rows, k adaptively chosen means of functions with values in
[0, 1], every answer within the half-width of the population's mean, all at once, but for a
probability β (`failure`).

    split     fresh rows for every question                     the textbook
    bassily   Gaussian noise, a transfer theorem by a monitor   Bassily et al. 2016
    rogers    Gaussian noise, mutual information                Rogers et al. 2020, theorem 2.1
    jung      Gaussian noise, posterior stability               Jung et al. 2020

Each has a width(rows, queries, failure) in `WIDTHS` and a number of questions(rows, half_width,
failure) in `QUERIES_AT`. What can be chosen (noise, δ, shares of β) is chosen best, as their
authors do. These are other people's theorems, derived again in
docs/explanation/published-widths.md; Holdfast certifies none of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from holdfast.errors import Infeasible, InvalidInput, real_number, whole_number
from holdfast.theory.numerics import ROUNDING, binomial_tail
from holdfast.theory.sizing import minimise

__all__ = [
    "QUERIES_AT",
    "WIDTHS",
    "Bassily",
    "By",
    "Jung",
    "Rogers",
    "Shares",
    "bassily_best",
    "bassily_queries",
    "checked",
    "checked_target",
    "dp_epsilon",
    "jung_best",
    "jung_queries",
    "jung_width",
    "lowest",
    "most_queries",
    "rogers_best",
    "rogers_queries",
    "split_queries",
    "split_width",
    "tail_reach",
    "union_reach",
]


# Gaussian noise on k means over n rows: how private it is, and how far it goes.
#
# Noise of standard deviation σ on the mean of values in [0, 1], of which a row moves 1/n, has
# concentrated privacy ρ = 1/(2n²σ²), and k such answers, adaptively chosen, κ = kρ (Bun & Steinke
# 2016). Answers are clipped to [0, 1], which only brings them nearer.


def sigma_of(rows: int, queries: int, kappa: float) -> float:
    """σ of one answer so that k of them have concentrated privacy κ: √(k/(2κ))/n.

    >>> sigma_of(1_000, 50, 0.01)
    0.05
    """
    return math.sqrt(queries / (2 * kappa)) / rows


def dp_epsilon(kappa: float, delta: float) -> float:
    """ε for which concentrated privacy κ is (ε, δ)-privacy: κ + 2√(κ ln(min(1, √(πκ))/δ)).

    Bun & Steinke 2016, Lemma 3.6: δ ≤ e^(−x²)·2/(1 + y + √((1 + y)² + 4/(πκ))) for ε = κ + 2x√κ
    and y = x/√κ ≥ 0, and the fraction is at most 1 and at most √(πκ).

    >>> round(dp_epsilon(0.01, 1e-6), 6), round(0.01 + 2 * math.sqrt(0.01 * math.log(1e6)), 6)
    (0.705278, 0.753384)
    """
    return kappa + 2 * math.sqrt(
        kappa * max(0.0, math.log(min(1.0, math.sqrt(math.pi * kappa))) - math.log(delta))
    )


def tail_reach(queries: int, sigma: float, failure: float) -> float:
    """t with 2k·e^(−t²/(2σ²)) = failure: no noise of k is larger, but for that probability.

    >>> round(tail_reach(100, 0.01, 0.05), 6)
    0.040728
    """
    return sigma * math.sqrt(2 * math.log(2 * queries / failure))


def union_reach(queries: int, sigma: float, failure: float) -> float:
    """t with k·P[|N(0, σ²)| > t] = failure, by the Gaussian's own tail.

    >>> round(union_reach(100, 0.01, 0.05), 6)
    0.034808
    """
    from scipy.special import erfcinv

    return sigma * math.sqrt(2) * float(erfcinv(min(1.0, failure / queries)))


# The smallest width over what can be chosen, and the largest number of questions at a width.


ROWS_MOST = 10**12
QUERIES_MOST = 10**9


def checked(rows: int, queries: int, failure: float) -> tuple[int, int, float]:
    """n, k and β, in their plain types."""
    return (
        whole_number("rows", rows, 1, ROWS_MOST),
        whole_number("queries", queries, 1, QUERIES_MOST),
        real_number("failure", failure, 0, 1, open_low=True, open_high=True),
    )


def checked_target(rows: int, half_width: float, failure: float) -> tuple[int, float, float]:
    """n, the wanted half-width and β, in their plain types."""
    rows, _, failure = checked(rows, 1, failure)
    width = real_number("half_width", half_width, 0, 0.5, open_low=True, open_high=True)
    return rows, width, failure


def lowest(
    objective: Callable[[Sequence[float]], float], start: Sequence[float]
) -> tuple[float, ...]:
    """The point where a smooth function is lowest, by Nelder–Mead started again and again.

    Whatever it returns is a choice that a theorem allows: a search that stops early makes a width
    larger, not wrong.

    >>> [round(x, 2) for x in lowest(lambda x: (x[0] - 1) ** 2 + (x[1] + 2) ** 2, [0.0, 0.0])]
    [1.0, -2.0]
    """
    point = tuple(start)
    for spread in (1.0, 0.1, 0.01):
        point = min(point, minimise(objective, point, spread), key=objective)
    return point


def most_queries(width: Callable[[int], float], half_width: float) -> int:
    """The largest k with width(k) ≤ half_width, for a width that grows with k; 0 if there is none.

    >>> most_queries(lambda k: k / 1_000, 0.1), most_queries(lambda k: k, 0.1)
    (100, 0)
    """
    low, high = 0, 1
    while high <= QUERIES_MOST and width(high) <= half_width:
        low, high = high, 2 * high
    high = min(high, QUERIES_MOST + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if width(middle) <= half_width:
            low = middle
        else:
            high = middle
    return low


# Bassily, Nissim, Smith, Steinke, Stemmer & Ullman 2016, in the form of later comparisons.
#
# ("Algorithmic stability for adaptive data analysis", STOC.) The first proof with the best rate: a
# monitor runs the whole conversation on T = ⌊1/β⌋ independent samples and picks the worst answer of
# all; if one conversation failed with probability more than β, the worst of T would be wrong by a
# lot on average, which privacy forbids. With Gaussian noise, for every κ and δ,
#
#     width = (e^ε − 1 + 2Tδ + t) / (1 − (1 − β)^T),    t = √(k ln(4k/δ)/κ)/n,
#
# ε that of κ and δ (`dp_epsilon`), t how far k noises go but for a probability δ/2. This is
# how Rogers et al. 2020 compare with it; the theorem as it is printed, with 18ε, asks for far more
# (`holdfast_lab.baselines.noisy_means.rows_by_bassily`). Proofs of both:
# docs/explanation/published-widths.md.


class Bassily(NamedTuple):
    """The half-width, and what it was proved with."""

    width: float
    sigma: float
    epsilon: float
    delta: float


def bassily_width(rows: int, queries: int, failure: float) -> float:
    """The smallest half-width of k means, over the noise and δ; at most 1.

    >>> round(bassily_width(100_000, 29, 0.05), 4), round(bassily_width(100_000, 30, 0.05), 4)
    (0.0993, 0.1002)
    """
    return min(1.0, bassily_best(rows, queries, failure).width)


def bassily_queries(rows: int, half_width: float, failure: float) -> int:
    """The most questions with half-widths of at most this; 0 if there is none.

    >>> bassily_queries(100_000, 0.1, 0.05), bassily_queries(100_000, 0.1, 0.001)
    (29, 13)
    """
    rows, half_width, failure = checked_target(rows, half_width, failure)
    return most_queries(lambda k: bassily_width(rows, k, failure), half_width)


def bassily_best(rows: int, queries: int, failure: float) -> Bassily:
    """The choice of noise and δ with the smallest half-width.

    >>> found = bassily_best(100_000, 29, 0.05)
    >>> round(found.sigma, 4), round(found.epsilon, 4), f"{found.delta:.1e}"
    (0.006, 0.0277, '1.0e-04')
    """
    rows, queries, failure = checked(rows, queries, failure)

    def at(x: Sequence[float]) -> Bassily:
        kappa, delta = math.exp(min(x[0], 9.0)), math.exp(min(max(x[1], -600.0), -1e-9))
        return _at(rows, queries, failure, kappa, delta)

    nats = math.log(1e4 / failure)
    kappa = math.sqrt(queries * math.log(queries + 2) / nats) / (2 * rows)
    return at(lowest(lambda x: math.log(at(x).width), [math.log(kappa), -nats]))


def _at(rows: int, queries: int, failure: float, kappa: float, delta: float) -> Bassily:
    copies = math.floor(1 / failure)
    epsilon, sigma = dp_epsilon(kappa, delta), sigma_of(rows, queries, kappa)
    drift = math.expm1(min(epsilon, 99.0)) + 2 * copies * delta
    noise = tail_reach(queries, sigma, delta / 2)
    caught = -math.expm1(copies * math.log1p(-failure))
    return Bassily((drift + noise) / caught * (1 + ROUNDING), sigma, epsilon, delta)


# Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi & Shenfeld 2020, for Gaussian noise.
#
# ("A new analysis of differential privacy's generalization guarantees", ITCS.) Think of the rows as
# drawn again after the last answer, from what the answers leave possible. An answer that is near
# the sample is then near the mean of that posterior, and privacy keeps the posterior's mean near
# the population's. For all ε, δ of the noise, all α, β′ with which its answers are near the sample,
# and all c, d > 0,
#
#     width = α + c + e^ε − 1 + 2d     but for a probability     β′/c + δ/d.
#
# With k Gaussian noises α = σ√2·erfc⁻¹(β′/k). Given β, the best c and d have
# c + 2d = (√β′ + √(2δ))²/β. Their own figures take β′ = δ and c = d, where c + 2d = 6δ/β
# (`shares="equal"`); choosing all of them (`shares="best"`) gains a little. Proof:
# docs/explanation/published-widths.md.


Shares = Literal["best", "equal"]


class Jung(NamedTuple):
    """The half-width, and what it was proved with; `missed` is β′."""

    width: float
    sigma: float
    epsilon: float
    delta: float
    missed: float


def jung_width(rows: int, queries: int, failure: float, *, shares: Shares = "best") -> float:
    """The smallest half-width of k means, over the noise, δ and the shares of β; at most 1.

    >>> [round(jung_width(100_000, 153, 0.05, shares=shares), 4) for shares in ("best", "equal")]
    [0.0994, 0.0999]
    """
    return min(1.0, jung_best(rows, queries, failure, shares=shares).width)


def jung_queries(rows: int, half_width: float, failure: float, *, shares: Shares = "best") -> int:
    """The most questions with half-widths of at most this; 0 if there is none.

    >>> [jung_queries(100_000, 0.1, 0.05, shares=shares) for shares in ("best", "equal")]
    [156, 153]
    >>> [jung_queries(100_000, 0.1, 0.001, shares=shares) for shares in ("best", "equal")]
    [77, 77]
    """
    rows, half_width, failure = checked_target(rows, half_width, failure)
    return most_queries(lambda k: jung_width(rows, k, failure, shares=shares), half_width)


def jung_best(rows: int, queries: int, failure: float, *, shares: Shares = "best") -> Jung:
    """The choice with the smallest half-width.

    >>> found = jung_best(100_000, 153, 0.05)
    >>> round(found.sigma, 4), round(found.epsilon, 4), found.missed < found.delta
    (0.0094, 0.0432, True)
    """
    rows, queries, failure = checked(rows, queries, failure)
    if shares not in ("best", "equal"):
        raise InvalidInput("shares", shares, "'best' or 'equal'")

    def at(x: Sequence[float]) -> Jung:
        kappa, delta, missed = math.exp(min(x[0], 9.0)), _chance(x[1]), _chance(x[-1])
        return _jung_at(rows, queries, failure, kappa, delta, missed, shares)

    nats = math.log(1e4 / failure)
    kappa = math.sqrt(queries * math.log(queries + 2) / nats) / (2 * rows)
    start = [math.log(kappa), -nats, -nats][: 2 if shares == "equal" else 3]
    return at(lowest(lambda x: math.log(at(x).width), start))


def _chance(log_chance: float) -> float:
    return math.exp(min(max(log_chance, -600.0), -1e-9))


def _jung_at(
    rows: int,
    queries: int,
    failure: float,
    kappa: float,
    delta: float,
    missed: float,
    shares: Shares,
) -> Jung:
    epsilon, sigma = dp_epsilon(kappa, delta), sigma_of(rows, queries, kappa)
    if shares == "equal":
        resampled = 3 * (missed + delta) / failure
    else:
        resampled = (math.sqrt(missed) + math.sqrt(2 * delta)) ** 2 / failure
    drift = math.expm1(min(epsilon, 99.0)) + resampled
    total = drift + union_reach(queries, sigma, missed)
    return Jung(total * (1 + ROUNDING), sigma, epsilon, delta, missed)


# Rogers, Roth, Smith, Srebro, Thakkar & Woodworth 2020, theorem 2.1.
#
# ("Guaranteed validity for empirical approaches to adaptive data analysis", AISTATS.) Gaussian
# noise tells little about the rows: at most ρkn nats. Little information makes the square of the
# error small on average (Russo & Zou 2016), Markov's inequality makes it small but for β/2, and the
# other half of β is for the noise:
#
#     width = √( min over λ in [0, 1) of (2ρkn − ln(1 − λ))/λ / (2nβ) ) + √(ln(4k/β)/ρ)/(2n),
#
# for every ρ > 0. With u = 1/(1 − λ) the inner minimum is u where 2ρkn = u − 1 − ln u, so that one
# parameter is left to choose. The noise is σ = 1/(n√(8ρ)): a value in [0, 1] is within 1/2 of the
# middle, which is what its information costs, and twice that is what its privacy costs. With the
# noise that has concentrated privacy ρ, σ = 1/(n√(2ρ)), the last term would be twice as large, and
# at n = 100,000 and a half-width of 0.1 only 263 questions would be left of 935.
#
# Markov's inequality has its price: β is under a root, not a logarithm, and nothing is left of it
# at β = 0.001. Proof: docs/explanation/published-widths.md.


class Rogers(NamedTuple):
    """The half-width, the noise, and the most nats that all answers tell about the rows."""

    width: float
    sigma: float
    nats: float


def rogers_width(rows: int, queries: int, failure: float) -> float:
    """The smallest half-width of k means, over the noise; at most 1.

    >>> round(rogers_width(100_000, 935, 0.05), 6), round(rogers_width(100_000, 936, 0.05), 6)
    (0.099995, 0.100022)
    """
    return min(1.0, rogers_best(rows, queries, failure).width)


def rogers_queries(rows: int, half_width: float, failure: float) -> int:
    """The most questions with half-widths of at most this; 0 if there is none.

    >>> rogers_queries(100_000, 0.1, 0.05), rogers_queries(100_000, 0.1, 0.001)
    (935, 0)
    """
    rows, half_width, failure = checked_target(rows, half_width, failure)
    return most_queries(lambda k: rogers_width(rows, k, failure), half_width)


def rogers_best(rows: int, queries: int, failure: float) -> Rogers:
    """The choice of noise with the smallest half-width.

    >>> found = rogers_best(100_000, 935, 0.05)
    >>> round(found.sigma, 5), round(found.nats, 2)
    (0.00987, 12.0)
    """
    rows, queries, failure = checked(rows, queries, failure)

    def at(x: Sequence[float]) -> Rogers:
        excess = math.exp(min(max(x[0], -40.0), 60.0))  # u − 1
        return _rogers_at(rows, queries, failure, excess)

    return at(lowest(lambda x: math.log(at(x).width), [0.0]))


def _rogers_at(rows: int, queries: int, failure: float, excess: float) -> Rogers:
    """At u = 1 + excess: 2ρkn = u − 1 − ln u, and ρ = 1/(8n²σ²)."""
    gap = excess - math.log1p(excess)
    if excess < 1e-4:  # what cancels above
        gap = excess**2 / 2 * (1 - 2 * excess / 3)
    nats = gap / 2
    sigma = math.sqrt(queries / (8 * rows * nats))
    sample = math.sqrt((1 + excess) / (2 * rows * failure))
    total = sample + tail_reach(queries, sigma, failure / 2)
    return Rogers(total * (1 + ROUNDING), sigma, nats)


# Fresh splitting: every question has m = ⌊n/k⌋ rows that nobody has used before.
#
# No theorem about adaptivity is needed. Three ways to bound one mean at β/k:
#
#     half        the exact binomial tails of a fair coin; the papers' programs compare with this
#     every       exact binomial tails, for every share of the population: the one that is proved
#     hoeffding   √(ln(2k/β)/(2m)), also for values between 0 and 1
#
# `half` is a little too small: of all shares 1/2 has the largest variance, but the sample's share
# is a multiple of 1/m, and a share just below 1/2 meets the lattice less luckily. It is kept
# because its figures are the published ones.


By = Literal["half", "every", "hoeffding"]

_LATTICE = 16  # so many questions and sizes are tried beyond the last that was enough
_MOST_EVERY = 10**5  # rows a question up to which all shares are tried


def split_width(rows: int, queries: int, failure: float, *, by: By = "half") -> float:
    """The half-width of k means on fresh rows.

    >>> [round(split_width(100_000, 288, 0.05, by=by), 4) for by in ("half", "every", "hoeffding")]
    [0.0994, 0.1021, 0.1161]
    """
    rows, queries, failure = checked(rows, queries, failure)
    size, share = rows // queries, failure / (2 * queries)
    if by not in ("half", "every", "hoeffding"):
        raise InvalidInput("by", by, "'half', 'every' or 'hoeffding'")
    if size == 0:
        return 1.0
    if by == "hoeffding":
        return min(1.0, math.sqrt(-math.log(share) / (2 * size)) * (1 + ROUNDING))
    return _half(size, share) if by == "half" else _every(size, share)


def split_queries(rows: int, half_width: float, failure: float, *, by: By = "half") -> int:
    """The most questions with half-widths of at most this; 0 if there is none.

    >>> [split_queries(100_000, 0.1, 0.05, by=by) for by in ("half", "every", "hoeffding")]
    [288, 277, 219]
    >>> [split_queries(100_000, 0.1, 0.001, by=by) for by in ("half", "every", "hoeffding")]
    [196, 189, 157]
    """
    rows, half_width, failure = checked_target(rows, half_width, failure)
    best = most_queries(lambda k: split_width(rows, k, failure, by="hoeffding"), half_width)
    if by == "hoeffding":
        return best
    queries = max(1, best)
    last = rows // queries
    while queries <= best + _LATTICE or rows // queries >= max(1, last - _LATTICE):
        if split_width(rows, queries, failure, by=by) <= half_width:
            best, last = queries, rows // queries
        queries += 1
    return best


def _half(size: int, share: float) -> float:
    """(x − m/2)/m for the smallest x with P[Bin(m, 1/2) > x] ≤ share."""
    low, high = size // 2 - 1, size  # P[X > m] = 0 is enough; as many as half is not
    while high - low > 1:
        middle = (low + high) // 2
        if binomial_tail(size, 0.5, middle + 1) <= share:
            high = middle
        else:
            low = middle
    return abs(high - size / 2) / size


def _every(size: int, share: float) -> float:
    """The smallest w with P_p[X/m > p + w] ≤ share for all p; the lower side is its mirror image.

    For X ≥ j to be further than w away, p < j/m − w, and P_p[X ≥ j] grows with p: so it is enough
    that P[X ≥ j] ≤ share at p = j/m − w, for every j.
    """
    if size > _MOST_EVERY:
        remedy = "Ask for the width by Hoeffding's bound."
        raise Infeasible("Every share", f"up to {_MOST_EVERY:,} rows", f"{size:,}", remedy)
    import numpy as np
    from scipy.special import betainc

    counts = np.arange(1, size + 1, dtype=np.float64)
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        shares = counts / size - middle
        kept = counts[shares > 0]
        tails = betainc(kept, size - kept + 1, shares[shares > 0])
        if tails.max(initial=0.0) * (1 + 1e-9) <= share:
            high = middle
        else:
            low = middle
    return high


WIDTHS: dict[str, Callable[[int, int, float], float]] = {
    "split": split_width,
    "bassily": bassily_width,
    "rogers": rogers_width,
    "jung": jung_width,
}
"""The half-width for (rows, queries, failure), by the name of the method."""

QUERIES_AT: dict[str, Callable[[int, float, float], int]] = {
    "split": split_queries,
    "bassily": bassily_queries,
    "rogers": rogers_queries,
    "jung": jung_queries,
}
"""The most questions for (rows, half_width, failure), by the name of the method."""
