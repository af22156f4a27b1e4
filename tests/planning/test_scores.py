"""Plans for scores: one for every number of rows, or a refusal that says why."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import Infeasible
from holdfast.planning.joint import joint_plan
from holdfast.protocols.guesses import Guesses
from holdfast.protocols.means import DirectMeans, DirectPart, score_plan
from holdfast.protocols.plans import JointPlan, Request
from holdfast.protocols.searches import Estimates
from holdfast.protocols.weights import WeightedEstimates
from holdfast.theory.means import DirectBars, best_direct


def bars_of(plan: JointPlan) -> DirectBars:
    (part,) = plan.parts
    assert isinstance(part, DirectPart)
    return part.bars(plan.order, plan.budget, plan.blocks)


def says_something(plan: JointPlan) -> bool:
    """Whether some two answers exclude each other, by looking at all of them."""
    bars = bars_of(plan)
    return max(bars.low) > min(bars.high)


@pytest.mark.parametrize("rows", [990, 999, 1_000, 1_001, 1_005])
def test_every_number_of_rows_has_a_plan(rows: int) -> None:
    plan = score_plan(20, rows)
    assert plan.verify()
    assert plan.blocks == rows
    assert says_something(plan)
    assert plan.part("mean").half_width == pytest.approx(0.216, abs=0.002)


# Numbers of questions and rows between which everything happens: no plan, a wide one, a narrow one.
QUERIES = st.one_of(st.integers(1, 30), st.sampled_from([100, 1_000, 10_000]))
ROWS = st.one_of(st.integers(1, 2_000), st.sampled_from([10_000, 100_000]))


@settings(max_examples=15, deadline=None)
@given(QUERIES, ROWS, st.sampled_from([0.8, 0.95, 0.999]))
def test_a_plan_proves_itself_and_says_something_or_it_is_refused(
    queries: int, rows: int, confidence: float
) -> None:
    try:
        plan = score_plan(queries, rows, confidence)
    except Infeasible as refused:
        said = str(refused)
    else:
        said = ""
    if said:
        assert "The bars would say nothing" in said
        assert f"with {rows:,} row(s) and {queries:,} question(s)" in said
        # It is out of reach, and not one of a few sizes that are missed.
        assert best_direct(queries, 0.3, confidence, exact=False).blocks > rows
        return
    assert plan.verify()
    assert plan.blocks == rows
    assert says_something(plan)
    assert plan.part("mean").half_width <= 0.45
    assert JointPlan.from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize(("queries", "rows"), [(1000, 50), (20, 200), (1000, 200), (1, 1), (3, 20)])
def test_a_refusal_says_what_would_do(queries: int, rows: int) -> None:
    with pytest.raises(Infeasible, match="their bars would be") as caught:
        score_plan(queries, rows)
    found = re.search(r"about ([\d,]+) give bars of ±0.25", str(caught.value))
    assert found is not None
    enough = score_plan(queries, int(found[1].replace(",", "")))
    assert bars_of(enough).half_width <= 0.26


@pytest.mark.parametrize(
    ("requests", "missed"),
    [
        ((DirectMeans(20, 0.2155),), 1_000),
        ((Guesses(100, 5),), 1_885),
        ((WeightedEstimates(200, 101, 0.05),), 756),
    ],
    ids=["means", "guesses", "weights"],
)
def test_more_blocks_than_enough_are_never_too_few(
    requests: tuple[Request, ...], missed: int
) -> None:
    """Whole targets make single sizes fail above ones that pass: there some blocks stay unused."""
    fewest = joint_plan(*requests).blocks
    assert fewest < missed
    for blocks in range(max(fewest, missed - 3), missed + 4):
        plan = joint_plan(*requests, blocks=blocks)
        assert max(fewest, blocks - 24) <= plan.blocks <= blocks
        assert plan.verify()


def test_fewer_blocks_than_enough_are_refused() -> None:
    fewest = joint_plan(Estimates(5, grid=8, tail_low=0.05, tail_high=0.05)).blocks
    with pytest.raises(Infeasible, match=rf"needs {fewest:,} blocks, but there are {fewest - 1:,}"):
        joint_plan(Estimates(5, grid=8, tail_low=0.05, tail_high=0.05), blocks=fewest - 1)
