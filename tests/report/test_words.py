"""Every kind of plan in plain words, and as a page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.holdout.spec import AnyPlan
from holdfast.planning.exact import (
    exact_corrections,
    exact_estimates,
    exact_verdicts,
    exact_weights,
)
from holdfast.planning.joint import joint_plan
from holdfast.planning.requests import AmplifiedEstimates, Intervals, SimpleEstimates
from holdfast.planning.rounds import rounds_plan
from holdfast.planning.splits import split_plan
from holdfast.report.page import page_html
from holdfast.report.story import read_story
from tests.report.ledgers import IDENTITY, Writer, charter
from tests.report.pages import Page

PLANS: dict[str, tuple[Callable[[], AnyPlan], str]] = {
    "interval": (lambda: joint_plan(Intervals(5, grid=16)), "encloses the estimator's median"),
    "simple": (lambda: joint_plan(SimpleEstimates(5, grid=16)), "on a fresh block"),
    "amplified": (lambda: joint_plan(AmplifiedEstimates(5, grid=16)), "on one sub-block of"),
    "exact": (lambda: exact_estimates(5), "5 questions on a grid of 32 points; exact"),
    "exact-verify": (lambda: exact_verdicts(20, 2), "20 guesses, at most 2 refused; exact"),
    "exact-correct": (lambda: exact_corrections(20, 2), "Confirmed or corrected: the answer lies"),
    "exact-weights": (lambda: exact_weights(100, universe=10), "surprises; exact"),
    "rounds": (lambda: rounds_plan(20, 2, exact=True), "20 questions in 2 rounds; exact"),
    "split": (lambda: split_plan(3), "3 questions, fresh blocks for each; exact"),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_says_what_it_is_for(name: str) -> None:
    make, said = PLANS[name]
    words = Page(page_html(read_story(IDENTITY, Writer(charter(make())).rows))).words
    assert said in words
    assert "Nothing was asked yet." in words
    assert "None" not in words
    assert "nan" not in words.split()
