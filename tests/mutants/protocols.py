"""Broken protocols, budgets and classes, each with the check of the real tests that rejects it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.errors import Exhausted
from holdfast.mechanisms.looks import look
from holdfast.protocols import plans
from holdfast.protocols.base import (
    Drawn,
    Protocol,
    Question,
    Reserve,
    Steps,
    Values,
    block_floats,
)
from holdfast.protocols.guesses import Correct, VerdictPart, Verify, claim_counts
from holdfast.protocols.means import DirectMean, MedianMean
from holdfast.protocols.plans import Account, Charge, JointPlan
from holdfast.protocols.registry import PROTOCOLS
from holdfast.protocols.rounds import EffectiveRounds
from holdfast.protocols.searches import Amplified, Estimate, Interval, Near, SearchPart
from holdfast.protocols.split import Split
from holdfast.protocols.weights import Weights
from holdfast.randomness import Entropy
from holdfast.theory.coins import Coin, VerdictCoin, coin_profile, refusal_price, verdict_coin
from holdfast.theory.divergence import Curve, RenyiCurve
from holdfast.theory.transfer import FailureClass, all_hold
from tests.holdout.plans import ESTIMATE, INTERVAL, VERIFY, mixed_plan
from tests.mutants.theory import Mutant
from tests.protocols import test_budget, test_guesses, test_searches
from tests.protocols.test_every_protocol import oracle_agrees
from tests.protocols.worlds import CASES
from tests.theory import test_classes, test_coins
from tests.theory.test_coins import charged

__all__ = ["MUTANTS"]

PARTS = (ESTIMATE, INTERVAL, VERIFY)
Kind = type[Protocol[Any]]


# The checks.


def exhaustion_gives_nothing_back(build: type[Account] = Account) -> bool:
    return test_budget.leaves_no_trace(build=build)


def oracle_is_of_one_mind(kind: Kind | None = None) -> bool:
    """On random questions: of the one that is given, or of all; more in test_every_protocol.py."""
    real = None if kind is None else next(each for each in kind.__mro__ if each in PROTOCOLS)
    names = [name for name, case in CASES.items() if real in (None, type(case.protocol()))]
    return not any(oracle_agrees(name, kind, seeds=2 if kind else 1) for name in names)


def accounts_are_kept(build: type[Account] = Account) -> bool:
    """Looks, refusals and price each have an end, and what is settled is what is charged."""
    plan, none = mixed_plan(), Fraction(0)
    limit = plan.limit

    def state(kept: Account) -> object:
        return kept.charged, {name: (use.looks, use.refusals) for name, use in kept.uses.items()}

    def refused(kept: Account, *charge: Any) -> bool:
        before = state(kept)
        try:
            kept.hold(Charge(*charge))
        except Exhausted:
            return state(kept) == before
        return False

    kept = build(plan)
    kept.hold(Charge("verify", none, VERIFY.looks - 1))
    if not refused(kept, "verify", none, 2) or refused(kept, "verify", none, 1):
        return False
    kept = build(plan)
    for _ in range(VERIFY.refusals):
        held = Charge("verify", limit / 8, 2, 1)
        kept.hold(held)
        kept.settle(held, Charge("verify", limit / 16, 1, 1))
    if state(kept) != (limit * 3 / 16, {**test_budget.NOTHING, "verify": (3, 3)}):
        return False
    if not refused(kept, "verify", none, 1, 1):
        return False
    held = Charge("estimate", limit / 2, 3)
    kept.hold(held)
    if not refused(kept, "interval", limit / 2, 1):
        return False
    kept.settle(held, Charge("estimate", limit / 4, 2))
    return kept.charged == limit * 7 / 16 and not refused(kept, "interval", limit / 2, 1)


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


def coins_are_steepest(build: test_coins.Build = verdict_coin) -> bool:
    cases = [(8.0, 0.3, 0.05, 1e-3), (3.0, 0.2, 0.6, 1e-3)]
    return all(test_coins.steepest_of_all(build, *case) for case in cases)


def refusals_are_covered(price: test_coins.Refusal = refusal_price) -> bool:
    lopsided = VerdictCoin(
        Coin("below", np.array([0.5, 0.3, 0.29])), Coin("above", np.array([0.5, 0.49, 0.4]))
    )
    mirrored = VerdictCoin(lopsided.above, lopsided.below)
    return all(test_coins.check_refusal(price, coin, 3.0, 1.0) for coin in (lopsided, mirrored))


def mixtures_are_covered(charge: test_coins.Charge = charged) -> bool:
    return test_coins.worst_menu(charge) <= 1 + 1e-9


# The mistakes that take more than a line.


def like(kind: type[Any], **methods: Callable[..., Any]) -> type[Any]:
    """A protocol, or an account, with other methods."""
    return type(kind.__name__, (kind,), methods)


def each_charge(method: Callable[..., Any], how: Callable[[Charge], Charge]) -> Callable[..., Any]:
    """A method that gives charges, each of them changed."""
    return lambda *at: tuple(map(how, method(*at)))


def aimed(kind: type[Any], at: Callable[[Any, int], int]) -> type[Any]:
    """Searches for another target than the given one."""

    def search(one: Any, count_at: Any, size: int, target: int, entropy: Entropy) -> int:
        return int(kind._search(one, count_at, size, at(one, target), entropy))

    return like(kind, _search=search)


class Broken(Verify):
    """`Verify`, taken apart so that each step can go wrong."""

    def looked(self, question: Question, values: object, entropy: Entropy) -> Drawn:
        yes = 0
        for count in self.counts(block_floats(values, self.plan.blocks), question):
            if not self.look(2 * count, entropy):
                break
            yes += 1
        return {"yes": yes}

    def counts(self, values: NDArray[np.float64], question: Question) -> list[int]:
        assert question.guess is not None
        return claim_counts(values, question.guess, question.claim)

    def look(self, twice: int, entropy: Entropy) -> bool:
        offset = twice - self.target()
        return look(offset, self.side(offset), entropy)

    def target(self) -> int:
        return self.part.twice_target

    def side(self, offset: int) -> Coin:
        return self.part.coin(self.plan.order).side(offset)

    def charges(self, question: Question, drawn: Drawn) -> tuple[Charge, ...]:
        (charge,) = super().charges(question, drawn)
        return (replace(charge, price=self.worth(drawn["yes"], bool(charge.noes))),)

    def worth(self, yes: int, refused: bool) -> Fraction:
        return yes * self.yes + refused * self.no


class DrawnFirst(Broken):
    """The estimator is evaluated before anything is held."""

    def ask(self, question: Question, entropy: Entropy, lessons: Sequence[Any]) -> Steps:
        yield Values()
        return (yield from super().ask(question, entropy, lessons))


class ExhaustedButCurious(Broken):
    """Exhausted, it still looks at the data."""

    def ask(self, question: Question, entropy: Entropy, lessons: Sequence[Any]) -> Steps:
        try:
            yield Reserve(self.worst(question)[-1])
        except Exhausted:
            yield Values()
            return None
        return self.looked(question, (yield Values()), entropy)


class BothLooksAlways(Broken):
    """The second look is flipped after a No, too, and hides it."""

    def looked(self, question: Question, values: object, entropy: Entropy) -> Drawn:
        counts = self.counts(block_floats(values, self.plan.blocks), question)
        return {"yes": sum([self.look(2 * count, entropy) for count in counts])}


class WithoutTies(Broken):
    """#{φ < v} and #{φ > v}: blocks on the guess speak against it."""

    def counts(self, values: NDArray[np.float64], question: Question) -> list[int]:
        guess, claim = question.guess or 0.0, question.claim or "equals"
        less, more = int(np.count_nonzero(values < guess)), int(np.count_nonzero(values > guess))
        return {"equals": [less, more], "at most": [less], "at least": [more]}[claim]


