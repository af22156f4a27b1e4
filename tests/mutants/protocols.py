"""Broken protocols, budgets and classes, each with the check of the real tests that rejects it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.errors import Exhausted, InvalidInput, real_number
from holdfast.grids import Grid
from holdfast.mechanisms.looks import look
from holdfast.planning import joint
from holdfast.planning.joint import JointPlan
from holdfast.planning.parts import Part, SearchPart, VerdictPart
from holdfast.protocols.answers import Answer, Claim, Verdict
from holdfast.protocols.base import block_floats
from holdfast.protocols.budget import Budget, Charge, Reservation
from holdfast.protocols.guesses import Verify, claim_counts
from holdfast.protocols.searches import Estimate, Interval, Projected
from holdfast.theory.coins import Coin, VerdictCoin, coin_profile, refusal_price, verdict_coin
from holdfast.theory.divergence import Curve, RenyiCurve
from holdfast.theory.transfer import FailureClass, all_hold
from tests.mutants.theory import Mutant
from tests.protocols import test_budget, test_estimate, test_interval, test_verify
from tests.protocols.test_budget import (
    ESTIMATE,
    INTERVAL,
    PARTS,
    TRUTH,
    VERIFY,
    account,
    fresh,
    mixed_plan,
    points,
    source,
    value,
)
from tests.theory import test_classes, test_verdicts
from tests.theory.test_verdicts import Look, charged

__all__ = ["MUTANTS"]


# The checks.


def verdicts_are_charged(verify: type[Verify] = Verify) -> bool:
    return test_verify.charges_by_verdict(verify)


def verdicts_follow_the_coin(verify: type[Verify] = Verify) -> bool:
    return test_verify.has_the_chances_of_its_coin(verify)


def refusals_end_it(verify: type[Verify] = Verify) -> bool:
    return test_verify.stops_after_its_refusals(verify)


def guesses_are_paid_first(verify: type[Verify] = Verify) -> bool:
    return test_budget.reserves_first(verify=verify)


def estimates_are_paid_first(estimate: type[Estimate] = Estimate) -> bool:
    return test_budget.reserves_first(estimate=estimate)


def exhaustion_leaves_no_trace(verify: type[Verify] = Verify) -> bool:
    return test_budget.leaves_no_trace(verify)


def estimates_follow_the_coin(estimate: type[Estimate] = Estimate) -> bool:
    return test_estimate.has_the_chances_of_its_coin(estimate)


def intervals_have_two_targets(interval: type[Interval] = Interval) -> bool:
    return test_interval.aims_at_both(interval)


def grids_are_paid(
    estimate: type[Estimate] = Estimate, interval: type[Interval] = Interval
) -> bool:
    """⌈log₂ r⌉ looks, twice that for an interval, on grids smaller and larger than planned."""
    for size in (2, 8, 9, 100):
        looks = math.ceil(math.log2(size))
        one = estimate(fresh(mixed_plan()), source(), TRUTH)
        two = interval(fresh(mixed_plan()), source(), TRUTH)
        for asked, part, wanted in ((one, ESTIMATE, looks), (two, INTERVAL, 2 * looks)):
            price = wanted * Fraction(part.prices(mixed_plan().order).no)
            try:
                paid = asked.ask(value, points(size)).price
            except InvalidInput:  # a reservation of another size does not pay for the question
                return False
            if paid != float(price):
                return False
            spent, uses = account(asked.budget)
            if spent != price or uses[part.name] != (wanted, 0):
                return False
    return True


def intervals_are_paid(interval: type[Interval] = Interval) -> bool:
    return grids_are_paid(interval=interval)


def bits_count(build: Callable[[JointPlan], Budget] = Budget) -> bool:
    return test_budget.admits_exactly(build)


def accounts_are_kept(build: Callable[[JointPlan], Budget] = Budget) -> bool:
    """Looks, refusals and price each have an end, and what is settled is what is charged."""
    plan = mixed_plan()
    limit = Fraction(plan.budget)

    def refused(budget: Budget, part: Part, price: Fraction, looks: int, noes: int = 0) -> bool:
        before = account(budget)
        try:
            budget.reserve(part, price, looks, noes)
        except Exhausted:
            return account(budget) == before
        return False

    budget = build(plan)
    budget.reserve(VERIFY, Fraction(0), VERIFY.looks - 1)
    if not refused(budget, VERIFY, Fraction(0), 2) or refused(budget, VERIFY, Fraction(0), 1):
        return False
    budget = build(plan)
    for _ in range(VERIFY.refusals):
        held = budget.reserve(VERIFY, limit / 8, 2, noes=1)
        held.settle(limit / 16, 1, noes=1)
    if account(budget) != (limit * 3 / 16, {**test_budget.NOTHING, "verify": (3, 3)}):
        return False
    if not refused(budget, VERIFY, Fraction(0), 1, 1):
        return False
    held = budget.reserve(ESTIMATE, limit / 2, 3)
    if not refused(budget, INTERVAL, limit / 2, 1):
        return False
    held.settle(limit / 4, 2)
    return account(budget)[0] == limit * 7 / 16 and not refused(budget, INTERVAL, limit / 2, 1)


def classes_hold(holds: test_classes.Holds = FailureClass.holds) -> bool:
    return max(test_classes.nearest_verification(holds).values()) < 1


Verifies = Callable[[JointPlan], bool]
Classes = Callable[[VerdictPart, float, int], tuple[FailureClass, ...]]


def verifiers_have_their_classes(classes: Classes = VerdictPart.classes) -> bool:
    """False Yes: ρ_low at reach c⋆. False No: 1 − ρ_high at reach m − c⋆. Each its own coin."""
    order, blocks = 12.0, 400
    low, high = classes(VERIFY, order, blocks)
    coin = VERIFY.coin(order)
    return (
        (low.tail, low.twice_reach, low.failure) == (0.02, 94, 0.12)
        and (high.twice_reach, high.failure) == (706, 0.12)
        and 0.55 <= high.tail < 0.5500001
        and np.array_equal(low.profile.slips, 24 * coin.below.halfsteps)
        and np.array_equal(high.profile.slips, 24 * coin.above.halfsteps)
    )


def plans_prove_themselves(verify: Verifies = JointPlan.verify) -> bool:
    """The plan holds; with more budget, confidence, looks or tail, or other shares, it does not."""
    plan = mixed_plan()
    estimate, interval, verdict = PARTS
    wrong = [
        replace(plan, budget=20 * plan.budget),
        replace(plan, confidence=0.5),
        replace(plan, parts=(replace(ESTIMATE, tail_low=0.4, tail_high=0.4), interval, verdict)),
        replace(plan, parts=(estimate, replace(INTERVAL, tail_high=0.8), verdict)),
        replace(plan, parts=(estimate, interval, replace(VERIFY, tail_low=0.3))),
        replace(plan, parts=(estimate, interval, replace(VERIFY, tail_high=0.1))),
        replace(plan, parts=(estimate, interval, replace(VERIFY, queries=24))),
        replace(plan, parts=(replace(ESTIMATE, failure_low=0.2), interval, verdict)),
        replace(plan, parts=(replace(ESTIMATE, queries=60), interval, verdict)),
        replace(plan, parts=(estimate, interval, replace(VERIFY, refusals=12))),
        replace(plan, parts=(estimate, replace(INTERVAL, tail_high=0.4), verdict)),
    ]
    return verify(plan) and not any(map(verify, wrong))


def coins_are_steepest(build: test_verdicts.Build = verdict_coin) -> bool:
    cases = [(8.0, 0.3, 0.05, 1e-3), (3.0, 0.2, 0.6, 1e-3)]
    return all(test_verdicts.steepest_of_all(build, *case) for case in cases)


def refusals_are_covered(price: test_verdicts.Price = refusal_price) -> bool:
    lopsided = VerdictCoin(
        Coin("below", np.array([0.5, 0.3, 0.29])), Coin("above", np.array([0.5, 0.49, 0.4]))
    )
    mirrored = VerdictCoin(lopsided.above, lopsided.below)
    return all(
        test_verdicts.covered_and_minimal(coin, 3.0, 1.0, price) for coin in (lopsided, mirrored)
    )


def mixtures_are_covered(charge: test_verdicts.Charge = charged) -> bool:
    return test_verdicts.worst_menu(charge) <= 1 + 1e-9


# The mistakes. Verification:


class Broken(Verify):
    """`Verify.ask`, taken apart so that each step can go wrong."""

    def ask(self, estimator: object, guess: float, *, claim: Claim = "equals") -> Verdict:
        guess, sides = real_number("guess", guess), self._sides(claim)
        worst = (sides - 1) * self._yes + max(self._no, self._yes)
        try:
            held = self.hold(worst, sides)
        except Exhausted:
            return self.exhausted(guess, estimator)
        values = block_floats(self.source, estimator)
        yes = self._looks(self.counts(values, guess, claim))
        price = self.charge(yes, sides)
        held.settle(price, yes + (yes < sides), noes=min(held.noes, int(yes < sides)))
        return self._verdict(yes < sides, guess, claim, float(price))

    def counts(self, values: NDArray[np.float64], guess: float, claim: Claim) -> list[int]:
        return claim_counts(values, guess, claim)

    def hold(self, worst: Fraction, sides: int) -> Reservation:
        return self.budget.reserve(self.part, worst, sides, noes=1)

    def charge(self, yes: int, sides: int) -> Fraction:
        return yes * self._yes + (self._no if yes < sides else 0)

    def exhausted(self, guess: float, estimator: object) -> Verdict:
        return self._verdict(None, guess, "equals", 0.0)


class FreeNo(Broken):
    def charge(self, yes: int, sides: int) -> Fraction:
        return yes * self._yes


class FreeYes(Broken):
    """Paid only for No, with a coin whose Yes has a price."""

    def charge(self, yes: int, sides: int) -> Fraction:
        return self._no if yes < sides else Fraction(0)


class FirstYesForgotten(Broken):
    """A guess that its second look refuses is charged the No alone."""

    def charge(self, yes: int, sides: int) -> Fraction:
        return self._no if yes < sides else yes * self._yes


class PricesExchanged(Broken):
    def charge(self, yes: int, sides: int) -> Fraction:
        price = yes * self._no + (self._yes if yes < sides else 0)
        return min(price, (sides - 1) * self._yes + max(self._no, self._yes))


class Endless(Broken):
    """Refusals are paid for, and never counted."""

    def hold(self, worst: Fraction, sides: int) -> Reservation:
        return self.budget.reserve(self.part, worst, sides)


class HalfHeld(Broken):
    """Only a Yes is held before the draw, and a No charged after it, if there is money."""

    def hold(self, worst: Fraction, sides: int) -> Reservation:
        return self.budget.reserve(self.part, sides * self._yes, sides, noes=1)

    def charge(self, yes: int, sides: int) -> Fraction:
        return yes * self._yes


class DrawnFirst(Broken):
    """The estimator is evaluated before anything is held."""

    def ask(self, estimator: object, guess: float, *, claim: Claim = "equals") -> Verdict:
        self.source.values(estimator)
        return super().ask(estimator, guess, claim=claim)


class Refunded(Broken):
    """When it is exhausted, the last question is given back."""

    def exhausted(self, guess: float, estimator: object) -> Verdict:
        self.budget._account.charged -= self._no
        return self._verdict(None, guess, "equals", 0.0)


class ExhaustedButCurious(Broken):
    """Exhausted, it still looks at the data."""

    def exhausted(self, guess: float, estimator: object) -> Verdict:
        at_most = claim_counts(block_floats(self.source, estimator), guess, "at most")[0]
        return self._verdict(None if at_most else True, guess, "equals", 0.0)


class BothLooksAlways(Broken):
    """The second look is flipped after a No, too, and hides it."""

    def _looks(self, counts: list[int]) -> int:
        said = [super(BothLooksAlways, self)._looks([count]) for count in counts]
        return sum(said)


class OneCoinForBothSides(Broken):
    """The steeper side everywhere: its price was never measured."""

    def _looks(self, counts: list[int]) -> int:
        below = self.part.coin(self.budget.plan.order).below
        for done, count in enumerate(counts):
            if not look(2 * count - self.part.twice_target, below, self.entropy):
                return done
        return len(counts)


class AimedAtTheMedian(Broken):
    def _looks(self, counts: list[int]) -> int:
        coin = self.part.coin(self.budget.plan.order)
        for done, count in enumerate(counts):
            offset = 2 * count - self.source.blocks
            if not look(offset, coin.side(offset), self.entropy):
                return done
        return len(counts)


class WithoutTies(Broken):
    """#{φ < v} and #{φ > v}: blocks on the guess speak against it."""

    def counts(self, values: NDArray[np.float64], guess: float, claim: Claim) -> list[int]:
        less, more = int(np.count_nonzero(values < guess)), int(np.count_nonzero(values > guess))
        return {"equals": [less, more], "at most": [less], "at least": [more]}[claim]


