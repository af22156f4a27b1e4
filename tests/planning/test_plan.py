"""Plans: the figures they must reach, and that they prove themselves and survive a journey."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.planning.plan import explain, theorem_chain
from holdfast.planning.solve import steepest
from holdfast.theory.bars import mean_half_width
from holdfast.theory.sizing import Promise
from tests.theory.checker import check


@pytest.fixture(scope="module")
def made() -> hf.Plan:
    return hf.plan(queries=1000, grid=32, tail=0.25, confidence=0.95)


def checked(plan: hf.Plan, blocks: int | None = None) -> bool:
    """The independent checker's verdict, at the plan's blocks or at another number of them."""
    m = plan.blocks if blocks is None else blocks
    central = plan.twice_target == plan.blocks and plan.tail is not None
    coin = plan.order, plan.look_price, plan.floor, plan.looks
    target = m if central else plan.twice_target
    tails = plan.tail_low, plan.tail_high, plan.failure_low, plan.failure_high
    return check(*coin, m, target, *tails, central)


@pytest.mark.parametrize(
    ("queries", "tail", "most", "reference"),
    [
        (1_000, 0.25, 4_283, 6_543),
        (1_000, 0.05, 689, 904),
        (1_000, 0.01, 332, 432),
        (100, 0.25, 2_260, 2_179),
        (10_000, 0.05, 2_850, 2_805),
    ],
)
def test_beats_the_reference_figures(queries: int, tail: float, most: int, reference: int) -> None:
    plan = hf.plan(queries=queries, grid=32, tail=tail, confidence=0.95)
    assert plan.method == "steepest"
    assert plan.blocks <= most
    assert plan.blocks < reference  # the prototype's own figures, with its sharpest analysis
    assert plan.verify()


def test_other_methods_on_the_same_promise(made: hf.Plan) -> None:
    assert made.blocks_of("paper") == 864_839
    assert made.blocks_of("split") == 57_000
    assert made.blocks_of("gaussian") <= 18_632
    assert made.blocks_of("exponential") <= 32_665
    with pytest.raises(hf.InvalidInput, match="one of paper, split"):
        made.blocks_of("interior")


@pytest.mark.parametrize(
    "request_",
    [
        {"queries": 100, "grid": 32, "tail": 0.25},
        {"queries": 1000, "grid": 32, "tail": 0.01},
        {"queries": 50, "grid": 1000, "tail": 0.05, "confidence": 0.999},
        {"queries": 20, "grid": 7, "tails": (0.1, 0.7)},
    ],
)
def test_independent_checker_agrees(request_: dict[str, object]) -> None:
    plan = hf.plan(**request_)  # type: ignore[arg-type]
    assert plan.verify()
    assert checked(plan)
    if plan.tail is not None:  # unequal tails have a target of their own to move as well
        assert not checked(plan, plan.blocks - 2)


def test_splitting_is_recommended_for_few_questions_only() -> None:
    few = hf.plan(queries=15, grid=32, tail=0.25)
    assert few.method == "split"
    assert few.recommended_blocks == few.blocks_of("split") < few.blocks
    assert "cheaper" in str(few)
    many = hf.plan(queries=25, grid=32, tail=0.25)
    assert many.method == "steepest"


def test_json_round_trip(made: hf.Plan) -> None:
    again = hf.Plan.from_json(made.to_json())
    assert again == made
    data = json.loads(made.to_json())
    keys = "method blocks looks order budget floor tau tail confidence alternatives"
    assert set(keys.split()) <= set(data)
    assert {"paper", "split", "exponential", "gaussian", "steepest"} == {
        entry["method"] for entry in data["alternatives"]
    }
    assert all(isinstance(entry["blocks"], int) for entry in data["alternatives"])
    assert all("asymptotic only" in entry["note"] for entry in data["uncounted"])


PROMISES = """
blocks=4_000, twice_target=4_000; budget=0.05; queries=1_100; tail_low=0.26, tail_high=0.26
confidence=0.96; look_price=3e-5; floor=1e-5; order=20.0; tau=100.0
failure_low=0.06, failure_high=0.06
"""
BESIDE = """
method="split"; method="paper"; rows=8_000, block_size=2, leftover=0; alternatives=()
rows=4_300, block_size=1, leftover=37; settings=(("sigma", 1.0),); error=0.1; blocks="many"
order=None; queries=1e400; looks=[]
"""
WRITTEN = """
tail=0.4; tails=[0.4, 0.6]; queries=1000.0; grid=32.0; blocks=0; binding=3; uncounted=None
alternatives=[{"method": "steepest", "blocks": 4262}]; shape={"kind": "mean"}; error=1e-9
"""


def listed(text: str) -> list[str]:
    return text.strip().replace("\n", "; ").split("; ")


@pytest.mark.parametrize("change", listed(PROMISES + BESIDE.lstrip()))
def test_a_changed_plan_is_refused(made: hf.Plan, change: str) -> None:
    """Whether it promises more, or contradicts itself beside the promise."""
    changed = dataclasses.replace(made, **eval(f"dict({change})"))
    assert change in listed(BESIDE) or not changed.verify()
    with pytest.raises(hf.InvalidInput, match="plan must be"):
        hf.Plan.from_json(changed.to_json())


@pytest.mark.parametrize("change", listed(WRITTEN))
def test_changed_fields_are_refused(made: hf.Plan, change: str) -> None:
    with pytest.raises(hf.InvalidInput, match="plan must be"):
        hf.Plan.from_dict({**made.to_dict(), **eval(f"dict({change})")})


def test_a_plan_with_rows_survives_the_journey() -> None:
    for request in (
        {"queries": 50, "grid": 32, "tail": 0.05, "rows": 100_000},
        {"queries": 5, "grid": 32, "tail": 0.25, "rows": 10_000, "shape": "sd", "sd": 2.0},
        {"queries": 5, "grid": 8, "tails": (0.2, 0.9), "block_size": 10},
    ):
        plan = hf.plan(**request)
        assert hf.Plan.from_json(plan.to_json()) == plan
        if plan.method == "split":
            assert set(dict(plan.settings)) == {"blocks_per_question", "rank"}
        if plan.error is not None:
            with pytest.raises(hf.InvalidInput, match="plan must be"):
                hf.Plan.from_dict({**plan.to_dict(), "error": plan.error / 2})


def test_foreign_json_is_refused(made: hf.Plan) -> None:
    more = json.dumps({**made.to_dict(), "extra": 1})
    for text in ("", "[]", "[" * 100_000, "{}", '{"format": 1}', more):
        with pytest.raises(hf.InvalidInput, match="plan must be"):
            hf.Plan.from_json(text)


def test_explanation_says_what_matters(made: hf.Plan) -> None:
    text = str(made)
    for part in ("(0.25, 0.75)", "0.95", "5,000 looks", "864,839", "centred", "independent"):
        assert part in text
    assert "others" not in explain(made, others=False)
    for method in ("steepest", "split", "gaussian", "exponential"):
        assert theorem_chain(method)


def test_rows_give_the_best_error() -> None:
    plan = hf.plan(queries=200, rows=200_000, grid=64)
    assert plan.block_size is not None
    assert plan.error is not None
    assert plan.rows == 200_000 == plan.block_size * plan.recommended_blocks + (plan.leftover or 0)
    rounding = 1 / (2 * 63)
    assert plan.rounding == pytest.approx(rounding)
    assert plan.error == pytest.approx(mean_half_width(plan.block_size, plan.tail_low) + rounding)
    for tail in (plan.tail_low / 8, plan.tail_low * 8):
        other = hf.plan(queries=200, rows=200_000, grid=64, tail=tail)
        assert other.error is not None
        # Blocks are whole: one more or less, of about twenty, is 1/(2m) of the error.
        assert plan.error <= other.error * (1.005 + 1 / (2 * plan.recommended_blocks))


def test_wanted_error_is_reached_with_the_fewest_rows() -> None:
    plan = hf.plan(queries=200, error=0.05)
    assert plan.error is not None
    assert plan.rows is not None
    assert plan.error <= 0.05
    fewer = hf.plan(queries=200, rows=int(plan.rows * 0.97), grid=plan.grid)
    assert fewer.error is not None
    assert fewer.error > 0.05 * 0.999


def test_wanted_error_with_blocks_of_a_given_size() -> None:
    plan = hf.plan(queries=500, error=0.05, block_size=1000)
    assert plan.block_size == 1000
    assert plan.error is not None
    assert 0.049 <= plan.error <= 0.05
    most = hf.plan(rows=18_000, block_size=100, error=0.2)
    assert most.queries >= 900  # 900 questions leave room on these rows
    assert most.error is not None
    assert most.error <= 0.2
    few = hf.plan(blocks=300, block_size=10, error=0.4)
    assert few.recommended_blocks <= 300


def test_a_target_is_aimed_at() -> None:
    plan = hf.plan(queries=100, grid=32, tails=(0.1, 0.9), target=0.2)
    assert plan.target == pytest.approx(0.2, abs=1e-3)
    assert plan.verify()
    assert {a.method for a in plan.alternatives if a.blocks is not None} == {"gaussian", "steepest"}
    assert plan.method == "steepest"


def test_blocks_at_hand_give_the_largest_tail() -> None:
    plan = hf.plan(queries=100, blocks=500, grid=32)
    assert plan.blocks <= 500
    assert plan.tail is not None
    assert hf.plan(queries=100, grid=32, tail=plan.tail * 1.02).blocks > 500


def test_most_questions() -> None:
    plan = hf.plan(blocks=1430, grid=32, tail=0.25)
    assert plan.recommended_blocks <= 1430
    assert 95 <= plan.queries <= 110  # 100 questions need 1,413 blocks
    more = hf.plan(queries=math.ceil(plan.queries * 1.02), grid=32, tail=0.25)
    assert more.recommended_blocks > 1430


def test_known_standard_deviation() -> None:
    plan = hf.plan(queries=100, rows=100_000, shape="sd", sd=2.0, grid=32)
    assert plan.error is not None
    assert plan.block_size is not None
    rho = plan.tail_low
    assert plan.error == pytest.approx(2.0 * math.sqrt((1 - rho) / (rho * plan.block_size)))


def test_a_grid_brings_its_own_rounding() -> None:
    grid = hf.grid(0, 1, step=0.02)
    plan = hf.plan(queries=100, rows=100_000, grid=grid, tail=0.01)
    assert plan.grid == 51
    assert plan.rounding == pytest.approx(0.01)
    wide = hf.plan(queries=100, rows=100_000, grid=hf.grid(0, 100, step=2), tail=0.01)
    assert wide.error is not None
    assert plan.error is not None
    assert wide.error == pytest.approx(100 * plan.error)  # the mean's range is the grid's
    coarse = hf.plan(queries=100, rows=100_000, grid=hf.grid([0, 0.5, 0.6, 1]), tail=0.01)
    assert coarse.rounding == pytest.approx(0.25)


@settings(max_examples=3)
@given(
    queries=st.integers(2, 300),
    tail=st.sampled_from([0.01, 0.05, 0.2]),
    confidence=st.sampled_from([0.8, 0.95, 0.999]),
)
def test_monotone(queries: int, tail: float, confidence: float) -> None:
    def needed(queries: int, grid: int, tail: float, confidence: float) -> int:
        return steepest(Promise(queries, grid, tail, tail, confidence)).size.blocks

    base = needed(queries, 16, tail, confidence)
    slack = 1.01  # each plan is optimised by itself, to a fraction of a percent
    assert needed(2 * queries, 16, tail, confidence) > base
    assert needed(queries, 256, tail, confidence) > base
    assert needed(queries, 16, tail * 1.5, confidence) >= base / slack
    assert needed(queries, 16, tail, (1 + confidence) / 2) >= base / slack


def test_a_plan_whose_bars_say_nothing_is_refused() -> None:
    with pytest.raises(hf.Infeasible, match="below ±50, half of the mean's range") as caught:
        hf.plan(queries=5, rows=25, low=-20, high=80)
    assert "The bars would say nothing" in str(caught.value)
    assert "Scores, comparisons, shares and means need no plan" in str(caught.value)
    assert "with 5 question(s) and 25 row(s)" in str(caught.value)
    said = re.search(r"would be ±([\d.]+)\.", str(caught.value))
    assert said is not None
    assert float(said[1]) == pytest.approx(68.12, rel=0.05)


def test_a_promise_of_given_tails_needs_no_error() -> None:
    plan = hf.plan(queries=20, rows=1000, tail=0.25, grid=32)
    assert plan.verify()
    assert "would say nothing" in str(plan)
    assert "would say nothing" not in str(hf.plan(queries=20, rows=100_000, tail=0.25, grid=32))
