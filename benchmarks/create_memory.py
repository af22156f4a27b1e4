"""Peak memory of creating a holdout from a file that is larger than the memory limit.

    python benchmarks/create_memory.py [--limit 250MB] [--times 4] [--folder DIR]

Each line of the table is a process of its own: its largest resident set, and what of it was there
before any data were read. The file is made first: ten columns, numbers, text, dates, booleans.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROW = """SELECT random() AS x0, random() * 1000 AS x1, random() - 0.5 AS x2, random() AS x3,
    (random() * 100)::INTEGER AS i0, (random() * 1e6)::BIGINT AS i1, random() < 0.3 AS b,
    'carrier ' || (random() * 16)::INTEGER AS s, DATE '2020-01-01' + (random() * 700)::INTEGER AS d,
    range // 4 AS id FROM range({rows})"""
BLOCKS = 10_000
BYTES_A_ROW = {"csv": 105, "parquet": 38}


def make(file: Path, size: float) -> None:
    import duckdb

    rows = int(size / BYTES_A_ROW[file.suffix[1:]])
    while not file.exists() or file.stat().st_size < size:
        duckdb.connect().execute(f"COPY ({ROW.format(rows=rows)}) TO '{file}'")
        rows = int(rows * 1.1)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def create(file: Path, unit: str | None, limit: str) -> None:
    import duckdb  # noqa: F401
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    from holdfast.engines.store import open_input, write_store
    from holdfast.randomness import system_entropy

    before, start = peak(), time.perf_counter()
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        where = Path(folder)
        with open_input(file, unit=unit, memory_limit=limit, scratch=where) as rows:
            done = write_store(
                where, rows, blocks=BLOCKS, open_fraction=0.1, entropy=system_entropy()
            )
    print(f"{done.rows} {before:.0f} {peak():.0f} {time.perf_counter() - start:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", default="250MB")
    parser.add_argument("--times", type=float, default=4)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        create(Path(given.one[0]), given.one[1] or None, given.limit)
        return
    size = float(given.limit.upper().removesuffix("MB")) * 1e6 * given.times
    print("| file | units | rows | file, MB | limit | before, MB | peak, MB | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for form in ("csv", "parquet"):
            file = Path(folder) / f"data.{form}"
            make(file, size)
            for unit in ("", "id"):
                options = ["--limit", given.limit, "--one", str(file), unit]
                run = subprocess.run(
                    [sys.executable, __file__, *options], capture_output=True, text=True, check=True
                )
                rows, before, most, seconds = run.stdout.split()
                units = "ids of 4 rows" if unit else "rows"
                megabytes = file.stat().st_size / 1e6
                print(
                    f"| {form} | {units} | {int(rows):,} | {megabytes:,.0f} | {given.limit} "
                    f"| {before} | {most} | {seconds} |",
                    flush=True,
                )
            file.unlink()


if __name__ == "__main__":
    main()
