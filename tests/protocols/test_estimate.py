"""Estimates: what they answer, with which chances, what it costs, and what cannot hurt them."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.grids import grid
from holdfast.planning.shapes import BoundedMean, KnownSd
from holdfast.protocols.answers import Answer
from holdfast.protocols.budget import Budget
from holdfast.protocols.guesses import Verify
from holdfast.protocols.searches import Estimate, Interval
from holdfast.protocols.source import BlockArray
from holdfast.randomness import Entropy, SeededEntropy, SystemEntropy
from tests.mechanisms.laws import LARGEST_WORD, Script
from tests.mutants.mechanisms import chance
from tests.protocols.test_budget import (
    BLOCKS,
    ESTIMATE,
    INTERVAL,
    TRUTH,
    Watch,
    account,
    alone,
    fresh,
    mixed_plan,
    points,
    source,
    value,
)
from tests.protocols.test_source import FAILURES, Listed, Short

Rows = NDArray[Any]


def estimate(entropy: Entropy = TRUTH, rows: Rows | None = None) -> Estimate:
    data = source() if rows is None else BlockArray(rows, BLOCKS)
    return Estimate(fresh(mixed_plan()), data, entropy)


# What is answered.


@given(st.lists(st.integers(0, 9), min_size=BLOCKS, max_size=BLOCKS), st.integers(2, 12))
@settings(max_examples=25)
def test_without_errors_it_is_the_median_on_the_grid(values: list[int], size: int) -> None:
    rows = np.array(values, float)
    answer = estimate(rows=rows).ask(value, grid(0, 9, points=size))
    projected = grid(0, 9, points=size).project(rows)
    assert answer.value == np.sort(projected)[BLOCKS // 2]  # a count on the target says No
    assert answer.at_grid_end == (answer.value in (0, 9))


def first_look(ask: type[Estimate], below: int) -> Fraction:
    """P[the lower of two points] with so many blocks on it."""
    data = Listed([0.0] * below + [1.0] * (BLOCKS - below))

    def lower(entropy: Entropy) -> bool:
        return ask(fresh(mixed_plan()), data, entropy).ask(value, grid([0.0, 1.0])).value == 0

    return chance(lower)


def has_the_chances_of_its_coin(ask: type[Estimate] = Estimate) -> bool:
    """Every look of an estimate flips the planned coin at twice the count minus twice m/2."""
    coin = ESTIMATE.coin(mixed_plan().order)
    return all(
        abs(first_look(ask, below) - Fraction(coin.yes(2 * below - BLOCKS))) <= Fraction(1, 2**52)
        for below in (0, 150, 180, 196, 199, 200, 201, 207, 240, BLOCKS)
    )


def test_the_chances_are_those_of_the_coin_to_the_last_bit() -> None:
    assert has_the_chances_of_its_coin()


def test_the_law_of_a_longer_search() -> None:
    """Four points and all ways in which two looks can fall: P[answer], exactly."""
    at_most = (187, 199, 214)
    data = Listed(np.repeat(np.arange(4.0), np.diff([0, *at_most, BLOCKS])))
    table = ESTIMATE.coin(mixed_plan().order).halfsteps
    error = [Fraction(float(table[min(abs(2 * c - BLOCKS), table.size - 1)])) for c in at_most]
    yes = [h if 2 * c <= BLOCKS else 1 - h for c, h in zip(at_most, error, strict=True)]
    law = [yes[1] * yes[0], yes[1] * (1 - yes[0])]
    law += [(1 - yes[1]) * yes[2], (1 - yes[1]) * (1 - yes[2])]
    found = [Fraction(0)] * 4
    for words in itertools.product((0, LARGEST_WORD), repeat=2):
        asked = Estimate(fresh(mixed_plan()), data, Script(words))
        answer = int(asked.ask(value, grid([0, 1, 2, 3])).value)
        asked_at = (1, 0 if answer < 2 else 2)
        falls = zip(asked_at, words, strict=True)
        found[answer] += math.prod(error[i] if word == 0 else 1 - error[i] for i, word in falls)
    assert found == law


def test_an_estimator_tosses_its_coins_once_a_question() -> None:
    """All looks of a question see one value of each block, however random the estimator is."""
    calls = 0

    def toss(_: Rows) -> float:
        nonlocal calls
        calls += 1
        return float(calls)

    asked = estimate(rows=np.zeros(BLOCKS))
    assert points(8).looks == 3
    asked.ask(toss, points(8))
    assert calls == BLOCKS


def test_a_target_of_its_own_is_aimed_at() -> None:
    """Unequal tails: the count crosses the part's target, not m/2."""
    part = replace(INTERVAL, name="estimate", protocol="estimate", mirrored=False)
    plan = replace(alone("interval"), parts=(part,))
    answer = Estimate(Budget(plan), source(), TRUTH).ask(value, grid(0, 1, step=0.01))
    assert answer.value == pytest.approx(part.twice_target / (2 * BLOCKS), abs=0.01)
    assert (answer.tail_low, answer.tail_high, answer.tail) == (0.02, 0.5, 0.02)


