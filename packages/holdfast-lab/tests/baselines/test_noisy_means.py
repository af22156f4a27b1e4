from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.baselines.laws import laplace_law

from holdfast.errors import InvalidInput
from holdfast.randomness import Entropy, SeededEntropy
from holdfast_lab.baselines import noisy_means
from holdfast_lab.baselines.noise import CELLS
from holdfast_lab.baselines.noisy_means import NoisyMean, NoisyMeans, rows_by_bassily, rows_by_dwork
from tests.mechanisms.laws import alarm

KINDS: list[Literal["laplace", "gaussian"]] = ["laplace", "gaussian"]


@pytest.mark.parametrize("noise", KINDS)
def test_an_answer_is_the_exact_sum_plus_noise_of_the_stated_scale(
    noise: Literal["laplace", "gaussian"], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Fraction] = []

    def draw(parameter: Fraction, entropy: Entropy) -> int:
        asked.append(parameter)
        return 3

    monkeypatch.setattr(noisy_means, f"discrete_{noise}", draw)
    means = NoisyMeans(rows=10, queries=1, sigma=0.25, entropy=SeededEntropy(1), noise=noise)
    answer = means.ask([0.5] * 4 + [1.0] * 6)
    assert answer == NoisyMean((8 * CELLS + 3) / (10 * CELLS), 0)
    scale = Fraction(1, 4) * 10 * CELLS
    assert asked == [scale if noise == "laplace" else scale**2]


@pytest.mark.parametrize(("noise", "median"), [("laplace", math.log(2)), ("gaussian", 0.67449)])
def test_half_of_the_answers_are_within_the_median_of_the_noise(noise: Any, median: float) -> None:
    """And half are too low. False alarm ≤ 1e-6; the law itself is tested in test_noise.py."""
    trials = 2_000
    means = NoisyMeans(100, trials, 0.1, SeededEntropy(5), noise=noise)
    errors = np.array([means.ask([0.5] * 100).value for _ in range(trials)], np.float64) - 0.5
    seen = [np.count_nonzero(np.abs(errors) < 0.1 * median), np.count_nonzero(errors < 0)]
    assert not alarm([int(x) for x in seen], trials, [0.5, 0.5])


def test_laplace_answers_are_private_to_the_letter() -> None:
    """e^ε is reached and not exceeded: one row of weight 2^16 cells, all values of the noise."""
    means = NoisyMeans(4, 3, 0.5, SeededEntropy(1), noise="laplace")
    scale = Fraction(1, 2) * 4  # in rows
    law = dict(laplace_law(scale, 1e-13))
    losses = [math.log(law[x] / law[x + 1]) for x in law if x + 1 in law]
    assert 3 * max(losses) == pytest.approx(means.epsilon(0.0))


def test_gaussian_answers_have_their_concentrated_privacy() -> None:
    """D_a ≤ a·ρ at several orders for the discrete Gaussian, and ε(δ) follows from it."""
    sigma, rows, queries = 0.5, 4, 3
    means = NoisyMeans(rows, queries, sigma, SeededEntropy(1))
    deviation = sigma * rows
    points = range(-90, 91)
    weights = {x: math.exp(-x * x / (2 * deviation**2)) for x in points}
    total = math.fsum(weights.values())
    rho = queries / (2 * deviation**2)
    for order in (1.5, 2.0, 5.0, 20.0):
        powers = [-(order * x**2 + (1 - order) * (x + 1) ** 2) / (2 * deviation**2) for x in points]
        moment = math.log(math.fsum(map(math.exp, powers)) / total)
        assert queries * moment / (order - 1) <= order * rho * (1 + 1e-9)
    # P[loss > ε] bounds δ: the loss of x is (2x + 1)/(2σ²).
    delta = 1e-3
    epsilon = means.epsilon(delta)
    excess = [
        p
        for x in points
        if (p := weights[x] / total) and (2 * abs(x) + 1) / (2 * deviation**2) > epsilon
    ]
    assert math.fsum(excess) <= delta


def test_epsilon_takes_the_better_composition() -> None:
    few = NoisyMeans(1_000, 2, 0.1, SeededEntropy(1), noise="laplace")
    many = NoisyMeans(1_000, 2_000, 0.1, SeededEntropy(1), noise="laplace")
    assert few.epsilon(1e-6) == few.epsilon(0.0)
    assert many.epsilon(1e-6) < many.epsilon(0.0) / 2


