"""Every protocol: charge first, draw next; the oracle agrees; what makes no sense is free."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterator
from dataclasses import astuple, fields, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.errors import Exhausted, InvalidInput
from holdfast.grids import grid
from holdfast.protocols.answers import Corrected
from holdfast.protocols.base import Protocol, Question, Reserve
from holdfast.protocols.means import MedianMean
from holdfast.protocols.memory import MemoryHoldout
from holdfast.protocols.registry import PROTOCOLS, mix_names, wanted
from holdfast.protocols.shapes import BoundedMean
from holdfast.protocols.source import BlockArray
from holdfast.randomness import Entropy, SeededEntropy, SystemEntropy
from tests.holdout import plans
from tests.protocols.oracle import disagreement, opinion
from tests.protocols.worlds import (
    CASES,
    TRUTH,
    Case,
    Short,
    account,
    every,
    fresh,
    points,
    source,
    using,
    value,
)


class Untouched(Entropy):
    """No coin may be flipped."""

    def words(self, count: int) -> NDArray[np.uint64]:
        raise AssertionError


# A protocol is a generator: it reserves first.


@every
def test_the_worst_case_is_reserved_before_anything_else(name: str) -> None:
    protocol, question = CASES[name].protocol(), CASES[name].question()
    steps = protocol.ask(question, Untouched(), ())
    worst = protocol.worst(question)
    assert worst
    for charge in worst:  # nothing but reservations until all of it is paid
        step = next(steps)
        assert step == Reserve(charge)
    assert all(charge.price >= 0 and charge.part in protocol.plan.names for charge in worst)


@every
def test_nothing_is_drawn_of_what_does_not_fit(name: str) -> None:
    """At whichever reservation it ends: no data, no coin; a guess is exhausted, others say so."""
    protocol, question = CASES[name].protocol(), CASES[name].question()
    for fitting in range(len(protocol.worst(question))):
        steps = protocol.ask(question, Untouched(), ())
        for _ in range(fitting + 1):
            next(steps)
        with pytest.raises((StopIteration, Exhausted)) as ended:
            steps.throw(Exhausted("the budget", "more", "none", "none"))
        drawn = getattr(ended.value, "value", None)
        assert drawn is None
        assert isinstance(ended.value, StopIteration) == (question.verb in ("verify", "correct"))
        if isinstance(ended.value, StopIteration):
            held = protocol.worst(question)[:fitting]
            back = protocol.given_back(question) if held else ()
            assert back == tuple(charge.nothing for charge in held)


@every
def test_what_is_interrupted_stays_spent(name: str) -> None:
    """An estimator, or a machine, that stops it may have told something."""

    class Broken(BlockArray):
        def values(self, *_: object) -> Any:
            raise KeyboardInterrupt

        sums = values  # type: ignore[assignment]

        def part(self, *_: object) -> Any:
            return self

    case = CASES[name]
    if case.universe is not None:
        return  # its blocks were found before; see test_others.py
    plan = case.plan()
    blocks = plan.blocks * plan.subblocks
    holdout = case.holdout(data=Broken(np.zeros(blocks), blocks))
    with pytest.raises(KeyboardInterrupt):
        case.ask(holdout)
    worst = case.protocol().worst(case.question())
    assert holdout.account.charged == sum(charge.price for charge in worst)


# The oracle: what it costs and what it says, by other code.

SIZES = (2, 3, 8, 9, 33, 70)


def random_words(case: Case, rng: random.Random) -> dict[str, Any]:
    words: dict[str, Any] = {}
    if case.verb == "mean":
        bounds = rng.choice([None, (0.0, 1.0), (-1.0, 3.0)])
        words = {} if bounds is None else {"range": bounds}
        if "grid" in case.words:
            words["grid"] = points(rng.choice(SIZES))
        if type(case.protocol()) is MedianMean and rng.random() < 0.3:
            words["where"] = lambda rows: rows > 0.2
    elif case.universe is not None:
        table = np.array([float(rng.randrange(9)) for _ in range(5)])
        words["estimator"] = lambda blocks: table[blocks[:, 0].astype(int)]
        words["grid"] = grid(0, rng.choice((4, 8)), step=1)
    elif case.verb in ("ask", "interval", "correct") and "grid" in case.words:
        words["grid"] = points(rng.choice(SIZES))
        if case.verb != "interval" and rng.random() < 0.5:
            words["shape"] = BoundedMean()
    if "guess" in case.words:
        words["guess"] = rng.uniform(-0.2, 1.2)
    if case.verb == "verify" and "tolerance" in case.words:
        words["tolerance"] = rng.choice((0.0, 0.1, 0.7))
    elif case.verb == "verify" and case.words.get("claim") is None:
        words["claim"] = rng.choice(("equals", "at least", "at most"))
    return words


def questions(
    name: str, seed: int, kind: type[Protocol[Any]] | None = None
) -> Iterator[tuple[Protocol[Any], Question, Any, Any, Any]]:
    """Random questions until nothing is left: who answered what, by what, for how much."""
    case, rng, seen = CASES[name], random.Random(seed), []
    kind = kind or type(case.protocol())

    class Spy(kind):  # type: ignore[valid-type, misc]
        def answer(self, question: Question, drawn: Any, paid: Any) -> Any:
            seen.append((self, question, drawn, paid))
            return super().answer(question, drawn, paid)

    holdout, misses = case.holdout(SeededEntropy(seed)), 0
    for _ in range(25):
        before, words = holdout.account.charged, random_words(case, rng)
        try:
            with using(Spy):
                result = case.ask(holdout, **words)
        except (Exhausted, InvalidInput):  # of exact corrections: a grid that is too large
            misses += 1
            if misses == 3:
                return
            continue
        protocol, question, drawn, paid = seen.pop()
        assert holdout.account.charged - before == sum(each.price for each in paid.charges)
        yield protocol, question, drawn, paid, result


def oracle_agrees(name: str, kind: type[Protocol[Any]] | None = None, seeds: int = 4) -> str:
    """The first disagreement; empty if there is none."""
    for seed in range(seeds):
        for protocol, question, drawn, paid, result in questions(name, seed, kind):
            kept = json.loads(json.dumps(protocol.plan.kept()))
            facts = json.loads(json.dumps(question.facts))
            drawn = json.loads(json.dumps(drawn))
            mine = opinion(kept, facts, drawn, protocol.units)
            wrong = disagreement(mine, [astuple(each) for each in paid.charges], result)
            if wrong:
                return wrong
    return ""


@every
def test_the_oracle_agrees(name: str) -> None:
    assert oracle_agrees(name) == ""


@every
def test_what_was_drawn_is_enough_to_say_it_again(name: str) -> None:
    """Question and draw survive JSON; the same answer, charges and checks follow from them."""
    taught: list[Any] = []
    for protocol, question, drawn, paid, result in questions(name, 9):
        again = Question.from_facts(json.loads(json.dumps(question.facts)))
        kept = json.loads(json.dumps(drawn))
        assert again == question or again.facts == question.facts
        assert protocol.answer(again, kept, paid) == result
        if kept is None:
            assert paid.price() == 0
            continue
        assert protocol.charges(again, kept) == paid.charges
        protocol.check(again, kept, taught)
        worst = protocol.worst(again)
        assert all(
            paid_for.within(held) for paid_for, held in zip(paid.charges, worst, strict=False)
        )
        taught += [kept] if "steps" in kept else []


SPOILED = {
    "index": (-1, 10**6, True, 0.0, None, "0"),
    "first": (-1, 10**6, None),
    "last": (-1, 10**6, 1.0),
    "cell": (-1, 10**6, False, None),
    "yes": (-1, 3, True, None),
    "refused": (0, "no", []),
    "value": ("nan", None, [1]),
}


@every
def test_what_cannot_have_been_drawn_is_refused(name: str) -> None:
    for protocol, question, drawn, paid, _ in questions(name, 1):
        for key, wrongs in SPOILED.items():
            for wrong in wrongs if drawn is not None and key in drawn else ():
                assert not sound(protocol, question, {**drawn, key: wrong}, paid), (key, wrong)


def sound(protocol: Protocol[Any], question: Question, drawn: Any, paid: Any) -> bool:
    try:
        protocol.charges(question, drawn)
        protocol.answer(question, drawn, paid)
    except (ValueError, LookupError, TypeError):
        return False
    return True


# What they have in common.


@every
def test_only_the_operating_system_s_entropy_is_certified(name: str) -> None:
    case = CASES[name]
    exact = not type(case.protocol()).random
    for entropy, sure in ((None, True), (SystemEntropy(), True), (SeededEntropy(1), exact)):
        found = case.ask(case.holdout(entropy))
        assert getattr(found, "verdict", found) is not None
        certified = found.verdict.certified if isinstance(found, Corrected) else found.certified
        assert certified == sure


@every
def test_an_answer_says_what_it_is(name: str) -> None:
    case = CASES[name]
    found, protocol = case.ask(case.holdout()), case.protocol()
    data = found.to_dict()
    assert json.loads(json.dumps(data)) == data
    for each in found.steps:
        more = {"assumes", "reading_words", "tail"} | (
            {"verdict"} if hasattr(each, "guess") else set()
        )
        assert set(each.to_dict()) == {*(field.name for field in fields(each)), *more}
        assert (each.block_units, each.confidence) == (1, case.plan().confidence)
        assert each.budget_left >= 0
        if each.kind == "answer":
            assert (each.protocol, each.method) == (protocol.says, protocol.method)
            assert "on blocks of 1 unit" in str(each) or each.low is not None


@every
def test_plans_of_other_blocks_or_without_a_proof_are_refused(name: str) -> None:
    case = CASES[name]
    plan: Any = case.plan()
    with pytest.raises(InvalidInput, match="the plan's"):
        fresh(plan, source(plan.blocks * plan.subblocks + 1), universe=case.universe)
    weaker = replace(plan, confidence=0.99999)
    with pytest.raises(InvalidInput, match="certifies itself"):
        MemoryHoldout(weaker, source(plan.blocks * plan.subblocks), TRUTH)


WRONG: dict[str, tuple[Any, ...]] = {
    "grid": (None, 5, "0:1:0.1", [0, 1], np.arange(3.0)),
    "shape": ("mean", 1, BoundedMean),
    "guess": (math.nan, math.inf, "0.5", None, True, 10**400, [0.5], 1j),
    "claim": ("about", ["equals"], 5),
    "tolerance": (-1, math.nan, "a", math.inf),
    "range": ((1, 0), (0, 0), (0, math.inf), (-1e301, 0), (1,), None, "01"),
    "protocol": ("other", 5, "nothing of the kind"),
}


@every
def test_wrong_questions_cost_nothing_and_are_refused_even_when_it_is_exhausted(name: str) -> None:
    case = CASES[name]
    holdout, spent = case.holdout(Untouched()), case.holdout()
    spent.account.charged = spent.account.limit
    before = account(holdout), account(spent)
    words = {**case.words, "protocol": None}
    takes = {"ask": "shape", "correct": "shape", "mean": "range"}.get(case.verb)
    for key in {*words, *([takes] if takes else [])}:
        for wrong in WRONG[key]:
            unused = key == "grid" and (wrong is None and case.verb == "mean")
            for each in () if unused else (holdout, spent):
                with pytest.raises(InvalidInput):
                    case.ask(each, **{key: wrong})
    assert (account(holdout), account(spent)) == before


@every
def test_a_source_that_lies_gets_no_answer(name: str) -> None:
    """Its price stays spent: nobody can tell what it would have said."""
    case = CASES[name]
    if case.universe:
        return  # it finds its places at once
    blocks = case.plan().blocks * case.plan().subblocks
    holdout = case.holdout(Untouched(), Short(np.zeros(blocks), blocks))
    with pytest.raises(InvalidInput, match="one for each"):
        case.ask(holdout)
    assert 0 < holdout.account.charged <= holdout.account.limit


def test_what_is_no_entropy_is_refused_at_once() -> None:
    for wrong in (1, "system", SeededEntropy):
        with pytest.raises(InvalidInput, match="entropy"):
            fresh(entropy=wrong)  # type: ignore[arg-type]


def test_who_answers() -> None:
    """For every verb the first choice first; `protocol` selects a part."""
    names = {name: type(case.protocol()).__name__ for name, case in CASES.items()}
    assert {kind.__name__ for kind in PROTOCOLS if not kind.told} == {*names.values()}
    assert names["mean by estimates"] == names["median mean"] == "MedianMean"
    assert (names["near"], names["gate"]) == ("Near", "Verify")
    with pytest.raises(InvalidInput, match="the name of a part that can ask: estimate"):
        fresh().ask(value, points(8), protocol="verify")
    with pytest.raises(InvalidInput, match="none in this plan"):
        fresh(plans.split()).verify(value, 0.5)
    one_sided = replace(plans.gates(), parts=(*plans.gates().parts, *plans.estimates().parts))
    with pytest.raises(InvalidInput, match="a part that can correct: none"):
        fresh(one_sided, source(8)).correct(value, 0.5, points(8))


def test_what_protocols_are_called() -> None:
    names = mix_names()
    assert len(set(names)) == len(names)
    assert all(callable(wanted(name).make) for name in names)
    assert all(re.fullmatch(r"[a-z-]+", name) for name in names)