# What it says of itself, and what it costs.


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9, 1000])
def test_a_question_pays_the_looks_of_its_own_grid(size: int) -> None:
    """More than planned for a larger grid, nothing for a single point."""
    asked = estimate()
    answer = asked.ask(value, points(size))
    price = Fraction(ESTIMATE.prices(mixed_plan().order).no)
    looks = math.ceil(math.log2(size))
    assert account(asked.budget)[0] == looks * price
    assert account(asked.budget)[1]["estimate"] == (looks, 0)
    assert answer.price == float(looks * price)
    assert answer.budget_left == asked.budget.left


def test_an_answer_says_what_it_is() -> None:
    answer = estimate(SeededEntropy(1)).ask(value, points(8))
    assert (answer.protocol, answer.method, answer.confidence) == ("estimate", "search", 0.4)
    assert (answer.low, answer.high) == (None, None)
    assert answer.promise.startswith("at least 2 in 100 fresh blocks of 1 unit give ")
    assert answer.block_units == 1
    assert "on blocks of 1 unit" in str(answer)
    data = answer.to_dict()
    assert set(data) == {*Answer.__dataclass_fields__, "assumes", "reading_words", "tail"}
    assert json.loads(json.dumps(data)) == data


def test_only_the_operating_system_s_entropy_is_certified() -> None:
    assert estimate(SystemEntropy()).ask(value, points(8)).certified
    assert Estimate(Budget(mixed_plan()), source()).ask(value, points(8)).certified
    assert not estimate(SeededEntropy(1)).ask(value, points(8)).certified
    assert not estimate(TRUTH).ask(value, points(8)).certified


def test_the_same_seed_gives_the_same_answers() -> None:
    rows = np.linspace(0.45, 0.55, BLOCKS)
    runs = []
    for seed in (5, 5, 6):
        asked = estimate(SeededEntropy(seed), rows)
        runs.append([asked.ask(value, grid(0.4, 0.6, points=40)) for _ in range(6)])
    assert runs[0] == runs[1]
    assert [a.value for a in runs[0]] != [a.value for a in runs[2]]


