from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.baselines.checks import (
    all_neighbours,
    quantile_law,
    quantiles_are_private,
    winsorised_mean_is_private,
)

from holdfast.errors import InvalidInput
from holdfast.randomness import SeededEntropy
from holdfast_lab.baselines.subsample_aggregate import (
    Aggregate,
    aggregate,
    draw_quantile,
    quantile_scores,
    subsample_aggregate,
)
from tests.mechanisms.laws import alarm

QUARTER, THREE_QUARTERS = Fraction(1, 4), Fraction(3, 4)


def test_quartiles_are_private() -> None:
    assert quantiles_are_private()


def test_the_winsorised_mean_is_private() -> None:
    assert winsorised_mean_is_private()


def spread(values: tuple[int, ...], cells: int, share: Fraction) -> list[Fraction]:
    """The score of every point."""
    scores = quantile_scores(np.array(values), cells, share)
    found = {
        point: score
        for first, last, score in zip(*scores, strict=True)
        for point in range(first, last + 1)
    }
    assert list(found) == list(range(cells + 1))
    return list(found.values())


@pytest.mark.parametrize("share", [QUARTER, THREE_QUARTERS], ids=str)
def test_scores_are_the_definition_and_move_by_one(share: Fraction) -> None:
    for blocks, cells in ((1, 4), (3, 3), (4, 2)):
        for data in product(range(cells + 1), repeat=blocks):
            expected = [
                max(
                    sum(x < point for x in data) - share * blocks,
                    sum(x > point for x in data) - (1 - share) * blocks,
                )
                for point in range(cells + 1)
            ]
            assert spread(data, cells, share) == expected
        for here, there in all_neighbours(blocks, cells):
            moved = zip(spread(here, cells, share), spread(there, cells, share), strict=True)
            assert max(abs(a - b) for a, b in moved) <= 1


@pytest.mark.parametrize(
    "values", [[0] * 6 + [6] * 6, [1, 2, 2, 4, 4, 4, 6]], ids=["two points", "graded"]
)
def test_quantiles_are_drawn_from_their_law(values: list[int]) -> None:
    """False alarm ≤ 1e-6; where the data make it visible, an ε that is 10 % off is seen."""
    epsilon, draws = Fraction(1), 6_000
    scores = quantile_scores(np.array(values), 6, QUARTER)
    entropy = SeededEntropy(6)
    seen = [0] * 7
    for _ in range(draws):
        seen[draw_quantile(scores, epsilon, entropy)] += 1

    def tested(factor: Fraction) -> bool:
        law = dict(quantile_law(scores, epsilon * factor))
        return alarm(seen, draws, [law[point] for point in range(7)])

    assert not tested(Fraction(1))
    if len(set(values)) == 2:
        assert tested(Fraction(11, 10))
        assert tested(Fraction(9, 10))


def test_a_sharp_quantile_is_the_quantile() -> None:
    values = np.arange(0, 101)
    for share, expected in ((QUARTER, 25), (THREE_QUARTERS, 75)):
        scores = quantile_scores(values, 100, share)
        drawn = draw_quantile(scores, Fraction(1_000), SeededEntropy(1))
        assert drawn == expected


def test_limits_and_noise_of_the_aggregate() -> None:
    values = np.array([0, 10, 10, 11, 11, 12, 12, 1_000])
    scales: list[Fraction] = []

    def draw(scale: Fraction) -> int:
        scales.append(scale)
        return 5

    mean, low, high = aggregate(
        values, 1_000, Fraction(2), lambda share: 10 if share == QUARTER else 12, draw
    )
    reach = 4 * 8 ** (1 / 3 + 1 / 10) * 2
    assert (low, high) == (max(0, math.floor(11 - reach)), math.ceil(11 + reach))
    assert scales == [Fraction(high - low)]  # 2w/ε on the sum
    assert mean == Fraction(low + 66 + high + 5, 8)


def test_equal_quartiles_hide_everything_else() -> None:
    def no_noise(scale: Fraction) -> int:
        raise AssertionError

    values = np.array([0, 7, 7, 7, 100])
    answer = aggregate(values, 100, Fraction(1), lambda share: 7, no_noise)
    assert answer == (Fraction(7), 7, 7)


def test_the_limits_stay_in_the_range() -> None:
    values = np.array([0, 50, 100])
    _, low, high = aggregate(
        values, 100, Fraction(1), lambda share: 0 if share == QUARTER else 100, lambda scale: 0
    )
    assert (low, high) == (0, 100)


def test_the_answer_is_near_the_mean_of_many_blocks() -> None:
    """m = 4,000, ε = 20: noise of scale ≤ 2·(limits)/(20·4,000); 20 scales are one in 10^8."""
    values = np.linspace(-1.0, 3.0, 4_000)
    answer = subsample_aggregate(values, -100.0, 100.0, 20.0, SeededEntropy(3))
    assert answer.low <= -1.0
    assert answer.high >= 3.0
    scale = 2 * (answer.high - answer.low) / (20 * 4_000)
    assert abs(answer.value - 1.0) <= 20 * scale + 200 / 2**20


def test_outliers_and_failures_do_little() -> None:
    values: list[Any] = [0.5, 0.51, 0.52] * 300
    values[:3] = [math.nan, 10**400, None]
    answer = subsample_aggregate(values, 0.0, 1.0, 50.0, SeededEntropy(3))
    assert answer.value == pytest.approx(0.51, abs=0.01)


def test_the_same_seed_gives_the_same_answer() -> None:
    values = np.linspace(0, 1, 100)
    answers = [subsample_aggregate(values, 0, 1, 1.0, SeededEntropy(2)) for _ in range(2)]
    assert answers[0] == answers[1]
    assert isinstance(answers[0], Aggregate)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("low", 1.0),
        ("high", math.inf),
        ("epsilon", 0.0),
        ("cells", 0),
        ("values", []),
        ("values", [[1.0]] * 0),
        ("values", np.zeros((2, 2))),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(name: str, value: Any) -> None:
    settings: dict[str, Any] = {"values": [0.5], "low": 0.0, "high": 1.0, "epsilon": 1.0}
    settings[name] = value
    with pytest.raises(InvalidInput):
        subsample_aggregate(**settings, entropy=SeededEntropy(1))
