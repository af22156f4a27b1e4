"""Verdicts and the words around them: what a guess is told, by every door that tells it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import holdfast as hf
from holdfast.errors import Exhausted, InvalidInput, Unavailable
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.public import OpenPart, compatible_range
from holdfast.holdout.state import can_be_asked
from holdfast.planning.joint import joint_plan
from holdfast.planning.proposals import propose_correct, propose_verify
from holdfast.protocols.answers import Claim
from holdfast.protocols.base import Paid, Question
from holdfast.protocols.guesses import Guesses, claim_counts
from holdfast.protocols.procedures import BlockMedian
from holdfast.protocols.told import Expects, ToldPlan, ToldVerify
from tests.holdout import plans
from tests.holdout.tables import Still, refusing, sealed, sources, table
from tests.protocols.test_promises import verdict

POINTS = hf.grid(0, 7, step=1)


def constant(value: float) -> Any:
    """Sealed blocks that all have one value: no look errs, but with less than 1e-7."""
    return sources(partial(Still, values=partial(np.full, fill_value=value)))


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Holdout]:
    """400 sealed blocks of 5 units, with tails of 0.02 for guesses, and 180 open ones."""
    frame = table(2_900)
    with Holdout.create(tmp_path / "r", frame, plans.mixed(), open_fraction=0.3) as holdout:
        assert holdout.status().block_units == 5
        yield holdout


def open_means(holdout: Holdout) -> NDArray[np.float64]:
    """avg(x) of every open block, from the rows that anybody may read."""
    x = holdout.open_table(["x"]).to_pandas()["x"].to_numpy()
    units = holdout.status().block_units
    return np.sort(x[: x.size // units * units].reshape(-1, units).mean(axis=1))


# The range comes from the open part, and from nothing else.


def test_compatible_comes_with_the_guesses_that_the_open_part_allows(registry: Holdout) -> None:
    means = open_means(registry)
    assert means.size == 174
    with constant(5.0):
        told = registry.verify("avg(x)", 5)
        assert (told.verdict, told.refused, told.open_blocks) == ("compatible", False, 174)
        # 2 in 100 of 174 are 3 whole blocks; what is rounded is rounded outwards.
        assert told.range_low == pytest.approx(means[2], rel=1e-12)
        assert told.range_high == pytest.approx(means[-3], rel=1e-12)
        assert "no confirmation of 5" in told.promise
        again = registry.verify("avg(x)", 5)
        assert again.cached
        assert (again.range_low, again.range_high) == (told.range_low, told.range_high)
        far = registry.verify("avg(x)", 9)
        assert (far.verdict, far.range_high) == ("not compatible", told.range_high)
    # Other sealed rows, another verdict, the same range: nothing of them is in it.
    with constant(-3.0):
        other = registry.verify("avg(x)", 4.5)
    assert other.verdict == "not compatible"
    assert (other.range_low, other.range_high) == (told.range_low, told.range_high)


def test_a_guess_that_stands_is_inside_its_range(registry: Holdout) -> None:
    with constant(60.0):
        told: Any = registry.verify("avg(x)", 60)
    assert told.range_high == 60
    assert told.range_low < 5


def test_a_tolerance_widens_the_range(registry: Holdout) -> None:
    means = open_means(registry)
    with constant(5.0):
        told = registry.verify("avg(x)", 5, tolerance=0.5, protocol="estimate")
        assert told.verdict == "compatible"
        assert told.range_low == pytest.approx(means[2] - 0.5)
        assert told.range_high == pytest.approx(means[-3] + 0.5)
        refused = registry.verify("avg(x)", 6, tolerance=0.5, protocol="estimate")
        assert (refused.verdict, refused.refused) == ("cannot tell", True)


def test_one_side_has_one_end(registry: Holdout) -> None:
    with constant(5.0):
        least: Any = registry.verify("avg(x)", 4, claim="at least")
        most: Any = registry.verify("avg(x)", 6, claim="at most")
    assert (least.range_low, most.range_high) == (None, None)
    assert least.range_high > 5 > most.range_low


def test_a_correction_has_the_range_of_its_guess(registry: Holdout) -> None:
    with constant(5.0):
        told = registry.correct("avg(x)", 1, grid=POINTS)
        kept = registry.correct("avg(x)", 5, grid=POINTS)
    assert (told.verdict.verdict, told.value) == ("not compatible", 5)
    assert (kept.verdict.verdict, kept.value) == ("compatible", 5)
    assert told.verdict.range_low == kept.verdict.range_low is not None


def test_the_ledger_keeps_nothing_of_the_range(registry: Holdout) -> None:
    """It is the open part's, and `check` can compute everything that a row says."""
    with constant(5.0):
        registry.verify("avg(x)", 5)
    body = json.dumps(registry.journal.ledger.rows()[-1].body)
    assert "range" not in body
    assert "open_blocks" not in body
    [row] = registry.transcript()
    assert (row["answer"]["verdict"], row["answer"]["open_blocks"]) == ("compatible", 0)


