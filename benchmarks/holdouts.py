"""Tables and holdouts to measure on, made once in a run and removed at its end."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import holdfast as hf
from holdfast.planning.joint import joint_plan
from holdfast.protocols.plans import JointPlan
from holdfast.protocols.searches import Estimates

__all__ = ["COLUMNS", "ROOT", "Sealed", "many_questions", "scratch", "sealed"]

ROOT = Path(__file__).parents[1]
COLUMNS = 10
QUERIES = 1_000
TAIL = 0.05
PIECE = 10**6  # rows written at once


@functools.cache
def scratch() -> Path:
    """A folder on the disk of the project: that of the system may be no disk at all."""
    parent = ROOT / ".scratch"  # not .cache: `make docs` empties that
    parent.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="benchmarks-", dir=parent))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["HOLDFAST_STATE"] = str(folder / "state")
    return folder


@dataclass(frozen=True)
class Sealed:
    """The folder of a holdout, and what making it took."""

    path: Path
    seconds: float
    megabytes: float

    @property
    def file(self) -> Path:
        """The sealed rows: what a bare evaluation reads."""
        return self.path / "blocks.parquet"


@functools.cache
def sealed(rows: int, blocks: int) -> Sealed:
    """Columns x0, x1, … of normal numbers, in so many blocks."""
    folder = scratch()
    data = folder / f"data-{rows}-{blocks}.parquet"
    _write(data, rows, seed=blocks)
    megabytes = data.stat().st_size / 1e6
    plan = joint_plan(Estimates(QUERIES, tail_low=TAIL, tail_high=TAIL), blocks=blocks)
    start = time.perf_counter()
    hf.Holdout.create(folder / f"{rows}-{blocks}", data, plan).close()
    seconds = time.perf_counter() - start
    data.unlink()
    return Sealed(folder / f"{rows}-{blocks}", seconds, megabytes)


@functools.cache
def many_questions(queries: int) -> Sealed:
    """As many blocks as so many questions on grids of two points need, of one row each."""
    plan: JointPlan = joint_plan(Estimates(queries, grid=2))
    folder = scratch()
    data = folder / f"data-{queries}.parquet"
    _write(data, plan.blocks, columns=1)
    start = time.perf_counter()
    hf.Holdout.create(folder / f"{queries}-questions", data, plan).close()
    return Sealed(folder / f"{queries}-questions", time.perf_counter() - start, 0.0)


def _write(path: Path, rows: int, *, columns: int = COLUMNS, seed: int = 1) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(seed)
    schema = pa.schema([(f"x{i}", pa.float64()) for i in range(columns)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, PIECE):
            count = min(PIECE, rows - start)
            values = [generator.normal(size=count) for _ in range(columns)]
            writer.write_table(pa.table(values, schema=schema))