def test_a_known_shape_gives_a_bar_around_the_cell() -> None:
    rows = np.tile([0.3, 0.5], BLOCKS // 2)
    data = BlockArray(np.repeat(rows, 50), BLOCKS)
    asked = Estimate(Budget(mixed_plan()), data, TRUTH)
    answer = asked.ask(np.mean, grid(0, 1, step=0.05), shape=BoundedMean())
    assert answer.low is not None
    assert answer.high is not None
    cell = grid(0, 1, step=0.05).cell(round(answer.value / 0.05))
    assert (answer.low, answer.high) == BoundedMean().bar(cell, 50, 0.02, 0.02)
    assert answer.low < cell[0] < cell[1] < answer.high  # type: ignore[operator]
    assert "between low and high" in answer.promise
    end = estimate().ask(lambda rows: -1.0, points(8), shape=KnownSd(1.0))
    assert end.low is None
    assert end.at_grid_end


# What cannot hurt it.


@pytest.mark.parametrize("kind", FAILURES)
def test_an_estimator_that_fails_is_the_lowest_point(kind: str) -> None:
    answer = estimate().ask(FAILURES[kind], points(8))
    assert answer.value == 0
    assert answer.at_grid_end


def test_blocks_that_fail_count_below_everything() -> None:
    """60 % of the blocks fail: the median is the lowest point; 40 %: it is not."""
    for share, expected in ((0.6, 0.0), (0.4, 1.0)):
        rows = np.where(np.arange(BLOCKS) < share * BLOCKS, np.nan, 1.0)
        assert estimate(rows=rows).ask(value, points(2)).value == expected


@pytest.mark.parametrize(
    "estimator",
    [lambda rows: float(np.log(rows - 0.5).sum()), lambda rows: float(np.mean(rows[rows > 0.5]))],
    ids=["invalid", "empty"],
)
def test_no_warning_depends_on_the_data(estimator: Any) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        estimate().ask(estimator, points(8))
    assert seen == []


def unchanged_and_refused(asked: Estimate, *args: Any, **more: Any) -> bool:
    before = account(asked.budget)
    with pytest.raises(InvalidInput):
        asked.ask(*args, **more)
    return account(asked.budget) == before


@pytest.mark.parametrize("wrong", [None, 5, "0:1:0.1", [0, 1], np.arange(3.0)], ids=str)
def test_what_is_no_grid_costs_nothing(wrong: object) -> None:
    assert unchanged_and_refused(estimate(), value, wrong)


@pytest.mark.parametrize("wrong", ["mean", 1, BoundedMean], ids=["text", "number", "class"])
def test_what_is_no_shape_costs_nothing(wrong: object) -> None:
    assert unchanged_and_refused(estimate(), value, points(8), shape=wrong)


@pytest.mark.parametrize("wrong", [1, "system", SeededEntropy], ids=["number", "text", "class"])
def test_what_is_no_entropy_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="entropy"):
        Estimate(Budget(mixed_plan()), source(), wrong)


def test_other_numbers_of_blocks_are_refused() -> None:
    for blocks in (BLOCKS - 1, BLOCKS + 1, 1):
        with pytest.raises(InvalidInput, match="the plan's 400"):
            Estimate(Budget(mixed_plan()), BlockArray(np.zeros(2 * BLOCKS), blocks))


@pytest.mark.parametrize("name", ["other", "verify", "interval", 5])
def test_a_part_is_one_of_the_plan_and_of_the_protocol(name: Any) -> None:
    for protocol in (Estimate, Interval, Verify):
        if protocol.protocol != name:
            with pytest.raises(InvalidInput):
                protocol(Budget(mixed_plan()), source(), TRUTH, name=name)


def test_a_plan_without_estimates_gives_none() -> None:
    with pytest.raises(InvalidInput, match="Make a plan that covers it"):
        Estimate(Budget(alone("verify")), source())


def test_a_source_that_lies_gets_no_answer() -> None:
    """Its price stays spent: nobody can tell what it would have said."""
    budget = Budget(mixed_plan())
    asked = Estimate(budget, Short(np.zeros(BLOCKS), BLOCKS), Script([]))
    with pytest.raises(InvalidInput, match="one for each"):
        asked.ask(value, points(8))
    assert account(budget)[0] <= Fraction(mixed_plan().budget)


# Held first, drawn later.


def test_a_price_may_be_held_first() -> None:
    asked = estimate()
    held = asked.reserve(points(8))
    assert account(asked.budget)[1]["estimate"] == (3, 0)
    assert asked.draw(held, value, points(8)).value == estimate().ask(value, points(8)).value
    assert account(asked.budget)[1]["estimate"] == (3, 0)


def test_a_smaller_price_buys_no_larger_grid() -> None:
    asked = estimate()
    held = asked.reserve(points(2))
    with pytest.raises(InvalidInput):
        asked.draw(held, value, points(1024))


def test_a_price_buys_one_answer() -> None:
    """The second draw is refused before the coins are flipped, not after."""
    budget = Budget(mixed_plan())
    watch = Watch(budget)
    asked = Estimate(budget, source(), watch)
    held = asked.reserve(points(8))
    asked.draw(held, value, points(8))
    flipped = len(watch.spent)
    with pytest.raises(InvalidInput):
        asked.draw(held, value, points(8))
    assert len(watch.spent) == flipped


def test_a_price_is_paid_where_it_is_drawn() -> None:
    """A reservation of another budget pays for nothing here."""
    other, asked = estimate(), estimate()
    held = other.reserve(points(8))
    with pytest.raises(InvalidInput):
        asked.draw(held, value, points(8))
