"""Joint plans: the figures they reach, and that no number in one can be made to look better.

A plan is data that a holdout will be opened with, perhaps years later. Whatever is changed in it
for the better must be noticed: by `verify`, or by what reads it. One plan is proved a second time,
in 50 digits, from the theorem alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf, workdps

from holdfast import protocols
from holdfast.errors import HoldfastError, Infeasible, InvalidInput
from holdfast.planning.joint import joint_plan
from holdfast.protocols.guesses import Guesses, VerdictPart
from holdfast.protocols.means import DirectMeans
from holdfast.protocols.plans import JOINT_FORMAT, Account, JointPlan, Request
from holdfast.protocols.searches import AmplifiedEstimates, Estimates, Intervals
from holdfast.theory.transfer import total_failure
from tests.theory import checker
from tests.theory.test_coins import worst_pair

planned = cache(joint_plan)

ESTIMATE = Estimates(20, grid=32, tail_low=0.05, tail_high=0.05)
GUESSES = Guesses(1000, 1)
INTERVAL = Intervals(3, grid=8, tail=0.05)
SMALL: dict[str, tuple[Request, ...]] = {
    "estimate": (ESTIMATE,),
    "verify": (GUESSES,),
    "interval": (INTERVAL,),
    "amplified": (AmplifiedEstimates(5, grid=8, tail=0.25, subblocks=15),),
    "direct": (DirectMeans(20, 0.3),),
    "mixture": (ESTIMATE, INTERVAL),
}
SEARCHES = ("estimate", "interval", "amplified")
small = pytest.mark.parametrize("name", [name for name in SMALL if name != "direct"])


@small
def test_a_plan_proves_itself_and_pays_for_what_was_asked(name: str) -> None:
    plan = planned(*SMALL[name])
    assert plan.verify()
    cost = sum(Fraction(part.planned(plan.order)) for part in plan.parts)
    assert cost <= Fraction(plan.budget) <= cost * (1 + Fraction(1, 10**9))
    for part in plan.parts:
        assert Account(plan).left_of(part).questions >= part.queries
    shares = [share for part in plan.parts for share in part.shares(plan.blocks)]
    assert Fraction(499, 10_000) < total_failure(shares) <= Fraction(1, 20)  # and hardly less
    assert plan.failure == 0.05


def test_a_mixture_is_never_smaller_than_its_parts() -> None:
    mixture = planned(ESTIMATE, INTERVAL)
    assert mixture.blocks >= max(planned(ESTIMATE).blocks, planned(INTERVAL).blocks)
    assert mixture.names == ("estimate", "interval")
    assert mixture.part("interval").protocol == "interval"
    with pytest.raises(InvalidInput, match="protocol must be one of estimate, interval"):
        mixture.part("verify")


def aimed(plan: JointPlan, blocks: int, shift: int) -> JointPlan:
    """The same coins on so many blocks; a median stays one, other targets move by so much."""
    parts: list[Any] = list(plan.parts)
    targets = [
        blocks if part.twice_target == plan.blocks else part.twice_target + shift for part in parts
    ]
    aimed_at = zip(parts, targets, strict=True)
    parts = [replace(part, twice_target=target) for part, target in aimed_at]
    return replace(plan, blocks=blocks, parts=tuple(parts))


@small
def test_one_block_less_is_not_certified(name: str) -> None:
    """With the same coins, at whatever whole count the targets are put."""
    plan = planned(*SMALL[name])
    assert aimed(plan, plan.blocks, 0).verify()
    for fewer in (plan.blocks - 1, plan.blocks - 2):
        assert not any(aimed(plan, fewer, shift).verify() for shift in range(-8, 10, 2))


def test_more_blocks_on_request_not_fewer_and_the_same_again() -> None:
    made = planned(ESTIMATE)
    larger = joint_plan(ESTIMATE, blocks=made.blocks + 50)
    assert larger.blocks == made.blocks + 50
    assert larger.verify()
    with pytest.raises(Infeasible, match="blocks"):
        joint_plan(ESTIMATE, blocks=made.blocks // 2)
    assert joint_plan(ESTIMATE) == made  # from what was remembered: certified again


NO_REQUESTS = """
Estimates(0); Estimates(10, grid=1); Estimates(10, tail_low=0.5, tail_high=0.5)
Estimates(10, tail_low=0.0); Estimates(10, target=0.1)
Guesses(10, 0); Guesses(10, 11); Guesses(10, 1, tail_low=0.3, tail_high=0.2)
Guesses(10, 1, tail_high=0.5); Guesses(10, 1, sides=3)
Guesses(5, 2, tail_low=1e-6, tail_high=1 - 1e-6, sides=1)
Intervals(10, tail=0.5); Intervals(10, grid=1)
AmplifiedEstimates(10, subblocks=14); AmplifiedEstimates(10, tail=0.5)
"""


def listed(text: str) -> list[str]:
    """The entries of a list: one a line, or several with semicolons."""
    return [each.strip() for each in text.replace("\n", ";").split(";") if each.strip()]


@pytest.mark.parametrize("text", listed(NO_REQUESTS))
def test_requests_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        eval(text, {name: getattr(protocols, name) for name in protocols.__all__})


@pytest.mark.parametrize("given_", [(), (ESTIMATE, Estimates(10, grid=16))], ids=["no", "twice"])
def test_requests_need_names_of_their_own(given_: tuple[Request, ...]) -> None:
    with pytest.raises(InvalidInput, match="requests"):
        joint_plan(*given_)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, math.nan, "0.95", True])
def test_confidence_is_between_0_and_1(confidence: Any) -> None:
    with pytest.raises(InvalidInput, match="confidence"):
        joint_plan(ESTIMATE, confidence=confidence)


def refused(data: object) -> bool:
    """Whether it is refused, and by an error of ours."""
    try:
        JointPlan.from_json(json.dumps(data))
    except HoldfastError:
        return True
    return False


def test_what_is_no_plan_is_refused() -> None:
    data: dict[str, Any] = planned(ESTIMATE).to_dict()
    assert not refused(data)
    (part,) = data["parts"]
    of_plan: list[dict[str, Any]] = [
        *({"more": 1}, {"format": JOINT_FORMAT + 1}, {"protocols": ["verify"]}, {"blocks": None}),
        *({"parts": []}, {"parts": [part, part]}, {"parts": {"a": 1}}, {"budget": math.inf}),
        *({"order": math.nan}, {"blocks": str(data["blocks"])}),
    ]
    of_part: list[Any] = [{"kind": "other"}, {"kind": ["search"]}, {"more": 1}]
    parts = [{**part, **change} for change in of_part]
    parts += [{k: v for k, v in part.items() if k != key} for key in ("floor", "mirrored")]
    less = {key: value for key, value in data.items() if key != "order"}
    for change in [*of_plan, *({"parts": [each]} for each in parts)]:
        assert refused({**data, **change}), change
    nothing: list[object] = [None, [], {}]
    assert all(refused(each) for each in [*nothing, less])
    for text in ("", "{", "[1, 2", "nul"):
        with pytest.raises(InvalidInput):
            JointPlan.from_json(text)


# What is changed for the better. `p` is the plan, or its first part; `all_shares` are both of its.
PLAN_CHANGES = """
blocks=p.blocks - 2; order=p.order * 1.3; budget=p.budget * 1.2; budget=p.budget * 100
confidence=1 - (1 - p.confidence) * 0.99; confidence=math.nextafter(p.confidence, 1)
"""
COMMON_CHANGES = """
**all_shares(0.8); **all_shares(1.01); tail_low=p.tail_low * 1.1
twice_target=p.twice_target - 12; twice_target=p.twice_target + 12
"""
SEARCH_CHANGES = """
**all_shares(0); tail_high=min(0.9, p.tail_high * 1.1); looks=2 * p.looks; twice_target=-2
floor=0.01; look_price=p.look_price / 2; look_price=0.0; look_price=-1.0
"""
VERDICT_CHANGES = """
tail_high=p.tail_high * 0.9; looks=p.looks + 2; queries=2 * p.queries; sides=0; sides=1
queries=8 * p.queries, looks=8 * p.looks; sides=3, looks=3 * p.queries
refusals=0; refusals=p.queries + 1; false_yes=0.01; false_no=0.01
no_price=p.no_price / 3; no_price=0.0; yes_price=p.yes_price / 2
"""
# One slope proves all bars: a plan that leaves it open, for each to find its own, is none.
DIRECT_CHANGES = """
slope=0.0; slope=-p.slope; slope=math.inf; slope=math.nan; slope=p.slope * 3; floor=0.01
half_width=p.half_width * 0.98; apart=p.apart - 1; failure=p.failure * 0.8
failure=p.failure * 1.01; look_price=p.look_price / 2; queries=2 * p.queries; looks=4 * p.looks
"""
# These only claim more than the budget pays for.
OVERDRAWN_ESTIMATE = """
queries=10 * p.queries; queries=0; queries=-p.queries; looks=p.looks // 2
grid=2**40; grid=1; look_price=10 * p.look_price
"""
OVERDRAWN_VERDICT = """
refusals=p.queries; no_price=2 * p.no_price; yes_price=2 * p.yes_price
"""
# An interval encloses the median: that takes a tail of 1/2 on the inside, and two searches.
ESTIMATE_AS_INTERVAL = """
protocol='interval', name='interval', mirrored=False
protocol='interval', name='interval', mirrored=True
"""
PART_CHANGES = [
    *((name, each) for name in SEARCHES for each in listed(COMMON_CHANGES + SEARCH_CHANGES)),
    *(("verify", each) for each in listed(COMMON_CHANGES + VERDICT_CHANGES)),
    *(("direct", each) for each in listed(DIRECT_CHANGES)),
    *(("estimate", each) for each in listed(OVERDRAWN_ESTIMATE + ESTIMATE_AS_INTERVAL)),
    *(("verify", each) for each in listed(OVERDRAWN_VERDICT)),
    *(("interval", each) for each in ("mirrored=False", "tail_high=0.4")),
    *(("amplified", each) for each in ("subblock_tail=0.3", "subblocks=13", "subblocks=1")),
]


def changed(of: Any, change: str) -> Any:
    def all_shares(factor: float) -> dict[str, float]:
        return {name: factor * getattr(of, name) for name in ("failure_low", "failure_high")}

    return replace(of, **eval(f"dict({change})", {"p": of, "math": math, "all_shares": all_shares}))


def noticed(make: Callable[[], JointPlan]) -> bool:
    """Whether a changed plan neither verifies nor can be read."""
    try:
        plan = make()
        proves = plan.verify()
    except HoldfastError:
        return True
    return not proves and refused(json.loads(plan.to_json()))


@pytest.mark.parametrize("change", listed(PLAN_CHANGES))
@pytest.mark.parametrize("name", ["estimate", "verify", "interval", "mixture"])
def test_no_number_of_a_plan_can_be_made_better(name: str, change: str) -> None:
    assert noticed(lambda: changed(planned(*SMALL[name]), change))


@pytest.mark.parametrize(("name", "change"), PART_CHANGES)
def test_no_number_of_a_part_can_be_made_better(name: str, change: str) -> None:
    plan = planned(*SMALL[name])
    assert plan.verify()

    def better() -> JointPlan:
        return replace(plan, parts=(changed(plan.parts[0], change), *plan.parts[1:]))

    assert noticed(better)


@settings(max_examples=30)
@given(
    st.sampled_from(["estimate", "verify"]),
    st.sampled_from(["blocks", "budget", "order", "confidence"]),
    st.floats(0.2, 5),
)
def test_what_still_verifies_promises_no_more(name: str, field: str, factor: float) -> None:
    """Whatever a change leaves certified has no fewer blocks, no more budget, no more β."""
    plan = planned(*SMALL[name])
    value = getattr(plan, field)
    new = round(value * factor) if field == "blocks" else value * factor
    try:
        other = replace(plan, **{field: new})
    except InvalidInput:
        return
    if other.verify():
        assert other.blocks >= plan.blocks
        assert other.budget <= plan.budget * 1.01
        assert other.confidence <= plan.confidence


# A second proof, in 50 digits.


def test_both_classes_of_a_verifier_in_fifty_digits() -> None:
    """What its looks are charged covers every half step, and then both classes hold."""
    plan = planned(GUESSES)
    part = plan.part("verify")
    assert isinstance(part, VerdictPart)
    coin, prices = part.coin(plan.order), part.prices(plan.order)
    with workdps(50):
        s = mpf(plan.order) - 1
        assert worst_pair(coin, plan.order, s * mpf(prices.no), s * mpf(prices.yes)) <= 1
        most = part.refusals * Fraction(prices.no)
        most += (part.looks - part.refusals) * Fraction(prices.yes)
        assert most <= Fraction(plan.budget)
        reach, rest = part.twice_target // 2, plan.blocks - part.twice_target // 2
        assert 2 * reach == part.twice_target
        sides = (
            (part.tail_low, part.failure_low, reach, coin.below),
            (1 - mpf(part.tail_high), part.failure_high, rest, coin.above),
        )
        for tail, failure, most_counts, side in sides:
            table = tuple(mpf(float(h)) for h in side.halfsteps)

            def proved(counts: int) -> bool:
                """Whether E[1(bad)·S[ψ]] = Σ (β − slips)₊/m is more than the theorems allow."""
                mass = checker.mass(table, part.looks, mpf(failure), 2 * counts)  # noqa: B023
                return checker.proves(plan.order, plan.budget, tail, failure, mass / plan.blocks)  # noqa: B023

            assert proved(most_counts)
            assert not proved(most_counts - plan.blocks // 100)  # nearly all of it is needed
        assert Fraction(part.failure_low) + Fraction(part.failure_high) <= Fraction(1, 20)
