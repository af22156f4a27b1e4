"""The budget that protocols share: exact, final, and never behind what was drawn.

A state machine mixes all protocols at random and keeps a second account. The filter is then tested
for what it is there for: every transcript of the real protocols on three blocks, for analysts who
choose the next question by all verdicts so far, and the exact divergence between what they see and
the centred reference, against the limit.
"""

from __future__ import annotations

import math
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast.errors import Exhausted, InvalidInput
from holdfast.grids import Grid, grid
from holdfast.planning.joint import JointPlan
from holdfast.planning.parts import Part, SearchPart, VerdictPart
from holdfast.protocols.answers import Claim
from holdfast.protocols.budget import Budget, Reservation
from holdfast.protocols.guesses import Verify
from holdfast.protocols.searches import Estimate, Interval
from holdfast.protocols.source import BlockArray
from holdfast.randomness import Entropy, SeededEntropy
from holdfast.theory.coins import VerdictCoin
from tests.mechanisms.laws import LARGEST_WORD, Constant

BLOCKS = 400
CLAIMS: tuple[Claim, ...] = ("equals", "at least", "at most")
TRUTH = Constant(LARGEST_WORD)  # no coin errs

ESTIMATE = SearchPart(
    name="estimate",
    protocol="estimate",
    queries=6,
    grid=8,
    tail_low=0.02,
    tail_high=0.02,
    twice_target=BLOCKS,
    failure_low=0.1,
    failure_high=0.1,
    look_price=0.00125,
    floor=1e-7,
    looks=63,
)
INTERVAL = replace(
    ESTIMATE,
    name="interval",
    protocol="interval",
    queries=2,
    grid=4,
    tail_high=0.5,
    twice_target=108,
    failure_low=0.12,
    failure_high=0.12,
    look_price=0.003,
    looks=26,
    mirrored=True,
)
VERIFY = VerdictPart(
    name="verify",
    protocol="verify",
    queries=12,
    refusals=3,
    sides=2,
    tail_low=0.02,
    tail_high=0.45,
    twice_target=94,
    failure_low=0.12,
    failure_high=0.12,
    no_price=0.0825,
    yes_price=0.0055,
    false_yes=1e-7,
    false_no=1e-7,
    looks=24,
)
PARTS: tuple[Part, ...] = (ESTIMATE, INTERVAL, VERIFY)


@cache
def mixed_plan() -> JointPlan:
    """Six estimates, two intervals, twelve guesses with three refusals: certified at 0.4."""
    order = 12.0
    limit = sum(part.planned(order) for part in PARTS) * (1 + 1e-12)
    plan = JointPlan(BLOCKS, order, limit, 0.4, PARTS)
    assert plan.verify()
    return plan


@cache
def alone(name: str) -> JointPlan:
    """One part of it, with a budget of its own."""
    part = mixed_plan().part(name)
    plan = replace(mixed_plan(), budget=part.planned(12.0) * (1 + 1e-12), parts=(part,))
    assert plan.verify()
    return plan


