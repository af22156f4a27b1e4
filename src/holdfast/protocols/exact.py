"""Exact answers: no coin and no noise, certified because so little can be said.

The plan has counted all that can ever be asked (docs/explanation/theory/transcripts.md). Verdicts
are charged in refusals, answers in questions of the planned grid; what may be said is charged
before anything is evaluated, and a Yes gives its refusal back. Questions are answered one after the
other.

**An exact answer is not stable.** Nothing else about these blocks may be seen by anybody: they must
not also serve looks, another plan, or a second copy of the same one. What an estimator is, and how
long it takes, must not tell more than its answer.

ExactVerify     guesses that stand or are refused; which side failed is not told
ExactCorrect    guesses that are confirmed, or corrected by the value of the planned rank on a grid
ExactEstimate   questions answered by the value of the planned rank on a grid
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, cast

import numpy as np

from holdfast.errors import Exhausted, InvalidInput, real_number, whole_number
from holdfast.protocols.answers import (
    LEAST_SHARE,
    Answer,
    Claim,
    Corrected,
    Result,
    Verdict,
    lies_between,
    verdict_promise,
)
from holdfast.protocols.base import (
    Drawn,
    Lesson,
    P,
    Paid,
    Protocol,
    Question,
    Reserve,
    Steps,
    Values,
    block_floats,
    one_per_block,
)
from holdfast.protocols.budget import Account, Charge, Use
from holdfast.protocols.guesses import check_guess, claim_counts, guess_words, verdict_words
from holdfast.protocols.plans import Left, OwnPlan, ProtocolMix, SetPlan, Wanted
from holdfast.randomness import Entropy
from holdfast.theory.sizing import BLOCKS_MAX, QUERIES_MAX, best_rank
from holdfast.theory.transcripts import (
    Guessing,
    answer_blocks,
    guess_blocks,
    log_answer_failure,
    log_guess_failure,
    log_share,
)

__all__ = [
    "ExactCorrect",
    "ExactCorrections",
    "ExactEstimate",
    "ExactEstimates",
    "ExactPlan",
    "ExactVerdicts",
    "ExactVerify",
    "exact_corrections",
    "exact_estimates",
    "exact_verdicts",
]


class ExactPlan(OwnPlan):
    """What all plans without noise have in common."""

    def __post_init__(self) -> None:
        whole_number("queries", self.queries, 1, QUERIES_MAX)
        real_number("confidence", self.confidence, 0, 1, open_low=True, open_high=True)
        whole_number("blocks", self.blocks, 1, BLOCKS_MAX)
        self._check()
        for field in fields(cast(Any, self)):  # 1e3 is welcome, and stored as 1000
            plain = int if field.type == "int" else float
            object.__setattr__(self, field.name, plain(getattr(self, field.name)))

    @abstractmethod
    def _check(self) -> None:
        """Refuse numbers that make no sense."""

    @property
    @abstractmethod
    def log_bound(self) -> float:
        """ln of what is proved to bound the chance that the promise fails; rounded up."""

    @property
    def bound(self) -> float:
        """What is proved to bound the chance that the promise fails, at most `failure`."""
        return math.exp(min(self.log_bound, 0.0))

    def verify(self) -> bool:
        """Prove the promise again: every history counted, every tail evaluated."""
        return self.log_bound <= log_share(self.failure)

    @property
    def limit(self) -> Fraction:
        return Fraction(self.queries)

    def use(self, account: Account) -> tuple[float, float, str]:
        return self.queries - self.rest(account), self.queries, "questions"

    def rest(self, account: Account) -> float:
        return float(account.limit - account.charged)

    def left(self, _order: float, rest: Fraction, _use: Use) -> Left:
        return Left(int(rest), int(rest))


class _GuessPlan(ExactPlan):
    """Guesses, of which so many may be refused: a refusal is what is charged."""

    refusals: int
    tail_low: float
    tail_high: float
    least: int

    @property
    def tells(self) -> bool:
        return self.tail_low >= LEAST_SHARE or 1 - self.tail_high >= LEAST_SHARE

    @property
    def most_refusals(self) -> int:
        return self.refusals

    @property
    def limit(self) -> Fraction:
        return Fraction(self.refusals)

    def use(self, account: Account) -> tuple[float, float, str]:
        return account.uses[self.name].refusals, self.refusals, "refusals"

    def rest(self, account: Account) -> float:
        return float(account.left_of(self).refusals or 0)

    def left(self, _order: float, _rest: Fraction, use: Use) -> Left:
        asked = self.queries - use.looks
        refusals = self.refusals - use.refusals if asked else 0
        return Left(asked if refusals else 0, asked, refusals)


@dataclass(frozen=True)
class ExactVerdicts(_GuessPlan):
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

    def _check(self) -> None:
        _ = self.guessing  # it refuses what makes no sense
        whole_number("least", self.least, 1, self.blocks)

    def preview(self, _plan: SetPlan, units: int) -> tuple[float | None, str]:
        return None, guess_words(self.sides, self.tail_low, self.tail_high, units)

    def words(self) -> tuple[str, str]:
        limits = f"{self.queries:,} guesses, at most {self.refusals:,} refused; exact"
        return limits, verdict_words(self.sides, self.tail_low, self.tail_high)

    @property
    def set_name(self) -> str:
        return "gate" if self.sides == 1 else self.protocol

    @property
    def guessing(self) -> Guessing:
        """What is asked and promised."""
        return Guessing(self.queries, self.refusals, self.tail_low, self.tail_high, self.sides)

    @property
    def log_bound(self) -> float:
        return log_guess_failure(self.guessing, self.blocks, self.least, None)


@dataclass(frozen=True)
class ExactCorrections(_GuessPlan):
    """k guesses, at most ℓ refusals, each followed by the value of rank `rank` on a grid.

    All at once: both tails of a guess ≥ tail_high ⇒ it is confirmed; every confirmed guess and
    every correction has both tails > tail_low.
    """

    kind = "exact corrections"
    protocol = "exact-correct"

    queries: int
    refusals: int
    grid: int
    tail_low: float
    tail_high: float
    confidence: float
    blocks: int
    least: int
    rank: int

    def _check(self) -> None:
        whole_number("grid", self.grid, 2, 2**62)
        _ = self.guessing
        whole_number("least", self.least, 1, self.blocks)
        whole_number("rank", self.rank, 1, self.blocks)

    def words(self) -> tuple[str, str]:
        between = lies_between(self.tail_low, self.tail_low)
        limits = f"{self.queries:,} guesses, at most {self.refusals:,} corrected; exact"
        return limits, f"Confirmed or corrected: {between[0].lower()}{between[1:]}"

    def lacking(self, use: Use, worst: Charge) -> tuple[str, str] | None:
        # After the last correction nothing can be asked: its grid may have any size.
        most = int(self.grid ** (use.refusals + 1)) // use.told
        if use.refusals < self.refusals - 1 and use.looks < self.queries and worst.told > most:
            hint = "Use a coarser grid, or plan for a larger one."
            raise InvalidInput("grid", worst.told, f"a grid of at most {most:,} points", hint)
        return super().lacking(use, worst)

    @property
    def guessing(self) -> Guessing:
        """What is asked and promised."""
        tails = self.tail_low, self.tail_high
        return Guessing(self.queries, self.refusals, *tails, points=self.grid)

    @property
    def log_bound(self) -> float:
        return log_guess_failure(self.guessing, self.blocks, self.least, self.rank)


@dataclass(frozen=True)
class ExactEstimates(ExactPlan):
    """k answers, each the value of rank `rank` on a grid: v ∈ qi(tail_low, 1 − tail_high)."""

    kind = "exact estimates"
    protocol = "exact"
    priced = False  # what was told is counted: a last question may be on any grid

    queries: int
    grid: int
    tail_low: float
    tail_high: float
    confidence: float
    blocks: int
    rank: int

    def _check(self) -> None:
        whole_number("grid", self.grid, 2, 2**62)
        best_rank(self.blocks, _tail(self.tail_low), _tail(self.tail_high))  # their sum is below 1
        whole_number("rank", self.rank, 1, self.blocks)

    def words(self) -> tuple[str, str]:
        limits = f"{self.queries:,} questions on a grid of {self.grid:,} points; exact"
        return limits, lies_between(self.tail_low, self.tail_high)

    def room(self, use: Use) -> int:
        """What may still be said before the last answer: grids of so many points in all."""
        return int(self.grid ** (self.queries - 1)) // use.told

    def lacking(self, use: Use, _worst: Charge) -> tuple[str, str] | None:
        return None if self.room(use) else ("another question", "none")

    def rest(self, account: Account) -> float:
        room = self.room(account.uses[self.name])
        return round(1 + math.log(room) / math.log(self.grid), 9) if room else 0.0

    def left(self, _order: float, _rest: Fraction, use: Use) -> Left:
        room = self.room(use)
        most = max(0, int((room.bit_length() - 1) / math.log2(self.grid)) - 1)  # at least so many
        while room and self.grid**most <= room:
            most += 1
        return Left(most, most)

    @property
    def log_bound(self) -> float:
        tails = self.tail_low, self.tail_high
        return log_answer_failure(self.blocks, self.rank, self.queries, self.grid, *tails)


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
    guessing = Guessing(queries, refusals, tail_low, tail_high, sides)
    size = guess_blocks(guessing, _failure(confidence))
    tails = tail_low, tail_high
    return ExactVerdicts(queries, refusals, sides, *tails, confidence, size.blocks, size.least)


def exact_corrections(
    queries: int,
    refusals: int,
    grid: int = 32,
    tail_low: float = 0.05,
    tail_high: float = 0.25,
    confidence: float = 0.95,
) -> ExactCorrections:
    """Exact verdicts and corrections with the fewest blocks.

    >>> exact_corrections(1_000, refusals=10).blocks
    1830
    """
    grid = whole_number("grid", grid, 2, 2**62)
    guessing = Guessing(queries, refusals, tail_low, tail_high, points=grid)
    size = guess_blocks(guessing, _failure(confidence))
    assert size.rank is not None
    tails = tail_low, tail_high
    return ExactCorrections(queries, refusals, grid, *tails, confidence, *size[:2], size.rank)


def exact_estimates(
    queries: int,
    grid: int = 32,
    tail_low: float = 0.25,
    tail_high: float = 0.25,
    confidence: float = 0.95,
) -> ExactEstimates:
    """Exact quantiles with the fewest blocks.

    >>> exact_estimates(20).blocks, exact_estimates(100).blocks
    (461, 2383)
    """
    grid = whole_number("grid", grid, 2, 2**62)
    tails = _tail(tail_low), _tail(tail_high)
    size = answer_blocks(queries, grid, *tails, _failure(confidence))
    return ExactEstimates(queries, grid, *tails, confidence, size.blocks, size.rank)


def _failure(confidence: float) -> float:
    confidence = real_number("confidence", confidence, 0, 1, open_low=True, open_high=True)
    return float(1 - Fraction(repr(confidence)))


def _tail(tail: float) -> float:
    return real_number("tail", tail, 0, 1, open_low=True, open_high=True)


class _Exact(Protocol[P]):
    """Answers without noise, one after the other."""

    method = "exact"
    one_at_a_time = True
    random = False

    def _index(self, question: Question, values: object, rank: int) -> int:
        """The grid index of the value of this rank."""
        indices = one_per_block(question.points.ceiling(values), self.plan.blocks)
        return int(np.partition(indices, rank - 1)[rank - 1])


class _ExactGuess(_Exact[P]):
    part: Any

    def worst(self, _question: Question) -> tuple[Charge, ...]:
        return (Charge(self.part.name, Fraction(1), 1, 1),)

    def ask(self, question: Question, entropy: Entropy, _lessons: Sequence[Lesson]) -> Steps:
        (worst,) = self.worst(question)
        try:
            yield Reserve(worst)
        except Exhausted:
            return None
        return self.looked(question, (yield Values()), entropy)

    def looked(self, question: Question, values: object, _entropy: Entropy) -> Drawn:
        """What is told of a guess; it has been reserved."""
        floats = block_floats(values, self.plan.blocks)
        assert question.guess is not None
        counts = claim_counts(floats, question.guess, question.claim)
        return {"refused": min(counts) < self.part.least}

    def charges(self, question: Question, drawn: Drawn) -> tuple[Charge, ...]:
        (worst,) = self.worst(question)
        if type(drawn["refused"]) is not bool:
            raise ValueError(f"neither refused nor not: {drawn['refused']!r}")
        return (worst if drawn["refused"] else Charge(worst.part, Fraction(0), 1),)

    def _verdict(self, question: Question, drawn: Drawn | None, paid: Paid) -> Verdict:
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


class ExactVerify(_ExactGuess[ExactVerdicts]):
    """Guesses that stand or are refused. Which side failed is not told.

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
    mixes: ClassVar = {
        "exact-verify": Wanted(
            lambda mix, k, sure, _: exact_verdicts(k, min(mix.refusals, k), confidence=sure)
        ),
        "gate": Wanted(lambda mix, k, sure, _: _gates(mix, k, sure)),
    }
    on_grid = False

    def admit(self, question: Question) -> None:
        check_guess(question, self.part.sides)

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Result:
        return self._verdict(question, drawn, paid)


