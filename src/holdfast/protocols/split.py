"""Fresh splitting: every question gets blocks that no question has seen, and answers exactly.

No coin and no grid: the blocks are independent of the question, so a rank of their values is as
good as for a question fixed in advance (docs/explanation/theory/splitting.md). It is the cheapest
protocol for a few dozen questions; the planner says when.
"""

from __future__ import annotations

import threading

import numpy as np

from holdfast.errors import Exhausted, InvalidInput
from holdfast.planning.shapes import Shape
from holdfast.planning.splits import SplitPlan
from holdfast.protocols.answers import Answer, middle_promise
from holdfast.protocols.base import BAR_MAX, Tallied, block_floats, checked_shape, shown
from holdfast.protocols.source import Source

__all__ = ["Split"]


class Split(Tallied):
    """Questions answered from fresh blocks. Prices and what is left are counted in blocks.

    Blocks are fresh once: one such object, and nothing else, for one source.

    >>> from holdfast.planning.splits import split_plan
    >>> from holdfast.protocols.source import BlockArray
    >>> plan = split_plan(queries=3)
    >>> rows = np.random.default_rng(1).normal(0.4, 0.2, size=plan.blocks * 100)
    >>> split = Split(plan, BlockArray(rows, plan.blocks))
    >>> round(split.ask(np.mean).value, 3), split.questions_left
    (0.396, 2)
    """

    protocol = "split"
    counts = ("asked",)

    def __init__(self, plan: SplitPlan, source: Source) -> None:
        if not plan.verify():
            raise InvalidInput("plan", plan.blocks_per_question, "a plan that certifies itself")
        if source.blocks != plan.blocks:
            raise InvalidInput("blocks", source.blocks, f"the plan's {plan.blocks:,}")
        self.plan, self.source = plan, source
        self._asked = 0
        self._lock = threading.Lock()

    @property
    def questions_left(self) -> int:
        """How many questions still have blocks of their own."""
        return self.plan.queries - self._asked

    def ask(self, estimator: object, *, shape: Shape | None = None) -> Answer:
        """The value of the planned rank on the next fresh blocks; −∞ if that block failed."""
        checked_shape(shape)
        plan, each = self.plan, self.plan.blocks_per_question
        with self._lock:
            if self._asked == plan.queries:
                remedy = "Blocks are fresh once; a plan with looks can ask more of them."
                raise Exhausted("The budget for split", f"{each:,} fresh blocks", "none", remedy)
            first = self._asked * each
            self._asked += 1  # charged before anything is evaluated
            self._charged()
        values = block_floats(self.source.part(first, first + each), estimator)
        value = shown(float(np.partition(values, plan.rank - 1)[plan.rank - 1]))
        low, high = None, None
        if shape is not None and abs(value) < BAR_MAX:
            low, high = shape.bar((value, value), self.source.units, plan.tail_low, plan.tail_high)
        return Answer(
            protocol=self.protocol,
            value=value,
            low=low,
            high=high,
            tail_low=plan.tail_low,
            tail_high=plan.tail_high,
            confidence=plan.confidence,
            promise=middle_promise(
                plan.tail_low,
                plan.tail_high,
                self.source.units,
                value,
                has_bar=low is not None or high is not None,
            ),
            price=float(each),
            budget_left=float(self.questions_left * each),
            at_grid_end=False,
            certified=True,
            block_units=self.source.units,
            method="split",
        )