def test_without_enough_open_blocks_it_is_said_in_words(tmp_path: Path) -> None:
    with sealed(tmp_path / "none", plans.mixed()) as holdout, constant(5.0):
        told = holdout.verify("avg(x)", 5)
        assert (told.open_blocks, told.range_low, told.range_high) == (0, None, None)
        assert "at least 2 in 100 fresh blocks of 1 unit give 5 or less" in told.promise
        assert check_holdout(holdout.path).passed
    frame = table(449)  # 400 sealed, and 49 open: one less than 1/0.02
    share = 49 / 449
    with (
        Holdout.create(tmp_path / "few", frame, plans.mixed(), open_fraction=share) as holdout,
        constant(5.0),
    ):
        told = holdout.verify("avg(x)", 5)
        assert (told.open_blocks, told.range_low, told.range_high) == (49, None, None)
        assert "49 open blocks are too few" in str(told)
        assert "50 would do" in str(told)


def test_an_open_part_that_cannot_be_evaluated_takes_no_answer_away(
    registry: Holdout, monkeypatch: pytest.MonkeyPatch
) -> None:
    works, asked = OpenPart.values, []

    def fails(part: OpenPart, estimator: Any) -> Any:
        asked.append(estimator)
        if len(asked) == 1:  # before anything is charged
            return works(part, estimator)
        raise Unavailable("Evaluating", "a worker", "there is none", "Ask again.")

    monkeypatch.setattr(OpenPart, "values", fails)
    with constant(5.0):
        told = registry.verify("avg(x)", 5)
    assert (told.verdict, told.open_blocks) == ("compatible", 0)
    assert told.receipt


BLOCKS = st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.0, 7.0]), min_size=1, max_size=60)


@given(
    BLOCKS,
    st.sampled_from([0.02, 0.05, 0.25, 0.4]),
    st.sampled_from(["equals", "at least", "at most"]),
    st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1.25, 2.0, 6.0, 7.0, 8.0]),
)
def test_no_guess_outside_the_range_would_stand_on_the_open_blocks(
    blocks: list[float], tail: float, claim: Claim, guess: float
) -> None:
    values = np.array(blocks)
    low, high = compatible_range(verdict(True, tail, 0.45, claim=claim), values)
    least = min(claim_counts(values, guess, claim))
    stands = least > Fraction(repr(tail)) * values.size
    inside = (low is None or low <= guess) and (high is None or guess <= high)
    if stands:
        assert inside  # rounded outwards: the others may be inside, too
    if values.size * Fraction(repr(tail)) < 1:
        assert (low, high) == (None, None)
    stood = compatible_range(verdict(False, tail, 0.45, guess=guess, claim=claim), values)
    assert stood[0] is None or stood[0] <= guess
    assert stood[1] is None or stood[1] >= guess


def test_failures_are_the_lowest_and_no_end() -> None:
    values = np.array([-np.finfo(float).max] * 10 + [1.0, 2.0, 3.0, 4.0] * 5)
    low, high = compatible_range(verdict(True, 0.1, 0.4), values)
    assert (low, high) == (None, 4.0)


# A verdict that could only say "cannot tell" is refused, before anything is drawn.


