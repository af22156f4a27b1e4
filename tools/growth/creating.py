"""Creation at one size: seconds of each stage, memory, and bytes on the way."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.engines.source import open_store
from holdfast.holdout.holdout import Holdout
from holdfast.planning.joint import joint_plan
from holdfast.protocols.searches import Estimates
from tools.cluster import Cluster

__all__ = ["COLUMNS", "STUDY", "created", "peaks"]

COLUMNS = 3
STUDY = "study.holdfast"
_BLOCKS = 4_262  # 1,000 questions on 32 points, each answer between the quartiles
_FILE_ROWS, _GROUP_ROWS = 10**7, 10**6
_PAUSE = 0.5  # seconds between two looks at the disk


def created(rows: int, cluster: Cluster, folder: Path) -> dict[str, Any]:
    """Write the data, create a holdout of them on the cluster, and tell what that took."""
    data = folder / "data"
    data.mkdir()
    _write(data, rows)
    plan = joint_plan(Estimates(1_000), blocks=_BLOCKS)
    begun: dict[str, float] = {}

    def progress(stage: str, _: float) -> None:
        begun.setdefault(stage, time.perf_counter())

    with _watched(folder, cluster) as most:
        start = time.perf_counter()
        path, files = folder / STUDY, str(data / "*.parquet")
        with Holdout.create(path, files, plan, engine=cluster.url, progress=progress) as made:
            end = time.perf_counter()
            contents = open_store(path, made.spec.manifest).manifest
    moments = [start, *sorted(begun.values()), end]
    stages = ["opening", *sorted(begun, key=begun.__getitem__)]
    seconds = {s: b - a for s, (a, b) in zip(stages, itertools.pairwise(moments), strict=True)}
    return {
        "rows": rows,
        "blocks": contents.blocks,
        "shards": len(contents.shards),
        "leftover_units": contents.leftover_units,
        "creation": seconds,
        "creation_seconds": end - start,
        "data_bytes": _size(data),
        "sealed_bytes": sum(file.bytes for file in contents.files),
        **most,
    }


def peaks(cluster: Cluster) -> dict[str, int]:
    """The most bytes that each process has had in memory."""
    assert cluster.scheduler is not None
    workers = {f"worker {i + 1}": cluster.pid(i) for i in range(len(cluster.workers))}
    pids = {"driver": os.getpid(), "scheduler": cluster.scheduler.pid, **workers}
    return {name: _peak(pid) for name, pid in pids.items()}


def _write(folder: Path, rows: int) -> None:
    """Two columns of normal numbers and one of integers, in files of 10⁷ rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(1)
    schema = pa.schema([("x", pa.float64()), ("y", pa.float64()), ("k", pa.int64())])
    for number, first in enumerate(range(0, rows, _FILE_ROWS)):
        with pq.ParquetWriter(folder / f"{number:04d}.parquet", schema) as writer:
            last = min(rows, first + _FILE_ROWS)
            for start in range(first, last, _GROUP_ROWS):
                count = min(_GROUP_ROWS, last - start)
                numbers = [generator.normal(size=count), generator.normal(size=count)]
                columns = [*numbers, generator.integers(0, 10, count)]
                writer.write_table(pa.table(columns, schema=schema), _GROUP_ROWS)


@contextmanager
def _watched(folder: Path, cluster: Cluster) -> Iterator[dict[str, int]]:
    """The most bytes that were staged, and that Dask kept on disk on their way, at one time."""
    most, over = {"staged_bytes": 0, "spilled_bytes": 0}, threading.Event()

    def watch() -> None:
        while not over.wait(_PAUSE):
            staged = sum(_size(each) for each in folder.glob(".*.creating-*/staging"))
            spilled = sum(_size(each) for each in cluster.folder.glob("worker-*/"))
            most["staged_bytes"] = max(most["staged_bytes"], staged)
            most["spilled_bytes"] = max(most["spilled_bytes"], spilled)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()


def _size(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(root) / name).lstat().st_size
            except OSError:  # it is gone
                continue
    return total


def _peak(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
