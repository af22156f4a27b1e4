"""The figures of unit-level privacy on the page, against their definition."""

from __future__ import annotations

import math

import pytest

from holdfast.planning.joint import joint_plan
from holdfast.planning.parts import SearchPart, VerdictPart
from holdfast.planning.requests import DirectMeans, MedianMeans, WeightedEstimates
from holdfast.report.page import page_html
from holdfast.report.sections import delta_for, set_privacy
from holdfast.report.story import read_story
from holdfast.theory.privacy import ORDERS, look_divergence, private_epsilon
from tests.report.ledgers import IDENTITY, Writer, charter, joint, simple
from tests.report.pages import Page


def test_the_figures_of_a_search_are_its_looks_times_the_whole_step_price() -> None:
    writer = Writer(charter(simple()))
    for _ in range(3):
        writer.ask()
    story = read_story(IDENTITY, writer.rows)
    (figures,) = set_privacy(story)
    (part,) = simple().parts
    assert isinstance(part, SearchPart)
    coin, delta = part.coin(simple().order), delta_for(story.charter.manifest.units)

    def epsilon(looks: int) -> float:
        return min(private_epsilon(looks * coin.neighbour_price(a), a, delta) for a in ORDERS)

    assert figures.spent is not None
    assert figures.whole is not None
    assert figures.spent.epsilon == pytest.approx(epsilon(15), rel=1e-9)
    assert figures.whole.epsilon == pytest.approx(epsilon(part.looks), rel=1e-9)
    centred = min(private_epsilon(15 * coin.price(a), a, delta) for a in ORDERS)
    assert figures.spent.epsilon > 1.2 * centred  # the plan's own price would be too little


def test_more_questions_are_less_private_and_never_beyond_the_whole_budget() -> None:
    writer = Writer(charter(joint()))
    before = 0.0
    for step in range(6):
        writer.verify(0.5, refused=step == 3)
        writer.ask(lost=step == 2)
        (figures,) = set_privacy(read_story(IDENTITY, writer.rows))
        assert figures.spent is not None
        assert figures.whole is not None
        assert before < figures.spent.epsilon <= figures.whole.epsilon
        before = figures.spent.epsilon


def test_a_shared_budget_bounds_its_parts_together() -> None:
    """All of one part and all of the other do not fit: the whole figure knows that."""
    (figures,) = set_privacy(read_story(IDENTITY, Writer(charter(joint())).rows))
    assert figures.whole is not None
    assert figures.spent is None
    order, plan = figures.whole.order, joint()
    flat = 0.0
    for part in plan.parts:
        assert isinstance(part, SearchPart | VerdictPart)
        flat += part.looks * look_divergence(part.coin(plan.order), order)
    assert figures.whole.epsilon < private_epsilon(flat, order, figures.whole.delta)


@pytest.mark.parametrize(
    "request_for",
    [DirectMeans(50, half_width=0.1), MedianMeans(20), WeightedEstimates(50, universe=21)],
    ids=["direct", "median", "weights"],
)
def test_every_kind_of_part_has_a_figure(request_for: object) -> None:
    plan = joint_plan(request_for)  # type: ignore[arg-type]
    writer = Writer(charter(plan))
    (figures,) = set_privacy(read_story(IDENTITY, writer.rows))
    assert figures.whole is not None
    assert 0 < figures.whole.epsilon < math.inf
    assert "nothing was said yet" in Page(page_html(read_story(IDENTITY, writer.rows))).cells


def test_the_page_shows_both_figures() -> None:
    writer = Writer(charter(simple()))
    writer.ask()
    story = read_story(IDENTITY, writer.rows)
    (figures,) = set_privacy(story)
    assert figures.spent is not None
    shown = Page(page_html(story))
    assert any(cell.startswith("ε = ") for cell in shown.cells)
    assert "holds however people choose when to stop" in shown.words