def test_a_guess_is_refused_where_no_verdict_could_say_anything(tmp_path: Path) -> None:
    """`median(days)` is 235 ± 10? A tail of 1 in millions of blocks says nothing of it."""
    with sealed(tmp_path / "h", plans.simple()) as holdout:
        for ask in (holdout.verify, partial(holdout.price, "verify")):
            said = r"1 in 1,000,000 fresh blocks.*Nothing was charged.*--tail 0\.05"
            with refusing(holdout, said):
                ask("avg(c)", guess=5, tolerance=1)
        assert "verify" not in can_be_asked(holdout.spec)["verbs"]


def test_guesses_that_would_say_nothing_are_not_planned() -> None:
    for wrong in (
        partial(propose_verify, 50, 2, 1e-3, 0.25),
        partial(propose_correct, 50, 2, 32, 1e-3, 0.25),
        partial(propose_verify, 50, 2, 1e-6, 1 - 1e-6, sides=1),
        lambda: joint_plan(Guesses(5, 2, tail_low=1e-6, tail_high=1 - 1e-6, sides=1)),
    ):
        with pytest.raises(InvalidInput, match=r"at least 0\.01 for guesses"):
            wrong()
    assert propose_verify(50, 2, 0.01, 0.25).blocks
    assert propose_verify(50, 2, 1e-6, 0.25, sides=1).blocks  # these may be refused, and say so


def test_a_tail_that_says_nothing_of_a_guess_that_stands(tmp_path: Path) -> None:
    plan = joint_plan(Guesses(5, refusals=2, tail_low=1e-3, tail_high=0.4))
    with sealed(tmp_path / "h", plan) as holdout:
        with constant(5.0):
            told = holdout.verify("avg(c)", 5)
            wrong = holdout.verify("avg(c)", 7)
        assert (told.verdict, told.refused) == ("cannot tell", False)
        assert "so small a share says nothing" in told.promise
        assert (wrong.verdict, wrong.refused) == ("not compatible", True)
        assert check_holdout(holdout.path).passed


# Every answer names the size of its blocks.


def test_answers_say_how_large_a_block_is(registry: Holdout) -> None:
    asked = {
        "ask": registry.ask("avg(x)", grid=POINTS),
        "interval": registry.interval("avg(x)", grid=POINTS),
        "filtered": registry.mean("y = 1", where="x > 5", grid=hf.grid(0, 1, step=0.1)),
    }
    for name, told in asked.items():
        assert told.block_units == 5, name
        assert "fresh blocks of 5 units" in told.promise, name
        assert "on blocks of 5 units" in str(told), name
        assert "on blocks of 5 units" in told._repr_html_(), name
        assert "tail" not in told.promise, name
        assert told.to_dict()["block_units"] == 5, name
    assert "on blocks" not in str(registry.mean("y = 1", grid=hf.grid(0, 1, step=0.1)))
    assert check_holdout(registry.path).passed


# What is wrong with a question is said in the words in which it was asked.


def test_a_filter_that_the_plan_cannot_take_is_shown_as_it_was_written(tmp_path: Path) -> None:
    with sealed(tmp_path / "h", plans.direct()) as holdout:
        for ask in (holdout.mean, partial(holdout.price, "mean")):
            with pytest.raises(InvalidInput) as refused:
                ask("y = 1", where="g = 'a'")
            assert "got \"g = 'a'\"" in str(refused.value)
            assert "SqlTerm" not in str(refused.value)


# What is left is said, and what it would still buy.


