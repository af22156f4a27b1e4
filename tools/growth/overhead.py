"""What a shard costs beside its rows: the same few rows in few shards and in many."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from holdfast.engines.source import open_engines
from holdfast.engines.sql.estimator import sql_estimator
from holdfast.randomness import SeededEntropy
from holdfast.store.blocks import BlockStore
from holdfast.store.inputs import open_input
from holdfast.store.sealing import write_store
from tools.shards import sharded

__all__ = ["overhead"]

_BLOCKS, _ROWS = 256, 25_600
_FEW, _MANY = 2, 128
_REPEATS = 7


def overhead(folder: Path, engine: str, workers: int) -> dict[str, Any]:
    """Seconds of a worker for a shard, beside its rows."""
    x = np.random.default_rng(1).normal(size=_ROWS)
    with open_input(pd.DataFrame({"x": x})) as data:
        manifest = write_store(folder, data, blocks=_BLOCKS, entropy=SeededEntropy(1))
    whole = BlockStore(folder, manifest)
    few, many = (_seconds(whole, folder, engine, count) for count in (_FEW, _MANY))
    return {
        "rows": _ROWS,
        "task": (many - few) / ((_MANY - _FEW) / workers),
        "seconds": {str(_FEW): few, str(_MANY): many},
    }


def _seconds(whole: BlockStore, folder: Path, engine: str, count: int) -> float:
    """The median time of a question to so many shards."""
    cuts = [i * _BLOCKS // count for i in range(1, count)]
    store = sharded(whole, folder / str(count), cuts)
    engines = open_engines(store, None, engine)
    estimator = sql_estimator("avg(x)", store.schema)
    try:
        took = []
        for _ in range(1 + _REPEATS):
            start = time.perf_counter()
            engines.values(estimator, 0, _BLOCKS)
            took.append(time.perf_counter() - start)
    finally:
        engines.close()
    return statistics.median(took[1:])  # in the first, processes start
