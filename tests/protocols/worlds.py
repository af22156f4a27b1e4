"""What the tests of protocols share: sources, holdouts in memory, and a question to every protocol.

Where no more is said, coins never err (`TRUTH`), and a plan has proved itself already or need not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.grids import Grid, grid
from holdfast.mechanisms.hypothesis import Universe
from holdfast.planning.joint import joint_plan
from holdfast.protocols import registry
from holdfast.protocols.base import Protocol, Question, Verb
from holdfast.protocols.memory import MemoryHoldout
from holdfast.protocols.plans import JointPlan, SetPlan
from holdfast.protocols.registry import PROTOCOLS, protocols_for
from holdfast.protocols.source import BlockArray, Source
from holdfast.protocols.weights import WeightedEstimates
from holdfast.randomness import Entropy
from tests.holdout import plans
from tests.holdout.plans import BLOCKS, mixed_plan
from tests.mechanisms.laws import LARGEST_WORD, Constant

Rows = NDArray[Any]
TRUTH = Constant(LARGEST_WORD)  # no coin errs


def value(rows: Rows) -> float:
    return float(rows[0])


def points(size: int) -> Grid:
    return grid(0, 1, points=size) if size > 1 else grid([0.5])


@cache
def source(blocks: int = BLOCKS) -> BlockArray:
    """Values spread over [0, 1], one for each block."""
    return BlockArray((np.arange(blocks) * 7 % blocks + 0.5) / blocks, blocks)


class Listed(BlockArray):
    """A value for every block, known before it is asked: quick."""

    def __init__(self, values: list[float] | Rows) -> None:
        super().__init__(np.asarray(values), len(values))

    def values(self, estimator: Any, /) -> list[object]:
        return list(self._rows.tolist())


class Short(BlockArray):
    """It says that it has more blocks than it gives values for."""

    def values(self, estimator: Any, /) -> list[object]:
        return super().values(estimator)[:-1]

    def part(self, start: int, stop: int, /) -> BlockArray:
        part = super().part(start, stop)
        return Short(part._rows, part.blocks)


def fresh(
    plan: SetPlan | None = None,
    data: Source | list[float] | Rows | None = None,
    entropy: Entropy | None = TRUTH,
    **more: Any,
) -> MemoryHoldout:
    """A holdout in memory; its plan is not proved again."""
    plan = plan or mixed_plan()
    if data is None:
        data = source(plan.blocks * plan.subblocks)
    found = Listed(data) if isinstance(data, list | np.ndarray) else data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JointPlan, "verify", lambda plan: True)
        return MemoryHoldout(plan, found, entropy, **more)


@cache
def alone(name: str) -> JointPlan:
    """One part of the mixed plan, with a budget of its own."""
    part = mixed_plan().part(name)
    plan = replace(mixed_plan(), budget=part.planned(12.0) * (1 + 1e-12), parts=(part,))
    assert plan.verify()
    return plan


def account(holdout: MemoryHoldout) -> tuple[Fraction, dict[str, tuple[int, int]]]:
    """What is spent, exactly, and the looks and refusals of every part."""
    kept = holdout.account
    return kept.charged, {name: (u.looks, u.refusals) for name, u in kept.uses.items()}


@contextmanager
def using(*kinds: type[Protocol[Any]]) -> Iterator[None]:
    """Answer by these in place of the real ones that they were made from."""
    made = {next(real for real in kind.__mro__ if real in PROTOCOLS): kind for kind in kinds}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "PROTOCOLS", [made.get(each, each) for each in PROTOCOLS])
        yield


# A question to every protocol.


@dataclass(frozen=True)
class Case:
    """A plan, a verb, and the words of a question."""

    plan: Callable[[], SetPlan]
    verb: Verb
    words: dict[str, Any] = field(default_factory=dict)
    name: str | None = None
    estimator: Callable[[Rows], object] = value
    universe: Universe | None = None

    def holdout(self, entropy: Entropy | None = TRUTH, data: Source | None = None) -> MemoryHoldout:
        plan = self.plan()
        if data is None and self.universe is not None:
            rows = np.where(np.arange(plan.blocks) % 9 == 0, 1.0, 4.0)  # a surprise
            data = BlockArray(rows, plan.blocks)
        return fresh(plan, data, entropy, universe=self.universe)

    def ask(self, holdout: MemoryHoldout, **other: Any) -> Any:
        words = {"estimator": self.estimator, "protocol": self.name, **self.words, **other}
        return getattr(holdout, self.verb)(words.pop("estimator"), **words)

    def protocol(self, *, units: int = 1) -> Protocol[Any]:
        """The one that answers."""
        plan = self.plan()
        found = protocols_for(self.verb, [(plan, part) for part in plan.parts])
        kind, (_, part) = next(each for each in found if self.name in (None, each[1][1].name))
        return kind(plan, part, units, plan.confidence, certified=True)

    def question(self, **other: Any) -> Question:
        part = self.protocol().part.name
        return Question(self.verb, part, {"engine": "memory", "text": "a"}, **self.words, **other)


@cache
def weights_plan() -> JointPlan:
    return joint_plan(WeightedEstimates(60, universe=5, tail=0.1), confidence=0.8)


EIGHT, FIVE = {"grid": points(8)}, Universe.points(np.arange(5.0))
GUESS = {"guess": 0.5}


def columns(blocks: Rows) -> Rows:
    """Of many blocks at once, one in each row."""
    return np.asarray(blocks[:, 0])


CASES: dict[str, Case] = {
    "estimate": Case(plans.estimates, "ask", EIGHT),
    "simple": Case(plans.simple, "ask", EIGHT),
    "amplified": Case(plans.amplified, "ask", EIGHT),
    "interval": Case(mixed_plan, "interval", EIGHT),
    "near": Case(plans.estimates, "verify", {**GUESS, "tolerance": 0.1}),
    "median mean": Case(plans.medians, "mean", estimator=lambda rows: rows),
    "mean by estimates": Case(plans.estimates, "mean", EIGHT, estimator=lambda rows: rows),
    "direct mean": Case(plans.direct, "mean", estimator=lambda rows: rows),
    "verify": Case(mixed_plan, "verify", GUESS),
    "gate": Case(plans.gates, "verify", {**GUESS, "claim": "at least"}),
    "correct": Case(mixed_plan, "correct", {**GUESS, **EIGHT}),
    "weights": Case(weights_plan, "ask", {"grid": grid(0, 4, step=1)}, None, columns, FIVE),
    "rounds": Case(plans.rounds, "ask"),
    "split": Case(plans.split, "ask"),
}
every = pytest.mark.parametrize("name", CASES)


# Estimators that fail.


class Hostile:
    """It raises whatever is done with it."""

    def __float__(self) -> float:
        raise RuntimeError

    def __array__(self, *_: object) -> Rows:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


FAILURES: dict[str, Callable[[Rows], object]] = {
    "raises": lambda rows: rows[10**9],
    "divides by zero": lambda rows: 1 / 0,
    "runs out of memory": lambda rows: np.empty(2**60),
    "stops": lambda rows: next(iter(())),
    "nothing": lambda rows: None,
    "NaN": lambda rows: math.nan,
    "text": lambda rows: "0.5",
    "bytes": lambda rows: b"1",
    "a list": lambda rows: [1.0],
    "an array": lambda rows: np.ones(3),
    "an empty array": lambda rows: np.empty(0),
    "a table": lambda rows: np.ones((2, 2)),
    "a complex number": lambda rows: 1j,
    "a dictionary": lambda rows: {"value": 1},
    "a type": lambda rows: float,
    "a hostile object": lambda rows: Hostile(),
    "a decimal NaN": lambda rows: Decimal("nan"),
    "a masked value": lambda rows: np.ma.masked,
}
failures = pytest.mark.parametrize("kind", FAILURES)
