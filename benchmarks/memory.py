"""Peak memory, each job in a fresh process beside a floor: the same by bare DuckDB or NumPy."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from benchmarks.comparing import compared
from benchmarks.holdouts import Sealed, scratch, sealed
from benchmarks.starts import PLAN
from benchmarks.tables import table
from benchmarks.timing import Results
from benchmarks.watching import Peak, peak_memory

__all__ = ["comparisons", "measure", "section"]

NUMBERS = itertools.count()

SQL = """
import holdfast as hf
holdout = hf.Holdout.open({path!r})
holdout.ask("avg(x0 + {number})", grid=hf.grid(-4, 4, step=0.25))
"""
BARE_SQL = """
import duckdb
query = "SELECT __block, avg(x0 + {number}) FROM read_parquet({file!r}) GROUP BY __block"
found = duckdb.connect().execute(query).fetchnumpy()
"""
PYTHON = """
import numpy as np
import holdfast as hf
holdout = hf.Holdout.open({path!r})
def estimator(block):
    return np.median(block["x0"], axis=1) + {number}
grid = hf.grid(-4, 4, step=0.25)
holdout.ask(estimator, grid=grid, columns=["x0"], vectorised=True)
"""
BARE_PYTHON = """
import numpy as np
import pyarrow.parquet as pq
values = pq.read_table({file!r}, columns=["x0"]).column("x0").to_numpy()
found = np.median(values.reshape({blocks}, -1), axis=1) + {number}
"""

# A file larger than the memory it may use: numbers, text, dates, booleans.
ROW = """SELECT random() AS x0, random() * 1000 AS x1, random() - 0.5 AS x2, random() AS x3,
    (random() * 100)::INTEGER AS i0, (random() * 1e6)::BIGINT AS i1, random() < 0.3 AS b,
    'carrier ' || (random() * 16)::INTEGER AS s, DATE '2020-01-01' + (random() * 700)::INTEGER AS d,
    range // 4 AS id FROM range({rows})"""
BYTES_A_ROW = {"csv": 121, "parquet": 41}
BLOCKS = 10_000
TIMES = 4.2
CREATE = """
import holdfast as hf
from holdfast.planning import Estimates, joint_plan
plan = joint_plan(Estimates(1_000, tail_low=0.05, tail_high=0.05), blocks={blocks})
options = dict(unit={unit}, open_fraction=0.1, memory_limit="{limit}MB")
hf.Holdout.create({path!r}, {file!r}, plan, new_budget="benchmark", **options)
"""
BARE_CREATE = """
import duckdb
connection = duckdb.connect(config=dict(memory_limit="{limit}MB", temp_directory={path!r}))
connection.execute("COPY (SELECT * FROM {file!r} ORDER BY random()) TO '{path}.parquet'")
"""


def measure(quick: bool) -> Results:
    repeats = 1 if quick else 3
    sizes = [(10**5, 1_000)] if quick else [(10**6, 10**4), (10**7, 10**4)]
    return {
        "starts": _starts(quick, repeats),
        "questions": [row for size in sizes for row in _questions(*size, repeats)],
        "create": _creations(quick),
    }


def comparisons(results: Results) -> list[Results]:
    floor = results["starts"][0]
    rows = [(row, floor) for row in results["starts"][1:]]
    asked = results["questions"][-4:]  # the largest holdout
    rows += [(asked[0], asked[1]), (asked[2], asked[3])]
    rows += _beside_bare(results["create"]["rows"])
    return [
        compared(f"memory: {one['job']}", one["together"], two["job"], two["together"], unit="MB")
        for one, two in rows
    ]


