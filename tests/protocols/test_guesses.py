"""Guesses: the chances of every verdict, what each costs, when it ends, and corrections.

What gives a yes or no and has no test here is run by tests/test_mutants.py: on the real code, which
passes, and on broken copies, which must not.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.protocols.answers import Claim
from holdfast.protocols.base import Protocol
from holdfast.protocols.guesses import Correct, Verify
from holdfast.protocols.plans import Charge
from holdfast.randomness import Entropy
from holdfast.theory.coins import VerdictCoin
from tests.holdout.plans import BLOCKS, VERIFY, mixed_plan
from tests.mechanisms.laws import LARGEST_WORD, Script
from tests.mutants.mechanisms import chance
from tests.protocols.worlds import FAILURES, account, alone, failures, fresh, points, using, value

TARGET = VERIFY.twice_target // 2
CLAIMS: tuple[Claim, ...] = ("equals", "at least", "at most")


@cache
def coin() -> VerdictCoin:
    return VERIFY.coin(mixed_plan().order)


@cache
def prices() -> tuple[Fraction, Fraction]:
    """Of a No and of a Yes."""
    found = VERIFY.prices(mixed_plan().order)
    return Fraction(found.no), Fraction(found.yes)


def split(below: int, on: int) -> list[float]:
    """So many blocks below the guess 0, so many on it, the others above."""
    return [-1.0] * below + [0.0] * on + [1.0] * (BLOCKS - below - on)


def said(*guesses: float, **more: Any) -> list[str]:
    """The verdicts on one guess after another."""
    asked = fresh()
    return [asked.verify(value, guess, **more).verdict for guess in guesses]


# The verdict.


@settings(max_examples=60)
@given(st.integers(0, BLOCKS), st.data())
def test_without_errors_a_guess_is_confirmed_if_both_counts_exceed_the_target(
    below: int, data: st.DataObject
) -> None:
    on = data.draw(st.integers(0, BLOCKS - below))
    at_most, at_least = below + on > TARGET, BLOCKS - below > TARGET
    expected = {"equals": at_most and at_least, "at most": at_most, "at least": at_least}
    for claim in CLAIMS:
        found = fresh(data=split(below, on)).verify(value, 0.0, claim=claim)
        assert found.verdict == ("compatible" if expected[claim] else "not compatible")


def test_guesses_need_not_be_on_any_grid() -> None:
    compatible = ["compatible", "compatible", "not compatible", "not compatible"]
    assert said(0.5, 0.123456, 0.05, 0.95) == compatible
    assert said(Fraction(1, 2), np.float32(0.5)) == compatible[:2]  # type: ignore[arg-type]


COUNTS = (0, 20, 40, 45, 46, 47, 48, 49, 55, 80, 200, BLOCKS)


def has_the_chances_of_its_coin(kind: type[Protocol[Any]] = Verify) -> bool:
    """One-sided, both claims: P[Yes] is the coin's at twice the count minus twice the target."""

    def yes(entropy: Entropy) -> bool:
        asked = fresh(data=data, entropy=entropy)
        return asked.verify(value, 0.0, claim=claim).verdict == "compatible"

    for count, claim in itertools.product(COUNTS, CLAIMS[1:]):
        offset = 2 * count - VERIFY.twice_target
        expected = Fraction(coin().side(offset).yes(offset))
        sign = -1.0 if claim == "at most" else 1.0
        data = [sign] * count + [-sign] * (BLOCKS - count)
        with using(kind):
            if abs(chance(yes) - expected) > Fraction(1, 2**52):
                return False
    return True


def law_of_a_guess(below: int, on: int) -> dict[tuple[str, Fraction], Fraction]:
    """P[verdict, charge] of a two-sided guess: all ways in which its coins can fall."""
    law: dict[tuple[str, Fraction], Fraction] = {}
    offsets = [2 * count - VERIFY.twice_target for count in (below + on, BLOCKS - below)]
    errors = [error(x) for x in offsets]
    for words in itertools.product((0, LARGEST_WORD), repeat=2):
        script = Script(words)
        asked = fresh(data=split(below, on), entropy=script)
        found = asked.verify(value, 0.0)
        used = 2 - len(script.rest)
        if used == 1 and words[1] == 0:
            continue  # the same as with any other second word
        falls = zip(errors[:used], words[:used], strict=True)
        happens = math.prod(h if word == 0 else 1 - h for h, word in falls)
        charge = account(asked)[0]
        if float(charge) != found.price:
            return {}
        key = (found.verdict, charge)
        law[key] = law.get(key, Fraction(0)) + happens
    return law


def error(offset: int) -> Fraction:
    """The chance that a look errs."""
    table = coin().side(offset).halfsteps
    return Fraction(float(table[min(abs(offset), table.size - 1)]))


