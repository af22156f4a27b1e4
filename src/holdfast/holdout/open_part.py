"""The open part as questions see it: values on blocks of the sealed size, and what texts there are.

Anybody may see it, so nothing here costs anything or tells of the sealed rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast import concurrency
from holdfast.engines.source import Engines, EngineSource, Limits, open_blocks
from holdfast.engines.sql.estimator import SqlEstimator, SqlTerm
from holdfast.protocols.source import Bounds
from holdfast.store.blocks import BlockStore

__all__ = ["OpenPart"]

_MOST_BLOCKS = 1_000  # more would say the same, and cost time
_MOST_TEXTS = 10_000  # different ones: a column of more has no categories
_REMEMBERED = 512

K = TypeVar("K")
V = TypeVar("V")
Texts = tuple[int, tuple[str, ...]]


class OpenPart:
    """The open part of one holdout; there may be none, or less than a block of it."""

    def __init__(self, store: BlockStore, limits: Limits) -> None:
        self._store, self._limits = store, limits
        self._blocks = open_blocks(store)
        self._engines: Engines | None = None
        self._lock = threading.Lock()  # never held while anything is evaluated
        self._values: dict[SqlEstimator, NDArray[np.float64]] = {}
        self._counts: dict[SqlTerm, NDArray[np.int64]] = {}
        self._texts: dict[str, Texts | None] = {}

    def close(self) -> None:
        """End the workers."""
        if self._engines is not None:
            self._engines.close()

    def values(self, estimator: Any, most: int = _MOST_BLOCKS) -> NDArray[np.float64] | None:
        """An estimator's value on each open block, NaN where it has none; None without a block.

        Of SQL on as many as there are; of anything else on so many at most, for it takes time.
        """
        source = self._source() if isinstance(estimator, SqlEstimator) else self._source(most)
        if source is None or not isinstance(estimator, SqlEstimator):
            return None if source is None else source.values(estimator)
        return _remembered(self._values, estimator, lambda: source.values(estimator))

    def kept(self, where: SqlTerm) -> NDArray[np.int64] | None:
        """How much of each open block a condition keeps, 0 where nothing; None without a block."""
        source = self._source()
        if source is None:
            return None
        return _remembered(self._counts, where, lambda: source.sums(None, where))

    def texts(self, column: str) -> Texts | None:
        """The number of open rows, and the texts of a column in them; None if there are too many.

        Also None without an open part. Missing values are left out.
        """
        if self._store.open_path is None:
            return None
        read = partial(self._store.open_texts, column, _MOST_TEXTS)
        return _remembered(self._texts, column, lambda: concurrency.elsewhere(read, now=True))

    def means(self, term: SqlTerm, where: Any, bounds: Bounds) -> NDArray[np.float64] | None:
        """The mean of a term, cut to its bounds, on each open block; NaN where nothing is kept."""
        source = self._source()
        if source is None:
            return None
        sums, kept = source.sums(term, where, bounds), source.sums(None, where)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(bounds[0] + (bounds[1] - bounds[0]) * (sums / kept))

    def share(self, condition: SqlTerm) -> float | None:
        """The share of what is on open blocks of which a condition is true; None without one."""
        source = self._source()
        if source is None:
            return None
        return float(source.sums(condition).sum() / source.sums(None).sum())

    def _source(self, most: int = _MOST_BLOCKS) -> EngineSource | None:
        if self._blocks is None:
            return None
        with self._lock:
            if self._engines is None:
                self._engines = Engines(self._blocks, self._limits)
        return EngineSource(self._engines, 0, min(self._blocks.blocks, most))


def _remembered(known: dict[K, V], key: K, find: Callable[[], V]) -> V:
    if key in known:
        return known[key]
    found = find()
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = found
    return found