# Searches:


class PlannedLooks(Estimate):
    """A larger grid costs what the planned one does."""

    def reserve(self, grid: Grid) -> Reservation:
        looks = min(grid.looks, self.part.looks_per_query)
        return self.budget.reserve(self.part, looks * self._no, looks)


class LooksAsPlannedAlways(Estimate):
    def reserve(self, grid: Grid) -> Reservation:
        looks = self.part.looks_per_query
        return self.budget.reserve(self.part, looks * self._no, looks)


class SearchedFirst(Estimate):
    """The answer is drawn, and then paid for."""

    def ask(self, estimator: object, grid: Grid, **more: object) -> Answer:
        self._search(self._projected(estimator, grid), grid.size, self.part.twice_target)
        return super().ask(estimator, grid)


class OffCentre(Estimate):
    """Half a count above the target."""

    def _search(self, blocks: Projected, size: int, twice_target: int) -> int:
        return super()._search(blocks, size, twice_target + 1)


class SameSideTwice(Interval):
    """Both searches aim at the lower target."""

    def _search(self, blocks: Projected, size: int, twice_target: int) -> int:
        return super()._search(blocks, size, self.part.twice_target)


class MedianTwice(Interval):
    def _search(self, blocks: Projected, size: int, twice_target: int) -> int:
        return super()._search(blocks, size, self.source.blocks)