def test_used_up_is_said_only_where_nothing_can_be_asked(tmp_path: Path) -> None:
    """Six questions of three looks: after five and one of two, there is one look left."""
    with sealed(tmp_path / "h", plans.estimates()) as holdout, sources():
        eight, four, two = (hf.grid(0, 1, points=n) for n in (8, 4, 2))
        for number in range(5):
            holdout.ask(f"avg(x) + {number}", grid=eight)
        assert holdout.status().sets[0].parts[0].still_possible == "estimate (1)"
        holdout.ask("avg(x) + 5", grid=two)
        with pytest.raises(Exhausted) as refused:
            holdout.ask("avg(x) + 6", grid=eight)
        words = "estimate on a grid of at most 4 points, or to verify a guess"
        assert f"Still possible: {words}." in str(refused.value)
        [part] = holdout.status().sets[0].parts
        assert (part.questions_left, part.still_possible) == (0, words)
        assert words in str(holdout.status())
        assert words in str(holdout.price("ask", "avg(x) + 6", grid=eight).reason)
        holdout.verify("avg(x) + 6", 0.5, tolerance=0.1)  # two looks, as it said
        with pytest.raises(Exhausted, match=r"The budget is used up: nothing more can be asked"):
            holdout.ask("avg(x) + 7", grid=two)
        with pytest.raises(Exhausted, match="used up"):
            holdout.ask("avg(x) + 7", grid=four)
        assert holdout.status().sets[0].parts[0].still_possible == ""


# Told, without a plan.


@pytest.fixture
def days(tmp_path: Path) -> Iterator[Holdout]:
    """100 sealed blocks of 6 units, whose values lie around 336, and 66 open ones."""
    values = np.random.default_rng(7).exponential(336, 1_000).round()
    more: Any = {"ranges": {"days": (0, 4_000)}, "new_budget": "another test"}
    with Holdout.create(tmp_path / "days", {"days": values}, **more) as holdout:
        yield holdout


def test_told_a_guess_that_stands_is_not_confirmed(days: Holdout, tmp_path: Path) -> None:
    told: Any = days.verify("avg(days)", 336)
    assert told.verdict == "compatible"
    low, high = told.facts["range_low"], told.facts["range_high"]
    assert low < 336 < high
    for words in (str(told), told.promise):
        assert f"no confirmation: guesses from {low:.0f}"[:-1] in words
        assert "66 open ones" in words
        assert "as expected" not in words
    assert "confirmation" not in str(days.verify("avg(days)", 2_000))
    assert check_holdout(days.path).passed
    with Holdout.create(tmp_path / "none", {"x": np.arange(600.0)}, open_fraction=0) as sealed:
        other = sealed.verify("avg(x)", 300)
    assert "no confirmation: other guesses are compatible too" in str(other)


@given(
    values=st.lists(st.integers(0, 20), min_size=30, max_size=120),
    guess=st.integers(0, 20),
    near=st.integers(0, 3),
)
def test_told_a_guess_is_in_the_range_if_the_open_blocks_would_let_it_stand(
    values: list[int], guess: int, near: int
) -> None:
    """Of as many sealed blocks as there are open ones, with the same values."""
    sealed_ones = np.array(values, dtype=np.float64)
    plan = ToldPlan(0.95, len(values), 0, True)
    protocol: Any = ToldVerify(plan, plan, 1, 0.95, certified=True)
    about = {"engine": "sql", "text": "avg(x)"}
    question = Question("verify", "told", about, guess=guess, tolerance=near, claim="equals")
    rule = protocol.rule(question, Expects(), plan.past())
    stands = rule.letter(BlockMedian(sealed_ones)) == (1,)
    drawn = plan.past().after(rule.drawn((1,)) | {"expects": {}})
    told = protocol.ranged(
        question, protocol.answer(question, drawn, Paid()), sealed_ones, -math.inf
    )
    low, high = (told.facts.get(name) for name in ("range_low", "range_high"))
    inside = (low is None or low <= guess) and (high is None or guess <= high)
    assert stands == inside


def test_told_nothing_is_asked_where_no_rows_could_decide(days: Holdout) -> None:
    points, asked = hf.grid(0, 2_000, step=1), 0

    def surprise() -> None:
        days.ask(f"avg(days) * 0 + {20 * asked}", grid=points, anyway=True)

    while asked < 60:
        try:
            surprise()
        except Exhausted:
            break
        asked += 1
    assert 2 < asked < 60
    before = days.status().receipt
    for guess in (1, 60, 600, 1_900):
        with pytest.raises(Exhausted, match="Nothing was told"):
            days.verify("median(days)", guess, anyway=True)
    assert days.status().receipt == before
    assert days.price("verify", "median(days)", guess=60).reason is not None