class SearchedFirst(Estimate):
    """The answer is drawn, and then paid for."""

    def ask(self, question: Question, entropy: Entropy, lessons: Sequence[Any]) -> Steps:
        self.index(question, (yield Values()), entropy)
        return (yield from super().ask(question, entropy, lessons))


def filter_forgotten(one: MedianMean, question: Question, *drawn: Any) -> Any:
    """Forgotten by the time that the bar is drawn."""
    about = {name: text for name, text in question.about.items() if name != "where"}
    return MedianMean.answer(one, replace(question, about=about), *drawn)


def refusals_like_consents(one: Weights, *drawn: Any) -> tuple[Charge, ...]:
    *refused, last = Weights.charges(one, *drawn)
    return (*(replace(each, price=one.yes) for each in refused), last)


def larger_tail_for_both(*drawn: Any) -> Any:
    found = Split.answer(*drawn)
    return replace(found, tail_low=2 * found.tail_low)


def none_refused(charge: Charge) -> Charge:
    return replace(charge, noes=0)


def twice_the_price(charge: Charge) -> Charge:
    return replace(charge, price=2 * charge.price)


# Budgets:


class InFloats(Account):
    """Prices are added up, and compared, as floats."""

    def hold(self, worst: Charge) -> None:
        before, self.charged, price = self.charged, Fraction(0), worst.price
        try:
            if float(before) + float(price) > float(self.limit):
                price = 2 * self.limit
            super().hold(replace(worst, price=price))
        finally:
            self.charged = before
        self.charged = Fraction(float(before) + float(price))