class MirroredInCounts(Interval):
    """The mirror of twice a target, in m and not in 2m."""

    def _search(self, blocks: Projected, size: int, twice_target: int) -> int:
        low = self.part.twice_target
        return super()._search(
            blocks, size, low if twice_target == low else self.source.blocks - low
        )


class PaidOnce(Interval):
    """Two searches for the price of one."""

    def ask(self, estimator: object, grid: Grid) -> Answer:
        before = self.budget._account.charged
        answer = super().ask(estimator, grid)
        paid = self.budget._account.charged - before
        self.budget._account.charged -= paid / 2
        return replace(answer, price=float(paid / 2))


# Budgets:


class InFloats(Budget):
    """Prices are added up, and compared, as floats."""

    def _hold(self, worst: Charge) -> int:
        kept = self._account
        before, kept.charged, price = kept.charged, Fraction(0), worst.price
        try:
            if float(before) + float(price) > float(kept.limit):
                price = 2 * kept.limit
            super()._hold(replace(worst, price=price))
        finally:
            kept.charged = before
        kept.charged = Fraction(float(before) + float(price))
        return 0


class ForOneMore(Budget):
    """Admits while anything is left, however little."""

    def _hold(self, worst: Charge) -> int:
        kept = self._account
        if kept.charged < kept.limit:
            super()._hold(replace(worst, price=Fraction(0)))
            kept.charged += worst.price
            return 0
        return super()._hold(worst)