def test_gaussian_noise_needs_a_delta() -> None:
    with pytest.raises(InvalidInput, match="delta"):
        NoisyMeans(10, 1, 0.1, SeededEntropy(1)).epsilon(0.0)


def test_exhaustion_is_final_and_polite() -> None:
    means = NoisyMeans(2, 1, 0.1, SeededEntropy(1))
    means.ask([0, 1])
    assert [means.ask([0, 1]) for _ in range(3)] == [NoisyMean(None, 0)] * 3
    assert means.queries_left == 0


@pytest.mark.parametrize("rows_by", [rows_by_dwork, rows_by_bassily])
@pytest.mark.parametrize("noise", KINDS)
@given(
    queries=st.integers(1, 10**6),
    half_width=st.floats(0.005, 1),
    failure=st.floats(1e-6, 0.9),
)
def test_the_rows_meet_what_the_theorems_ask(
    rows_by: Any, noise: Any, queries: int, half_width: float, failure: float
) -> None:
    size = rows_by(queries, half_width, failure, noise=noise)
    nats = -size.log_delta
    # Private enough …
    if noise == "laplace":
        one = 1 / (size.rows * size.sigma)
        composed = queries * one**2 / 2 + one * math.sqrt(2 * queries * nats)
        assert min(queries * one, composed) <= size.epsilon * (1 + 1e-9)
        outside = queries * math.exp(-half_width / 2 / size.sigma)
    else:
        rho = queries / (2 * (size.rows * size.sigma) ** 2)
        assert rho + 2 * math.sqrt(rho * nats) <= size.epsilon * (1 + 1e-9)
        outside = 2 * queries * math.exp(-((half_width / 2 / size.sigma) ** 2) / 2)
    # … accurate enough on the sample …
    assert outside <= failure / 2 * (1 + 1e-9)
    # … and large enough for the transfer.
    if rows_by is rows_by_dwork:
        tau, share = half_width / 2, failure / 2
        assert size.epsilon <= tau / 4 * (1 + 1e-12)
        assert nats >= 4 * math.log(8 / share) / tau * (1 - 1e-12)
        assert size.rows >= 48 * math.log(4 / share) / tau**2
    else:
        share = math.exp(-nats) / size.epsilon  # δ/ε
        assert 18 * size.epsilon <= half_width / 2 * (1 + 1e-12)
        assert size.epsilon < 1 / 3
        assert share < 1 / 4
        assert share <= failure / 2 * (1 + 1e-9)
        assert size.rows >= math.log(4 / share) / size.epsilon**2


def test_at_a_thousand_questions_both_need_more_rows_than_fresh_splitting() -> None:
    fresh = 1_000 * math.ceil(math.log(2 * 1_000 / 0.05) / (2 * 0.1**2))
    assert fresh == 530_000
    for rows_by in (rows_by_dwork, rows_by_bassily):
        assert min(rows_by(1_000, 0.1, 0.05, noise=noise).rows for noise in KINDS) > 5 * fresh


def test_they_grow_with_the_root_of_the_number_of_questions() -> None:
    rows = [rows_by_bassily(queries, 0.1, 0.05).rows for queries in (10**4, 10**6)]
    assert 10 < rows[1] / rows[0] < 14
    fresh = [queries * math.log(2 * queries / 0.05) / (2 * 0.1**2) for queries in (10**4, 10**6)]
    assert rows[1] < fresh[1]  # a million questions: noise wins


@pytest.mark.parametrize(
    ("name", "value"),
    [("rows", 0), ("queries", 0), ("sigma", 0.0), ("sigma", math.inf), ("noise", "uniform")],
)
def test_settings_that_make_no_sense_are_refused(name: str, value: Any) -> None:
    settings = {"rows": 10, "queries": 1, "sigma": 0.1, "noise": "gaussian", name: value}
    with pytest.raises(InvalidInput, match=name):
        NoisyMeans(**settings, entropy=SeededEntropy(1))


@pytest.mark.parametrize("rows_by", [rows_by_dwork, rows_by_bassily])
@pytest.mark.parametrize(
    "target", [(0, 0.1, 0.05), (10, 0.0, 0.05), (10, 0.1, 0.0), (10, 0.1, 1.0)]
)
def test_targets_that_make_no_sense_are_refused(rows_by: Any, target: Any) -> None:
    with pytest.raises(InvalidInput):
        rows_by(*target)
