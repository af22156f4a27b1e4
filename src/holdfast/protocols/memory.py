"""A holdout in memory: a plan and its blocks, asked verb by verb; nothing is kept."""

from __future__ import annotations

import threading
from typing import Any, cast

from holdfast.errors import Exhausted, InvalidInput, real_number
from holdfast.grids import Grid
from holdfast.mechanisms.hypothesis import Universe
from holdfast.protocols.answers import Answer, Claim, Corrected, Result, Verdict
from holdfast.protocols.base import (
    Drawn,
    Places,
    Protocol,
    Question,
    Reserve,
    Step,
    Sums,
    Values,
    Verb,
    checked_grid,
    checked_shape,
    paid,
)
from holdfast.protocols.means import checked_bounds
from holdfast.protocols.plans import Account, Charge, Left, SetPlan
from holdfast.protocols.registry import protocols_for
from holdfast.protocols.shapes import Shape
from holdfast.protocols.source import UNIT, Bounds, Source
from holdfast.randomness import Entropy, system_entropy

__all__ = ["MemoryHoldout"]


class MemoryHoldout:
    """One plan and its blocks. Safe to share between threads: questions are answered in turn.

    >>> import numpy as np
    >>> from holdfast.planning.joint import joint_plan
    >>> from holdfast.protocols import BlockArray, Guesses
    >>> plan = joint_plan(Guesses(100, refusals=3))
    >>> holdout = MemoryHoldout(plan, BlockArray(np.arange(plan.blocks * 2.0), plan.blocks))
    >>> holdout.left == plan.budget, holdout.buys()["verify"]
    (True, Left(questions=100, looks=200, refusals=3))
    """

    def __init__(
        self,
        plan: SetPlan,
        source: Source,
        entropy: Entropy | None = None,
        *,
        universe: Universe | None = None,
    ) -> None:
        if not plan.verify():
            hint = "Make the plan again: this one does not prove its own promises."
            raise InvalidInput("plan", plan.names, "a plan that certifies itself", hint)
        if source.blocks != plan.blocks * plan.subblocks:
            allowed = f"the plan's {plan.blocks * plan.subblocks:,}"
            hint = "The plan was made for another split of the data."
            raise InvalidInput("blocks", source.blocks, allowed, hint)
        self.plan, self.source = plan, source
        self.entropy = _checked(entropy)
        self.account = Account(plan)
        self.lessons: list[Drawn] = []
        self._lock = threading.RLock()  # an estimator that asks again must not wait for itself
        self._universe = universe
        self._places: Any = None
        self._protocols: dict[tuple[Verb, str | None], Protocol[Any]] = {}
        if plan.universes:
            self._place(universe)

    def _place(self, universe: Universe | None) -> None:
        """Find every block's place in the universe that was planned for."""
        (planned,) = self.plan.universes
        size = None if universe is None else universe.size
        if universe is None or size != planned:
            allowed = f"the plan's universe of {planned:,} elements"
            raise InvalidInput("universe", size, allowed)
        if universe.block_size != self.source.units:
            allowed = f"the source's {self.source.units:,}"
            raise InvalidInput("block_size", universe.block_size, allowed)
        self._places = universe.locate(self.source.values(_itself))

    @property
    def spent(self) -> float:
        """What has been charged or is reserved, rounded up."""
        return self.account.spent

    @property
    def left(self) -> float:
        """What can still be charged, rounded down."""
        return self.account.left

    def buys(self) -> dict[str, Left]:
        """For every part: what the rest of the budget would still buy, spent on it alone."""
        with self._lock:
            return {part.name: self.account.left_of(part) for part in self.plan.parts}

    def ask(
        self,
        estimator: object,
        grid: Grid | None = None,
        *,
        shape: Shape | None = None,
        protocol: str | None = None,
    ) -> Answer:
        """The estimator's value. With a shape that is known to hold, its mean's error bar too.

        A bar needs an estimator that cannot fail on a block, and a fixed number of terms. For a
        plan with a hypothesis the estimator is symmetric, and gets many blocks at once, one in each
        row; or it is an array of its values on every element of the universe.
        """
        return cast(Answer, self._asked("ask", estimator, protocol, grid=grid, shape=shape))

    def interval(self, estimator: object, grid: Grid, *, protocol: str | None = None) -> Answer:
        """An interval that encloses the median of the estimator; `value` is its middle."""
        return cast(Answer, self._asked("interval", estimator, protocol, grid=grid))

    def verify(
        self,
        estimator: object,
        guess: float,
        *,
        claim: Claim | None = None,
        tolerance: float | None = None,
        protocol: str | None = None,
    ) -> Verdict:
        """The verdict on a guess. Exhaustion is a verdict too, free and final."""
        words: dict[str, Any] = {"guess": real_number("guess", guess), "claim": claim or "equals"}
        if tolerance is not None:
            words["tolerance"] = real_number("tolerance", tolerance, 0)
        return cast(Verdict, self._asked("verify", estimator, protocol, **words))

    def correct(
        self,
        estimator: object,
        guess: float,
        grid: Grid,
        *,
        shape: Shape | None = None,
        protocol: str | None = None,
    ) -> Corrected:
        """Confirm the guess, or correct it."""
        words = {"guess": real_number("guess", guess), "grid": grid, "shape": shape}
        return cast(Corrected, self._asked("correct", estimator, protocol, **words))

    def mean(
        self,
        function: object,
        *,
        where: object = None,
        grid: Grid | None = None,
        range: Bounds = UNIT,  # noqa: A002 – what everybody calls it
        cut: bool = True,
        protocol: str | None = None,
    ) -> Answer:
        """The mean of a function of one unit with values in a range, perhaps over some units only.

        What leaves the range is cut, and the promise says so; with `cut=False` it is known that
        nothing can.
        """
        bounds = checked_bounds(range)
        words = {"where": where, "grid": grid, "range": bounds if cut or bounds != UNIT else None}
        return cast(Answer, self._asked("mean", function, protocol, **words))

    def protocol(self, verb: Verb, name: str | None = None) -> Protocol[Any]:
        """Who answers a verb: the first choice, or the part of this name."""
        known = self._protocols.get((verb, name))
        if known is None:
            known = self._protocols[verb, name] = self._chosen(verb, name)
        return known

    def _chosen(self, verb: Verb, name: str | None) -> Protocol[Any]:
        found = protocols_for(verb, [(self.plan, part) for part in self.plan.parts])
        for kind, (_, part) in found:
            if name in (None, part.name):
                sure = self.entropy.certifiable or not kind.random
                units, confidence = self.source.units, self.plan.confidence
                return kind(self.plan, part, units, confidence, certified=sure)
        names = ", ".join(part.name for _, (_, part) in found) or "none in this plan"
        raise InvalidInput("protocol", name, f"the name of a part that can {verb}: {names}")

    def _asked(
        self, verb: Verb, estimator: object, name: str | None, *, where: object = None, **words: Any
    ) -> Result:
        protocol = self.protocol(verb, name)
        checked_shape(words.get("shape"))
        if not protocol.on_grid:
            words["grid"] = None
        elif words.get("grid") is not None or not protocol.optional_grid:
            checked_grid(words.get("grid"))
        about = {"engine": "memory", "text": "a function"}
        about |= {} if where is None else {"where": "a function"}
        question = Question(verb, protocol.part.name, about, **words)
        with self._lock:
            protocol.admit(question)
            held: list[Charge] = []
            drawn = self._drive(protocol, question, estimator, where, held)
            charges: tuple[Charge, ...] = ()
            if drawn is not None:
                charges = protocol.charges(question, drawn)
            elif held:
                charges = protocol.given_back(question)
            for worst, actual in zip(held, charges, strict=True):
                self.account.settle(worst, actual)
            if drawn is not None and "steps" in drawn:
                self.lessons.append(drawn)
            return protocol.answer(question, drawn, paid(self.account, protocol.part, charges))

    def _drive(
        self,
        protocol: Protocol[Any],
        question: Question,
        estimator: object,
        where: object,
        held: list[Charge],
    ) -> Drawn | None:
        steps = protocol.ask(question, self.entropy, self.lessons)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Reserve):
                    try:
                        self.account.hold(step.charge)
                    except Exhausted as refused:
                        step = steps.throw(refused)
                        continue
                    held.append(step.charge)
                    step = steps.send(self.account)
                else:
                    step = steps.send(self._found(step, estimator, where))
        except StopIteration as ended:
            drawn: Drawn | None = ended.value
            return drawn

    def _found(self, step: Step, estimator: object, where: object) -> object:
        source = self.source
        if isinstance(step, Values):
            whole = (step.first, step.last) == (0, None)
            last = source.blocks if step.last is None else step.last
            return (source if whole else source.part(step.first, last)).values(estimator)
        if isinstance(step, Sums):
            return source.sums(None if step.count else estimator, where, step.bounds)
        assert isinstance(step, Places)
        assert self._universe is not None
        values = self._universe.evaluate(estimator) if callable(estimator) else estimator
        indices = step.grid.ceiling(values)
        if indices.shape != (self._universe.size,):
            allowed = f"one for each of {self._universe.size:,} elements"
            raise InvalidInput("values", indices.shape, allowed)
        return indices, self._places


def _itself(block: object) -> object:
    return block


def _checked(entropy: object) -> Entropy:
    if entropy is None:
        return system_entropy()
    if not isinstance(entropy, Entropy):
        hint = "Leave it out: then it is the operating system's."
        raise InvalidInput("entropy", entropy, "an Entropy of holdfast.randomness", hint)
    return entropy
