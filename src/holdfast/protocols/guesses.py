"""Guesses: is this one right? Yes, No, or exhausted; only a No costs much (thm `sv`, `intro-rh`).

Verify    a guess v is checked by at most two looks, #{φ ≤ v} and #{φ ≥ v} against the target, the
          second only if the first says Yes. For all guesses at once: both tails at least tail_high
          ⇒ Yes; one of them at most tail_low ⇒ No; after the planned number of refusals, exhausted.
          One-sided: "at least v" asks only D[φ ≥ v], "at most v" only D[φ ≤ v]
Correct   the reusable holdout for any estimator (`intro-rh`): a guess comes from open data. If it
          is confirmed, it is the answer, nearly free; if not, a search on the holdout answers.
          Both share one budget on the same blocks. (The paper also allows a budget for each on
          disjoint data. That two sources are disjoint cannot be seen from outside.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted, InvalidInput, real_number, whole_number
from holdfast.mechanisms.looks import look
from holdfast.protocols.answers import (
    LEAST_SHARE,
    Claim,
    Corrected,
    Result,
    Verdict,
    quantile,
    rounded_up,
    verdict_promise,
)
from holdfast.protocols.base import (
    Drawn,
    Lesson,
    Paid,
    Question,
    Reserve,
    Steps,
    Values,
    Verb,
    block_floats,
)
from holdfast.protocols.plans import (
    FLOOR,
    Charge,
    JointPlan,
    Left,
    LookPart,
    Part,
    Request,
    SetPlan,
    Setting,
    Use,
    VerdictPrices,
    Wanted,
    share_from,
    two_sided,
)
from holdfast.protocols.searches import Estimate, LookProtocol, SearchPart
from holdfast.randomness import Entropy
from holdfast.theory.bars import verdict_bar
from holdfast.theory.coins import VerdictCoin, coin_profile, reach_of, refusal_price, verdict_coin
from holdfast.theory.divergence import RenyiCurve
from holdfast.theory.privacy import verdict_divergences
from holdfast.theory.sizing import QUERIES_MAX
from holdfast.theory.transfer import FailureClass, place_target

__all__ = [
    "Correct",
    "Guesses",
    "VerdictPart",
    "Verify",
    "claim_counts",
    "refuse_empty",
    "stored_coin",
    "stored_prices",
    "verdict_left",
    "verdict_prices",
]


def verdict_prices(spend: float, noes: int, looks: int, ratio: float) -> tuple[float, float]:
    """A and B with A/B = ratio, so that `noes` of `looks` looks say No for `spend` together."""
    yes = spend / (looks + noes * (ratio - 1))
    return yes * ratio, yes


@dataclass(frozen=True)
class Guesses(Request):
    """Guesses to verify. For all of them at once:

    D[φ ≤ v] and D[φ ≥ v] both ≥ tail_high ⇒ Yes;   one of them ≤ tail_low ⇒ No;   after
    `refusals` refusals, exhausted. With `sides` = 1 only one of the two is asked about.
    """

    protocol: ClassVar[str] = "verify"

    queries: int
    refusals: int
    tail_low: float = 0.05
    tail_high: float = 0.25
    sides: int = 2
    name: str = ""

    def __post_init__(self) -> None:
        whole_number("queries", self.queries, 1, QUERIES_MAX // 2)
        whole_number("refusals", self.refusals, 1, self.queries, hint="A guess is refused once.")
        whole_number("sides", self.sides, 1, 2)
        real_number("tail_low", self.tail_low, 0, 1, open_low=True, open_high=True)
        most = 1.0 if self.sides == 1 else 0.5
        real_number("tail_high", self.tail_high, 0, most, open_low=True, open_high=True)
        if self.tail_low >= self.tail_high:
            hint = "Between them a verdict may go either way."
            received = (self.tail_low, self.tail_high)
            raise InvalidInput("tails", received, "tail_low below tail_high", hint)
        refuse_empty(self.tail_low, self.tail_high)

    @property
    def looks(self) -> int:
        """Most looks."""
        return self.sides * self.queries

    @property
    def width(self) -> float:
        return self.tail_high - self.tail_low

    def starts(self) -> tuple[tuple[float, ...], ...]:
        balanced = math.log(max(2.0, self.looks / self.refusals))
        return ((balanced, 0.0), (-7.0, 0.0))  # two prices, and nearly flat

    def _own(self, setting: Setting, own: Sequence[float]) -> tuple[float, float, float, float]:
        """Prices of No and Yes, and the two shares of β."""
        ratio = 1 + math.exp(min(own[0], 30.0))
        if own[0] < -6.0:
            ratio = 1.0  # flat: every look costs the same
        spend = (setting.order - 1) * setting.own
        no, yes = verdict_prices(spend, self.refusals, self.looks, ratio)
        low = setting.failure * share_from(own[1])
        return no, yes, low, (setting.failure - low) * (1 - 1e-15)

    def rough_blocks(self, setting: Setting, own: Sequence[float]) -> float:
        no, yes, low, high = self._own(setting, own)
        reach = reach_of(setting.order, yes, no, self.looks / low)
        reach += reach_of(setting.order, no, yes, self.looks / high)
        return two_sided(setting, (self.tail_low, 1 - self.tail_high), (low, high), reach)

    def part(
        self, setting: Setting, own: Sequence[float], blocks: int, limit: float | None = None
    ) -> VerdictPart | None:
        no, yes, low, high = self._own(setting, own)
        part = VerdictPart(
            name=self.key,
            protocol=self.protocol,
            queries=self.queries,
            refusals=self.refusals,
            sides=self.sides,
            tail_low=self.tail_low,
            tail_high=self.tail_high,
            twice_target=blocks,
            failure_low=low,
            failure_high=high,
            no_price=no,
            yes_price=yes,
            false_yes=FLOOR * low / self.looks,
            false_no=FLOOR * high / self.looks,
            looks=self.looks,
        )
        if limit is None:
            return part
        false_yes, false_no = part.classes(setting.order, blocks)
        curve = RenyiCurve(setting.order, limit)
        count = place_target(curve, blocks, false_yes, false_no)
        return None if count is None else replace(part, twice_target=2 * count)


@dataclass(frozen=True)
class VerdictPart(LookPart):
    """Guesses that are confirmed or refused, with at most `refusals` refusals (theory.md §6)."""

    kind: ClassVar[str] = "verdict"

    name: str
    protocol: str
    queries: int
    refusals: int
    sides: int
    tail_low: float
    tail_high: float
    twice_target: int
    failure_low: float
    failure_high: float
    no_price: float
    yes_price: float
    false_yes: float
    false_no: float
    looks: int

    def coin(self, order: float) -> VerdictCoin:
        """The coin of every look."""
        return stored_coin(order, self.no_price, self.yes_price, self.false_yes, self.false_no)

    def prices(self, order: float) -> VerdictPrices:
        key = (order, self.no_price, self.yes_price, self.false_yes, self.false_no)
        return stored_prices(*key)

    def planned(self, order: float) -> float:
        # k guesses and ℓ refusals: ℓ looks say No, and at most sides·k − ℓ say Yes.
        prices = self.prices(order)
        return self.refusals * prices.worst + (self.looks - self.refusals) * prices.yes

    def preview(self, _plan: SetPlan, units: int) -> tuple[float | None, str]:
        return None, guess_words(self.sides, self.tail_low, self.tail_high, units)

    def words(self) -> tuple[str, str]:
        limits = f"{self.queries:,} guesses, at most {self.refusals:,} refused"
        return limits, verdict_words(self.sides, self.tail_low, self.tail_high)

    def divergences(
        self, plan: JointPlan, order: float, noes: int, yeses: int
    ) -> tuple[float, float]:
        return verdict_divergences(self.coin(plan.order), order, noes, yeses)

    @property
    def tells(self) -> bool:
        return self.tail_low >= LEAST_SHARE or 1 - self.tail_high >= LEAST_SHARE

    @property
    def most_refusals(self) -> int | None:
        return self.refusals

    def left(self, order: float, rest: Fraction, use: Use) -> Left:
        unused = self.looks - use.looks, self.refusals - use.refusals
        return verdict_left(self.prices(order), self.sides, rest, *unused)

    def still_possible(self, order: float, rest: Fraction, use: Use) -> str:
        """Guesses or, where none is left, those about one side, which cost less."""
        both = super().still_possible(order, rest, use)
        unused = self.looks - use.looks, self.refusals - use.refusals
        one_sided = verdict_left(self.prices(order), 1, rest, *unused).questions
        return both or (f"{self.name} of one side ({one_sided:,})" if one_sided else "")

    def shares(self, _: int, /) -> tuple[float, ...]:
        return (self.failure_low, self.failure_high)

    def classes(self, order: float, blocks: int) -> tuple[FailureClass, ...]:
        coin = self.coin(order)
        false_yes = FailureClass(
            f"{self.name}, false Yes",
            self.tail_low,
            self.twice_target,
            self.failure_low,
            coin_profile(coin.below, self.looks),
        )
        false_no = FailureClass(
            f"{self.name}, false No",
            math.nextafter(1 - self.tail_high, 1.0),
            2 * blocks - self.twice_target,
            self.failure_high,
            coin_profile(coin.above, self.looks),
        )
        return (false_yes, false_no)

    def sound(self, _order: float, _budget: float, _blocks: int) -> bool:
        counted = self.looks == self.sides * self.queries and self.sides in (1, 2)
        return counted and 1 <= self.refusals <= self.queries


def verdict_left(
    prices: VerdictPrices, sides: int, rest: Fraction, looks: int, refusals: int
) -> Left:
    """Guesses and refusals that `rest` buys, with so many looks and refusals not yet used."""
    yes, no = Fraction(prices.yes), Fraction(prices.no)
    # Every guess must be able to end in a No: that much is kept in hand.
    in_hand = (sides - 1) * yes + max(no, yes)
    if rest < in_hand or refusals < 1 or looks < sides:
        return Left(0, 0, 0)
    affordable = 1 + int((rest - in_hand) // ((sides - 1) * yes + no))
    bought = min(looks, sides + int((rest - in_hand) // yes))
    return Left(bought // sides, bought, min(refusals, affordable, looks - sides + 1))


@lru_cache(maxsize=32)
def stored_coin(
    order: float, no: float, yes: float, false_yes: float, false_no: float
) -> VerdictCoin:
    """The verdict coin of these numbers, remembered."""
    return verdict_coin(order, no, yes, false_yes, false_no)


@lru_cache(maxsize=32)
def stored_prices(
    order: float, no: float, yes: float, false_yes: float, false_no: float
) -> VerdictPrices:
    """A Yes at its aimed price, a No at the smallest price that then covers every half step."""
    coin = stored_coin(order, no, yes, false_yes, false_no)
    refusal = refusal_price(coin, order, yes)
    rounding = (1 + 1e-15) / (order - 1)
    return VerdictPrices(refusal * rounding, yes * rounding)


def refuse_empty(tail_low: float, tail_high: float | None) -> None:
    """Refuse guesses of which a verdict would say "cannot tell", and nothing else.

    Without `tail_high` those too that are planned to stand, and would say so if they do.
    """
    refusable = tail_high is not None and 1 - tail_high >= LEAST_SHARE
    if tail_low < LEAST_SHARE and not refusable:
        hint = (
            "A guess that stands would speak of fewer than 1 in 100 fresh blocks: 'cannot tell'. "
            "For thresholds of scores plan gates: holdfast create … --protocols gate."
        )
        raise InvalidInput("tail", tail_low, f"at least {LEAST_SHARE:g} for guesses", hint)


def guess_words(sides: int, low: float, high: float, units: int) -> str:
    """What guesses with these tails will say of shares of units."""
    if sides == 1:
        least, _ = verdict_bar(0.5, "at least", True, units, low, high)
        gap = rounded_up(0.5 - (least or 0.0), 2)
        return f"a share of units that passes at v is at least v − {gap}"
    most = f"{100 * low:.3g} in 100 blocks"
    return f"a guess with fewer than {most} on one of its sides is found out"


def verdict_words(sides: int, low: float, high: float) -> str:
    """What verdicts on guesses with these tails mean, for people."""
    if sides == 1:
        return (
            f"Pass: more than {quantile(low)} of fresh blocks are on the guess's side of it. Fail: "
            f"more than {quantile(1 - high)} are not. Of a score that is a mean of terms from 0 to "
            "1 either certifies a bound."
        )
    return (
        f"Compatible: more than {quantile(low)} of fresh blocks give the guess or less, and more "
        f"than {quantile(low)} give it or more; that confirms no guess. Not compatible: less than "
        f"{quantile(high)} give it or less, or less than {quantile(high)} give it or more."
    )


def check_claim(claim: str | None, sides: int) -> int:
    """The sides that a claim is about, if a part for guesses about so many sides covers it."""
    if claim not in ("equals", "at least", "at most"):
        raise InvalidInput("claim", claim, "'equals', 'at least' or 'at most'")
    if claim == "equals" and sides == 1:
        hint = "This part of the plan covers one-sided guesses: 'at least' or 'at most'."
        raise InvalidInput("claim", claim, "one-sided", hint)
    return 2 if claim == "equals" else 1


def claim_counts(values: NDArray[np.float64], guess: float, claim: str | None) -> list[int]:
    """#{φ ≤ v} and #{φ ≥ v}, or the one that the claim is about."""
    at_most = int(np.count_nonzero(values <= guess))
    at_least = int(np.count_nonzero(values >= guess))
    sides = {"equals": [at_most, at_least], "at most": [at_most], "at least": [at_least]}
    return sides[claim or "equals"]


