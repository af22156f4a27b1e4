from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.baselines.checks import ROUNDING, thresholdout_is_private
from tests.baselines.laws import Laws, worst_loss

from holdfast.errors import InvalidInput
from holdfast.randomness import Entropy, SeededEntropy
from holdfast_lab.baselines import sparse_vector
from holdfast_lab.baselines.noise import CELLS
from holdfast_lab.baselines.sparse_vector import (
    Thresholdout,
    ThresholdoutAnswer,
    ThresholdoutRule,
    thresholdout_settings,
)

HALF = [0.0] * 50 + [1.0] * 50


def test_no_transcript_tells_more_than_epsilon() -> None:
    assert thresholdout_is_private()


def test_nor_when_the_guess_lies_between_the_cells() -> None:
    """|h − g| then moves by a fraction; a shift of the noise by one whole row still covers it."""
    rule = ThresholdoutRule(Fraction(3, 2), Fraction(1, 2), 1)
    pairs = [
        ([(0, guess)], [(1, guess)]) for guess in (Fraction(1, 3), Fraction(1, 2), Fraction(-1, 2))
    ]
    assert worst_loss(Laws(rule, tail=1e-6), pairs, least=1e-4) <= 4 + ROUNDING


def test_noise_is_drawn_as_in_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    scales: list[Fraction] = []

    def draw(scale: Fraction, entropy: Entropy) -> int:
        scales.append(scale / (100 * CELLS))
        return 0

    monkeypatch.setattr(sparse_vector, "discrete_laplace", draw)
    holdout = Thresholdout(100, threshold=0.25, sigma=0.125, budget=2, entropy=SeededEntropy(1))
    asked = [holdout.ask(HALF, guess) for guess in (0.5, 0.25, 0.2, 0.9, 0.5)]
    assert [answer.source for answer in asked] == [
        "guess",
        "guess",  # at the threshold, not beyond it
        "holdout",
        "holdout",
        "exhausted",
    ]
    assert [answer.value for answer in asked] == [0.5, 0.25, 0.5, 0.5, None]
    assert [answer.budget_left for answer in asked] == [2, 2, 1, 0, 0]
    sigma = Fraction(1, 8)
    assert scales == [
        *(2 * sigma, 4 * sigma),  # T̂, and a comparison
        4 * sigma,
        *(4 * sigma, sigma),  # a comparison and an answer
        *(2 * sigma, 4 * sigma, sigma),  # T̂ again
    ]


def test_each_noise_has_its_sign() -> None:
    """|h − g| > T + γ + η: noise above the threshold confirms; the answer is h + ξ."""
    rule = ThresholdoutRule(Fraction(10), Fraction(1), 1)

    def answer(*drawn: int) -> object:
        rest = iter(drawn)
        return rule.ask(rule.start(), (0, Fraction(12)), lambda scale: next(rest))[0]

    assert answer(2, 0) is None
    assert answer(0, 2) is None
    assert answer(1, 0, 5) == 5
    assert answer(-3, 4, -7) == -7


def test_exhaustion_is_final_and_polite() -> None:
    holdout = Thresholdout(100, 0.01, 1e-4, 1, SeededEntropy(1))
    holdout.ask(HALF, 0.9)
    assert [holdout.ask(HALF, 0.9) for _ in range(3)] == [
        ThresholdoutAnswer(None, "exhausted", 0)
    ] * 3


def test_the_settings_keep_the_promise_of_the_paper_on_the_sample() -> None:
    """Each step of the proof, with the tails of the noise."""
    queries, budget, width, failure = 1_000, 10, 0.1, 0.05
    rows, threshold, sigma = thresholdout_settings(queries, budget, width, failure)
    noisy = (
        budget * math.exp(-width / 24 / (2 * sigma))
        + queries * math.exp(-width / 12 / (4 * sigma))
        + budget * math.exp(-width / 8 / sigma)
    )
    assert noisy <= failure / 2
    assert threshold + width / 24 + width / 12 + width / 8 == pytest.approx(width)
    assert threshold - width / 24 - width / 12 - width / 8 == pytest.approx(width / 2)
    # Dwork et al. 2014 at width/8 and β/2, with δ = 0.
    assert 2 * budget / (sigma * rows) <= width / 8 / 4
    assert rows >= 48 / (width / 8) ** 2 * math.log(4 / (failure / 2))
    holdout = Thresholdout(rows, threshold, sigma, budget, SeededEntropy(1))
    assert holdout.epsilon() <= width / 32 * (1 + 1e-9)


def test_answers_are_within_the_width_of_the_sample() -> None:
    """With the settings of the paper: noise moves no verdict by more than width/8.

    40 interactions; the union bound of the proof gives a false alarm below 1e-6 for each.
    """
    width, failure, queries = 0.4, 1e-6, 8
    _, threshold, sigma = thresholdout_settings(queries, 4, width, failure)
    values = np.repeat([0.0, 1.0], 500)
    for seed in range(40):
        holdout = Thresholdout(1_000, threshold, sigma, 4, SeededEntropy((9, seed)))
        for guess in (0.5, 0.1, 0.74, 0.95, 0.26, 0.9):
            answer = holdout.ask(values, guess)
            off = abs(guess - 0.5)
            assert answer.source == ("holdout" if off > threshold else "guess")
            assert answer.value is not None
            assert abs(answer.value - 0.5) <= 7 / 8 * width


def test_epsilon_takes_the_better_composition() -> None:
    small = Thresholdout(1_000, 0.1, 0.1, 2, SeededEntropy(1))
    large = Thresholdout(1_000, 0.1, 0.1, 2_000, SeededEntropy(1))
    assert small.epsilon(1e-6) == small.epsilon() == pytest.approx(0.04)
    assert large.epsilon(1e-6) < large.epsilon() / 2


def test_nothing_about_the_noise_can_be_read() -> None:
    holdout = Thresholdout(100, 0.5, 0.01, 3, SeededEntropy(1))
    holdout.ask(HALF, 0.5)
    assert repr(holdout) == "<Thresholdout: 3 answers from the holdout left>"


@pytest.mark.parametrize(
    ("name", "value"),
    [("rows", 0), ("threshold", -0.1), ("threshold", math.nan), ("sigma", 0.0), ("budget", 0)],
)
def test_settings_that_make_no_sense_are_refused(name: str, value: Any) -> None:
    settings: dict[str, Any] = {"rows": 10, "threshold": 0.1, "sigma": 0.1, "budget": 1}
    settings[name] = value
    with pytest.raises(InvalidInput, match=name):
        Thresholdout(**settings, entropy=SeededEntropy(1))


@pytest.mark.parametrize("guess", [-0.1, 1.1, math.nan, "half", True], ids=str)
def test_guesses_are_means(guess: Any) -> None:
    holdout = Thresholdout(100, 0.1, 0.1, 1, SeededEntropy(1))
    with pytest.raises(InvalidInput, match="guess"):
        holdout.ask(HALF, guess)


@pytest.mark.parametrize(
    "target", [(0, 1, 0.1, 0.05), (10, 0, 0.1, 0.05), (10, 11, 0.1, 0.05), (10, 1, 0.0, 0.05)]
)
def test_targets_that_make_no_sense_are_refused(target: Any) -> None:
    with pytest.raises(InvalidInput):
        thresholdout_settings(*target)
