"""The planner's half-widths: those of the theorems, never smaller, and never too late."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import pytest

import holdfast as hf
from holdfast.errors import InvalidInput
from holdfast.planning import compare
from holdfast.planning.compare import PlannerInput, compare_widths
from holdfast.planning.joint import joint_plan
from holdfast.protocols.means import DirectMeans
from holdfast.theory.means import scaled_direct
from holdfast.theory.published import WIDTHS

NAMES = ["mean", "median", "split", "bassily", "rogers", "jung", "naive"]


@cache
def found(*study: Any) -> dict[str, Any]:
    """The half-widths at a point, by method."""
    told = compare_widths(*study, curve=False)
    return {each["name"]: each["half_width"] for each in told["methods"]}


def test_a_holdout_can_be_made_that_keeps_the_mean_it_shows() -> None:
    rows, queries = 5_000, 10
    width = found(rows, queries, 0.25, 0.95)["mean"]
    assert joint_plan(DirectMeans(queries, width * 1.01)).blocks <= rows


@pytest.mark.parametrize(
    ("rows", "queries", "tail", "confidence"),
    [(20_000, 40, 0.25, 0.95), (3_000, 100, 0.01, 0.9), (2_000, 3, 0.25, 0.95)],
)
def test_medians_are_those_of_the_planner(
    rows: int, queries: int, tail: float, confidence: float
) -> None:
    planned = hf.plan(rows=rows, queries=queries, grid=32, tail=tail, confidence=confidence)
    study = PlannerInput(rows, queries, tail, confidence)
    ours = compare._on_grid(study, 5)
    assert ours.half_width == pytest.approx(planned.error, rel=0.01)
    assert ours.blocks == pytest.approx(planned.recommended_blocks, rel=0.02)
    best = compare._median(study)  # on the grid that is best
    assert best.half_width is not None
    assert ours.half_width is not None
    assert best.half_width <= ours.half_width


@pytest.mark.parametrize("name", ["bassily", "rogers", "jung"])
def test_published_widths_are_the_published_ones(name: str) -> None:
    assert found(5_000, 10, 0.25, 0.95)[name] == WIDTHS[name](5_000, 10, 0.05)


def test_fresh_rows_and_naive_are_below_hoeffding_and_near_it() -> None:
    known = found(5_000, 10, 0.25, 0.95)
    for name, units in (("split", 500), ("naive", 5_000)):
        hoeffding = math.sqrt(math.log(2 * 10 / 0.05) / (2 * units))
        assert 0.95 * hoeffding < known[name] <= hoeffding * (1 + 1e-9)


def test_more_rows_are_narrower_and_more_questions_wider() -> None:
    base = found(5_000, 10, 0.25, 0.95)
    more_rows, more_questions = found(20_000, 10, 0.25, 0.95), found(5_000, 100, 0.25, 0.95)
    for name in NAMES:
        assert more_rows[name] < base[name]
        assert more_questions[name] is None or more_questions[name] > base[name]


def test_what_is_no_better_than_no_data_is_none_with_a_reason() -> None:
    told = compare_widths(100, 1_000, 0.25, 0.95, curve=False)
    by_name = {each["name"]: each for each in told["methods"]}
    assert [*by_name] == NAMES
    assert [name for name in NAMES if by_name[name]["half_width"] is not None] == ["naive"]
    assert all(("reason" in each) == (each["half_width"] is None) for each in told["methods"])
    assert [each["name"] for each in told["methods"] if not each["certified"]] == ["naive"]
    assert "not valid when questions are chosen adaptively" in by_name["naive"]["label"]


def test_a_table_too_long_to_build_is_not_begun() -> None:
    told = compare_widths(10**9, 10**5, 0.01, 0.95, curve=False)
    mean = told["methods"][0]
    assert mean["half_width"] is None
    assert "holdfast plan" in mean["reason"]


def test_curves_are_finite_never_fall_and_pass_through_the_point() -> None:
    told = json.loads(compare.start(None)((5_000, 10, 0.25, 0.95, True)))
    numbers = [each["queries"] for each in told["curve"]]
    assert numbers == sorted({*numbers})
    assert numbers[-1] == 100
    assert numbers[0] == 1
    for name in NAMES:
        line = [each[name] for each in told["curve"] if each[name] is not None]
        assert line == sorted(line)
        assert all(0 < width < 0.5 for width in line)
    (here,) = [each for each in told["curve"] if each["queries"] == 10]
    for each in told["methods"]:
        if each["half_width"] is not None:
            assert here[each["name"]] <= each["half_width"]


def test_a_curve_over_many_rows_takes_fewer_points_but_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compare, "_CURVE", 500.0)
    curve = compare_widths(5_000, 10, 0.25, 0.95)["curve"]
    shown = [each["queries"] for each in curve if each["mean"] is not None]
    assert 10 in shown
    assert 1 < len(shown) < len(curve)


@pytest.mark.parametrize("queries", [1, 100])
def test_scaled_parameters_are_certified_and_not_much_wider(queries: int) -> None:
    plan = compare.direct(5_000, 10, 0.95)
    scaled = scaled_direct(plan, queries)
    assert scaled.verify()
    assert scaled.queries == queries
    best = compare.direct(5_000, queries, 0.95).half_width
    assert 0.9 * best < scaled.half_width < 1.12 * best


@pytest.mark.parametrize(
    ("study", "parameter"),
    [
        ((0, 10, 0.25, 0.95), "rows"),
        ((1_000, 0, 0.25, 0.95), "queries"),
        ((1_000, 10, 0.5, 0.95), "tail"),
        ((1_000, 10, math.nan, 0.95), "tail"),
        ((1_000, 10, 0.25, 1.0), "confidence"),
    ],
)
def test_what_is_wrong_is_named(study: tuple[Any, ...], parameter: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        compare_widths(*study)
    assert wrong.value.parameter == parameter