def section(results: Results) -> str:
    head = ["fresh process", "all processes, MB", "largest process, MB", "seconds"]
    made = results["create"]
    return (
        "## Peak memory\n\n"
        "All processes that a job starts together, pages that they share counted once; and the "
        "largest of them alone.\n\n"
        + table(head, [_line(row) for row in results["starts"] + results["questions"]])
        + f"\n## Peak memory of creation, memory limit {made['limit']} MB, {BLOCKS:,} blocks\n\n"
        "Bare: DuckDB sorts the rows of the same file and writes them as Parquet, under the same "
        "limit. The limit is DuckDB's: libraries and the rows on their way come on top. Seconds "
        "include the start of the process and, for ours, that of the plan.\n\n"
        + table(
            ["", "rows", "file, MB", *head[1:]],
            [
                [row["job"], f"{row['rows']:,}", f"{row['file']:,.0f}", *_line(row)[1:]]
                for row in made["rows"]
            ],
        )
    )


def _line(row: Results) -> list[str]:
    sizes = [f"{row[name]['median']:,.0f}" for name in ("together", "largest")]
    return [row["job"], *sizes, f"{row['seconds']['median']:.3g}"]


def _measured(job: str, run: Callable[[], Peak], repeats: int) -> Results:
    """Medians and least of some runs."""
    peaks = [asdict(run()) for _ in range(repeats)]
    columns = {name: sorted(each[name] for each in peaks) for name in peaks[0]}
    least = {
        name: {"median": values[len(values) // 2], "best": values[0], "repeats": repeats}
        for name, values in columns.items()
    }
    return {"job": job, **least}


def _starts(quick: bool, repeats: int) -> list[Results]:
    codes = {code: code for code in ("import numpy", "import holdfast")}
    for queries in (1_000,) if quick else (1_000, 1_000_000):
        codes[f"plan for {queries:,} questions"] = PLAN.format(queries=queries)
    return [_measured(job, partial(peak_memory, code), repeats) for job, code in codes.items()]


def _questions(rows: int, blocks: int, repeats: int) -> list[Results]:
    made = sealed(rows, blocks)
    jobs = {
        "a question in SQL": SQL,
        "bare DuckDB": BARE_SQL,
        "a question in Python": PYTHON,
        "bare NumPy and pyarrow": BARE_PYTHON,
    }
    return [
        _measured(f"{job}, {rows:,} rows", partial(_asked, code, made, blocks), repeats)
        for job, code in jobs.items()
    ]


def _asked(code: str, made: Sealed, blocks: int) -> Peak:
    places = {"path": str(made.path), "file": str(made.file), "blocks": blocks}
    return peak_memory(code.format(number=next(NUMBERS), **places))


def _creations(quick: bool) -> Results:
    limit = 250
    size = (25 if quick else limit * TIMES) * 1e6
    rows = []
    for form, each in BYTES_A_ROW.items():
        file, count = scratch() / f"large.{form}", int(size / each)
        _make(file, count)
        facts = {"rows": count, "file": file.stat().st_size / 1e6}
        options = {"file": str(file), "blocks": BLOCKS, "limit": limit}
        jobs = {
            f"create, {form}, by rows": CREATE.replace("{unit}", "None"),
            f"create, {form}, by ids of 4 rows": CREATE.replace("{unit}", "'id'"),
            f"bare DuckDB, {form}": BARE_CREATE,
        }
        rows += [
            {**_measured(job, partial(_created, code, options), 1), **facts}
            for job, code in jobs.items()
        ]
        file.unlink()
    return {"limit": limit, "rows": rows}


def _beside_bare(rows: list[Results]) -> list[tuple[Results, Results]]:
    """Creations, each beside bare DuckDB on the same file; the last of each file is bare."""
    pairs = []
    for place in range(0, len(rows), 3):
        *made, bare = rows[place : place + 3]
        pairs += [(each, bare) for each in made]
    return pairs


def _make(file: Path, rows: int) -> None:
    import duckdb

    duckdb.connect().execute(f"COPY ({ROW.format(rows=rows)}) TO '{file}'")


def _created(code: str, options: Results) -> Peak:
    """Run it in a new folder, and remove what it made: a gigabyte."""
    folder = scratch() / f"created-{next(NUMBERS)}"
    folder.mkdir()
    try:
        return peak_memory(code.format(path=str(folder / "made"), **options))
    finally:
        shutil.rmtree(folder)