def charges_by_verdict(kind: type[Protocol[Any]] = Verify) -> bool:
    """Two looks, the second only after a Yes; each pays the price of its own verdict."""
    no, yes = prices()
    for below, on in itertools.product((0, 30, 46, 47, 48, 100, 352, 354), (0, 5, 46)):
        first, second = (
            error(x) if x <= 0 else 1 - error(x)
            for x in (2 * c - VERIFY.twice_target for c in (below + on, BLOCKS - below))
        )
        expected = {
            ("not compatible", no): 1 - first,
            ("not compatible", yes + no): first * (1 - second),
            ("compatible", 2 * yes): first * second,
        }
        with using(kind):
            if law_of_a_guess(below, on) != expected:
                return False
    return True


@failures
def test_an_estimator_that_fails_is_below_every_guess(kind: str) -> None:
    for claim, guess in itertools.product(CLAIMS, (-1e308, 0.0, 1e308)):
        expected = "compatible" if claim == "at most" else "not compatible"
        assert fresh().verify(FAILURES[kind], guess, claim=claim).verdict == expected


def test_infinite_values_are_values() -> None:
    for number, claim in itertools.product((math.inf, -math.inf), CLAIMS[1:]):
        found = fresh(data=[number] * BLOCKS).verify(value, 0.0, claim=claim)
        assert found.refused == ((number > 0) == (claim == "at most"))


# The end.


def stops_after_its_refusals(kind: type[Protocol[Any]] = Verify) -> bool:
    """Three refusals, then exhausted for ever, whatever is asked and however much is left."""
    asked = fresh()
    with using(kind):
        found = [asked.verify(value, guess).verdict for guess in (0.5, 0.99, 0.5, 0.01, 0.5, 0.99)]
        if found != ["compatible", "not compatible"] * 3:
            return False
        before = account(asked)
        later = [asked.verify(value, 0.5, claim=claim) for claim in CLAIMS * 3]
    return (
        all((x.verdict, x.price, x.refusals_left) == ("exhausted", 0.0, 0) for x in later)
        and account(asked) == before
    )


def test_after_the_planned_looks_it_is_exhausted() -> None:
    assert said(*[0.5] * 14) == ["compatible"] * 12 + ["exhausted"] * 2
    for claim in CLAIMS[1:]:  # one look each
        assert said(*[0.5] * 25, claim=claim) == ["compatible"] * 24 + ["exhausted"]


def test_money_for_a_yes_alone_is_not_enough() -> None:
    """A guess that could not pay for its No is not drawn: the verdict would be known."""
    no, yes = prices()
    asked = fresh(replace(alone("verify"), budget=float(no + yes) * 1.001))
    assert asked.verify(value, 0.5).verdict == "compatible"
    assert asked.left > 5 * yes
    assert asked.verify(value, 0.5).verdict == "exhausted"
    assert asked.verify(value, 0.5, claim="at most").verdict == "exhausted"


def test_plans_of_one_sided_guesses_refuse_two_sides() -> None:
    plan = replace(alone("verify"), parts=(replace(VERIFY, sides=1, queries=24),))
    assert plan.verify()
    asked = fresh(plan)
    for claim in ("equals", None):
        with pytest.raises(InvalidInput, match="one-sided"):
            asked.verify(value, 0.5, claim=claim)
    with pytest.raises(InvalidInput, match="tails say what is near"):
        asked.verify(value, 0.5, claim="at least", tolerance=0.1)
    assert account(asked)[0] == 0
    assert asked.verify(value, 0.5, claim="at least").verdict == "compatible"


# The promise, exactly. Plans of few blocks, and the best analyst there is about populations of two
# and three atoms.


# Corrections.


def corrects(kind: type[Protocol[Any]] = Correct) -> bool:
    """A right guess pays for itself alone; a wrong one is searched for, once it is all paid."""
    asked = fresh()
    with using(kind):
        right, wrong = (asked.correct(value, guess, points(8)) for guess in (0.5, 0.99))
    no, yes = prices()
    search = 3 * Fraction(mixed_plan().part("estimate").prices(12.0).no)
    return (
        (right.value, right.correction, right.price) == (0.5, None, float(2 * yes))
        and wrong.verdict.verdict == "not compatible"
        and wrong.value == fresh().ask(value, points(8)).value
        and account(asked)[0] == 2 * yes + yes + no + search
        and math.isclose(wrong.price, float(yes + no + search))
    )


def exhausts_whole(kind: type[Protocol[Any]] = Correct) -> bool:
    """Where either of the two cannot be paid nothing is started, and nothing is charged."""
    for part, charge in (
        ("estimate", Charge("estimate", Fraction(0), 61)),  # two looks are left of 63
        ("verify", Charge("verify", Fraction(0), 23)),
        ("verify", Charge("verify", Fraction(0), 0, 3)),
    ):
        asked = fresh(entropy=Script([]))
        asked.account.hold(charge)
        before = account(asked)
        with using(kind):
            found = asked.correct(value, 0.99, points(8))
        if (found.verdict.verdict, found.value, found.price) != ("exhausted", None, 0):
            return False
        if account(asked) != before or part not in before[1]:
            return False
    return True
