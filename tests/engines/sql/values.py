"""Values to compare with: bit for bit, or those of a loop over data frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.store.blocks import BlockStore

__all__ = ["by_pandas", "same"]


def same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Bit for bit, but that every NaN is as good as every other."""
    fixed = [np.where(np.isnan(each), np.nan, each) for each in (one, other)]
    return fixed[0].tobytes() == fixed[1].tobytes()


def by_pandas(store: BlockStore, function: Callable[[pd.DataFrame], object]) -> NDArray[np.float64]:
    """The same by a loop over data frames."""
    tables = [store.table(k, k + 1).to_pandas() for k in range(store.blocks)]
    return np.array([function(table) for table in tables], np.float64)
