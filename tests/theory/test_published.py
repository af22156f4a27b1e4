"""Published widths: each against its theorem, written out here a second time."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import betainc, erfcinv, log_ndtr, ndtr

from holdfast.errors import Infeasible, InvalidInput
from holdfast.theory import published
from holdfast.theory.published import QUERIES_AT, WIDTHS, dp_epsilon

CASES = [(100_000, 29, 0.05), (10_000, 3, 0.2), (1_000_000, 5_000, 0.001)]


def grid(centre: float, factor: float = 20.0, points: int = 101) -> Any:
    return centre * np.exp(np.linspace(-math.log(factor), math.log(factor), points))


def epsilon(kappa: Any, delta: Any) -> Any:
    return kappa + 2 * np.sqrt(
        kappa * np.maximum(0, np.log(np.minimum(1, np.sqrt(np.pi * kappa)) / delta))
    )


# The formulas, as printed


@pytest.mark.parametrize(("rows", "queries", "failure"), CASES)
def test_rogers_is_theorem_2_1_minimised(rows: int, queries: int, failure: float) -> None:
    found = published.rogers_best(rows, queries, failure)
    rho = grid(1 / (8 * (rows * found.sigma) ** 2))[:, np.newaxis]
    lam = np.linspace(1e-4, 1 - 1e-4, 2_001)
    inner = ((2 * rho * queries * rows - np.log1p(-lam)) / lam).min(axis=1)
    noisy = np.sqrt(np.log(4 * queries / failure) / rho[:, 0]) / (2 * rows)
    widths = np.sqrt(inner / (2 * rows * failure)) + noisy
    assert widths.min() == pytest.approx(found.width, rel=2e-4)
    assert found.width <= widths.min() * (1 + 1e-9)


@pytest.mark.parametrize(("rows", "queries", "failure"), CASES)
def test_bassily_is_the_monitors_bound_minimised(rows: int, queries: int, failure: float) -> None:
    found = published.bassily_best(rows, queries, failure)
    rho = grid(1 / (2 * (rows * found.sigma) ** 2))[:, np.newaxis]
    delta = grid(found.delta)
    copies = math.floor(1 / failure)
    drift = np.expm1(epsilon(queries * rho, delta)) + 2 * copies * delta
    noisy = np.sqrt(np.log(4 * queries / delta) / rho) / rows
    widths = (drift + noisy) / (1 - (1 - failure) ** copies)
    assert widths.min() == pytest.approx(found.width, rel=2e-3)
    assert found.width <= widths.min() * (1 + 1e-9)


@pytest.mark.parametrize(("rows", "queries", "failure"), CASES)
@pytest.mark.parametrize("shares", ["best", "equal"])
def test_jung_is_the_transfer_theorem_minimised(
    rows: int, queries: int, failure: float, shares: Any
) -> None:
    found = published.jung_best(rows, queries, failure, shares=shares)
    rho = grid(1 / (2 * (rows * found.sigma) ** 2), 5, 41)[:, np.newaxis, np.newaxis]
    delta = grid(found.delta, 5, 41)[:, np.newaxis]
    if shares == "equal":  # β′ = δ and c = d, so β = 2δ/c
        missed = delta
        c = d = (missed + delta) / failure
    else:  # all β′ and all c; d is what is left
        missed = grid(found.missed, 5, 41)
        best = np.sqrt(missed) * (np.sqrt(missed) + np.sqrt(2 * delta)) / failure
        c = best * 1.001
        d = delta / (failure - missed / c)
    near = erfcinv(missed / queries) / (rows * np.sqrt(rho))
    widths = near + c + np.expm1(epsilon(queries * rho, delta)) + 2 * d
    assert widths.min() == pytest.approx(found.width, rel=4e-3)
    assert found.width <= widths.min() * (1 + 1e-9)


@pytest.mark.parametrize(("missed", "delta"), [(1e-5, 1e-5), (1e-3, 1e-7), (1e-8, 1e-4)])
def test_no_c_and_d_are_better(missed: float, delta: float) -> None:
    failure = 0.05
    c = missed / failure * (1 + np.exp(np.linspace(-14, 14, 200_001)))
    d = delta / (failure - missed / c)
    best = (math.sqrt(missed) + math.sqrt(2 * delta)) ** 2 / failure
    assert (c + 2 * d).min() == pytest.approx(best, rel=1e-6)


# What the proofs rest on


@pytest.mark.parametrize("kappa", [1e-6, 1e-3, 0.05, 0.3, 2.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_epsilon_is_enough_for_gaussian_noise(kappa: float, delta: float) -> None:
    """By the exact δ of a Gaussian, which k adaptive Gaussians are no worse than."""
    given, shift = mpmath.mpf(published.dp_epsilon(kappa, delta)), mpmath.sqrt(2 * kappa)
    exact = mpmath.ncdf(shift / 2 - given / shift)
    exact -= mpmath.exp(given) * mpmath.ncdf(-shift / 2 - given / shift)
    assert exact <= delta
    if published.dp_epsilon(kappa, delta) > 1.01 * kappa:
        assert exact >= delta / 1_000  # not needlessly much


def exact_epsilon(kappa: float, delta: float) -> float:
    """ε at which the exact δ of a Gaussian of concentrated privacy κ is as given."""
    shift = math.sqrt(2 * kappa)

    def excess(given: float) -> float:
        beyond = math.exp(given + float(log_ndtr(-shift / 2 - given / shift)))
        return float(ndtr(shift / 2 - given / shift)) - beyond - delta

    if excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0.0, dp_epsilon(kappa, delta) + 1e-9, xtol=1e-12))


def test_exact_privacy_would_allow_more_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of published-widths.md; still fewer than the best of the four."""
    monkeypatch.setattr(published, "dp_epsilon", exact_epsilon)
    figures = {("jung", 0.05): 323, ("jung", 0.001): 121, ("bassily", 0.05): 65}
    for (method, failure), queries in {**figures, ("bassily", 0.001): 21}.items():
        assert WIDTHS[method](100_000, queries, failure) <= 0.1
        assert WIDTHS[method](100_000, queries + 1, failure) > 0.1
        assert queries < (935 if failure == 0.05 else published.split_queries(10**5, 0.1, failure))


