"""Measure what every function of SQL takes a row, on the rows that are worst for it.

    python -m tools.costs [--rows 200000]

Prints nanoseconds a row in one thread of DuckDB, the slowest first, beside the weight that
`holdfast.engines.sql.costs` has. Exit status 1 if one takes more than twice its weight, which is
the margin: run it when DuckDB changes, or the table of functions, on a machine that does nothing
else.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from holdfast.engines.sql import costs
from holdfast.engines.sql.language import AGGREGATES, FUNCTIONS, Function
from holdfast.engines.sql.worker import _IDLE, _REWRITERS, _SETTINGS

_COLUMNS = {
    "number": ("x", "y"),
    "boolean": ("b", "c"),
    "text": ("t", "u"),
    "date": ("d", "e"),
    "timestamp": ("m", "n"),
}
_CONSTANTS = {"digits": "3e0", "fraction": "0.5e0", "pattern": "'zzqq'", "part": "'day'"}
_OF = {
    "same": ("number", "text", "timestamp", "boolean"),
    "any": ("number", "text"),
    "ordered": ("number", "text", "timestamp"),
    "measured": ("number", "timestamp"),
    "moment": ("date", "timestamp"),
}
_SEEN = {"boolean": "count(CASE WHEN {} THEN 1 END)", "text": "max(length({}))"}


def numbers(rows: int) -> Iterator[tuple[Any, Any]]:
    """Pairs of columns, each of which is the worst for some function."""
    random = np.random.default_rng(1)
    u, v = random.random(rows), random.random(rows)
    yield 100 * u, 100 * v
    yield 1e308 * (0.1 + 0.9 * u), 1e308 * v
    yield 1e-310 * u, 1e-310 * v
    yield 1e308 * (0.1 + 0.9 * u), 1e-300 * (0.5 + v)
    yield 1e6 * (u - 0.5), 1 + 1e-3 * v
    yield -50 * u, 30 * v


def table(x: Any, y: Any) -> pd.DataFrame:
    """A hundred rows a block, of all kinds."""
    random, rows = np.random.default_rng(2), len(x)
    letters = random.integers(97, 123, (2_000, 64), dtype=np.uint8)
    texts = np.array([bytes(each).decode() for each in letters], dtype=object)
    moments = [pd.to_datetime(random.integers(-(10**9), 10**9, rows), unit="s") for _ in range(2)]
    columns = {"x": x, "y": y, "b": x > np.median(x), "c": random.random(rows) > 0.5}
    columns |= {name: texts[random.integers(0, 2_000, rows)] for name in "tu"}
    columns |= dict(zip("mn", moments, strict=True))
    return pd.DataFrame({"__block": np.arange(rows) // 100, **columns})


def connected(data: pd.DataFrame) -> Any:
    """DuckDB as the engine has it, with these rows."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    for name, value in _SETTINGS.items():
        connection.execute(f"SET {name} = '{value}'")
    connection.execute(f"SET disabled_optimizers = '{','.join((*_REWRITERS, *_IDLE))}'")
    connection.register("given", data)
    dates = "CAST(m AS DATE) AS d, CAST(n AS DATE) AS e"
    connection.execute(f"CREATE TABLE rows AS SELECT *, {dates} FROM given")
    return connection


def calls(takes: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Arguments of every kind that fit, and that kind."""
    takes = [*takes[:-1], takes[-2]] if takes and takes[-1] == "…" else [*takes]
    open_kinds = [_OF[each] for each in takes if each in _OF]
    for kind in open_kinds[0] if open_kinds else ("number",):
        names = [kind if each in _OF else each for each in takes]
        columns = [_CONSTANTS.get(each) or _COLUMNS[each][k % 2] for k, each in enumerate(names)]
        yield kind, columns


def written(function: Function, arguments: list[str]) -> str:
    """A call as SQL."""
    if function.name == "case":
        return "(CASE WHEN b THEN x WHEN c THEN y ELSE 0e0 END)"
    joined = {"and": " AND ".join(arguments), "or": " OR ".join(arguments)}
    rest = {"all": ", ".join(arguments), "rest": ", ".join(arguments[1:])}
    return function.sql.format(*arguments, **joined, **rest)


def measure(rows: int) -> dict[str, float]:
    """Nanoseconds a row by name; aggregates have brackets."""
    found: dict[str, float] = {}
    for x, y in numbers(rows):
        connection = connected(table(x, y))

        def seconds(value: str, connection: Any = connection) -> float:
            times, sql = [], f"SELECT min(__block), {value} FROM rows GROUP BY __block"
            for _ in range(3):
                start = time.perf_counter()
                connection.execute(sql).fetchnumpy()
                times.append(time.perf_counter() - start)
            return min(times)

        base = seconds("count(*)")
        for name, functions in FUNCTIONS.items():
            for function in functions:
                for kind, arguments in calls(function.takes):
                    gives = kind if function.gives == "same" else function.gives
                    value = _SEEN.get(gives, "max({})").format(written(function, arguments))
                    took = 1e9 * (seconds(value) - base) / rows
                    found[name] = max(found.get(name, 0.0), took)
        for name, aggregates in AGGREGATES.items():
            for aggregate in aggregates:
                for _, arguments in calls(aggregate.takes):
                    value = aggregate.sql.format(*arguments, all=", ".join(arguments), f="")
                    took = 1e9 * (seconds(value) - base) / rows
                    found[f"{name}()"] = max(found.get(f"{name}()", 0.0), took)
    return found


def weight(name: str) -> float:
    """What the server reckons with."""
    if name.endswith("()"):
        return costs.AGGREGATE_WEIGHTS.get(name[:-2], costs.AGGREGATE)
    return costs.WEIGHTS.get(name, costs.USUAL)


def main(words: list[str]) -> int:
    """Measure, tell, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.costs", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    found = measure(parser.parse_args(words).rows)
    for name, took in sorted(found.items(), key=lambda pair: -pair[1]):
        print(f"{name:24}{took:10.1f}{weight(name):10.0f}")
    return 1 if any(took > 2 * weight(name) for name, took in found.items()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
