"""Questions at one size: on this machine and on a cluster in turn, from the same shards."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from holdfast.engines.source import Engines, open_engines, open_store
from holdfast.engines.sql.estimator import SqlEstimator, sql_estimator
from holdfast.grids import grid
from holdfast.holdout.holdout import Holdout

__all__ = ["QUESTIONS", "asked", "scanned_bytes"]

QUESTIONS = ("avg(x)", "sum(x * y) / count(*)", "stddev_samp(y)", "count_if(k > 5) / count(*)")
_REPEATS = 5


def asked(path: Path, engine: str) -> dict[str, Any]:
    """Seconds of every question on either side, and what it reads; then one through a holdout."""
    with Holdout.open(path) as holdout:
        manifest = holdout.spec.manifest
    store = open_store(path, manifest)
    here, there = open_engines(store, None), open_engines(store, None, engine)
    try:
        rows = [_compared(here, there, sql_estimator(each, store.schema)) for each in QUESTIONS]
    finally:
        here.close()
        there.close()
    files = [store.place(shard) for shard in store.shards]
    for row in rows:
        row["scanned_bytes"] = scanned_bytes(files, row.pop("columns"))
    return {"questions": rows, "holdout": _through_a_holdout(path, engine)}


def _compared(here: Engines, there: Engines, estimator: SqlEstimator) -> dict[str, Any]:
    blocks = here.store.blocks
    one, many = (each.values(estimator, 0, blocks) for each in (here, there))
    seconds: dict[str, list[float]] = {"here": [], "there": []}
    for _ in range(_REPEATS):
        seconds["here"].append(_seconds(lambda: here.values(estimator, 0, blocks)))
        seconds["there"].append(_seconds(lambda: there.values(estimator, 0, blocks)))
    return {
        "question": estimator.text,
        "columns": list(estimator.columns),
        "same_bits": one.tobytes() == many.tobytes(),
        **{name: statistics.median(each) for name, each in seconds.items()},
    }


def _seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def scanned_bytes(files: list[Path], columns: list[str]) -> int:
    """The bytes of these columns, and of the numbers of blocks, in Parquet files."""
    total = 0
    for file in files:
        meta = pq.ParquetFile(file).metadata
        for group in (meta.row_group(i) for i in range(meta.num_row_groups)):
            chunks = (group.column(i) for i in range(group.num_columns))
            wanted = {"__block", *columns}
            total += sum(c.total_compressed_size for c in chunks if c.path_in_schema in wanted)
    return total


def _through_a_holdout(path: Path, engine: str) -> dict[str, Any]:
    with Holdout.open(path, engine=engine) as holdout:
        before = holdout.journal.ledger.head().number
        start = time.perf_counter()
        answer = holdout.ask("avg(x * x)", grid=grid(0.0, 2.0, step=0.1))
        seconds = time.perf_counter() - start
        rows = holdout.journal.ledger.head().number - before
    return {"seconds": seconds, "value": answer.value, "ledger_rows": rows}
