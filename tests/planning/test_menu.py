"""From a list of protocols to plans that share β and blocks as they must."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.holdout.spec import joint_confidence, sets_for
from holdfast.planning.joint import _share, plans_for, read_mix
from holdfast.protocols.plans import JointPlan, ProtocolMix
from holdfast.protocols.registry import mix_names
from holdfast.protocols.rounds import RoundsPlan
from holdfast.protocols.split import SplitPlan
from holdfast.protocols.told import ToldPlan
from holdfast.protocols.weights import WeightsPart


def test_names_and_numbers() -> None:
    assert dict(read_mix("estimate", 5).queries) == {"estimate": 5}
    assert dict(read_mix(" simple = 1e3 , split=2,", None).queries) == {"simple": 1000, "split": 2}
    assert dict(read_mix("correct=50", None, refusals=3).queries) == {
        "verify": 50,
        "estimate": 3,
    }
    assert dict(read_mix("correct=2", None, refusals=3).queries) == {"verify": 2, "estimate": 2}
    assert dict(read_mix("correct=50,estimate=7", None).queries) == {"verify": 50, "estimate": 7}


@pytest.mark.parametrize(
    ("text", "queries", "message"),
    [
        ("", 5, "at least one protocol"),
        ("nothing", 5, "some of"),
        ("split=many", 5, "NAME=QUESTIONS"),
        ("split", None, "queries"),
        ("simple,split=3", None, "queries"),
        ("split,split", 5, "once"),
        ("split=0", 5, "queries for split"),
        ("split=1.5", 5, "whole number|NAME=QUESTIONS"),
        ("split=inf", 5, "whole number|NAME=QUESTIONS"),
        ("split=nan", 5, "whole number|NAME=QUESTIONS"),
    ],
)
def test_a_list_that_makes_no_sense(text: str, queries: int | None, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_mix(text, queries)


def test_numbers_that_make_no_sense() -> None:
    wrong = [("grid", 1), ("refusals", 0), ("confidence", 1), ("confidence", 0), ("tail", 0.5)]
    for name, number in [*wrong, ("tail", 0), ("rounds", 0)]:
        with pytest.raises(InvalidInput):
            ProtocolMix({"split": 3}, **{name: number})  # type: ignore[arg-type]


def test_each_protocol_has_its_plan() -> None:
    order = read_mix("gate=5,rounds=5,split=2", None, refusals=2, rounds=2, confidence=0.94)
    made = plans_for(order)
    assert [type(each) for each in made] == [ToldPlan, RoundsPlan, SplitPlan]
    assert all(each.verify() for each in made)
    assert {each.confidence for each in made} == {0.98}
    assert joint_confidence(sets_for(made)) == 0.94
    gates, rounds, split = made
    assert isinstance(gates, ToldPlan)
    assert (gates.queries, gates.blocks) == (5, rounds.blocks + split.blocks)
    assert isinstance(rounds, RoundsPlan)
    assert (rounds.queries, rounds.sets) == (5, 2)
    assert isinstance(split, SplitPlan)
    assert split.queries == 2


def test_weights_share_the_budget_and_need_a_universe() -> None:
    order = read_mix("simple=2,weights=5", None, grid=4, tail=0.05, confidence=0.8)
    with pytest.raises(InvalidInput, match="how many different blocks"):
        plans_for(order)
    (made,) = plans_for(replace(order, universe=4))
    assert isinstance(made, JointPlan)
    assert made.names == ("simple", "weights")
    part = made.part("weights")
    assert isinstance(part, WeightsPart)
    assert (part.queries, part.universe, part.tail) == (5, 4, 0.05)


def test_what_answers_by_looks_shares_one_budget() -> None:
    order = read_mix("simple=2,interval=2", None, grid=4, confidence=0.8)
    (made,) = plans_for(order)
    assert isinstance(made, JointPlan)
    assert set(made.names) == {"simple", "interval"}
    assert made.confidence == 0.8


def test_amplified_has_blocks_of_its_own() -> None:
    made = plans_for(read_mix("amplified=2,simple=2", None, grid=4, confidence=0.9))
    names = [each.names for each in made if isinstance(each, JointPlan)]
    assert names == [("simple",), ("amplified",)]
    assert len({each.name for each in sets_for(made)}) == 2  # they can be sealed together


def test_estimates_alone_make_the_best_of_the_units() -> None:
    (made,) = plans_for(read_mix("estimate=2", None, grid=4), 200)
    assert isinstance(made, JointPlan)
    assert made.blocks <= 200
    assert made.part("estimate").queries == 2


def test_scores_and_gates_are_told() -> None:
    for name in ("score", "gate"):
        (made,) = plans_for(read_mix(f"{name}=20", None), 2_000)
        assert isinstance(made, ToldPlan)
        assert (made.queries, made.blocks, made.confidence) == (20, 100, 0.95)
    (both,) = plans_for(read_mix("score=20,gate=5", None), 2_000)
    assert isinstance(both, ToldPlan)
    assert both.queries == 25


def test_the_menu_is_what_the_help_says() -> None:
    from holdfast.cli.custody import create_command

    text = str(create_command.__annotations__["protocols"])
    for name in [*mix_names(), "correct"]:
        assert name in text


@given(st.floats(0.01, 0.999), st.integers(1, 7))
def test_shares_add_up_to_what_was_asked_for(confidence: float, sets: int) -> None:
    share = _share(confidence, sets)
    assert sets * (1 - Fraction(repr(share))) <= 1 - Fraction(repr(confidence))
    assert sets * (1 - Fraction(repr(share))) >= (1 - Fraction(repr(confidence))) * Fraction(
        999999, 1000000
    )