def information(rows: int, sigma: float) -> float:
    """I(sample; noisy mean) for fair bits, by integration."""
    weights = np.array([math.comb(rows, j) for j in range(rows + 1)]) / 2**rows
    points = np.linspace(-12 * sigma, 1 + 12 * sigma, 40_001)
    gaps = points - np.arange(rows + 1)[:, np.newaxis] / rows
    density = np.exp(-(gaps**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    mixed = weights @ density
    step = points[1] - points[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.nan_to_num(density * np.log(density / mixed))
    return float(weights @ terms.sum(axis=1) * step)


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_an_answer_tells_at_most_an_eighth_of_its_signal(rows: int) -> None:
    """k/(8nσ²) nats, and no less where the noise is large: 1/8, neither 1/2 nor 1/16."""
    for sigma in (0.2, 0.5, 1.0, 5.0):
        assert information(rows, sigma) <= 1 / (8 * rows * sigma**2)
    assert information(rows, 5.0) >= 0.98 / (8 * rows * 25)
    found = published.rogers_best(10_000, 50, 0.05)
    assert found.nats == pytest.approx(50 / (8 * 10_000 * found.sigma**2))


def test_reaches_of_the_noise() -> None:
    sigma = 0.01
    for queries, failure in ((1, 0.05), (1_000, 1e-4)):
        exact = published.union_reach(queries, sigma, failure)
        assert queries * math.erfc(exact / sigma / math.sqrt(2)) == pytest.approx(failure)
        loose = published.tail_reach(queries, sigma, failure)
        assert 2 * queries * math.exp(-((loose / sigma) ** 2) / 2) == pytest.approx(failure)
        assert exact < loose


# Splitting


@pytest.mark.parametrize(("size", "share"), [(10, 0.05), (11, 0.01), (57, 1e-4), (4, 1e-3)])
def test_half_is_the_first_count_of_a_fair_coin(size: int, share: float) -> None:
    def beyond(count: int) -> float:
        return float(sum(math.comb(size, j) for j in range(count + 1, size + 1)) / 2**size)

    count = next(x for x in range(size // 2, size + 1) if beyond(x) <= share)
    assert published.split_width(size, 1, 2 * share) == pytest.approx((count - size / 2) / size)


@pytest.mark.parametrize(("rows", "failure"), [(40, 0.1), (347, 2e-4)])
def test_every_holds_for_every_share_and_half_does_not(rows: int, failure: float) -> None:
    shares = np.linspace(0, 1, 20_001)
    worst = {}
    for by in ("half", "every", "hoeffding"):
        width = published.split_width(rows, 1, failure, by=by)
        above = np.floor(rows * (shares + width) * (1 + 1e-12)) + 1
        inside = above <= rows
        tails = betainc(above[inside], rows - above[inside] + 1, shares[inside])
        worst[by] = tails.max() / (failure / 2)
    assert worst["hoeffding"] < worst["every"] <= 1 < worst["half"]
    assert worst["every"] > 0.9


def test_splitting_has_no_rows_left() -> None:
    assert published.split_width(10, 11, 0.05) == 1.0
    assert published.split_width(10, 11, 0.05, by="hoeffding") == 1.0
    with pytest.raises(Infeasible):
        published.split_width(10**6, 1, 0.05, by="every")


@pytest.mark.parametrize("rows", [300, 2_000, 20_000])
def test_the_lattice_does_not_hide_questions(rows: int) -> None:
    scanned = [k for k in range(1, 120) if published.split_width(rows, k, 0.05) <= 0.1]
    assert published.split_queries(rows, 0.1, 0.05) == max(scanned)


# All of them


@pytest.mark.parametrize("method", ["bassily", "rogers", "jung"])
def test_the_most_questions_are_the_most(method: str) -> None:
    assert QUERIES_AT[method](20, 0.1, 0.05) == 0
    rows, half_width = 30_000, 0.2
    width, most = WIDTHS[method], QUERIES_AT[method](rows, half_width, 0.05)
    assert most > 0
    assert width(rows, most, 0.05) <= half_width < width(rows, most + 1, 0.05)


def rises(values: list[float]) -> bool:
    return all(x <= y * (1 + 1e-6) for x, y in pairwise(values))


@pytest.mark.parametrize("method", WIDTHS)
def test_more_rows_fewer_questions_and_more_failure_are_narrower(method: str) -> None:
    width = WIDTHS[method]
    assert rises([width(rows, 40, 0.05) for rows in (10**7, 10**6, 10**5, 10**4, 10**3)])
    assert rises([width(10**5, queries, 0.05) for queries in (1, 3, 10, 100, 1_000, 10_000)])
    assert rises([width(10**5, 40, failure) for failure in (0.5, 0.2, 0.05, 1e-3, 1e-6)])
    assert width(10**3, 10**6, 1e-6) == 1.0


@pytest.mark.parametrize("method", WIDTHS)
def test_what_makes_no_sense_is_refused(method: str) -> None:
    wrong: list[Any] = [(0, 5, 0.05), (100, 0, 0.05), (100, 5, 0.0), (100, 5, 1.0), (9, 2.5, 0.05)]
    for target in wrong:
        with pytest.raises(InvalidInput):
            WIDTHS[method](*target)
    for half_width in (0.0, 0.5, -0.1, math.nan):
        with pytest.raises(InvalidInput, match="half_width"):
            QUERIES_AT[method](1_000, half_width, 0.05)
    with pytest.raises(InvalidInput, match="by"):
        published.split_width(100, 1, 0.05, by="guess")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="shares"):
        published.jung_width(100, 1, 0.05, shares="none")  # type: ignore[arg-type]