def fresh(plan: JointPlan) -> Budget:
    """A new budget for a plan that has proved itself already, or need not: quick."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JointPlan, "verify", lambda plan: True)
        return Budget(plan)


@cache
def source() -> BlockArray:
    """Values spread over [0, 1], one for each block."""
    return BlockArray((np.arange(BLOCKS) * 7 % BLOCKS + 0.5) / BLOCKS, BLOCKS)


def value(rows: np.ndarray[Any, Any]) -> float:
    return float(rows[0])


def account(budget: Budget) -> tuple[Fraction, dict[str, tuple[int, int]]]:
    """What is spent, exactly, and the looks and refusals of every part."""
    kept = budget._account
    return kept.charged, {name: (u.looks, u.refusals) for name, u in kept._uses.items()}


def points(size: int) -> Grid:
    return grid(0, 1, points=size) if size > 1 else grid([0.5])


# Any mixture of protocols.


@dataclass
class Account:
    """What a part should have used by now."""

    looks: int = 0
    refusals: int = 0


class Mixture(RuleBasedStateMachine):
    """Questions of all protocols and sizes on one budget, and a second account of them."""

    def __init__(self) -> None:
        super().__init__()
        self.budget = Budget(mixed_plan())
        self.limit = Fraction(mixed_plan().budget)
        self.spent = Fraction(0)
        self.uses = {part.name: Account() for part in PARTS}
        self.refused: set[tuple[str, int]] = set()  # sizes of question that were exhausted
        entropy = SeededEntropy(7)
        self.estimate = Estimate(self.budget, source(), entropy)
        self.interval = Interval(self.budget, source(), entropy)
        self.verify = Verify(self.budget, source(), entropy)
        self.left_before = self.budget.left

    def price(self, name: str, *, yes: bool = False) -> Fraction:
        prices = mixed_plan().part(name).prices(mixed_plan().order)
        return Fraction(prices.yes if yes else prices.no)

    def fits(self, name: str, worst: Fraction, looks: int, noes: int = 0) -> bool:
        part, use = mixed_plan().part(name), self.uses[name]
        enough = part.most_refusals is None or use.refusals + noes <= part.most_refusals
        return enough and use.looks + looks <= part.looks and self.spent + worst <= self.limit

    def search(self, name: Literal["estimate", "interval"], size: int) -> None:
        looks = points(size).looks * (2 if name == "interval" else 1)
        price = looks * self.price(name)
        fits, before = self.fits(name, price, looks), account(self.budget)
        ask = self.estimate.ask if name == "estimate" else self.interval.ask
        try:
            answer = ask(value, points(size))
        except Exhausted:
            assert not fits
            assert account(self.budget) == before
            self.refused.add((name, looks))
            return
        assert fits
        assert (name, looks) not in self.refused
        assert answer.price == float(price)
        assert answer.budget_left == self.budget.left
        self.spent += price
        self.uses[name].looks += looks

    @rule(size=st.sampled_from([1, 2, 3, 8, 9, 64, 1000, 10**6]))
    def ask_estimate(self, size: int) -> None:
        self.search("estimate", size)

    @rule(size=st.sampled_from([1, 2, 4, 5, 32]))
    def ask_interval(self, size: int) -> None:
        self.search("interval", size)

    @rule(guess=st.floats(-0.2, 1.2), claim=st.sampled_from(CLAIMS))
    def ask_verify(self, guess: float, claim: Claim) -> None:
        sides = 2 if claim == "equals" else 1
        no, yes = self.price("verify"), self.price("verify", yes=True)
        fits = self.fits("verify", (sides - 1) * yes + max(no, yes), sides, 1)
        before = account(self.budget)
        answer = self.verify.ask(value, guess, claim=claim)
        if answer.verdict == "exhausted":
            assert not fits
            assert answer.price == 0
            assert account(self.budget) == before
            self.refused.add(("verify", sides))
            return
        assert fits
        assert ("verify", sides) not in self.refused
        outcomes = {sides * yes: sides} if answer.verdict == "compatible" else {}
        if answer.verdict == "not compatible":
            outcomes = {said * yes + no: said + 1 for said in range(sides)}
        paid = [exact for exact in outcomes if float(exact) == answer.price]
        assert len(paid) == 1
        self.spent += paid[0]
        self.uses["verify"].looks += outcomes[paid[0]]
        self.uses["verify"].refusals += answer.verdict == "not compatible"

    @precondition(lambda self: self.spent < self.limit / 2)
    @rule(part=st.sampled_from(PARTS), looks=st.integers(0, 3))
    def lose_a_reservation(self, part: Part, looks: int) -> None:
        """As if the process had died between the reservation and the draw: it stays spent."""
        price = looks * self.price(part.name)
        if self.fits(part.name, price, looks):
            self.budget.reserve(part, price, looks)
            self.spent += price
            self.uses[part.name].looks += looks

    @rule(wrong=st.sampled_from([math.nan, math.inf, "0.5", None, True]))
    def ask_wrongly(self, wrong: Any) -> None:
        for ask in (
            lambda: self.verify.ask(value, wrong),
            lambda: self.verify.ask(value, 0.5, claim=wrong),
            lambda: self.estimate.ask(value, wrong),
            lambda: self.interval.ask(value, wrong),
        ):
            with pytest.raises(InvalidInput):
                ask()

    @invariant()
    def accounts_agree(self) -> None:
        spent, uses = account(self.budget)
        assert spent == self.spent <= self.limit
        assert uses == {name: (use.looks, use.refusals) for name, use in self.uses.items()}
        assert Fraction(self.budget.spent) >= spent
        assert Fraction(self.budget.left) <= self.limit - spent
        assert 0 <= self.budget.left <= self.left_before
        self.left_before = self.budget.left

    @invariant()
    def caps_are_kept(self) -> None:
        for part in PARTS:
            use = self.uses[part.name]
            assert 0 <= use.looks <= part.looks
            assert 0 <= use.refusals <= (part.most_refusals or 0)

    @invariant()
    def what_it_buys_is_possible(self) -> None:
        for name, left in self.budget.buys().items():
            assert (left.questions == 0) == self.budget.exhausted(name)
            worst, looks, noes = planned_question(mixed_plan().part(name))
            assert (left.questions > 0) == self.fits(name, worst, looks, noes)


def planned_question(part: Part) -> tuple[Fraction, int, int]:
    """The worst price, the looks and the refusals of one question of the planned size."""
    prices = part.prices(mixed_plan().order)
    if isinstance(part, SearchPart):
        return part.looks_per_query * Fraction(prices.no), part.looks_per_query, 0
    assert isinstance(part, VerdictPart)
    yes, no = Fraction(prices.yes), Fraction(prices.no)
    return (part.sides - 1) * yes + max(no, yes), part.sides, 1


TestMixture = Mixture.TestCase
TestMixture.settings = settings(max_examples=40, stateful_step_count=40)


# What the rest buys.


def asker(budget: Budget, name: str) -> Callable[[], bool]:
    """One question of the planned size after another; False once exhausted. No look errs."""
    if name == "verify":
        verify = Verify(budget, source(), TRUTH)
        return lambda: verify.ask(value, 0.5).verdict == "compatible"
    protocol: Estimate | Interval
    protocol = (Estimate if name == "estimate" else Interval)(budget, source(), TRUTH)
    part = budget.plan.part(name)
    assert isinstance(part, SearchPart)

    def ask() -> bool:
        try:
            protocol.ask(value, points(part.grid))
        except Exhausted:
            return False
        return True

    return ask


def asked(budget: Budget, name: str) -> int:
    ask, count = asker(budget, name), 0
    while ask():
        count += 1
    return count


@pytest.mark.parametrize("name", ["estimate", "interval", "verify"])
def test_a_plan_buys_just_what_it_was_made_for(name: str) -> None:
    budget = Budget(alone(name))
    assert budget.buys()[name].questions == alone(name).part(name).queries
    assert asked(budget, name) == alone(name).part(name).queries


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["estimate", "interval", "verify", "one look", "one side"])),
    st.sampled_from(["estimate", "interval", "verify"]),
)
def test_what_it_buys_can_be_asked_and_not_one_more(before: list[str], name: str) -> None:
    budget = Budget(mixed_plan())
    ask: dict[str, Callable[[], object]] = {part.name: asker(budget, part.name) for part in PARTS}
    verify = Verify(budget, source(), TRUTH)
    ask["one look"] = lambda: budget.reserve(ESTIMATE, Fraction(1, 1000), 1)
    ask["one side"] = lambda: verify.ask(value, 0.4, claim="at most")
    for kind in before[:12]:
        try:
            ask[kind]()
        except Exhausted:
            break
    promised = budget.buys()[name].questions
    assert asked(budget, name) == promised
    assert budget.exhausted(name)
    assert budget.buys()[name].questions == 0


def refused_guesses(budget: Budget) -> int:
    """Guesses whose second look says No: the dearest way to be refused."""
    verify, count = Verify(budget, source(), TRUTH), 0
    while verify.ask(value, 0.95).verdict == "not compatible":
        count += 1
    return count


@pytest.mark.parametrize("yes", [0, 4, 8])
def test_as_many_refusals_as_it_says(yes: int) -> None:
    budget = Budget(mixed_plan())
    for _ in range(yes):
        assert asker(budget, "verify")()
    promised = budget.buys()["verify"].refusals
    assert promised == Verify(budget, source(), TRUTH).refusals_left == 3
    assert refused_guesses(budget) == promised


def test_no_more_refusals_than_guesses() -> None:
    """Eleven of twelve guesses are asked: there is money for three refusals, not for the looks."""
    budget = Budget(mixed_plan())
    for _ in range(11):
        assert asker(budget, "verify")()
    left = budget.buys()["verify"]
    assert left.questions == 1
    assert left.refusals == refused_guesses(budget)


def test_exhaustion_of_one_part_leaves_the_others() -> None:
    budget = Budget(mixed_plan())
    assert refused_guesses(budget) == 3
    assert budget.exhausted("verify")
    assert not budget.exhausted("estimate")
    with pytest.raises(Exhausted, match=r"Still possible: estimate \(\d+\); interval \(\d+\)\."):
        budget.reserve(VERIFY, Fraction(0), 1, noes=1)
    assert asker(budget, "estimate")()


def test_one_part_may_use_what_was_planned_for_all() -> None:
    budget = Budget(mixed_plan())
    assert asked(budget, "estimate") == ESTIMATE.looks // 3 == 21
    with pytest.raises(Exhausted):
        Interval(budget, source(), TRUTH).ask(value, points(4))
    with pytest.raises(Exhausted, match="The budget is used up: nothing more can be asked"):
        Estimate(budget, source(), TRUTH).ask(value, points(8))


@pytest.mark.parametrize("spent", [0, 1, 7, 40, 55, 58, 60, 61, 62, 63])
def test_what_is_said_to_be_possible_is_possible(spent: int) -> None:
    """All looks of one part are its own, whatever the others do: ask what the remedy offers."""
    budget = fresh(replace(mixed_plan(), parts=(ESTIMATE,)))
    price = Fraction(ESTIMATE.prices(12.0).no)
    for _ in range(spent):
        budget.reserve(ESTIMATE, price, 1).settle(price, 1)
    with pytest.raises(Exhausted) as refused:
        budget.reserve(ESTIMATE, price, ESTIMATE.looks + 1)
    remedy, left = refused.value.remedy, budget.buys()["estimate"]
    if "used up" in remedy:
        assert left.looks == 0
        with pytest.raises(Exhausted):
            budget.reserve(ESTIMATE, price, 1)
    elif left.questions:
        assert remedy == f"Still possible: estimate ({left.questions})."
    else:
        (most,) = map(int, re.findall(r"at most (\d+) points", remedy))
        looks = (most - 1).bit_length()
        assert ("verify a guess" in remedy) == (looks >= 2)
        budget.reserve(ESTIMATE, looks * price, looks).cancel()
        with pytest.raises(Exhausted):
            budget.reserve(ESTIMATE, (looks + 1) * price, looks + 1)


def test_one_side_of_a_guess_may_be_affordable_when_two_are_not() -> None:
    budget = fresh(alone("verify"))
    prices = VERIFY.prices(12.0)
    no, yes = Fraction(prices.no), Fraction(prices.yes)
    rest = Fraction(budget.plan.budget) - max(no, yes)
    budget._account.charged = rest  # what is left pays for one look, and no more
    assert budget.buys()["verify"].questions == 0
    with pytest.raises(Exhausted, match=r"Still possible: verify of one side \(\d+\)"):
        Verify(budget, source(), TRUTH).budget.reserve(VERIFY, yes + max(no, yes), 2, noes=1)
    assert Verify(budget, source(), TRUTH).ask(value, 0.5, claim="at least").refused is not None


# Reservations.


def reserved(budget: Budget | None = None) -> tuple[Budget, Reservation]:
    budget = budget or Budget(mixed_plan())
    return budget, budget.reserve(VERIFY, Fraction(1, 100), 2, noes=1)


def test_a_reservation_is_spent_until_it_is_settled_for_less() -> None:
    budget, held = reserved()
    assert account(budget) == (Fraction(1, 100), {**NOTHING, "verify": (2, 1)})
    held.settle(Fraction(1, 400), 1)
    assert account(budget) == (Fraction(1, 400), {**NOTHING, "verify": (1, 0)})


NOTHING = {part.name: (0, 0) for part in PARTS}


def test_what_is_never_settled_stays_spent() -> None:
    budget, held = reserved()
    del held
    assert account(budget)[0] == Fraction(1, 100)


def test_settled_once_and_within_what_was_reserved() -> None:
    budget, held = reserved()
    for price, looks, noes in ((Fraction(1, 99), 2, 1), (Fraction(1, 100), 3, 1), (0, 2, 2)):
        with pytest.raises(InvalidInput, match="settlement"):
            held.settle(Fraction(price), looks, noes)
        assert account(budget) == (Fraction(1, 100), {**NOTHING, "verify": (2, 1)})
    held.settle(Fraction(1, 100), 2, 1)
    with pytest.raises(InvalidInput, match="settlement"):
        held.settle(Fraction(0), 0)
    assert account(budget) == (Fraction(1, 100), {**NOTHING, "verify": (2, 1)})


@pytest.mark.parametrize(
    ("price", "looks", "noes"), [(-1, 0, 0), (0, -1, 0), (0, 0, -1)], ids=["price", "looks", "noes"]
)
def test_no_settlement_gives_more_than_was_taken(price: int, looks: int, noes: int) -> None:
    budget, held = reserved()
    with pytest.raises(InvalidInput):
        held.settle(Fraction(price), looks, noes)
    assert account(budget) == (Fraction(1, 100), {**NOTHING, "verify": (2, 1)})


@pytest.mark.parametrize(
    ("price", "looks", "noes"),
    [
        pytest.param(-1, 1, 0, id="price"),
        pytest.param(0, -1, 0, id="looks"),
        pytest.param(0, 1, -1, id="noes"),
    ],
)
def test_no_reservation_of_less_than_nothing(price: int, looks: int, noes: int) -> None:
    budget = Budget(mixed_plan())
    with pytest.raises(InvalidInput):
        budget.reserve(VERIFY, Fraction(price), looks, noes)
    assert account(budget) == (Fraction(0), NOTHING)


def test_a_part_of_another_plan_is_refused() -> None:
    budget = Budget(mixed_plan())
    for other in (replace(ESTIMATE, looks=10**6), replace(VERIFY, name="other")):
        with pytest.raises(InvalidInput):
            budget.reserve(other, Fraction(0), 1)


def test_only_a_plan_that_proves_itself() -> None:
    with pytest.raises(InvalidInput, match="certifies itself"):
        Budget(replace(mixed_plan(), confidence=0.95))


def admits_exactly(build: Callable[[JointPlan], Budget] = Budget) -> bool:
    """0.1 ten times is more than 1, for the float 0.1 is more than 1/10; floats add up to less."""
    plan = replace(alone("estimate"), budget=1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JointPlan, "verify", lambda plan: True)
        budget = build(plan)
    part, admitted = plan.part("estimate"), 0
    for _ in range(10):
        try:
            budget.reserve(part, Fraction(0.1), 1)
        except Exhausted:
            break
        admitted += 1
    return admitted == 9 and budget._account.charged <= 1


def test_the_last_bit_counts() -> None:
    assert admits_exactly()


# First the price, then the data, then the coins.


@dataclass
class Watch(Entropy):
    """Truth, and what had been spent when it was asked for."""

    budget: Budget
    spent: list[Fraction] = field(default_factory=list)

    def words(self, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        self.spent.append(self.budget._account.charged)
        return TRUTH.words(count)


def reserves_first(
    estimate: type[Estimate] = Estimate,
    interval: type[Interval] = Interval,
    verify: type[Verify] = Verify,
) -> bool:
    """When an estimator or a coin is asked, the worst that the question can cost is spent."""
    budget = Budget(mixed_plan())
    watch = Watch(budget)

    def watched(rows: np.ndarray[Any, Any]) -> float:
        watch.spent.append(budget._account.charged)
        return value(rows)

    one = estimate(budget, source(), watch)
    two = interval(budget, source(), watch)
    three = verify(budget, source(), watch)
    asks: list[tuple[Callable[[], object], str]] = [
        (lambda: one.ask(watched, points(8)), "estimate"),
        (lambda: two.ask(watched, points(4)), "interval"),
        (lambda: three.ask(watched, 0.5), "verify"),
        (lambda: three.ask(watched, 0.95), "verify"),
    ]
    for ask, name in asks:
        before = budget._account.charged
        worst = planned_question(mixed_plan().part(name))[0]
        watch.spent.clear()
        ask()
        if len(watch.spent) <= BLOCKS or min(watch.spent) < before + worst:
            return False
    return True


def test_nothing_is_drawn_before_it_is_paid() -> None:
    assert reserves_first()


def leaves_no_trace(verify: type[Verify] = Verify, estimate: type[Estimate] = Estimate) -> bool:
    """Exhausted questions touch neither data nor coins nor the account, however often."""
    budget = Budget(mixed_plan())
    refused_guesses(budget)
    asked(budget, "estimate")
    before = account(budget), budget.left, budget.buys()
    touched: list[float] = []

    def touch(rows: np.ndarray[Any, Any]) -> float:
        touched.append(value(rows))
        return value(rows)

    watch = Watch(budget, touched)  # type: ignore[arg-type]
    one, two = verify(budget, source(), watch), estimate(budget, source(), watch)
    for _ in range(5):
        said = one.ask(touch, 0.5)
        if (said.verdict, said.price, said.refusals_left) != ("exhausted", 0.0, 0):
            return False
        try:
            two.ask(touch, points(8))
        except Exhausted:
            pass
        else:
            return False
        if touched or (account(budget), budget.left, budget.buys()) != before:
            return False
    return True


def test_exhaustion_is_polite_final_and_free() -> None:
    assert leaves_no_trace()


# Threads.


@pytest.fixture
def impatient() -> Iterator[None]:
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("impatient")
def test_eight_threads_never_overspend() -> None:
    for turn in range(4):
        budget = Budget(mixed_plan())
        limit = Fraction(mixed_plan().budget)
        paid: list[float] = []
        wrong: list[Fraction] = []
        start = threading.Barrier(8)

        def hammer(
            seed: int,
            budget: Budget,
            start: threading.Barrier,
            paid: list[float],
            wrong: list[Fraction],
        ) -> None:
            rng, entropy = random.Random(seed), SeededEntropy(seed)
            estimate = Estimate(budget, source(), entropy)
            interval = Interval(budget, source(), entropy)
            verify = Verify(budget, source(), entropy)
            start.wait()
            misses = 0
            while misses < 6:
                kind = rng.randrange(3)
                try:
                    if kind == 2:
                        said = verify.ask(value, rng.random())
                        misses += said.verdict == "exhausted"
                        paid.append(said.price)
                    else:
                        size = rng.choice((2, 4, 16))
                        protocol = (estimate, interval)[kind]
                        paid.append(protocol.ask(value, points(size)).price)
                except Exhausted:
                    misses += 1
                if budget._account.charged > Fraction(mixed_plan().budget):
                    wrong.append(budget._account.charged)

        arguments = (budget, start, paid, wrong)
        threads = [
            threading.Thread(target=hammer, args=(8 * turn + i, *arguments)) for i in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        spent, uses = account(budget)
        assert not wrong
        assert spent <= limit
        assert math.fsum(paid) == pytest.approx(float(spent), rel=1e-12)
        for part in PARTS:
            assert uses[part.name][0] <= part.looks
        assert uses["verify"][1] <= VERIFY.refusals


@pytest.mark.usefixtures("impatient")
def test_reservations_of_many_threads_add_up() -> None:
    budget = Budget(mixed_plan())
    price = Fraction(mixed_plan().budget) / 64 * 63 / 62  # 62 of them fit, and not 64

    def hold(results: list[bool]) -> None:
        for _ in range(10):
            try:
                budget.reserve(ESTIMATE, price, 0)
            except Exhausted:
                results.append(False)
            else:
                results.append(True)

    results: list[bool] = []
    threads = [threading.Thread(target=hold, args=(results,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 80
    assert sum(results) == budget._account.charged / price == Fraction(mixed_plan().budget) // price


@pytest.mark.usefixtures("impatient")
def test_one_of_many_threads_settles() -> None:
    budget = Budget(mixed_plan())

    def settle(held: Reservation, start: threading.Barrier, done: list[bool]) -> None:
        start.wait()
        with suppress(InvalidInput):
            held.settle(Fraction(0), 0)
            done.append(True)

    for _ in range(400):
        held, start = reserved(budget)[1], threading.Barrier(4)
        done: list[bool] = []
        threads = [threading.Thread(target=settle, args=(held, start, done)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) == 1
        assert account(budget) == (Fraction(0), NOTHING)


# The filter, on all transcripts of the real protocols.
#
# Three blocks of two kinds. `Told` stands in for the look: it says what it is told and remembers
# what it was asked. The law M flips the coin at that offset; the reference Q, which must not know
# the last block, flips the coin half a count above the lower of the two offsets that the last block
# can cause. Both laws are then known exactly, for every transcript.


class More(Exception):
    """The script of verdicts is too short."""


@dataclass
class Told:
    """What a look says, and what it was asked: offsets, with the part whose coin was flipped."""

    verdicts: tuple[bool, ...]
    part: Part | None = None
    seen: list[tuple[Part, int]] = field(default_factory=list)

    def __call__(self, twice_offset: int, coin: object, entropy: object) -> bool:
        if len(self.seen) == len(self.verdicts):
            raise More
        assert self.part is not None
        self.seen.append((self.part, int(twice_offset)))
        return self.verdicts[len(self.seen) - 1]


@dataclass(frozen=True)
class Protocols:
    """The real ones, or broken ones."""

    budget: type[Budget] = Budget
    estimate: type[Estimate] = Estimate
    interval: type[Interval] = Interval
    verify: type[Verify] = Verify


def tiny_plan(order: float, no: float, yes: float, flat: float, looks: float) -> JointPlan:
    """Three blocks, certified for nothing: it is only the price that is tested."""
    estimate = replace(
        ESTIMATE, twice_target=3, look_price=flat, floor=1e-3, looks=4, queries=2, grid=4
    )
    interval = replace(
        INTERVAL, twice_target=2, look_price=flat / 2, floor=1e-2, looks=4, queries=1, grid=2
    )
    verify = replace(
        VERIFY, twice_target=3, no_price=no, yes_price=yes, false_yes=1e-2, false_no=1e-2, looks=8
    )
    verify = replace(verify, queries=4, refusals=2)
    return JointPlan(3, order, looks * flat, 0.5, (estimate, interval, verify))


TINY = [
    tiny_plan(2.0, 0.5, 0.1, 0.25, 3.0),
    tiny_plan(6.0, 1.2, 0.2, 0.06, 6.0),
    tiny_plan(4.0, 0.3, 0.3, 0.12, 4.0),
    tiny_plan(3.0, 0.1, 0.6, 0.2, 4.0),
]

History = tuple[object, ...]


def interact(plan: JointPlan, data: tuple[int, ...], seed: int, told: Told, use: Protocols) -> None:
    """An analyst, determined by the seed and by all answers so far, until nothing is left."""
    budget = use.budget(plan)
    blocks = BlockArray(np.array(data), 3)
    estimate = use.estimate(budget, blocks, TRUTH)
    interval = use.interval(budget, blocks, TRUTH)
    verify = use.verify(budget, blocks, TRUTH)
    history: History = ()
    for _ in range(12):
        rng = random.Random(f"{seed} {history}")
        table = rng.choice(((0, 1), (1, 0), (0, 2), (2, 1)))

        def phi(rows: np.ndarray[Any, Any], table: tuple[int, ...] = table) -> float:
            return float(table[int(rows[0])])

        for kind in rng.sample(("estimate", "interval", "verify", "verify"), 4):
            told.part = plan.part(kind)
            try:
                if kind == "verify":
                    claim, guess = rng.choice(CLAIMS), rng.choice((0.0, 1.0, 2.0))
                    said = verify.ask(phi, guess, claim=claim)
                    if said.verdict == "exhausted":
                        continue
                    history += ((said.verdict, said.price, claim, guess, table),)
                else:
                    size = rng.choice((2, 3, 4)) if kind == "estimate" else 2
                    protocol = estimate if kind == "estimate" else interval
                    answer = protocol.ask(phi, grid(0, 2, points=size))
                    history += ((kind, answer.value, answer.low, answer.high, size, table),)
            except Exhausted:
                continue
            break
        else:
            return


def transcripts(
    plan: JointPlan, data: tuple[int, ...], seed: int, use: Protocols
) -> dict[tuple[bool, ...], list[tuple[Part, int]]]:
    """Every sequence of verdicts that can happen, with the offsets at which each was drawn."""
    found: dict[tuple[bool, ...], list[tuple[Part, int]]] = {}
    pending: list[tuple[bool, ...]] = [()]
    while pending:
        verdicts = pending.pop()
        told = Told(verdicts)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(JointPlan, "verify", lambda plan: True)
            for module in ("holdfast.protocols.guesses", "holdfast.mechanisms.looks"):
                patch.setattr(sys.modules[module], "look", told)
            try:
                interact(plan, data, seed, told, use)
            except More:
                assert len(verdicts) < 14
                pending += [(*verdicts, False), (*verdicts, True)]
                continue
        assert len(told.seen) == len(verdicts)
        found[verdicts] = told.seen
    return found


@cache
def yes_chance(part: Part, order: float, twice_offset: int) -> float:
    coin = part.coin(order)  # type: ignore[attr-defined]
    both = coin if isinstance(coin, VerdictCoin) else VerdictCoin.symmetric(coin)
    return both.side(twice_offset).yes(twice_offset)


def largest_divergence(plan: JointPlan, seed: int, use: Protocols) -> tuple[float, int]:
    """Over all datasets and both directions, as a share of the budget; how many transcripts."""
    worst, count = 0.0, 0
    for others in ((0, 0), (0, 1), (1, 1)):
        zero, one = (transcripts(plan, (*others, last), seed, use) for last in (0, 1))
        assert zero.keys() == one.keys()  # what is asked depends on verdicts alone
        count += len(zero)
        for mine in (zero, one):
            laws = []
            for verdicts, looks in mine.items():
                m = q = 1.0
                for i, (part, offset) in enumerate(looks):
                    centre = min(zero[verdicts][i][1], one[verdicts][i][1]) + 1
                    for_m = yes_chance(part, plan.order, offset)
                    for_q = yes_chance(part, plan.order, centre)
                    m *= for_m if verdicts[i] else 1 - for_m
                    q *= for_q if verdicts[i] else 1 - for_q
                laws.append((m, q))
            assert math.isclose(math.fsum(m for m, _ in laws), 1)
            assert math.isclose(math.fsum(q for _, q in laws), 1)
            for here, there in ((0, 1), (1, 0)):
                terms = [p[here] ** plan.order * p[there] ** (1 - plan.order) for p in laws]
                found = math.log(math.fsum(terms)) / (plan.order - 1)
                worst = max(worst, found / plan.budget)
    return worst, count


def worst_transcripts(use: Protocols | None = None) -> tuple[float, int]:
    cases = ((0, 1), (1, 1), (2, 0), (2, 3), (3, 1))  # a plan and an analyst
    found = [largest_divergence(TINY[i], seed, use or Protocols()) for i, seed in cases]
    return max(share for share, _ in found), sum(count for _, count in found)


def test_no_transcript_of_the_real_protocols_exceeds_the_budget() -> None:
    share, count = worst_transcripts()
    assert count > 500
    assert 0.85 < share <= 1 + 1e-9