class WithoutLooks(Budget):
    """The looks of a part are not counted."""

    def _hold(self, worst: Charge) -> int:
        self._account._uses[worst.part].looks = 0
        return super()._hold(worst)


class WithoutRefusals(Budget):
    def _hold(self, worst: Charge) -> int:
        self._account._uses[worst.part].refusals = 0
        return super()._hold(worst)


class AllGivenBack(Budget):
    """What is settled frees all that was held."""

    def _settle(self, held: Reservation, actual: Charge) -> None:
        super()._settle(held, replace(actual, price=Fraction(0)))


class NothingGivenBack(Budget):
    """Safe, and not what was charged."""

    def _settle(self, held: Reservation, actual: Charge) -> None:
        super()._settle(held, replace(actual, price=held.price))


class ChargedWhenRefused(Budget):
    """A question that does not fit uses its looks all the same."""

    def _hold(self, worst: Charge) -> int:
        try:
            return super()._hold(worst)
        except Exhausted:
            self._account._uses[worst.part].looks += worst.looks
            raise


# Classes and plans:


def tail_mirrored(failure_class: FailureClass, curve: Curve, blocks: int) -> bool:
    """1 − tail for tail, wherever that is smaller."""
    tail = min(failure_class.tail, 1 - failure_class.tail)
    return replace(failure_class, tail=tail).holds(curve, blocks)


