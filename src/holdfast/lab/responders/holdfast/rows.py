"""The rows as a source of blocks: a question is the line of its values, one for each row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidInput
from holdfast.protocols.source import UNIT, WEIGHT_SCALE, Bounds

__all__ = ["Rows"]


class Rows:
    """The rows as a source of blocks. A question is its line of values, one for each row.

    A block's value is the mean over its rows: with one row a block, the row's own value.

    >>> source = Rows(blocks=2, units=2)
    >>> line = np.array([0.0, 1.0, 1.0, 1.0, 0.5])
    >>> source.values(line), source.part(1, 2).sums(line)
    (array([0.5, 1. ]), array([131072]))
    """

    def __init__(self, blocks: int, units: int = 1, first: int = 0) -> None:
        self.blocks, self.units, self._first = blocks, units, first

    def values(self, line: NDArray[Any], /) -> NDArray[Any]:
        table = self._table(line)
        if self.units == 1:
            return table[:, 0]
        return np.asarray(table.mean(axis=1, dtype=np.float64))

    def sums(
        self, line: NDArray[Any], /, where: object = None, bounds: Bounds = UNIT
    ) -> NDArray[np.int64]:
        assert bounds == UNIT
        if where is not None:
            raise InvalidInput("where", where, "left out: a line has a value for every row")
        table = self._table(line)
        if table.dtype == np.bool_:
            parts = table.astype(np.int64) * WEIGHT_SCALE
        else:
            parts = np.floor(table * float(WEIGHT_SCALE) + 0.5).astype(np.int64)
        return parts[:, 0] if self.units == 1 else np.asarray(parts.sum(axis=1))

    def part(self, start: int, stop: int, /) -> Rows:
        return Rows(stop - start, self.units, self._first + start * self.units)

    def _table(self, line: NDArray[Any]) -> NDArray[Any]:
        end = self._first + self.blocks * self.units
        return line[self._first : end].reshape(self.blocks, self.units)
