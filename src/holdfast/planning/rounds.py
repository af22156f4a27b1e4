"""The plan of effective rounds: one verification set, and a stack of small estimation sets.

The verification set carries k guesses and ℓ refusals. Each of the ℓ estimation sets answers
exactly until one of its answers is refused. β is divided in three:

    verification   false Yes, false No                      (joint plan of one part)
    fresh answers  the answer that a new set gives at once   (ℓ − 1)·P[median outside qi(tail_low)]
    rounds         a set fails on its own, without being     ℓ·k·P[median outside qi(tail_high)]
                   overused

so that, with the planned confidence, every answer lies in qi(tail_low, 1 − tail_low), and a round
ends only because its questions depended on its own answers (docs/explanation/theory/budget.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from holdfast.errors import InvalidInput, real_number
from holdfast.planning.exact import ExactVerdicts, exact_verdicts
from holdfast.planning.joint import JointPlan, joint_plan
from holdfast.planning.parts import VerdictPart
from holdfast.planning.requests import Guesses
from holdfast.theory.sizing import median_failure, median_samples
from holdfast.theory.transfer import total_failure

__all__ = ["RoundsPlan", "rounds_plan"]

_FRESH, _ROUNDS = 0.05, 0.05  # shares of β: sizes depend on them only through logarithms


@dataclass(frozen=True)
class RoundsPlan:
    """The verification set's plan, and how many estimation sets of how many blocks."""

    verification: JointPlan | ExactVerdicts
    sets: int
    set_blocks: int
    confidence: float

    @property
    def guesses(self) -> VerdictPart | ExactVerdicts:
        """What the verification set is planned for."""
        if isinstance(self.verification, ExactVerdicts):
            return self.verification
        part = self.verification.part("verify")
        assert isinstance(part, VerdictPart)
        return part

    @property
    def queries(self) -> int:
        """Questions in all rounds together."""
        return self.guesses.queries

    @property
    def blocks(self) -> int:
        """Blocks of all sets together."""
        return self.verification.blocks + self.sets * self.set_blocks

    def verify(self) -> bool:
        """Prove the verification set's plan again, and add up the three parts of β."""
        part = self.guesses
        if part.sides != 2 or self._short() or not self.verification.verify():
            return False
        fresh = (self.sets - 1) * median_failure(self.set_blocks, part.tail_low)
        alone = self.sets * part.queries * median_failure(self.set_blocks, part.tail_high)
        shares = [self.verification.failure, fresh, alone]
        return total_failure(shares) <= 1 - Fraction(repr(float(self.confidence)))

    def _short(self) -> bool:
        """Whether the sets are more than the refusals that the verification set can bear."""
        return not 1 <= self.sets <= self.guesses.refusals


def rounds_plan(
    queries: int,
    rounds: int,
    tail_low: float = 0.05,
    tail_high: float = 0.25,
    confidence: float = 0.95,
    *,
    looks: bool = False,
    exact: bool = False,
) -> RoundsPlan:
    """Effective rounds with the fewest blocks: `queries` questions, at most `rounds` rounds.

    The verification set answers exactly or by looks, whichever needs fewer blocks; with `looks`
    or `exact` always in that way.

    >>> made = rounds_plan(queries=100, rounds=3)
    >>> made.sets, made.set_blocks, made.verify()
    (3, 69, True)
    """
    confidence = real_number("confidence", confidence, 0, 1, open_low=True, open_high=True)
    beta = float(1 - Fraction(repr(confidence)))
    rest = 1 - _FRESH - _ROUNDS
    guesses = Guesses(queries, rounds, tail_low, tail_high)
    sure = math.nextafter(1 - rest * beta, 1.0)
    if looks and exact:
        raise InvalidInput("looks and exact", (looks, exact), "given one at a time")
    ways: list[JointPlan | ExactVerdicts] = []
    if not exact:
        ways.append(joint_plan(guesses, confidence=sure))
    if not looks:
        ways.append(exact_verdicts(queries, rounds, tail_low, tail_high, sure))
    verification = min(ways, key=lambda plan: plan.blocks)
    fresh = median_samples(_FRESH * beta / max(1, rounds - 1), tail_low)
    alone = median_samples(_ROUNDS * beta / (rounds * queries), tail_high)
    return RoundsPlan(verification, rounds, max(fresh, alone), confidence)
