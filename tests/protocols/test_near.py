"""Near: guesses for plans that were made for none."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.protocols.budget import Budget
from holdfast.protocols.searches import Near
from holdfast.protocols.source import BlockArray
from tests.holdout import plans
from tests.mechanisms.laws import LARGEST_WORD, Constant

TRUTH = Constant(LARGEST_WORD)  # no coin errs
BLOCKS = plans.estimates().blocks


def first(rows: NDArray[Any]) -> float:
    return float(rows[0])


def near(values: NDArray[np.float64]) -> Near:
    return Near(Budget(plans.estimates()), BlockArray(values, BLOCKS), TRUTH, name="estimate")


def constant(value: float) -> Near:
    return near(np.full(BLOCKS, value))


@given(
    st.floats(-1e300, 1e300),
    st.floats(-1e300, 1e300),
    st.one_of(st.just(0.0), st.floats(0, 1e300)),
)
def test_compatible_if_every_block_is_within_the_tolerance(
    value: float, guess: float, tolerance: float
) -> None:
    verdict = constant(value).ask(first, guess, tolerance=tolerance).verdict
    if abs(value - guess) <= tolerance * (1 - 1e-12):
        assert verdict == "compatible"
    if abs(value - guess) > tolerance + 1e-12 * (abs(guess) + tolerance):
        assert verdict == "cannot tell"


@pytest.mark.parametrize(
    ("guess", "tolerance", "verdict"),
    [
        (0.5, 0.0, "compatible"),
        (0.5, 0.25, "compatible"),
        (0.25, 0.25, "compatible"),  # the ends belong to it, however they are rounded
        (0.75, 0.25, "compatible"),
        (0.1, 0.4, "compatible"),
        (0.25, 0.2, "cannot tell"),
        (0.75, 0.2, "cannot tell"),
        (math.nextafter(0.5, 1), 0.0, "cannot tell"),
        (math.nextafter(0.5, 0), 0.0, "cannot tell"),
    ],
)
def test_on_one_value(guess: float, tolerance: float, verdict: str) -> None:
    assert constant(0.5).ask(first, guess, tolerance=tolerance).verdict == verdict


def test_it_takes_two_looks_at_the_price_of_a_search() -> None:
    asked = constant(0.5)
    plan = plans.estimates()
    price = plan.part("estimate").prices(plan.order).no
    for guess in (0.5, 0.9):
        verdict = asked.ask(first, guess, tolerance=0.1)
        assert verdict.price == pytest.approx(
            2 * price
        )  # to stand costs what it costs to be refused
        assert verdict.refusals_left is None
    assert asked.budget.spent == pytest.approx(4 * price)
    assert asked.budget.buys()["estimate"].looks == 18 - 4


def test_the_median_decides() -> None:
    values = np.arange(BLOCKS) / BLOCKS
    assert near(values).ask(first, 0.5, tolerance=0.01).verdict == "compatible"
    assert near(values).ask(first, 0.4, tolerance=0.01).verdict == "cannot tell"
    assert near(values).ask(first, 0.6, tolerance=0.01).verdict == "cannot tell"
    assert near(values).ask(first, 0.4, tolerance=0.15).verdict == "compatible"


def test_failures_are_the_lowest_of_all() -> None:
    failing = constant(math.nan)
    assert failing.ask(first, 0.0, tolerance=1e300).verdict == "cannot tell"
    assert constant(-math.inf).ask(first, 0.0, tolerance=1e300).verdict == "cannot tell"


def test_exhausted_is_free_and_final() -> None:
    asked = constant(0.5)
    for _ in range(9):
        assert asked.ask(first, 0.5).verdict == "compatible"
    spent = asked.budget.spent
    for _ in range(2):
        verdict = asked.ask(first, 0.5)
        assert (verdict.verdict, verdict.price) == ("exhausted", 0)
    assert asked.budget.spent == spent


@pytest.mark.parametrize(
    ("guess", "tolerance"), [(math.nan, 0), (math.inf, 0), (0, -1), (0, math.nan), ("a", 0)]
)
def test_what_is_no_guess_costs_nothing(guess: Any, tolerance: Any) -> None:
    asked = constant(0.5)
    with pytest.raises(InvalidInput):
        asked.ask(first, guess, tolerance=tolerance)
    assert asked.budget.spent == 0


def test_it_needs_a_part_that_searches_for_a_quantile() -> None:
    source = BlockArray(np.zeros(400), 400)
    for name in ("interval", "verify"):
        with pytest.raises(InvalidInput, match="a part for verify"):
            Near(Budget(plans.mixed()), source, TRUTH, name=name)
