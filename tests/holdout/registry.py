"""A registry in small: what people of one make slips about, with an open part or without."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from holdfast.holdout.holdout import Holdout
from tests.holdout import plans

BLOCKS, UNITS = 400, 10
ROWS = BLOCKS * UNITS

_numbers = itertools.count(1)


def registry(rows: int, *, seed: int | None = None) -> pd.DataFrame:
    """Half are men; race is "rare" for one of thirty; nobody is younger than 18 or above 102."""
    chosen = next(_numbers) if seed is None else seed
    rng = np.random.default_rng(chosen)
    return pd.DataFrame(
        {
            "age": np.clip(rng.normal(62, 15, rows), 18, 102),
            "days": np.minimum(rng.exponential(340, rows), 2029),
            "died": (rng.random(rows) < 0.68).astype(np.int64),
            "sex": rng.choice(["female", "male"], rows),
            "race": rng.choice(["black", "rare", "white"], rows, p=[0.2, 1 / 30, 0.8 - 1 / 30]),
            "number": np.arange(rows) + 10**6 * chosen,
        }
    )


def made(
    path: Path, *, open_part: bool = True, plan: Any = None, times: int = 1, **more: Any
) -> Holdout:
    """A holdout of 400 blocks of ten people, or of so many times ten, and as many open ones."""
    rows, share = (2 * ROWS, 0.5) if open_part else (ROWS, 0.0)
    data = registry(rows * times)
    return Holdout.create(path, data, plan or plans.mixed(), open_fraction=share, **more)
