"""A question to a holdout beside its bare evaluation: DuckDB's GROUP BY, NumPy on arrays in memory.

A question is everything that `ask` does: parsing or admission, the evaluation in a locked process,
coins, both commits to the ledger. All candidates are warm unless it says cold.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import holdfast as hf
from benchmarks.comparing import compared
from benchmarks.holdouts import COLUMNS, Sealed, sealed
from benchmarks.tables import both, ratio, table
from benchmarks.timing import Results, in_turns, recorded, seconds_of

__all__ = ["comparisons", "measure", "section"]

ROWS = 10**7
TARGET = 1.3  # at ROWS
ASKED, BARE = "asked", "bare"
SQL, PYTHON = "SQL, `avg(x)`", "Python, vectorised"
GRID = hf.grid(-4, 4, step=0.25)
NUMBERS = itertools.count()

Columns = dict[str, Any]
Job = Callable[[], object]


def measure(quick: bool) -> Results:
    rows, blocks = (10**5, 10**3) if quick else (ROWS, 10**4)
    middle = rows // 10
    first = _headline(rows, blocks, repeats=3 if quick else 15)  # it starts an engine cold
    repeats = 3 if quick else 7
    sizes = {
        "rows": [(n, blocks) for n in (rows // 100, middle, rows) if n >= blocks],
        "blocks": [(middle, m) for m in (blocks // 10, blocks * 10) if 700 <= m <= middle],
    }
    return {
        "headline": first,
        **{name: [_beside(*size, repeats) for size in each] for name, each in sizes.items()},
        "points": _by_points(middle, blocks, repeats),
    }


def comparisons(results: Results) -> list[Results]:
    first = results["headline"]
    size = f"{first['rows']:,} rows"
    at_most = TARGET if first["rows"] == ROWS else None
    rows = []
    for name, times in first["times"].items():
        if times["targeted"]:
            beside = "bare DuckDB" if name == SQL else "NumPy in memory"
            what = f"{name}, {size}"
            rows.append(compared(what, times[ASKED], beside, times[BARE], at_most=at_most))
    return rows


def section(results: Results) -> str:
    first = results["headline"]
    by_points = [
        [f"{row['points']:,}", str(row["looks"]), both(row["times"][ASKED])]
        for row in results["points"]
    ]
    size = f"{results['points'][0]['rows']:,} rows in {results['points'][0]['blocks']:,} blocks"
    return (
        "## A question to a holdout, beside its bare evaluation\n\n"
        f"{first['rows']:,} rows in {first['blocks']:,} blocks, {COLUMNS} columns, "
        f"{first['megabytes']:,.0f} MB of Parquet; created in {first['seconds']:.0f} s. A question "
        "includes both commits to the ledger and its coins. Bare: DuckDB's own GROUP BY over the "
        "same file, NumPy on arrays in memory.\n\n"
        + _asked_table(["question"], [[[name], t] for name, t in first["times"].items()])
        + "\n## Growth of a question with rows n and blocks m\n\n"
        + _grown(results["rows"] + results["blocks"])
        + f"\n## Growth of a question with the grid r, SQL, {size}\n\n"
        + table(["points", "looks", "asked"], by_points)
    )


def _grown(rows: list[Results]) -> str:
    lines = [
        [[f"{row['rows']:,}", f"{row['blocks']:,}", name], times]
        for row in rows
        for name, times in row["times"].items()
    ]
    return _asked_table(["rows", "blocks", "question"], lines)


def _asked_table(head: list[str], lines: list[list[Any]]) -> str:
    rows = [
        [
            *labels,
            both(times[ASKED]),
            both(times[BARE]),
            ratio(times[ASKED]["median"] / times[BARE]["median"]),
            ratio(times[ASKED]["best"] / times[BARE]["best"]),
        ]
        for labels, times in lines
    ]
    return table([*head, "asked", "bare", "ratio", "of best"], rows)


def _headline(rows: int, blocks: int, repeats: int) -> Results:
    made = sealed(rows, blocks)
    times: Results = {}
    with hf.Holdout.open(made.path) as holdout:
        jobs = _sql(holdout, made)
        cold = {name: _once(seconds_of(job)) for name, job in jobs.items()}
        times[SQL] = _in_turns(jobs, repeats, targeted=True)
        times["SQL, the first question, engine started cold"] = {**cold, "targeted": False}
        arrays = _arrays(holdout, blocks)
        for function in (median, correlation, mean):
            name = f"{PYTHON}, {function.__name__}"
            jobs = _python(holdout, function, arrays)
            times[name] = _in_turns(jobs, repeats, targeted=function is not mean)
        name = f"{PYTHON}, median, a new function: admitted first"
        times[name] = _in_turns(_new_function(holdout, arrays), repeats, targeted=False)
    size = {"rows": rows, "blocks": blocks}
    return {**size, "seconds": made.seconds, "megabytes": made.megabytes, "times": times}


def _beside(rows: int, blocks: int, repeats: int) -> Results:
    made = sealed(rows, blocks)
    with hf.Holdout.open(made.path) as holdout:
        arrays = _arrays(holdout, blocks)
        times = {
            SQL: _in_turns(_sql(holdout, made), repeats),
            f"{PYTHON}, median": _in_turns(_python(holdout, median, arrays), repeats),
        }
    return {"rows": rows, "blocks": blocks, "times": times}


def _by_points(rows: int, blocks: int, repeats: int) -> list[Results]:
    found = []
    with hf.Holdout.open(sealed(rows, blocks).path) as holdout:
        for points in (2, 32, 1_000, 10**6):
            grid = hf.grid(-4, 4, points=points)
            jobs = {ASKED: _asked_sql(holdout, grid)}
            times = recorded(in_turns(jobs, repeats))
            size = {"rows": rows, "blocks": blocks, "points": points, "looks": grid.looks}
            found.append({**size, "times": times})
    return found


def _in_turns(jobs: dict[str, Job], repeats: int, **more: bool) -> Results:
    return {**recorded(in_turns(jobs, repeats)), **more}


def _once(seconds: float) -> Results:
    return {"median": seconds, "best": seconds, "repeats": 1}


def _asked_sql(holdout: hf.Holdout, grid: hf.Grid) -> Job:
    return lambda: holdout.ask(f"avg(x0 + {next(NUMBERS)})", grid=grid)


def _sql(holdout: hf.Holdout, made: Sealed) -> dict[str, Job]:
    import duckdb

    connection = duckdb.connect()
    query = f"SELECT __block, avg(x0 + {{}}) FROM read_parquet('{made.file}') GROUP BY __block"

    def bare() -> None:
        connection.execute(query.format(next(NUMBERS))).fetchnumpy()

    return {ASKED: _asked_sql(holdout, GRID), BARE: bare}


def _python(
    holdout: hf.Holdout, function: Callable[[Columns], Any], arrays: Columns
) -> dict[str, Job]:
    def asked() -> None:
        points = hf.grid(-4 - next(NUMBERS), 4, step=0.25)  # another question each time
        holdout.ask(function, grid=points, columns=["x0", "x1"], vectorised=True)

    return {ASKED: asked, BARE: lambda: function(arrays)}


def _new_function(holdout: hf.Holdout, arrays: Columns) -> dict[str, Job]:
    def asked() -> None:
        shift = next(NUMBERS)
        holdout.ask(
            lambda block: median(block) + shift, grid=GRID, columns=["x0", "x1"], vectorised=True
        )

    return {ASKED: asked, BARE: lambda: median(arrays)}


def _arrays(holdout: hf.Holdout, blocks: int) -> Columns:
    found = holdout._open.store.table(columns=["x0", "x1"])
    return {name: found.column(name).to_numpy().reshape(blocks, -1) for name in ("x0", "x1")}


def median(block: Columns) -> Any:
    return np.median(block["x0"], axis=1)


def mean(block: Columns) -> Any:
    return block["x0"].mean(axis=1)


def correlation(block: Columns) -> Any:
    x, y = (block[name] - block[name].mean(axis=1, keepdims=True) for name in ("x0", "x1"))
    return (x * y).sum(axis=1) / np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
