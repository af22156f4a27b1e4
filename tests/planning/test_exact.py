"""Plans without noise: they prove themselves, and nothing smaller or altered does."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import HoldfastError, Infeasible, InvalidInput
from holdfast.protocols import exact
from holdfast.protocols.exact import ExactVerdicts, exact_verdicts
from holdfast.protocols.plans import plan_from_dict

PLANS: dict[str, ExactVerdicts] = {
    "verdicts": exact_verdicts(200, 3),
    "one-sided": exact_verdicts(200, 3, sides=1),
}
SHARES: dict[str, dict[str, Any]] = {
    "verdicts": {"queries": 2_000, "refusals": 4, "tail_low": 0.06, "tail_high": 0.24},
    "one-sided": {"queries": 2_000, "refusals": 4, "sides": 2},
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_proves_itself_and_no_more(name: str) -> None:
    plan = PLANS[name]
    assert plan.verify()
    assert plan.failure == 0.05
    assert 0.5 * plan.failure < plan.bound <= plan.failure
    assert math.log(plan.bound) == pytest.approx(plan.log_bound)
    assert not replace(plan, blocks=math.floor(0.97 * plan.blocks)).verify()
    assert not replace(plan, confidence=0.99).verify()
    assert replace(plan, confidence=0.9).verify()
    assert plan_from_dict(json.loads(json.dumps(plan.kept()))) == plan


@pytest.mark.parametrize(
    ("name", "field"), [(name, field) for name, fields in SHARES.items() for field in fields]
)
def test_a_promise_beyond_the_plan_is_not_proved(name: str, field: str) -> None:
    altered = replace(PLANS[name], **{field: SHARES[name][field]})
    assert not altered.verify()


def test_one_block_less_is_not_enough_for_any_count() -> None:
    plan = PLANS["verdicts"]
    fewer = plan.blocks - 1
    assert not any(replace(plan, blocks=fewer, least=c).verify() for c in range(1, fewer + 1))


def test_the_share_is_exact_to_the_last_digits() -> None:
    """N·q, in fractions, against β as written."""
    plan = exact_verdicts(3, 1, 0.125, 0.5 - 0.125, confidence=0.5)
    low, high = Fraction(1, 8), Fraction(3, 8)

    def law(p: Fraction, i: int) -> Fraction:
        m = plan.blocks
        return math.comb(m, i) * p**i * (1 - p) ** (m - i)

    yes = sum((law(low, i) for i in range(plan.least, plan.blocks + 1)), Fraction(0))
    no = 2 * sum((law(high, i) for i in range(plan.least)), Fraction(0))
    share = 2 * no + max(no, yes)
    assert share <= Fraction(1, 2)
    assert share <= plan.bound <= share * Fraction(1_000_001, 1_000_000)


def test_the_figures() -> None:
    assert [exact_verdicts(k, n).blocks for k, n in ((1_000, 10), (1_000, 1), (10_000, 1))] == [
        1_153,
        113,
        133,
    ]


@settings(max_examples=12, deadline=None)
@given(
    st.integers(1, 10**5),
    st.integers(1, 30),
    st.sampled_from([(0.05, 0.25), (0.001, 0.01), (0.3, 0.45)]),
    st.floats(0.5, 0.9999),
)
def test_what_is_made_is_proved(
    queries: int, refusals: int, tails: tuple[float, float], confidence: float
) -> None:
    assert exact_verdicts(queries, min(refusals, queries), *tails, confidence).verify()


def test_whole_floats_are_welcome() -> None:
    plan = exact_verdicts(1e3, 10.0)  # type: ignore[arg-type]
    assert plan == exact_verdicts(1_000, 10)
    assert type(plan.queries) is int
    assert type(replace(plan, confidence=Fraction(1, 2)).confidence) is float  # type: ignore[arg-type]


NONSENSE = """
exact_verdicts(0, 1); exact_verdicts(10, 11); exact_verdicts(10, 1, 0.25, 0.05)
exact_verdicts(10, 1, confidence=1.0); exact_verdicts(10, 1, sides=0)
ExactVerdicts(10, 1, 2, 0.05, 0.25, 0.95, 100, 101); ExactVerdicts(10, 1, 2, 0.05, 0.25, 0.95, 0, 1)
ExactVerdicts(10, 1, 2, 0.05, 0.25, math.nan, 100, 10)
"""


@pytest.mark.parametrize("text", NONSENSE.strip().replace("\n", "; ").split("; "))
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        eval(text, {**vars(exact), "math": math})


def test_hopeless_plans_are_refused_politely() -> None:
    with pytest.raises(Infeasible) as refused:
        exact_verdicts(10**8, 10**6, 0.2499999, 0.25)
    assert isinstance(refused.value, HoldfastError)
    assert refused.value.remedy
