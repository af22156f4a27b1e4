"""Simple generalization (thm `gen-simp`, `adaptive-simple-general`): few blocks, tiny tails.

An estimator that is well concentrated on a block has a narrow qi(ρ, 1 − ρ) even for a tiny ρ, and
for a tiny ρ an interior point of the sample is enough: a few dozen blocks.

Simple      the search of an estimate, planned for such a tail
Amplified   two steps for any estimator: the exact median of ℓ sub-blocks is well concentrated
            (lem `amp-med`), and the stable median of the blocks does the rest
"""

from __future__ import annotations

import numpy as np

from holdfast.grids import Grid
from holdfast.protocols.asking import block_indices
from holdfast.protocols.estimate import Estimate, Projected

__all__ = ["Amplified", "Simple"]


class Simple(Estimate):
    """Questions about well-concentrated estimators."""

    protocol = "simple"

    @property
    def outside(self) -> float:
        """A bound on the chance that any answer is no interior point of the blocks' values.

        An answer outside takes a look that errs by the whole distance from 0 (or m) to the target.
        """
        blocks, twice = self.budget.plan.blocks, self.part.twice_target
        distance = np.array([min(twice, 2 * blocks - twice)])
        error = self.part.coin(self.budget.plan.order).error(distance)
        return min(1.0, float(error[0]) * self.part.looks)


class Amplified(Estimate):
    """Questions about the estimator on a sub-block; the source's blocks are the sub-blocks.

    ℓ sub-blocks that follow each other make one block, and its value is their exact median.
    """

    protocol = "amplified"

    def _blocks(self) -> int:
        return self.budget.plan.blocks * self.part.subblocks

    def _projected(self, estimator: object, grid: Grid) -> Projected:
        each = block_indices(self.source, estimator, grid)
        groups = each.reshape(self.budget.plan.blocks, self.part.subblocks)
        middle = self.part.subblocks // 2
        return np.asarray(np.partition(groups, middle, axis=1)[:, middle])

    def _tails(self) -> tuple[float, float]:
        return self.part.subblock_tail, self.part.subblock_tail