class ForOneMore(Account):
    """Admits while anything is left, however little."""

    def hold(self, worst: Charge) -> None:
        if self.charged < self.limit:
            super().hold(replace(worst, price=Fraction(0)))
            self.charged += worst.price
        else:
            super().hold(worst)


def forgetful(what: str) -> type[Account]:
    """What a part has used, of this kind, is not counted."""

    def hold(kept: Account, worst: Charge) -> None:
        kept.uses[worst.part] = replace(kept.uses[worst.part], **{what: 0})
        Account.hold(kept, worst)

    return like(Account, hold=hold)


class ChargedWhenRefused(Account):
    """A question that does not fit uses its looks all the same."""

    def hold(self, worst: Charge) -> None:
        try:
            super().hold(worst)
        except Exhausted:
            use = self.uses[worst.part]
            self.uses[worst.part] = replace(use, looks=use.looks + worst.looks)
            raise


class Refunded(Account):
    """When it is exhausted, the last question is given back."""

    def hold(self, worst: Charge) -> None:
        try:
            super().hold(worst)
        except Exhausted:
            self.charged -= worst.price
            raise


# Classes and plans:


def reach_of_the_longer(failure_class: FailureClass, curve: Curve, blocks: int) -> bool:
    reach = max(failure_class.twice_reach, 2 * blocks - failure_class.twice_reach)
    return replace(failure_class, twice_reach=reach).holds(curve, blocks)


def one_look(failure_class: FailureClass, curve: Curve, blocks: int) -> bool:
    """The slips of a single look, whatever their number."""
    slips = failure_class.profile.slips
    single = type(failure_class.profile)(slips / slips[0] / 2)
    return replace(failure_class, profile=single).holds(curve, blocks)


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
                if hasattr(plans, name):
                    patch.setattr(plans, name, value)
                else:
                    for kind in (SearchPart, VerdictPart):
                        patch.setattr(kind, name, value)
            return plan.verify()

    return verify


def one_curve(order: float, budget: float) -> Curve:
    """The curve of what the plan was made for, whatever its budget is."""
    return RenyiCurve(order, min(budget, mixed_plan().budget))