def other_reach(failure_class: FailureClass, curve: Curve, blocks: int) -> bool:
    """The longer of the two reaches."""
    reach = max(failure_class.twice_reach, 2 * blocks - failure_class.twice_reach)
    return replace(failure_class, twice_reach=reach).holds(curve, blocks)


def one_look(failure_class: FailureClass, curve: Curve, blocks: int) -> bool:
    """The slips of a single look, whatever their number."""
    slips = failure_class.profile.slips
    return replace(failure_class, profile=type(failure_class.profile)(slips / slips[0] / 2)).holds(
        curve, blocks
    )


def nothing_is_learned(failure_class: FailureClass, curve: Curve, blocks: int) -> bool:
    """ρ·β < mass: as if the questions had been fixed in advance."""
    kept = failure_class.profile.mass(failure_class.failure, failure_class.twice_reach, blocks)
    return failure_class.tail * failure_class.failure < kept


def changed(**how: Callable[[FailureClass, FailureClass], object]) -> Classes:
    """Each class with some of its numbers taken from itself and the other one."""

    def classes(part: VerdictPart, order: float, blocks: int) -> tuple[FailureClass, ...]:
        low, high = part.classes(order, blocks)
        return tuple(
            replace(one, **{name: make(one, two) for name, make in how.items()})  # type: ignore[arg-type]
            for one, two in ((low, high), (high, low))
        )

    return classes


def tail_high_as_it_is(part: VerdictPart, order: float, blocks: int) -> tuple[FailureClass, ...]:
    """ρ_high where 1 − ρ_high is meant."""
    low, high = part.classes(order, blocks)
    return low, replace(high, tail=part.tail_high)


def guesses_for_looks(part: VerdictPart, order: float, blocks: int) -> tuple[FailureClass, ...]:
    """k slips for k guesses, each of which takes two looks."""
    low, high = part.classes(order, blocks)
    coin = part.coin(order)
    return (
        replace(low, profile=coin_profile(coin.below, part.queries)),
        replace(high, profile=coin_profile(coin.above, part.queries)),
    )


