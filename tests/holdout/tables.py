"""Tables to seal, each with a fingerprint of its own, and sources that need no engine."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from holdfast.engines.source import Engines, Limits
from holdfast.errors import InvalidInput
from holdfast.holdout.holdout import Holdout
from holdfast.store.blocks import BlockStore

ONE_WORKER = Limits(workers=1)
_numbers = itertools.count(1)


def table(rows: int, *, seed: int | None = None) -> pd.DataFrame:
    """`c` is 5 everywhere, `x` normal about 5, `y` 0 or 1, `g` one of three letters."""
    chosen = next(_numbers) if seed is None else seed
    generator = np.random.default_rng(chosen)
    return pd.DataFrame(
        {
            "c": np.full(rows, 5.0),
            "x": generator.normal(5.0, 1.0, rows),
            "y": (generator.random(rows) < 0.25).astype(np.int64),
            "g": generator.choice(["a", "b", "c"], rows),
            "number": np.arange(rows) + 10**6 * chosen,  # no two tables are alike
        }
    )


def sealed(path: Path, plan: Any, *, units: int = 1, **more: Any) -> Holdout:
    """A holdout of a new table with just enough rows for blocks of so many units."""
    plans = plan if isinstance(plan, list) else [plan]
    blocks = sum(each.blocks * _subblocks(each) for each in plans)
    return Holdout.create(path, table(blocks * units), plan, **{"limits": ONE_WORKER, **more})


def _subblocks(plan: Any) -> int:
    return max((getattr(part, "subblocks", 1) for part in getattr(plan, "parts", ())), default=1)


@contextmanager
def refusing(
    holdout: Any, said: str = "", error: type[Exception] = InvalidInput
) -> Iterator[pytest.ExceptionInfo[Any]]:
    """What is asked inside is refused with these words, and nothing is written or charged."""
    before = holdout.receipt
    with pytest.raises(error, match=said or None) as caught:
        yield caught
    assert holdout.receipt == before


def holds(answer: Any, truth: float) -> bool:
    """Whether the bar of an answer holds the truth."""
    return bool(answer.low <= truth <= answer.high)


class Still:
    """Blocks with the values 0 … blocks − 1 over blocks, whatever is asked of them."""

    def __init__(self, blocks: int, values: Callable[[int], NDArray[np.float64]] | None = None):
        self._blocks, self._values = blocks, values or _spread
        self.evaluations = 0

    @property
    def blocks(self) -> int:
        return self._blocks

    @property
    def units(self) -> int:
        return 1

    def values(self, estimator: Any, /) -> NDArray[np.float64]:
        self.evaluations += 1
        return self._values(self._blocks)

    def sums(self, function: Any, /, where: Any = None, bounds: Any = None) -> NDArray[np.int64]:
        self.evaluations += 1
        return np.full(self._blocks, 2**15, np.int64)

    def terms(self, function: Any, /, where: Any = None, bounds: Any = None) -> NDArray[np.int64]:
        return self.sums(function, where, bounds)


def _spread(blocks: int) -> NDArray[np.float64]:
    return np.arange(blocks) / blocks


class Broken(Still):
    """Blocks whose evaluation is interrupted."""

    def __init__(self, blocks: int, error: BaseException) -> None:
        super().__init__(blocks)
        self._error = error

    def values(self, estimator: Any, /) -> NDArray[np.float64]:
        raise self._error

    def sums(self, function: Any, /, where: Any = None, bounds: Any = None) -> NDArray[np.int64]:
        raise self._error


@contextmanager
def sources(make: Callable[[int], Still] = Still) -> Iterator[None]:
    """No engine is started: every set of blocks is what `make` makes of their number."""
    with blocks_from(lambda start, stop: make(stop - start)):
        yield


@contextmanager
def blocks_from(make: Callable[[int, int], Still]) -> Iterator[None]:
    """The sealed blocks from one to another are what `make` makes; the open ones are their own."""
    known = Engines.values, Engines.sums

    def values(engines: Engines, estimator: Any, start: int, stop: int, *rest: Any) -> Any:
        if type(engines.store) is not BlockStore:
            return known[0](engines, estimator, start, stop, *rest)
        return make(start, stop).values(estimator)

    def sums(engines: Engines, term: Any, where: Any, start: int, stop: int, *rest: Any) -> Any:
        if type(engines.store) is not BlockStore:
            return known[1](engines, term, where, start, stop, *rest)
        return make(start, stop).sums(term, where, *rest[:1])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engines, "values", values)
        patch.setattr(Engines, "sums", sums)
        yield


def broken(error: BaseException) -> Callable[[int], Still]:
    """Sources whose evaluation raises."""
    return lambda blocks: Broken(blocks, error)