FLAT = Coin("flat", np.array([0.5]))
# By the check that must reject them.
_BROKEN: dict[Callable[..., bool], dict[str, object]] = {
    test_guesses.charges_by_verdict: {
        "a No is free": like(Broken, worth=lambda one, yes, _: yes * one.yes),
        "a Yes is free": like(Broken, worth=lambda one, _, refused: refused * one.no),
        "a Yes before a No is not charged": like(
            Broken, worth=lambda one, yes, refused: one.no if refused else yes * one.yes
        ),
        "the two prices are exchanged": like(
            Broken,
            worth=lambda one, yes, refused: min(
                yes * one.no + refused * one.yes, one.yes + max(one.no, one.yes)
            ),
        ),
        "both looks are always drawn": BothLooksAlways,
        "blocks on the guess speak against it": WithoutTies,
    },
    test_guesses.stops_after_its_refusals: {
        "it does not stop after its refusals": like(
            Broken,
            worst=each_charge(Broken.worst, none_refused),
            charges=each_charge(Broken.charges, none_refused),
        )
    },
    test_budget.reserves_first: {
        # … and a No is charged after it, if there is money.
        "only the price of a Yes is held": like(
            Broken,
            worst=lambda one, question: tuple(
                replace(each, price=each.looks * one.yes) for each in Broken.worst(one, question)
            ),
            worth=lambda one, yes, _: yes * one.yes,
        ),
        "the data are read before the price is held": DrawnFirst,
        "a search is drawn before it is paid": SearchedFirst,
    },
    test_budget.leaves_no_trace: {"exhaustion still reads the data": ExhaustedButCurious},
    exhaustion_gives_nothing_back: {"exhaustion gives back": Refunded},
    test_guesses.has_the_chances_of_its_coin: {
        # The steeper side everywhere: its price was never measured.
        "one coin serves both sides": like(
            Broken, side=lambda one, _: one.part.coin(one.plan.order).below
        ),
        "guesses are compared with m/2": like(Broken, target=lambda one: one.plan.blocks),
    },
    test_searches.has_the_chances_of_its_coin: {
        "the target is half a count off": aimed(Estimate, lambda _, target: target + 1)
    },
    test_searches.aims_at_both: {
        "both ends of an interval aim low": aimed(Interval, lambda one, _: one.part.twice_target),
        "both ends of an interval aim at m/2": aimed(Interval, lambda one, _: one.plan.blocks),
        "the mirror of a target is m − 2c": aimed(
            Interval, lambda one, target: min(target, one.plan.blocks - one.part.twice_target)
        ),
    },
    test_guesses.corrects: {
        "a correction is free": like(
            Correct, charges=lambda *at: (Correct.charges(*at)[0].nothing, Correct.charges(*at)[1])
        ),
        "a refused guess is the answer": like(Correct, looked=lambda *_: {"yes": 2}),
    },
    test_guesses.exhausts_whole: {
        "an exhausted correction is charged": like(
            Correct, given_back=lambda one, question: one.worst(question)[:1]
        )
    },
    oracle_is_of_one_mind: {
        "a guess on three points costs one look": like(
            Near, worst=lambda one, _: (Charge(one.part.name, one.no, 1),)
        ),
        "a sub-block has the tails of a block": like(Amplified, answer=Estimate.answer),
        "a mean has the bar of another cell": like(
            DirectMean,
            answer=lambda one, question, drawn, paid: DirectMean.answer(
                one, question, {"cell": max(0, drawn["cell"] - 1)}, paid
            ),
        ),
        "a mean under a filter has a bar": like(MedianMean, answer=filter_forgotten),
        "updates of weights cost a Yes": like(Weights, charges=refusals_like_consents),
        "a round costs twice its guess": like(
            EffectiveRounds,
            worst=each_charge(EffectiveRounds.worst, twice_the_price),
            charges=each_charge(EffectiveRounds.charges, twice_the_price),
        ),
        "a fresh answer says twice its tail": like(Split, answer=larger_tail_for_both),
        "a larger grid is not paid": like(
            Estimate,
            worst=lambda one, question: (
                one.part.on_grid(one.plan.order, min(question.points.size, one.part.grid)),
            ),
        ),
        "every grid costs what was planned": like(
            Estimate, worst=lambda one, _: (one.part.on_grid(one.plan.order, one.part.grid),)
        ),
        "two searches cost one": like(
            Interval,
            worst=lambda one, question: (
                Charge(one.part.name, question.points.looks * one.no, question.points.looks),
            ),
        ),
    },
    test_budget.admits_exactly: {
        "the budget is kept in floats": InFloats,
        "the budget admits one too many": ForOneMore,
    },
    accounts_are_kept: {
        "the looks of a part are not counted": forgetful("looks"),
        "refusals are not counted": forgetful("refusals"),
        "settling gives everything back": like(
            Account,
            settle=lambda kept, worst, actual: Account.settle(
                kept, worst, replace(actual, price=Fraction(0))
            ),
        ),
        "settling gives nothing back": like(
            Account,
            settle=lambda kept, worst, actual: Account.settle(
                kept, worst, replace(actual, price=worst.price)
            ),
        ),
        "a refused question uses looks": ChargedWhenRefused,
    },
    classes_hold: {
        "a class with its tail mirrored": lambda one, curve, blocks: replace(
            one, tail=min(one.tail, 1 - one.tail)
        ).holds(curve, blocks),
        "a class with the longer reach": reach_of_the_longer,
        "a class with one slip": one_look,
        "a class without stability": nothing_is_learned,
    },
    verifiers_have_their_classes: {
        "the tails of a verifier are exchanged": changed(tail=lambda _, other: other.tail),
        "the reaches of a verifier are exchanged": changed(
            twice_reach=lambda _, other: other.twice_reach
        ),
        "the coins of a verifier are exchanged": changed(profile=lambda _, other: other.profile),
        "a false No at ρ_high": tail_high_as_it_is,
        "a guess counts as one look": guesses_for_looks,
    },
    plans_prove_themselves: {
        "shares are not added up": verified_with(total_failure=lambda shares: Fraction(0)),
        # No class uses more than β; that they do so together is not seen.
        "each share is compared with β": verified_with(
            total_failure=lambda shares: max(map(Fraction, shares))
        ),
        "the curve is not that of the whole budget": verified_with(RenyiCurve=one_curve),
        "only the first class is proved": verified_with(
            all_hold=lambda classes, *rest: all_hold(list(classes)[:1], *rest)
        ),
        "only the last class is proved": verified_with(
            all_hold=lambda classes, *rest: all_hold(list(classes)[-1:], *rest)
        ),
        "no class is proved": verified_with(all_hold=lambda *_: True),
        "looks and guesses need not agree": verified_with(sound=lambda *_: True),
        "a plan need not pay for itself": verified_with(planned=lambda *_: 0.0),
    },
    coins_are_steepest: {
        "the sides of a coin are exchanged": lambda *at: VerdictCoin(
            verdict_coin(*at).above, verdict_coin(*at).below
        ),
        # Flat, at the lower of the two prices: sound, and not steep.
        "a coin at the lower price": lambda a, no, yes, *floors: verdict_coin(
            a, min(no, yes), min(no, yes), *floors
        ),
        "a coin at the higher price": lambda a, no, yes, *floors: verdict_coin(
            a, max(no, yes), max(no, yes), *floors
        ),
    },
    refusals_are_covered: {
        "the price of the side above alone": lambda coin, *at: refusal_price(
            VerdictCoin(FLAT, coin.above), *at
        ),
        "the price of the side below alone": lambda coin, *at: refusal_price(
            VerdictCoin(coin.below, FLAT), *at
        ),
        "the price of the wrong side": lambda coin, *at: refusal_price(
            VerdictCoin(coin.above, coin.below), *at
        ),
    },
    mixtures_are_covered: {
        "in a mixture a No is free": lambda look, yes: look.yes if yes else 0.0,
        "in a mixture a Yes is free": lambda look, yes: 0.0 if yes else look.no,
        "in a mixture every look costs the average": lambda look, yes: (look.yes + look.no) / 2,
        "in a mixture the prices are exchanged": lambda look, yes: charged(look, not yes),
        "in a mixture every look costs a fifth less": lambda look, yes: 0.8 * charged(look, yes),
    },
}
MUTANTS = [
    Mutant(name, check, broken)
    for check, mistakes in _BROKEN.items()
    for name, broken in mistakes.items()
]
