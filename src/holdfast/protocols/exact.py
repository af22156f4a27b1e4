"""Exact verdicts: no coin and no noise, certified because so little can be said.

The plan has counted all that can ever be asked (docs/explanation/theory/transcripts.md). Verdicts
are charged in refusals: a refusal is charged before anything is evaluated, and a Yes gives it back.
Questions are answered one after the other. Release gates are planned like this.

**An exact answer is not stable.** Nothing else about these blocks may be seen by anybody: they must
not also serve looks, another plan, or a second copy of the same one. What an estimator is, and how
long it takes, must not tell more than its answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar, cast

from holdfast.errors import Exhausted, InvalidInput, real_number, whole_number
from holdfast.protocols.answers import LEAST_SHARE, Claim, Verdict, verdict_promise
from holdfast.protocols.base import (
    Drawn,
    Lesson,
    Paid,
    Protocol,
    Question,
    Reserve,
    Steps,
    Values,
    block_floats,
)
from holdfast.protocols.budget import Account, Charge, Use
from holdfast.protocols.guesses import check_guess, claim_counts, guess_words, verdict_words
from holdfast.protocols.plans import Left, OwnPlan, ProtocolMix, SetPlan, Wanted
from holdfast.randomness import Entropy
from holdfast.theory.sizing import BLOCKS_MAX, QUERIES_MAX
from holdfast.theory.transcripts import Guessing, guess_blocks, log_guess_failure, log_share

__all__ = ["ExactVerdicts", "ExactVerify", "exact_verdicts"]


@dataclass(frozen=True)
class ExactVerdicts(OwnPlan):
    """k guesses, at most ℓ refusals: Yes if each side has `least` of the blocks.

    All at once: both tails ≥ tail_high ⇒ Yes; one of them ≤ tail_low ⇒ No. With `sides` = 1 a guess
    is about one of its tails; a plan for two sides covers such guesses too.
    """

    kind = "exact verdicts"
    protocol = "exact-verify"

    queries: int
    refusals: int
    sides: int
    tail_low: float
    tail_high: float
    confidence: float
    blocks: int
    least: int

    def __post_init__(self) -> None:
        whole_number("queries", self.queries, 1, QUERIES_MAX)
        real_number("confidence", self.confidence, 0, 1, open_low=True, open_high=True)
        whole_number("blocks", self.blocks, 1, BLOCKS_MAX)
        _ = self.guessing  # it refuses what makes no sense
        whole_number("least", self.least, 1, self.blocks)
        for field in fields(self):  # 1e3 is welcome, and stored as 1000
            plain = int if field.type == "int" else float
            object.__setattr__(self, field.name, plain(getattr(self, field.name)))

    @property
    def guessing(self) -> Guessing:
        """What is asked and promised."""
        return Guessing(self.queries, self.refusals, self.tail_low, self.tail_high, self.sides)

    @property
    def log_bound(self) -> float:
        """ln of what is proved to bound the chance that the promise fails; rounded up."""
        return log_guess_failure(self.guessing, self.blocks, self.least)

    @property
    def bound(self) -> float:
        """What is proved to bound the chance that the promise fails, at most `failure`."""
        return math.exp(min(self.log_bound, 0.0))

    def verify(self) -> bool:
        """Prove the promise again: every history counted, every tail evaluated."""
        return self.log_bound <= log_share(self.failure)

    @property
    def set_name(self) -> str:
        return "gate" if self.sides == 1 else self.protocol

    @property
    def tells(self) -> bool:
        return self.tail_low >= LEAST_SHARE or 1 - self.tail_high >= LEAST_SHARE

    @property
    def most_refusals(self) -> int:
        return self.refusals

    @property
    def limit(self) -> Fraction:
        return Fraction(self.refusals)

    def preview(self, _plan: SetPlan, units: int) -> tuple[float | None, str]:
        return None, guess_words(self.sides, self.tail_low, self.tail_high, units)

    def words(self) -> tuple[str, str]:
        limits = f"{self.queries:,} guesses, at most {self.refusals:,} refused; exact"
        return limits, verdict_words(self.sides, self.tail_low, self.tail_high)

    def use(self, account: Account) -> tuple[float, float, str]:
        return account.uses[self.name].refusals, self.refusals, "refusals"

    def rest(self, account: Account) -> float:
        return float(account.left_of(self).refusals or 0)

    def left(self, _order: float, _rest: Fraction, use: Use) -> Left:
        asked = self.queries - use.looks
        refusals = self.refusals - use.refusals if asked else 0
        return Left(asked if refusals else 0, asked, refusals)


def exact_verdicts(
    queries: int,
    refusals: int,
    tail_low: float = 0.05,
    tail_high: float = 0.25,
    confidence: float = 0.95,
    *,
    sides: int = 2,
) -> ExactVerdicts:
    """Exact verdicts with the fewest blocks.

    >>> exact_verdicts(1_000, refusals=10).blocks, exact_verdicts(1_000, refusals=1).blocks
    (1153, 113)
    """
    confidence = real_number("confidence", confidence, 0, 1, open_low=True, open_high=True)
    guessing = Guessing(queries, refusals, tail_low, tail_high, sides)
    size = guess_blocks(guessing, float(1 - Fraction(repr(confidence))))
    return ExactVerdicts(queries, refusals, sides, tail_low, tail_high, confidence, *size)


class ExactVerify(Protocol[ExactVerdicts]):
    """Guesses that stand or are refused. Which side failed is not told.

    >>> import numpy as np
    >>> from holdfast.protocols import BlockArray, MemoryHoldout
    >>> plan = exact_verdicts(50, refusals=2)
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> holdout = MemoryHoldout(plan, BlockArray(rows, plan.blocks))
    >>> [holdout.verify(np.mean, guess).verdict for guess in (0.4, 0.5, 0.3, 0.4)]
    ['compatible', 'not compatible', 'not compatible', 'exhausted']
    """

    verb = "verify"
    of = ("exact-verify",)
    part_type = ExactVerdicts
    says = "verify"
    mixes: ClassVar = {"gate": Wanted(lambda mix, k, sure, _: _gates(mix, k, sure))}
    method = "exact"
    one_at_a_time = True
    random = False
    on_grid = False

    def admit(self, question: Question) -> None:
        check_guess(question, self.part.sides)

    def worst(self, _question: Question) -> tuple[Charge, ...]:
        return (Charge(self.part.name, Fraction(1), 1, 1),)

    def ask(self, question: Question, _entropy: Entropy, _lessons: Sequence[Lesson]) -> Steps:
        (worst,) = self.worst(question)
        try:
            yield Reserve(worst)
        except Exhausted:
            return None
        floats = block_floats((yield Values()), self.plan.blocks)
        assert question.guess is not None
        counts = claim_counts(floats, question.guess, question.claim)
        return {"refused": min(counts) < self.part.least}

    def charges(self, question: Question, drawn: Drawn) -> tuple[Charge, ...]:
        (worst,) = self.worst(question)
        if type(drawn["refused"]) is not bool:
            raise ValueError(f"neither refused nor not: {drawn['refused']!r}")
        return (worst if drawn["refused"] else Charge(worst.part, Fraction(0), 1),)

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Verdict:
        plan, guess = self.part, float(question.guess or 0.0)
        claim = cast(Claim, question.claim or "equals")
        refused = None if drawn is None else drawn["refused"]
        tails = plan.tail_low, plan.tail_high
        return Verdict(
            protocol="verify",
            guess=guess,
            claim=claim,
            tolerance=None,
            refused=refused,
            tail_low=tails[0],
            tail_high=tails[1],
            confidence=self.confidence,
            promise=verdict_promise(refused, guess, claim, *tails, self.units),
            price=paid.price(),
            budget_left=paid.left,
            refusals_left=paid.refusals,
            certified=self.certified,
            block_units=self.units,
            reading=question.reading,
        )


_GATE_TAIL = 1e-6


def _gates(mix: ProtocolMix, queries: int, confidence: float) -> ExactVerdicts:
    """Exact guesses on one side with tails for means: few blocks, so that they are large ones.

    Exact, so that a pass is free: by looks it would be cheap, and the blocks smaller.
    """
    tail = mix.tail_or(_GATE_TAIL)
    if 1 - tail == 1:
        raise InvalidInput("tail", tail, "at least 1e-15 for gates")
    refusals = min(mix.refusals, queries)
    return exact_verdicts(queries, refusals, tail, 1 - tail, confidence, sides=1)
