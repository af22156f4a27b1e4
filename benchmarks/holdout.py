"""What a holdout costs beside the bare evaluation, at 10⁷ rows in 10⁴ blocks, in one run.

    make bench-holdout                       everything; writes benchmarks/HOLDOUT.md
    python benchmarks/holdout.py --rows 1e6 --blocks 3500    smaller; prints only

All candidates take turns, warm unless it says cold: a ratio is worth more than a time.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tables import milliseconds, table
from timing import Timing, in_turns

import holdfast as hf
from holdfast.planning import Estimates, joint_plan

HERE = Path(__file__).parent
COLUMNS = 10
REPEATS = 15
TARGET = 1.3
NUMBERS = itertools.count()
GRID = hf.grid(-4, 4, step=0.25)
Rows = list[list[str]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10**7)
    parser.add_argument("--blocks", type=int, default=10**4)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        os.environ["HOLDFAST_STATE"] = str(Path(folder) / "state")
        page = "\n".join(sections(Path(folder), arguments.rows, arguments.blocks))
    if arguments.write:
        memory = [sys.executable, str(HERE / "create_memory.py")]
        measured = subprocess.run(memory, capture_output=True, text=True, check=True).stdout
        page += f"\n## Memory of `create`\n\n{measured}"
        (HERE / "HOLDOUT.md").write_text(page, "utf-8")
    print(page)


def sections(folder: Path, rows: int, blocks: int) -> Iterator[str]:
    data = folder / "data.parquet"
    write_data(data, rows)
    plan = joint_plan(Estimates(4000, grid=32, tail_low=0.25, tail_high=0.25), blocks=blocks)
    start = time.perf_counter()
    holdout = hf.Holdout.create(folder / "h", str(data), plan)
    seconds = time.perf_counter() - start
    with holdout:
        measured = [*sql_rows(holdout), *python_rows(holdout, blocks)]
    cores, date = os.cpu_count(), datetime.datetime.now(datetime.UTC).date()
    yield "# A question to a holdout, beside its bare evaluation\n"
    yield (
        f"{date}, {cores} cores, Python {platform.python_version()}, duckdb {duckdb.__version__}, "
        f"numpy {np.__version__}. Load average at the end: {os.getloadavg()[0]:.2f}.\n"
    )
    yield (
        f"{rows:,} rows in {blocks:,} blocks, {COLUMNS} columns, {data.stat().st_size / 1e6:,.0f} "
        f"MB of Parquet; created in {seconds:.0f} s. Medians of {REPEATS} turns, best in brackets. "
        "A question includes both commits to the ledger and its coins.\n"
    )
    head = ["question", "asked", "bare evaluation", "ratio", "of best", "target", "met"]
    yield table(head, measured)


def sql_rows(holdout: hf.Holdout) -> Rows:
    """`ask("avg(x)")` beside the bare GROUP BY on the same file."""
    path = str(holdout.path / "blocks.parquet")
    query = f"SELECT __block, avg(x0 + {{}}) FROM read_parquet('{path}') GROUP BY __block"
    connection = duckdb.connect()

    def bare() -> None:
        connection.execute(query.format(next(NUMBERS))).fetchnumpy()

    def asked() -> None:
        holdout.ask(f"avg(x0 + {next(NUMBERS)})", grid=GRID)

    start = time.perf_counter()
    asked()
    cold = time.perf_counter() - start
    start = time.perf_counter()
    bare()
    bare_cold = time.perf_counter() - start
    timings = in_turns({"asked": asked, "bare": bare}, REPEATS)
    cells = [milliseconds(cold), milliseconds(bare_cold), f"{cold / bare_cold:.3g}", "", "", ""]
    return [
        row("SQL, `avg(x)`", timings, TARGET),
        ["SQL, the first question, engine started cold", *cells],
    ]


def python_rows(holdout: hf.Holdout, blocks: int) -> Iterator[list[str]]:
    """A vectorised callable beside the same function on arrays in memory."""
    found = holdout._clerk.store.table(columns=["x0", "x1"])
    arrays = {name: found.column(name).to_numpy().reshape(blocks, -1) for name in ("x0", "x1")}
    functions: dict[str, Callable[[dict[str, Any]], Any]] = {
        "median": median,
        "correlation": correlation,
        "mean": mean,
    }
    for name, function in functions.items():

        def asked(function: Any = function) -> None:
            points = hf.grid(-4 - next(NUMBERS), 4, step=0.25)  # another question each time
            holdout.ask(function, grid=points, columns=["x0", "x1"], vectorised=True)

        def bare(function: Any = function) -> None:
            function(arrays)

        timings = in_turns({"asked": asked, "bare": bare}, REPEATS)
        target = None if name == "mean" else TARGET
        yield row(f"Python, vectorised, {name}", timings, target)

    def new() -> None:
        shift = next(NUMBERS)
        holdout.ask(
            lambda block: median(block) + shift, grid=GRID, columns=["x0", "x1"], vectorised=True
        )

    timings = in_turns({"asked": new, "bare": lambda: median(arrays)}, REPEATS)
    yield row("Python, vectorised, median, a new function: admitted first", timings, None)


def median(block: dict[str, Any]) -> Any:
    return np.median(block["x0"], axis=1)


def mean(block: dict[str, Any]) -> Any:
    return block["x0"].mean(axis=1)


def correlation(block: dict[str, Any]) -> Any:
    x, y = (block[name] - block[name].mean(axis=1, keepdims=True) for name in ("x0", "x1"))
    return (x * y).sum(axis=1) / np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))


def row(label: str, timings: dict[str, Timing], target: float | None) -> list[str]:
    asked, bare = timings["asked"], timings["bare"]
    ratio, best = asked.median / bare.median, asked.best / bare.best
    met = "" if target is None else ("yes" if ratio <= target else "no")
    return [
        label,
        f"{milliseconds(asked.median)} ({milliseconds(asked.best)})",
        f"{milliseconds(bare.median)} ({milliseconds(bare.best)})",
        f"{ratio:.3g}",
        f"{best:.3g}",
        "" if target is None else f"≤ {target}",
        met,
    ]


def write_data(path: Path, rows: int) -> None:
    generator = np.random.default_rng(1)
    schema = pa.schema([(f"x{i}", pa.float64()) for i in range(COLUMNS)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 10**6):
            count = min(10**6, rows - start)
            columns = [generator.normal(size=count) for _ in range(COLUMNS)]
            writer.write_table(pa.table(columns, schema=schema))


if __name__ == "__main__":
    main()
