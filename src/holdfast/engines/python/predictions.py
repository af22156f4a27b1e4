"""Scores of predictions by Holdfast's own metrics: in this process, many blocks at once.

Nothing of a user's runs here: a metric is NumPy's arithmetic on two columns, the target and the
number of each row, and on predictions that were checked before. So nothing is pickled, confined or
timed. The values are those that the same estimator has in `LocalEngine`: a block that cannot be
evaluated has failed, and no other with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.python.estimator import (
    LocalEstimator,
    block_values,
    checked_estimator,
    even_sums,
    failed_sum,
    row_terms,
    stored_columns,
)
from holdfast.engines.python.worker import column_array, too_large, unreadable
from holdfast.protocols.source import UNIT, Bounds

__all__ = ["PredictionEngine"]

Progress = Callable[[int, int], None]
Arrays = dict[str, NDArray[Any]]
Evaluated = Callable[[Arrays, int], NDArray[np.float64] | None]

_MOST_ROWS = 2**22  # that are read at once


class PredictionEngine:
    """Evaluates scores of predictions, where they are `own`, on the blocks of a store."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def check(self, estimator: LocalEstimator) -> LocalEstimator:
        """The same, if it fits the store."""
        return checked_estimator(estimator, self._store)

    def values(
        self,
        estimator: LocalEstimator,
        start: int,
        stop: int,
        *,
        progress: Progress | None = None,
    ) -> NDArray[np.float64]:
        """The score of each of the blocks start, …, stop − 1; a failure is NaN, or its own."""
        assert estimator.batched is not None
        score = estimator.batched
        found = self._all(
            estimator, start, stop, lambda each, blocks: block_values(score(each), blocks), progress
        )
        return np.where(np.isnan(found), estimator.failure, found)

    def sums(
        self,
        function: LocalEstimator,
        where: None,
        start: int,
        stop: int,
        *,
        bounds: Bounds = UNIT,
        progress: Progress | None = None,
    ) -> NDArray[np.int64]:
        """The sum of the terms of each block, in parts of 2⁻¹⁶: see `LocalEngine.sums`."""
        assert function.batched is not None
        assert where is None
        terms, units = function.batched, self._store.units
        found = self._all(
            function,
            start,
            stop,
            lambda each, blocks: even_sums(row_terms(terms(each), blocks * units, bounds), blocks),
            progress,
        )
        return np.where(np.isnan(found), failed_sum(function, units), found).astype(np.int64)

    def _all(
        self,
        estimator: LocalEstimator,
        start: int,
        stop: int,
        evaluated: Evaluated,
        progress: Progress | None,
    ) -> NDArray[np.float64]:
        columns = stored_columns(self.check(estimator), self._store.schema)
        for shard in self._store.overlapping(start, stop):
            self._store.check_there(shard)
        found = np.full(stop - start, np.nan)
        for first, last in self._ranges(start, stop):
            arrays = self._read(columns, first, last)
            for part, rows in self._rectangles(arrays, first, last):
                found[first - start + part.start : first - start + part.stop] = _values(
                    evaluated, rows, part.stop - part.start
                )
            if progress is not None:
                progress(last - start, stop - start)
        return found

    def _ranges(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Blocks that are read at once."""
        rows = self._store.manifest.block_rows / self._store.blocks
        size = max(1, int(_MOST_ROWS / rows))
        return ((first, min(stop, first + size)) for first in range(start, stop, size))

    def _read(self, columns: tuple[str, ...], start: int, stop: int) -> Arrays:
        data = [name for name in columns if not name.startswith("__")]
        try:
            table = self._store.table(start, stop, data, hidden=True)
            return {name: column_array(table.column(name)) for name in columns}
        except MemoryError:
            raise too_large("there is not enough of it") from None
        except Exception:
            raise unreadable() from None

    def _rectangles(self, arrays: Arrays, start: int, stop: int) -> Iterator[tuple[slice, Arrays]]:
        """Blocks as (blocks, rows) arrays: all together, or each alone where they differ."""
        if self._store.manifest.one_row_units:
            blocks = stop - start
            yield slice(0, blocks), {name: a.reshape(blocks, -1) for name, a in arrays.items()}
            return
        cuts = self._store.cuts(start, stop).tolist()
        for block, (low, high) in enumerate(pairwise(cuts)):
            rows = {name: array[np.newaxis, low:high] for name, array in arrays.items()}
            yield slice(block, block + 1), rows


def _values(evaluated: Evaluated, arrays: Arrays, blocks: int) -> NDArray[np.float64]:
    """One number for each block. What raises is a failure of the block that it is raised for."""
    try:
        with np.errstate(all="ignore"):  # a warning too may depend on the data
            found = evaluated(arrays, blocks)
    except MemoryError:
        raise too_large("there is not enough of it") from None
    except Exception:
        found = None
    if found is not None or blocks == 1:
        return np.full(1, np.nan) if found is None else found
    alone = ({name: array[k : k + 1] for name, array in arrays.items()} for k in range(blocks))
    return np.concatenate([_values(evaluated, each, 1) for each in alone])