def check_guess(question: Question, sides: int) -> None:
    """Refuse a claim or a tolerance that a part for guesses does not have."""
    if question.verb == "verify":
        if question.tolerance is not None:
            hint = "This plan has a part for guesses, whose tails say what is near."
            raise InvalidInput("tolerance", question.tolerance, "left out here", hint)
        check_claim(question.claim, sides)


class Verify(LookProtocol[VerdictPart]):
    """Guesses that stand or are refused.

    >>> from holdfast.planning.joint import joint_plan
    >>> from holdfast.protocols import BlockArray, MemoryHoldout
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = joint_plan(Guesses(50, refusals=2))
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> holdout = MemoryHoldout(plan, BlockArray(rows, plan.blocks), SeededEntropy(1))
    >>> [holdout.verify(np.mean, guess).verdict for guess in (0.4, 0.5, 0.3, 0.4)]
    ['compatible', 'not compatible', 'not compatible', 'exhausted']
    """

    verb: ClassVar[Verb] = "verify"
    of = ("verify",)
    part_type = VerdictPart
    says = "verify"
    mixes: ClassVar = {
        "verify": Wanted(lambda mix, k, *_: Guesses(k, min(mix.refusals, k)), own=False)
    }
    on_grid = False

    def admit(self, question: Question) -> None:
        check_guess(question, self.part.sides)

    def worst(self, question: Question) -> tuple[Charge, ...]:
        sides = check_claim(question.claim or "equals", self.part.sides)
        price = (sides - 1) * self.yes + max(self.no, self.yes)
        return (Charge(self.part.name, price, sides, 1),)

    def ask(self, question: Question, entropy: Entropy, _lessons: Sequence[Lesson]) -> Steps:
        """The verdict on a guess. Exhaustion is a verdict too, free and final."""
        try:
            yield Reserve(self.worst(question)[-1])
        except Exhausted:
            return None
        return self.looked(question, (yield Values()), entropy)

    def looked(self, question: Question, values: object, entropy: Entropy) -> Drawn:
        """How many looks said Yes before the first No; what they cost has been reserved."""
        floats = block_floats(values, self.plan.blocks)
        assert question.guess is not None
        counts = claim_counts(floats, question.guess, question.claim)
        coin, yes = self.part.coin(self.plan.order), 0
        for count in counts:
            offset = 2 * count - self.part.twice_target
            if not look(offset, coin.side(offset), entropy):
                break
            yes += 1
        return {"yes": yes}

    def charges(self, question: Question, drawn: Drawn) -> tuple[Charge, ...]:
        (*_, worst), yes = self.worst(question), drawn["yes"]
        if type(yes) is not int or not 0 <= yes <= worst.looks:
            raise ValueError(f"no number of looks that said Yes: {yes!r}")
        noes = int(yes < worst.looks)
        return (Charge(worst.part, yes * self.yes + noes * self.no, yes + noes, noes),)

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Result:
        claim = cast(Claim, question.claim or "equals")
        sides = check_claim(claim, self.part.sides)
        refused = None if drawn is None else drawn["yes"] < sides
        part, guess = self.part, float(question.guess or 0.0)
        tails = part.tail_low, part.tail_high
        return Verdict(
            protocol=Verify.says,
            guess=guess,
            claim=claim,
            tolerance=None,
            refused=refused,
            tail_low=tails[0],
            tail_high=tails[1],
            confidence=self.confidence,
            promise=verdict_promise(refused, guess, claim, *tails, self.units),
            price=paid.price(part.name),
            budget_left=paid.left,
            refusals_left=paid.refusals or 0,
            certified=self.certified,
            block_units=self.units,
            reading=question.about.get("reading"),
        )