class ExactCorrect(_ExactGuess[ExactCorrections]):
    """Guesses that are confirmed, or corrected by the value of the planned rank on a grid.

    A grid may be larger than planned if those of earlier corrections were smaller; that of the last
    correction may have any size.

    >>> from holdfast.grids import grid
    >>> from holdfast.protocols import BlockArray, MemoryHoldout
    >>> plan = exact_corrections(50, refusals=2)
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> holdout = MemoryHoldout(plan, BlockArray(rows, plan.blocks))
    >>> points = grid(0, 1, step=0.04)
    >>> [holdout.correct(np.mean, guess, points).value for guess in (0.4, 0.7)]
    [0.4, 0.4]
    """

    verb = "correct"
    of = ("exact-correct",)
    part_type = ExactCorrections
    says = "estimate"
    mixes: ClassVar = {
        "exact-correct": Wanted(
            lambda mix, k, sure, _: exact_corrections(
                k, min(mix.refusals, k), mix.grid, confidence=sure
            )
        )
    }

    def worst(self, question: Question) -> tuple[Charge, ...]:
        return (Charge(self.part.name, Fraction(1), 1, 1, question.points.size),)

    def looked(self, question: Question, values: object, entropy: Entropy) -> Drawn:
        drawn = super().looked(question, values, entropy)
        if drawn["refused"]:
            drawn["index"] = self._index(question, values, self.part.rank)
        return drawn

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Corrected:
        verdict = self._verdict(question, drawn, paid)
        if drawn is None or not drawn["refused"]:
            if drawn is not None and "index" in drawn:
                raise ValueError("a guess that stands is not corrected")
            return Corrected(verdict, None)
        tails = self.part.tail_low, self.part.tail_low
        # It is not charged again: the refusal has paid for both.
        free = Paid((), paid.left, paid.refusals)
        return Corrected(verdict, self._on_grid(question, drawn, tails, free, question.shape))