def verified_with(**broken: object) -> Verifies:
    """`JointPlan.verify` with something that it uses replaced: in its module, or in its parts."""

    def verify(plan: JointPlan) -> bool:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in broken.items():
                if hasattr(joint, name):
                    patch.setattr(joint, name, value)
                else:
                    for kind in (SearchPart, VerdictPart):
                        patch.setattr(kind, name, value)
            return plan.verify()

    return verify


def no_shares(shares: Iterable[float]) -> Fraction:
    return Fraction(0)


def largest_share(shares: Iterable[float]) -> Fraction:
    """No class uses more than β; that they do so together is not seen."""
    return max(map(Fraction, shares))


def one_curve(order: float, budget: float) -> Curve:
    """The curve of what the plan was made for, whatever its budget is."""
    return RenyiCurve(order, min(budget, mixed_plan().budget))


def first_class_holds(classes: Iterable[FailureClass], curve: Curve, blocks: int) -> bool:
    return all_hold(list(classes)[:1], curve, blocks)


def last_class_holds(classes: Iterable[FailureClass], curve: Curve, blocks: int) -> bool:
    return all_hold(list(classes)[-1:], curve, blocks)


def always(*_: object) -> bool:
    return True


def costs_nothing(*_: object) -> float:
    return 0.0


# Coins and prices:


def sides_exchanged(order: float, no: float, yes: float, low: float, high: float) -> VerdictCoin:
    coin = verdict_coin(order, no, yes, low, high)
    return VerdictCoin(coin.above, coin.below)


def steps_of_the_cheaper(
    order: float, no: float, yes: float, low: float, high: float
) -> VerdictCoin:
    """Flat, at the lower of the two prices: sound, and not steep."""
    return verdict_coin(order, min(no, yes), min(no, yes), low, high)


def steps_of_the_dearer(
    order: float, no: float, yes: float, low: float, high: float
) -> VerdictCoin:
    return verdict_coin(order, max(no, yes), max(no, yes), low, high)


def above_only(coin: VerdictCoin, order: float, yes: float) -> float:
    return refusal_price(VerdictCoin(Coin("flat", np.array([0.5])), coin.above), order, yes)


def below_only(coin: VerdictCoin, order: float, yes: float) -> float:
    return refusal_price(VerdictCoin(coin.below, Coin("flat", np.array([0.5]))), order, yes)


def sides_mistaken(coin: VerdictCoin, order: float, yes: float) -> float:
    return refusal_price(VerdictCoin(coin.above, coin.below), order, yes)


def no_is_free(look: Look, yes: bool) -> float:
    return look.yes if yes else 0.0


def yes_is_free(look: Look, yes: bool) -> float:
    return 0.0 if yes else look.no


def average_price(look: Look, yes: bool) -> float:
    return (look.yes + look.no) / 2


