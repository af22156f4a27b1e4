"""Small stores for the tests of the local engine."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from holdfast.randomness import SeededEntropy
from holdfast.store.blocks import BlockStore
from holdfast.store.inputs import open_input
from holdfast.store.sealing import write_store

__all__ = ["BLOCKS", "UNITS", "grouped_rows", "make_store", "mixed_rows", "processes"]

BLOCKS, UNITS = 6, 30  # of the stores that conftest.py makes


def make_store(
    folder: Path, data: Any, blocks: int, *, unit: str | None = None, open_fraction: float = 0.0
) -> BlockStore:
    folder.mkdir(parents=True, exist_ok=True)
    with open_input(data, unit=unit) as opened:
        manifest = write_store(
            folder, opened, blocks=blocks, open_fraction=open_fraction, entropy=SeededEntropy(1)
        )
    return BlockStore(folder, manifest)


def mixed_rows(rows: int, seed: int = 1) -> pd.DataFrame:
    """Every kind of column, with NULLs in each."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=rows),
            "y": rng.lognormal(size=rows),
            "count": pd.array(rng.integers(0, 9, rows), dtype="Int64"),
            "flag": pd.array(rng.random(rows) < 0.5, dtype="boolean"),
            "arm": rng.choice(["a", "b", "c"], rows),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 99, rows), "D"),
        }
    )
    for place, name in enumerate(frame.columns):
        frame.loc[rng.random(rows) < 0.02 * (place + 1), name] = None
    return frame


def grouped_rows(units: int, seed: int = 1) -> pd.DataFrame:
    """Units of one to three rows."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(units), rng.integers(1, 4, units))
    return pd.DataFrame({"who": who, "x": rng.normal(size=len(who))})


def processes(mark: str) -> list[int]:
    """The living processes but this one that have a mark in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark.encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
    return found