class ExactEstimate(_Exact[ExactEstimates]):
    """Questions answered by the value of the planned rank on a grid.

    What all grids but the last can say must have been planned: the product of their sizes is at
    most r^(k−1). So a larger grid is allowed, and costs ln(its size)/ln r questions; a smaller one
    leaves room for more questions.

    >>> from holdfast.grids import grid
    >>> from holdfast.protocols import BlockArray, MemoryHoldout
    >>> plan = exact_estimates(20, grid=51, tail_low=0.05, tail_high=0.05)
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> holdout = MemoryHoldout(plan, BlockArray(rows, plan.blocks))
    >>> answer = holdout.ask(np.mean, grid(0, 1, step=0.02))
    >>> answer.value, answer.certified, answer.budget_left
    (0.4, True, 19.0)
    """

    verb = "ask"
    of = ("exact",)
    part_type = ExactEstimates
    says = "estimate"
    mixes: ClassVar = {
        "exact": Wanted(
            lambda mix, k, sure, _: exact_estimates(
                k, mix.grid, mix.tail_or(0.25), mix.tail_or(0.25), sure
            )
        )
    }

    def worst(self, question: Question) -> tuple[Charge, ...]:
        size = question.points.size
        price = Fraction(math.log(size) / math.log(self.part.grid))
        return (Charge(self.part.name, price, 0, 0, size),)

    def ask(self, question: Question, _entropy: Entropy, _lessons: Sequence[Lesson]) -> Steps:
        (worst,) = self.worst(question)
        yield Reserve(worst)
        return {"index": self._index(question, (yield Values()), self.part.rank)}

    def answer(self, question: Question, drawn: Drawn | None, paid: Paid) -> Answer:
        tails = self.part.tail_low, self.part.tail_high
        return self._on_grid(question, drawn, tails, paid, question.shape)


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