MUTANTS = [
    Mutant("a No is free", verdicts_are_charged, FreeNo),
    Mutant("a Yes is free", verdicts_are_charged, FreeYes),
    Mutant("a Yes before a No is not charged", verdicts_are_charged, FirstYesForgotten),
    Mutant("the two prices are exchanged", verdicts_are_charged, PricesExchanged),
    Mutant("both looks are always drawn", verdicts_are_charged, BothLooksAlways),
    Mutant("blocks on the guess speak against it", verdicts_are_charged, WithoutTies),
    Mutant("it does not stop after its refusals", refusals_end_it, Endless),
    Mutant("only the price of a Yes is held", guesses_are_paid_first, HalfHeld),
    Mutant("the data are read before the price is held", guesses_are_paid_first, DrawnFirst),
    Mutant("exhaustion gives back", exhaustion_leaves_no_trace, Refunded),
    Mutant("exhaustion still reads the data", exhaustion_leaves_no_trace, ExhaustedButCurious),
    Mutant("one coin serves both sides", verdicts_follow_the_coin, OneCoinForBothSides),
    Mutant("guesses are compared with m/2", verdicts_follow_the_coin, AimedAtTheMedian),
    Mutant("a larger grid is not paid", grids_are_paid, PlannedLooks),
    Mutant("every grid costs what was planned", grids_are_paid, LooksAsPlannedAlways),
    Mutant("a search is drawn before it is paid", estimates_are_paid_first, SearchedFirst),
    Mutant("the target is half a count off", estimates_follow_the_coin, OffCentre),
    Mutant("both ends of an interval aim low", intervals_have_two_targets, SameSideTwice),
    Mutant("both ends of an interval aim at m/2", intervals_have_two_targets, MedianTwice),
    Mutant("the mirror of a target is m − 2c", intervals_have_two_targets, MirroredInCounts),
    Mutant("two searches cost one", intervals_are_paid, PaidOnce),
    Mutant("the budget is kept in floats", bits_count, InFloats),
    Mutant("the budget admits one too many", bits_count, ForOneMore),
    Mutant("the looks of a part are not counted", accounts_are_kept, WithoutLooks),
    Mutant("refusals are not counted", accounts_are_kept, WithoutRefusals),
    Mutant("settling gives everything back", accounts_are_kept, AllGivenBack),
    Mutant("settling gives nothing back", accounts_are_kept, NothingGivenBack),
    Mutant("a refused question uses looks", accounts_are_kept, ChargedWhenRefused),
    Mutant("a class with its tail mirrored", classes_hold, tail_mirrored),
    Mutant("a class with the longer reach", classes_hold, other_reach),
    Mutant("a class with one slip", classes_hold, one_look),
    Mutant("a class without stability", classes_hold, nothing_is_learned),
    Mutant(
        "the tails of a verifier are exchanged",
        verifiers_have_their_classes,
        changed(tail=lambda _, other: other.tail),
    ),
    Mutant(
        "the reaches of a verifier are exchanged",
        verifiers_have_their_classes,
        changed(twice_reach=lambda _, other: other.twice_reach),
    ),
    Mutant(
        "the coins of a verifier are exchanged",
        verifiers_have_their_classes,
        changed(profile=lambda _, other: other.profile),
    ),
    Mutant("a false No at ρ_high", verifiers_have_their_classes, tail_high_as_it_is),
    Mutant("a guess counts as one look", verifiers_have_their_classes, guesses_for_looks),
    Mutant(
        "shares are not added up", plans_prove_themselves, verified_with(total_failure=no_shares)
    ),
    Mutant(
        "each share is compared with β",
        plans_prove_themselves,
        verified_with(total_failure=largest_share),
    ),
    Mutant(
        "the curve is not that of the whole budget",
        plans_prove_themselves,
        verified_with(RenyiCurve=one_curve),
    ),
    Mutant(
        "only the first class is proved",
        plans_prove_themselves,
        verified_with(all_hold=first_class_holds),
    ),
    Mutant(
        "only the last class is proved",
        plans_prove_themselves,
        verified_with(all_hold=last_class_holds),
    ),
    Mutant("no class is proved", plans_prove_themselves, verified_with(all_hold=always)),
    Mutant("looks and guesses need not agree", plans_prove_themselves, verified_with(sound=always)),
    Mutant(
        "a plan need not pay for itself",
        plans_prove_themselves,
        verified_with(planned=costs_nothing),
    ),
    Mutant("the sides of a coin are exchanged", coins_are_steepest, sides_exchanged),
    Mutant("a coin at the lower price", coins_are_steepest, steps_of_the_cheaper),
    Mutant("a coin at the higher price", coins_are_steepest, steps_of_the_dearer),
    Mutant("the price of the side above alone", refusals_are_covered, above_only),
    Mutant("the price of the side below alone", refusals_are_covered, below_only),
    Mutant("the price of the wrong side", refusals_are_covered, sides_mistaken),
    Mutant("in a mixture a No is free", mixtures_are_covered, no_is_free),
    Mutant("in a mixture a Yes is free", mixtures_are_covered, yes_is_free),
    Mutant("in a mixture every look costs the average", mixtures_are_covered, average_price),
]
