"""Multiplicative weights: very many medians of rows out of a finite universe.

The hypothesis is about all rows that there can be, and so a question must be known on all of them,
not on the sample alone. A responder cannot find that in a table of arbitrary rows. So its table
has two parts: the first columns are the elements of the universe, which are public, and the others
are the rows. `Labelled` is a world of that form; any analyst whose questions are functions of a row
can ask it. Without a universe, and for means (which need a universe of blocks), it refuses.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Exhausted, Infeasible, InvalidInput
from holdfast.grids import Grid, grid
from holdfast.lab.conversation import FloatArray, Replies, Responder, Terms
from holdfast.lab.protocol_attacks.plans import KeptPlan
from holdfast.lab.responders.holdfast.base import confidence_of, tail_of
from holdfast.lab.responders.holdfast.claims import NOTHING, Told, as_replies, of_answer
from holdfast.lab.responders.holdfast.rows import Rows
from holdfast.mechanisms.hypothesis import Universe
from holdfast.planning.exact import ExactWeights, exact_weights
from holdfast.planning.joint import joint_plan
from holdfast.planning.requests import WeightedEstimates
from holdfast.protocols.budget import Budget
from holdfast.protocols.weights import ExactWeighing, Weights

__all__ = ["HoldfastExactWeights", "HoldfastWeights", "Labelled"]

_TAIL = 0.05


class Labelled:
    """Rows that are numbers of elements of a universe: its elements first, then the rows."""

    def __init__(self, labels: NDArray[np.int64], universe: int) -> None:
        self.labels, self.universe = labels, universe
        self.holdout = np.concatenate([np.arange(universe), labels])

    @property
    def rows(self) -> int:
        """How many rows there are, without the universe's elements."""
        return int(self.labels.size)


class _Placed(Rows):
    """The rows as a source whose only question is which element a row is."""

    def __init__(self, labels: NDArray[np.int64]) -> None:
        super().__init__(labels.size)
        self._labels = labels

    def values(self, _: object, /) -> NDArray[Any]:
        return self._labels


class _WeightsResponder(Responder):
    """Answers from a hypothesis about the universe, as long as the rows confirm it."""

    certified: ClassVar[bool] = True

    def __init__(self, terms: Terms, world: Labelled | None = None) -> None:
        if world is None:
            hint = f"Rows out of a finite universe: {type(self).__name__}(terms, Labelled(…))."
            raise InvalidInput("universe", None, f"known for {self.name}", hint)
        self._universe = world.universe
        self.protocol = self._open(terms, world)

    @abstractmethod
    def _open(self, terms: Terms, world: Labelled) -> Weights | ExactWeighing:
        """The protocol on a plan that fits the rows."""

    def means(self, values: NDArray[Any], guesses: FloatArray | None) -> Replies:  # noqa: ARG002
        hint = "Ask for medians, or ask another responder."
        raise InvalidInput("question", "means", f"medians for {self.name}", hint)

    def medians(self, values: NDArray[Any], points: int) -> Replies:
        scale = grid(0, points - 1, scale="integer")
        return as_replies([self._told(line[: self._universe], scale) for line in values])

    def _told(self, elements: NDArray[Any], scale: Grid) -> Told:
        try:
            answer = self.protocol.ask_indices(elements.astype(np.int64), scale)
        except Exhausted:
            return NOTHING
        return of_answer(answer, mean=False)


class HoldfastWeights(_WeightsResponder):
    """The hypothesis is checked by looks."""

    name: ClassVar[str] = "holdfast-weights"

    def _open(self, terms: Terms, world: Labelled) -> Weights:
        plan = _looked(terms.queries, world.universe, _tail(terms), terms.failure, world.rows)
        universe = Universe.points(np.arange(world.universe))
        return Weights(Budget(plan), _Placed(world.labels), universe, terms.entropy)


class HoldfastExactWeights(_WeightsResponder):
    """The hypothesis is checked by exact counts. Rows beyond the plan's are not used."""

    name: ClassVar[str] = "holdfast-exact-weights"

    def _open(self, terms: Terms, world: Labelled) -> ExactWeighing:
        plan = _counted(terms.queries, world.universe, _tail(terms), terms.failure)
        if plan.blocks > world.rows:
            remedy = "Ask fewer questions, accept a wider claim, or bring more rows."
            given = f"there are {world.rows:,}"
            raise Infeasible("Not enough rows", f"{plan.blocks:,} rows", given, remedy)
        universe = Universe.points(np.arange(world.universe))
        return ExactWeighing(plan, _Placed(world.labels[: plan.blocks]), universe)


def _tail(terms: Terms) -> float:
    return _TAIL if terms.half_width is None else tail_of(terms.half_width)


@lru_cache(maxsize=16)
def _looked(queries: int, universe: int, tail: float, failure: float, rows: int) -> KeptPlan:
    request = WeightedEstimates(queries, universe, tail)
    return KeptPlan.of(joint_plan(request, confidence=confidence_of(failure), blocks=rows))


@lru_cache(maxsize=16)
def _counted(queries: int, universe: int, tail: float, failure: float) -> ExactWeights:
    return exact_weights(queries, universe, tail, confidence_of(failure))
