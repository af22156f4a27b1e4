"""Effective rounds: estimation sets used exactly until verification fails, then thrown away.

After Dwork et al. (2015), for any estimator. An answer is the exact median of the current set's
values. The verification set, asked exactly or by two looks, confirms it. If it does not, the set
has been overused (or was unlucky): it is thrown away, and the next one, which no answer depended
on, answers at once. Only refusals are scarce, so that the number of rounds, not of questions, is
what counts. With the last set gone the rounds are over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from holdfast.errors import Exhausted, InvalidInput, whole_number
from holdfast.planning.exact import ExactVerdicts
from holdfast.planning.rounds import RoundsPlan
from holdfast.planning.shapes import Shape
from holdfast.protocols.answers import Answer, Claim, Verdict, middle_promise
from holdfast.protocols.base import BAR_MAX, Keeper, block_floats, checked_shape, shown
from holdfast.protocols.budget import Budget
from holdfast.protocols.exact import ExactVerify
from holdfast.protocols.guesses import Verify
from holdfast.protocols.source import Source
from holdfast.randomness import Entropy

__all__ = ["EffectiveRounds"]


class _Confirming(ExactVerify):
    """Verdicts; also on a guess that is found only when its refusal has been charged."""

    def __init__(
        self, plan: ExactVerdicts, source: Source, find: Callable[[object], float]
    ) -> None:
        super().__init__(plan, source)
        self._find = find
        self._wanted, self._value = False, 0.0

    def confirm(self, estimator: object) -> tuple[float, Verdict]:
        """The guess that was found, and the verdict on it."""
        with self._lock:
            self._wanted = True
            try:
                verdict = self.ask(estimator, 0.0)
                return self._value, verdict
            finally:
                self._wanted = False

    def _confirmed(self, estimator: object, guess: float, claim: Claim) -> bool:
        if not self._wanted:
            return super()._confirmed(estimator, guess, claim)
        self._wanted = False  # an estimator that asks in turn brings its own guess
        guess = self._find(estimator)
        confirmed = super()._confirmed(estimator, guess, claim)
        self._value = guess
        return confirmed


class EffectiveRounds:
    """Questions answered from one estimation set after another.

    >>> from holdfast.planning.rounds import rounds_plan
    >>> from holdfast.protocols.source import BlockArray
    >>> from holdfast.randomness import SeededEntropy
    >>> plan = rounds_plan(queries=50, rounds=2)
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> whole = BlockArray(rows, plan.blocks)
    >>> rounds = EffectiveRounds.of(plan, whole, SeededEntropy(1))
    >>> round(rounds.ask(np.mean).value, 3), rounds.rounds_left
    (0.401, 2)
    """

    protocol = "rounds"

    def __init__(
        self,
        plan: RoundsPlan,
        verification: Source,
        sets: Sequence[Source],
        entropy: Entropy | None = None,
    ) -> None:
        if not plan.verify():
            raise InvalidInput("plan", plan.blocks, "a plan that certifies itself")
        sizes = [source.blocks for source in sets]
        if sizes != [plan.set_blocks] * plan.sets:
            allowed = f"{plan.sets} sets of {plan.set_blocks} blocks"
            raise InvalidInput("sets", sizes, allowed, "No block may be in two sets.")
        units = {source.units for source in (verification, *sets)}
        if len(units) != 1:  # an answer would be confirmed for blocks of another size
            raise InvalidInput("units", sorted(units), "the same in all sets")
        self.plan, self._sets = plan, tuple(sets)
        self._thrown = 0
        self._lock = threading.RLock()  # an estimator that asks again must not wait for itself
        self.verify: Verify | ExactVerify
        if isinstance(plan.verification, ExactVerdicts):
            self.verify = _Confirming(plan.verification, verification, self._median)
        else:
            self.verify = Verify(Budget(plan.verification), verification, entropy)

    @classmethod
    def of(
        cls, plan: RoundsPlan, source: Source, entropy: Entropy | None = None
    ) -> EffectiveRounds:
        """The blocks of one source dealt out: the verification set first, then the others."""
        if source.blocks != plan.blocks:
            raise InvalidInput("blocks", source.blocks, f"the plan's {plan.blocks:,}")
        first = plan.verification.blocks
        ends = range(first, plan.blocks + 1, plan.set_blocks)
        sets = [source.part(a, b) for a, b in pairwise(ends)]
        return cls(plan, source.part(0, first), sets, entropy)

    @property
    def rounds_left(self) -> int:
        """Sets that are not thrown away, the current one included."""
        return len(self._sets) - self._thrown

    @property
    def tally(self) -> dict[str, int]:
        """All that a later object needs to go on from here, where verification is exact."""
        return {"thrown": self._thrown, **self._exact().tally}

    def restore(self, tally: Mapping[str, int]) -> None:
        """Go on from an earlier object's tally."""
        counts = dict(tally)
        self._thrown = whole_number("thrown", counts.pop("thrown", None), 0, len(self._sets))
        self._exact().restore(counts)

    @property
    def keeper(self) -> Keeper | None:
        """Who hears of the worst case before it happens: that the set is thrown away."""
        return self._exact().keeper

    @keeper.setter
    def keeper(self, keeper: Keeper) -> None:
        self._exact().keeper = lambda tally: keeper({"thrown": self._thrown + 1, **tally})

    def _exact(self) -> ExactVerify:
        if not isinstance(self.verify, ExactVerify):
            hint = "With looks the budget keeps the account."
            raise InvalidInput("plan", "verification by looks", "exact verification", hint)
        return self.verify

    def ask(self, estimator: object, *, shape: Shape | None = None) -> Answer:
        """The current set's median, confirmed; or the next set's; or `Exhausted`."""
        checked_shape(shape)
        with self._lock:
            return self._ask(estimator, shape)

    def _ask(self, estimator: object, shape: Shape | None) -> Answer:
        if self.rounds_left:
            value, verdict = self._confirm(estimator)
            if verdict.refused is False:
                return self._answer(value, verdict.price, shape)
            if verdict.refused:
                self._thrown += 1
                if self.rounds_left:
                    return self._answer(self._median(estimator), verdict.price, shape)
        remedy = "All estimation sets are used up, or all planned questions have been asked."
        raise Exhausted("The budget for rounds", "another round", "none", remedy)

    def _confirm(self, estimator: object) -> tuple[float, Verdict]:
        """The current set's median, and what the verification set says of it."""
        if isinstance(self.verify, _Confirming):
            return self.verify.confirm(estimator)
        value = self._median(estimator)
        return value, self.verify.ask(estimator, value)

    def _median(self, estimator: object) -> float:
        values = block_floats(self._sets[self._thrown], estimator)
        middle = (values.size - 1) // 2
        return float(np.partition(values, middle)[middle])

    def _answer(self, value: float, price: float, shape: Shape | None) -> Answer:
        tail, value = self.plan.guesses.tail_low, shown(value)
        units = self._sets[0].units
        low, high = None, None
        if shape is not None and abs(value) < BAR_MAX:
            low, high = shape.bar((value, value), units, tail, tail)
        return Answer(
            protocol=self.protocol,
            value=value,
            low=low,
            high=high,
            tail_low=tail,
            tail_high=tail,
            confidence=self.plan.confidence,
            promise=middle_promise(
                tail, tail, units, value, has_bar=low is not None or high is not None
            ),
            price=price,
            budget_left=float(self.rounds_left),
            at_grid_end=False,
            certified=isinstance(self.verify, ExactVerify) or self.verify.certified,
            block_units=units,
            method="rounds",
        )