class Correct(Verify):
    """Guesses that are confirmed or corrected.

    >>> from holdfast.grids import grid
    >>> from holdfast.planning.joint import joint_plan
    >>> from holdfast.protocols import BlockArray, Estimates, MemoryHoldout
    >>> from holdfast.randomness import SeededEntropy
    >>> requests = Guesses(50, refusals=2), Estimates(2, tail_low=0.05, tail_high=0.05)
    >>> plan = joint_plan(*requests, blocks=2000)
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> holdout = MemoryHoldout(plan, BlockArray(rows, plan.blocks), SeededEntropy(1))
    >>> points = grid(0, 1, step=0.04)
    >>> [holdout.correct(np.mean, guess, points).value for guess in (0.4, 0.7)]
    [0.4, 0.4]
    """

    verb = "correct"
    on_grid = True

    @classmethod
    def serves(cls, plan: SetPlan, part: Part) -> bool:
        """A correction needs a part that verifies both sides and one that estimates."""
        estimates = any(each.protocol == "estimate" for each in plan.parts)
        return super().serves(plan, part) and estimates and not part.one_sided

    @property
    def _estimate(self) -> Estimate:
        part = next(each for each in self.plan.parts if each.protocol == "estimate")
        assert isinstance(part, SearchPart)
        return Estimate(self.plan, part, self.units, self.confidence, certified=self.certified)

    def worst(self, question: Question) -> tuple[Charge, ...]:
        """The correction is paid for before the guess is drawn."""
        return (*self._estimate.worst(question), *super().worst(question))

    def ask(self, question: Question, entropy: Entropy, _lessons: Sequence[Lesson]) -> Steps:
        """Confirm the guess or correct it."""
        correction, guess = self.worst(question)
        try:
            yield Reserve(correction)
        except Exhausted:
            return None
        try:
            yield Reserve(guess)
        except Exhausted:  # at the second of two steps
            return None
        values = yield Values()
        drawn = self.looked(question, values, entropy)
        if drawn["yes"] < guess.looks:
            drawn["index"] = self._estimate.index(question, values, entropy)
        return drawn

    def given_back(self, question: Question) -> tuple[Charge, ...]:
        return (self.worst(question)[0].nothing,)

    def charges(self, question: Question, drawn: Drawn) -> tuple[Charge, ...]:
        correction, _ = self.worst(question)
        guess = super().charges(question, drawn)
        return (correction if "index" in drawn else correction.nothing, *guess)

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Corrected:
        verdict = super().answer(question, drawn, paid)
        assert isinstance(verdict, Verdict)
        if drawn is None or not verdict.refused:
            if drawn is not None and "index" in drawn:
                raise ValueError("a guess that stands is not corrected")
            return Corrected(verdict, None)
        return Corrected(verdict, self._estimate.answer(question, drawn, paid))
