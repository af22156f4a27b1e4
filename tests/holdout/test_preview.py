"""What is said of bars before anything is sealed is what they are at their widest."""

from __future__ import annotations

import pytest

from holdfast.holdout.creation import preview_of
from holdfast.holdout.spec import sets_for
from holdfast.planning.joint import joint_plan
from holdfast.protocols.means import DirectMeans, DirectPart, MedianMeans, median_bar, range_grid
from holdfast.protocols.searches import Estimates, SearchPart
from holdfast.protocols.source import UNIT
from holdfast.store.sealing import split_units
from tests.holdout import plans


@pytest.mark.parametrize("rows", [2_000, 20_000, 200_000])
def test_no_bar_of_a_median_is_wider_than_shown(rows: int) -> None:
    plan = joint_plan(Estimates(10, 16, 0.05, 0.05), MedianMeans(5, grid=21, tail=0.01))
    sets = sets_for(plan)
    split = split_units(rows, plan.blocks)
    shown = preview_of(sets, rows, split)
    for part, said in zip(plan.parts, shown.parts, strict=True):
        assert isinstance(part, SearchPart)
        assert said.half_width is not None
        points = range_grid(part, UNIT)
        bars = [median_bar(part, points, i, split.block_units, UNIT) for i in range(points.size)]
        widest = max((high - low) / 2 for low, high in bars)
        assert widest <= said.half_width + 2e-5  # terms are rounded to 2⁻¹⁶
        assert widest >= 0.8 * min(said.half_width, 0.5)  # and it is no idle bound


def test_the_bar_of_a_direct_search_is_the_plans() -> None:
    plan = joint_plan(DirectMeans(20, 0.15))
    (said,) = preview_of(sets_for(plan), plan.blocks, split_units(plan.blocks, plan.blocks)).parts
    (part,) = plan.parts
    assert isinstance(part, DirectPart)
    bars = part.bars(plan.order, plan.budget, plan.blocks)
    widest = max((high - low) / 2 for low, high in zip(bars.low, bars.high, strict=True))
    assert said.half_width == pytest.approx(widest, abs=1e-12)


def test_what_is_left_over_is_counted() -> None:
    sets = sets_for(plans.split())
    blocks = plans.split().blocks
    assert preview_of(sets, 10 * blocks, split_units(10 * blocks, blocks, 0.0, 4)).mostly_left_over
    assert not preview_of(
        sets, 7 * blocks, split_units(7 * blocks, blocks, 0.0, 4)
    ).mostly_left_over
