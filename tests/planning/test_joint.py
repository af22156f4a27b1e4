"""Joint plans: the figures they reach, and that no number in one can be made to look better.

A plan is data that a holdout will be opened with, perhaps years later. Whatever is changed in it
for the better must be noticed: by `verify`, or by what reads it. One plan is proved a second time,
in 50 digits, from the theorem alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf, workdps

from holdfast.errors import HoldfastError, Infeasible, InvalidInput
from holdfast.planning.joint import JOINT_FORMAT, JointPlan, joint_plan
from holdfast.planning.parts import VerdictPart
from holdfast.planning.requests import (
    AmplifiedEstimates,
    DirectMeans,
    Estimates,
    Guesses,
    Intervals,
    Request,
)
from holdfast.protocols.budget import Budget
from holdfast.theory.transfer import total_failure
from tests.theory.checker import largest, smallest
from tests.theory.test_verdicts import worst_pair

Real = Any  # mpmath has no types


@cache
def planned(*requests: Request, confidence: float = 0.95) -> JointPlan:
    return joint_plan(*requests, confidence=confidence)


# Figures (theory.md §9).


@pytest.mark.parametrize(("refusals", "most"), [(10, 3_700), (1, 2_050)])
def test_a_thousand_guesses_need_few_blocks(refusals: int, most: int) -> None:
    """Ten thousand: tests/protocols/test_verify.py."""
    plan = planned(Guesses(1000, refusals))
    assert plan.blocks <= most
    assert plan.verify()


def test_a_thousand_estimates_need_few_blocks() -> None:
    """5,949 with either direction by itself (docs/explanation/theory/sizing.md), or fewer."""
    plan = planned(Estimates(1000))
    assert plan.blocks <= 5_959
    assert plan.verify()


# Small plans, one of every kind, and a mixture.

ESTIMATE = Estimates(20, grid=32, tail_low=0.05, tail_high=0.05)
TWICE = Estimates(10, grid=16)
GUESSES = Guesses(1000, 1)
INTERVAL = Intervals(3, grid=8, tail=0.05)
AMPLIFIED = AmplifiedEstimates(5, grid=8, tail=0.25, subblocks=15)


def mixture() -> JointPlan:
    return planned(ESTIMATE, INTERVAL)


SMALL: dict[str, Callable[[], JointPlan]] = {
    "estimate": lambda: planned(ESTIMATE),
    "verify": lambda: planned(GUESSES),
    "interval": lambda: planned(INTERVAL),
    "amplified": lambda: planned(AMPLIFIED),
    "mixture": mixture,
}
small = pytest.mark.parametrize("name", SMALL)


@small
def test_a_plan_proves_itself_and_pays_for_what_was_asked(name: str) -> None:
    plan = SMALL[name]()
    assert plan.verify()
    cost = sum(Fraction(part.planned(plan.order)) for part in plan.parts)
    assert cost <= Fraction(plan.budget) <= cost * (1 + Fraction(1, 10**9))
    for part in plan.parts:
        left = part.left(plan.order, Fraction(plan.budget), 0, 0)
        assert left.questions >= part.queries


@small
def test_shares_add_up_to_no_more_than_what_is_allowed(name: str) -> None:
    plan = SMALL[name]()
    shares = [share for part in plan.parts for share in part.shares(plan.blocks)]
    assert total_failure(shares) <= Fraction(1, 20)
    assert total_failure(shares) > Fraction(499, 10_000)  # and hardly less
    assert plan.failure == 0.05


def test_a_mixture_is_never_smaller_than_its_parts() -> None:
    assert mixture().blocks >= max(planned(ESTIMATE).blocks, planned(INTERVAL).blocks)
    assert mixture().names == ("estimate", "interval")
    assert mixture().part("interval").protocol == "interval"
    with pytest.raises(InvalidInput, match="protocol must be one of estimate, interval"):
        mixture().part("verify")


def aimed(plan: JointPlan, blocks: int, shift: int) -> JointPlan:
    """The same coins on so many blocks; a median stays one, other targets move by so much."""
    parts = [
        replace(part, twice_target=blocks if part.twice_target == plan.blocks else moved)  # type: ignore[attr-defined,type-var]
        for part in plan.parts
        for moved in [part.twice_target + shift]  # type: ignore[attr-defined]
    ]
    return replace(plan, blocks=blocks, parts=tuple(parts))


@small
def test_one_block_less_is_not_certified(name: str) -> None:
    """With the same coins, at whatever whole count the targets are put."""
    plan = SMALL[name]()
    assert aimed(plan, plan.blocks, 0).verify()
    for fewer in (plan.blocks - 1, plan.blocks - 2):
        assert not any(aimed(plan, fewer, shift).verify() for shift in range(-8, 10, 2))


def test_more_blocks_on_request_and_not_fewer() -> None:
    made = planned(ESTIMATE)
    larger = joint_plan(ESTIMATE, blocks=made.blocks + 50)
    assert larger.blocks == made.blocks + 50
    assert larger.verify()
    with pytest.raises(Infeasible, match="blocks"):
        joint_plan(ESTIMATE, blocks=made.blocks // 2)


def test_the_same_request_gives_the_same_plan_again() -> None:
    """The second time from what was remembered: certified again, and no different."""
    assert joint_plan(ESTIMATE) == planned(ESTIMATE)


@pytest.mark.parametrize(
    ("given_", "word"),
    [((), "requests"), ((ESTIMATE, TWICE), "requests")],
    ids=["nothing", "one name twice"],
)
def test_requests_need_names_of_their_own(given_: tuple[Request, ...], word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        joint_plan(*given_)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, math.nan, "0.95", True])
def test_confidence_is_between_0_and_1(confidence: Any) -> None:
    with pytest.raises(InvalidInput, match="confidence"):
        joint_plan(ESTIMATE, confidence=confidence)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Estimates(0),
        lambda: Estimates(10, grid=1),
        lambda: Estimates(10, tail_low=0.5, tail_high=0.5),
        lambda: Estimates(10, tail_low=0.0),
        lambda: Estimates(10, target=0.1),
        lambda: Guesses(10, 0),
        lambda: Guesses(10, 11),
        lambda: Guesses(10, 1, tail_low=0.3, tail_high=0.2),
        lambda: Guesses(10, 1, tail_high=0.5),
        lambda: Guesses(10, 1, sides=3),
        lambda: Intervals(10, tail=0.5),
        lambda: Intervals(10, grid=1),
        lambda: AmplifiedEstimates(10, subblocks=14),
        lambda: AmplifiedEstimates(10, tail=0.5),
    ],
)
def test_requests_that_make_no_sense_are_refused(make: Callable[[], Request]) -> None:
    with pytest.raises(InvalidInput):
        make()


# JSON.


@small
def test_written_and_read_again(name: str) -> None:
    plan = SMALL[name]()
    again = JointPlan.from_json(plan.to_json())
    assert again == plan
    assert again.to_json() == plan.to_json()
    assert json.loads(plan.to_json())["protocols"] == list(plan.names)


def refused(data: object) -> bool:
    """Whether it is refused, and by an error of ours."""
    try:
        JointPlan.from_json(json.dumps(data))
    except HoldfastError:
        return True
    return False


def test_what_is_no_plan_is_refused() -> None:
    data = planned(ESTIMATE).to_dict()
    assert not refused(data)
    parts = data["parts"]
    assert isinstance(parts, list)
    less = {key: value for key, value in data.items() if key != "order"}
    changes: tuple[object, ...] = (
        None,
        [],
        {},
        less,
        {**data, "more": 1},
        {**data, "format": JOINT_FORMAT + 1},
        {**data, "protocols": ["verify"]},
        {**data, "parts": []},
        {**data, "parts": parts * 2},
        {**data, "parts": [{**parts[0], "kind": "other"}]},
        {**data, "parts": [{**parts[0], "kind": ["search"]}]},
        {**data, "parts": [{**parts[0], "more": 1}]},
        {**data, "parts": [{k: v for k, v in parts[0].items() if k != "floor"}]},
        {**data, "parts": [{k: v for k, v in parts[0].items() if k != "mirrored"}]},
        {**data, "parts": {"a": 1}},
        {**data, "blocks": None},
        {**data, "blocks": str(data["blocks"])},
        {**data, "budget": math.inf},
        {**data, "order": math.nan},
    )
    for wrong in changes:
        assert refused(wrong)
    for text in ("", "{", "[1, 2", "nul"):
        with pytest.raises(InvalidInput):
            JointPlan.from_json(text)


# Nothing can be changed for the better.

Change = dict[str, Any]

PLAN_CHANGES: dict[str, Callable[[JointPlan], Change]] = {
    "fewer blocks": lambda p: {"blocks": p.blocks - 2},
    "a larger budget": lambda p: {"budget": p.budget * 1.2},
    "a hundred times the budget": lambda p: {"budget": p.budget * 100},
    "more confidence": lambda p: {"confidence": 1 - (1 - p.confidence) * 0.99},
    "a little more confidence": lambda p: {"confidence": math.nextafter(p.confidence, 1)},
    "a higher order": lambda p: {"order": p.order * 1.3},
}

FAILURES = ("failure_low", "failure_high")
SEARCH_CHANGES: dict[str, Callable[[Any], Change]] = {
    "smaller shares": lambda p: {f: getattr(p, f) * 0.8 for f in FAILURES},
    "shares that are 0": lambda p: dict.fromkeys(FAILURES, 0.0),
    "larger shares": lambda p: {f: getattr(p, f) * 1.01 for f in FAILURES},
    "a larger low tail": lambda p: {"tail_low": p.tail_low * 1.1},
    "a larger high tail": lambda p: {"tail_high": min(0.9, p.tail_high * 1.1)},
    "twice the looks": lambda p: {"looks": 2 * p.looks},
    "a target further down": lambda p: {"twice_target": p.twice_target - 12},
    "a target further up": lambda p: {"twice_target": p.twice_target + 12},
    "a target below everything": lambda p: {"twice_target": -2},
    "a coin that is never sure": lambda p: {"floor": 0.01},
    "looks that cost half": lambda p: {"look_price": p.look_price / 2},
    "looks that cost nothing": lambda p: {"look_price": 0.0},
    "looks that earn": lambda p: {"look_price": -1.0},
}
VERDICT_CHANGES: dict[str, Callable[[Any], Change]] = {
    "smaller shares": SEARCH_CHANGES["smaller shares"],
    "larger shares": SEARCH_CHANGES["larger shares"],
    "a larger low tail": SEARCH_CHANGES["a larger low tail"],
    "a smaller high tail": lambda p: {"tail_high": p.tail_high * 0.9},
    "more looks": lambda p: {"looks": p.looks + 2},
    "more guesses": lambda p: {"queries": 2 * p.queries},
    "more guesses and looks": lambda p: {"queries": 8 * p.queries, "looks": 8 * p.looks},
    "one side for two": lambda p: {"sides": 1},
    "three sides": lambda p: {"sides": 3, "looks": 3 * p.queries},
    "no sides": lambda p: {"sides": 0},
    "no refusals": lambda p: {"refusals": 0},
    "more refusals than guesses": lambda p: {"refusals": p.queries + 1},
    "a target further down": SEARCH_CHANGES["a target further down"],
    "a target further up": SEARCH_CHANGES["a target further up"],
    "a false Yes is likely": lambda p: {"false_yes": 0.01},
    "a false No is likely": lambda p: {"false_no": 0.01},
    "a cheaper No": lambda p: {"no_price": p.no_price / 3},
    "a cheaper Yes": lambda p: {"yes_price": p.yes_price / 2},
    "a No for nothing": lambda p: {"no_price": 0.0},
}

# Changes that only claim more than the budget pays for.
OVERDRAWN: dict[str, tuple[str, Callable[[Any], Change]]] = {
    "more questions": ("estimate", lambda p: {"queries": 10 * p.queries}),
    "a larger grid": ("estimate", lambda p: {"grid": 2**40}),
    "a grid of one point": ("estimate", lambda p: {"grid": 1}),
    "dearer looks": ("estimate", lambda p: {"look_price": 10 * p.look_price}),
    "more refusals": ("verify", lambda p: {"refusals": p.queries}),
    "a dearer No": ("verify", lambda p: {"no_price": 2 * p.no_price}),
    "a dearer Yes": ("verify", lambda p: {"yes_price": 2 * p.yes_price}),
    "one search for two": ("interval", lambda p: {"mirrored": False}),
    "too few looks": ("estimate", lambda p: {"looks": p.looks // 2}),
    "no questions": ("estimate", lambda p: {"queries": 0}),
    "questions that earn": ("estimate", lambda p: {"queries": -p.queries}),
}


def noticed(plan: JointPlan, **change: Any) -> bool:
    """Whether a changed plan neither verifies nor can be read."""
    try:
        changed = replace(plan, **change)
        proves = changed.verify()
    except HoldfastError:
        return True
    return not proves and refused(json.loads(changed.to_json()))


def with_part(plan: JointPlan, index: int, change: Change) -> dict[str, Any]:
    parts = list(plan.parts)
    parts[index] = replace(parts[index], **change)  # type: ignore[type-var]
    return {"parts": tuple(parts)}


@pytest.mark.parametrize("change", PLAN_CHANGES)
@pytest.mark.parametrize("name", ["estimate", "verify", "interval", "mixture"])
def test_no_number_of_a_plan_can_be_made_better(name: str, change: str) -> None:
    plan = SMALL[name]()
    assert noticed(plan, **PLAN_CHANGES[change](plan))


@pytest.mark.parametrize("change", SEARCH_CHANGES)
@pytest.mark.parametrize("name", ["estimate", "interval", "amplified"])
def test_no_number_of_a_search_can_be_made_better(name: str, change: str) -> None:
    plan = SMALL[name]()
    assert noticed(plan, **with_part(plan, 0, SEARCH_CHANGES[change](plan.parts[0])))


@pytest.mark.parametrize("change", VERDICT_CHANGES)
def test_no_number_of_a_verifier_can_be_made_better(change: str) -> None:
    plan = planned(GUESSES)
    assert noticed(plan, **with_part(plan, 0, VERDICT_CHANGES[change](plan.parts[0])))


@pytest.mark.parametrize(
    "change",
    [*OVERDRAWN],
)
def test_a_plan_pays_for_all_that_it_claims(change: str) -> None:
    name, make = OVERDRAWN[change]
    plan = SMALL[name]()
    assert noticed(plan, **with_part(plan, 0, make(plan.parts[0])))


@pytest.mark.parametrize("mirrored", [False, True])
def test_an_estimate_is_no_interval(mirrored: bool) -> None:
    """An interval promises to enclose the median: that takes a tail of 1/2 on the inside."""
    plan = planned(ESTIMATE)
    change = {"protocol": "interval", "name": "interval", "mirrored": mirrored}
    assert noticed(plan, **with_part(plan, 0, change))


def test_an_interval_keeps_its_half() -> None:
    """With less than 1/2 on the inside the classes hold all the more, and the median escapes."""
    plan = planned(INTERVAL)
    assert noticed(plan, **with_part(plan, 0, {"tail_high": 0.4}))


@pytest.mark.parametrize(
    "change",
    [
        {"subblock_tail": 0.3},
        {"subblocks": 13},
        {"subblocks": 1},
    ],
    ids=str,
)
def test_sub_blocks_cannot_promise_more(change: Change) -> None:
    plan = planned(AMPLIFIED)
    assert noticed(plan, **with_part(plan, 0, change))


DIRECT = DirectMeans(20, 0.3)
DIRECT_CHANGES: dict[str, Callable[[Any], Change]] = {
    "no slope": lambda p: {"slope": 0.0},
    "a falling slope": lambda p: {"slope": -p.slope},
    "an infinite slope": lambda p: {"slope": math.inf},
    "a slope that is none": lambda p: {"slope": math.nan},
    "another slope": lambda p: {"slope": p.slope * 3},
    "narrower bars": lambda p: {"half_width": p.half_width * 0.98},
    "closer thresholds": lambda p: {"apart": p.apart - 1},
    "a smaller share": lambda p: {"failure": p.failure * 0.8},
    "a larger share": lambda p: {"failure": p.failure * 1.01},
    "a coin that is never sure": lambda p: {"floor": 0.01},
    "looks that cost half": lambda p: {"look_price": p.look_price / 2},
    "twice the questions": lambda p: {"queries": 2 * p.queries},
    "four times the looks": lambda p: {"looks": 4 * p.looks},
}


@pytest.mark.parametrize("change", DIRECT_CHANGES)
def test_no_number_of_direct_means_can_be_made_better(change: str) -> None:
    """One slope proves all bars: a plan that leaves it open, for each to find its own, is none."""
    plan = planned(DIRECT)
    assert plan.verify()
    assert JointPlan.from_json(plan.to_json()) == plan
    changed = with_part(plan, 0, DIRECT_CHANGES[change](plan.parts[0]))
    assert noticed(plan, **changed)
    with pytest.raises(HoldfastError):
        Budget(replace(plan, **changed))


@pytest.mark.parametrize("name", ["estimate", "verify", "interval"])
def test_every_field_is_of_the_type_it_was_written_with(name: str) -> None:
    data = SMALL[name]().to_dict()
    parts = data["parts"]
    assert isinstance(parts, list)
    for field in fields(SMALL[name]().parts[0]):  # type: ignore[arg-type]
        value = parts[0][field.name]
        others: list[object] = [None, 1.5 if isinstance(value, str) else "1", [value]]
        others += [float(value)] if isinstance(value, int) else []
        others += [True] if not isinstance(value, bool) else [1]
        for other in others:
            assert refused({**data, "parts": [{**parts[0], field.name: other}]}), field.name


@settings(max_examples=30)
@given(
    st.sampled_from(["estimate", "verify"]),
    st.sampled_from(["blocks", "budget", "order", "confidence"]),
    st.floats(0.2, 5),
)
def test_what_still_verifies_promises_no_more(name: str, field: str, factor: float) -> None:
    """Whatever a change leaves certified has no fewer blocks, no more budget, no more β."""
    plan = SMALL[name]()
    value = getattr(plan, field)
    changed = round(value * factor) if field == "blocks" else value * factor
    try:
        other = replace(plan, **{field: changed})
    except InvalidInput:
        return
    if other.verify():
        assert other.blocks >= plan.blocks
        assert other.budget <= plan.budget * 1.01
        assert other.confidence <= plan.confidence


# A second proof, in 50 digits.


def proved(plan: JointPlan, tail: Real, reach: int, failure: Real, slips: list[Real]) -> bool:
    """Whether E[1(bad)·S[ψ]] = ℓ, ℓ = Σ (β − slips)₊/m, is more than any of the theorems allows.

    F(ρ·F(β)) < ℓ; or the mirror, F(β − ℓ) < (1 − ρ)·F⁻¹(β); or both directions at once.
    """
    errors = [slips[min(2 * e, len(slips) - 1)] for e in range(1, reach + 1)]
    mass = sum((max(mpf(0), failure - slip) for slip in errors), mpf(0)) / plan.blocks
    order, budget = plan.order, plan.budget
    if largest(order, budget, tail * largest(order, budget, failure)) < mass:
        return True
    fresh = (1 - tail) * smallest(order, budget, failure)
    if largest(order, budget, failure - mass) < fresh:
        return True
    best = least(lambda t: both_directions(plan, tail, failure, mp.exp(-mp.exp(t) / order)))
    return bool(best < mass)


def least(function: Callable[[Real], Real]) -> Real:
    """The least value near the best of a few points: thirds of the interval are thrown away."""
    best = min(range(-5, 4), key=function)
    low, high = mpf(best - 1), mpf(best + 1)
    for _ in range(14):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, two) if function(one) < function(two) else (one, high)
    return function((low + high) / 2)


def both_directions(plan: JointPlan, tail: Real, failure: Real, x: Real) -> Real:
    """(K − ν·β)/λ for ν = φ′(x), x < 1, and the largest λ with ρ·φ*(ν+λ) + (1−ρ)·φ*(ν) ≤ 0.

    From the divergences alone: E_Q[φ(r)] ≤ K = e^((a−1)R) − 1, r the likelihood ratio, where
    2φ(r) = (rᵃ − 1 − a(r−1)) + (r¹⁻ᵃ − 1 + (a−1)(r−1)), and q·φ(x/q) ≥ s·x − q·φ*(s) for each of
    the events bad and ψ(S_i) = 1, bad and ψ(S_i) = 0.
    """
    a = mpf(plan.order)

    def slope(r: Real) -> Real:
        return (a * (r ** (a - 1) - 1) - (a - 1) * (r ** (-a) - 1)) / 2

    def conjugate(r: Real) -> Real:
        """φ*(φ′(r)) = r·φ′(r) − φ(r)."""
        phi = (r**a - 1 - a * (r - 1) + r ** (1 - a) - 1 + (a - 1) * (r - 1)) / 2
        return r * slope(r) - phi

    low, high = mpf(1), mpf(2)
    while tail * conjugate(high) + (1 - tail) * conjugate(x) <= 0:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        fits = tail * conjugate(middle) + (1 - tail) * conjugate(x) <= 0
        low, high = (middle, high) if fits else (low, middle)
    rent = mp.exp((a - 1) * mpf(plan.budget)) - 1
    return (rent - slope(x) * failure) / (slope(low) - slope(x))


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
        below, above = (
            [part.looks * mpf(float(h)) for h in side.halfsteps]
            for side in (coin.below, coin.above)
        )
        low, high = mpf(part.failure_low), mpf(part.failure_high)
        fresh, frequent = mpf(part.tail_low), 1 - mpf(part.tail_high)
        assert proved(plan, fresh, reach, low, below)
        assert proved(plan, frequent, rest, high, above)
        # Both need nearly all of their reach.
        assert not proved(plan, fresh, reach - plan.blocks // 100, low, below)
        assert not proved(plan, frequent, rest - plan.blocks // 100, high, above)
        assert Fraction(part.failure_low) + Fraction(part.failure_high) <= Fraction(1, 20)
