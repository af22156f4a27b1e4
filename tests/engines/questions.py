"""What the engine contract asks: each question in SQL, in Python, and as a loop over frames."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from holdfast.engines.python.estimator import local_estimator
from holdfast.engines.sql.estimator import sql_estimator, sql_term
from holdfast.store.blocks import BlockStore

__all__ = ["HOSTILE", "IN_ORDER", "PYTHON", "QUESTIONS", "SQL", "TERMS", "Language", "Question"]

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Question:
    """One number for each block."""

    sql: str
    python: Function
    where: str | None = None

    def by_pandas(self, frame: pd.DataFrame) -> float:
        """What it should be."""
        return float(self.python(frame))


QUESTIONS = {
    "mean": Question("avg(x)", lambda f: f.x.mean()),
    "share": Question("count_if(flag) / count(*)", lambda f: f.flag.mean()),
    "median": Question("median(y)", lambda f: f.y.median()),
    "distinct": Question("count(DISTINCT arm)", lambda f: f.arm.nunique()),
    "correlation": Question("corr(w, y)", lambda f: f.w.corr(f.y)),
    "some rows": Question("avg(y)", lambda f: f.y[f.arm == "a"].mean(), "arm = 'a'"),
    "a sum of unlike numbers": Question("sum(y * y * y)", lambda f: (f.y * f.y * f.y).sum()),
}
IN_ORDER: dict[
    str, Callable[[Any], float]
] = {  # they depend on the order of a block's rows, or on the last bits of a sum
    "first row": lambda f: f.w.iloc[0],
    "last row": lambda f: f.w.iloc[-1],
    "running sum": lambda f: float(np.cumsum(f.y.to_numpy() * 1e10)[-1]),
}
TERMS: dict[str, tuple[str | None, Function | None, str | None, Function | None]] = {
    "condition": ("y > 1", lambda f: f.y > 1, None, None),
    "number": ("w", lambda f: f.w, None, None),
    "number beyond its range, or none": ("x * y", lambda f: f.x * f.y, None, None),
    "number of some rows": ("w", lambda f: f.w, "arm <> 'c'", lambda f: f.arm != "c"),
    "count of some rows": (None, None, "x > 0", lambda f: f.x > 0),  # x is NULL in some
}


def _raise(frame: Any) -> Any:
    raise ValueError(f"the data are {frame.x.tolist()}")


def _no_number(frame: Any) -> Any:
    return "a text"


def _end_process(frame: Any) -> Any:
    os._exit(1)


def _kill_process(frame: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _never_end(frame: Any) -> Any:
    time.sleep(1000)


def _take_memory(frame: Any) -> Any:
    return float(len(bytearray(2**34)))


def _kill_dask_worker(frame: Any) -> Any:
    """Where signals are forbidden, this is but an error: see `unscoped`."""
    pid = os.getppid()
    while pid > 1:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"multiprocessing.spawn" in command or b"dask_worker" in command:
            os.kill(pid, signal.SIGKILL)
            time.sleep(20)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0.0


_MANY = "CASE WHEN bad <> 0 THEN {} ELSE 1 END"  # no constant: that would be computed before
# On the blocks where `bad` is not 0; elsewhere each is the mean of x.
HOSTILE: dict[str, dict[str, Any]] = {
    "error": {"sql": "error('the data')", "python": _raise},
    "no number": {"sql": "CAST(1e300 AS BIGINT)", "python": _no_number},
    "end": {
        "sql": f"length(CAST(make_timestamp({_MANY.format(-(2**63))}) AS VARCHAR))",
        "python": _end_process,
    },
    "kill": {"python": _kill_process},
    "time": {
        "sql": f"len(list_filter(range({_MANY.format(900_000_000)}), lambda v: sin(v) > 2))",
        "python": _never_end,
    },
    "memory": {
        "sql": f"length(repeat('a', {_MANY.format(4_000_000_000)}))",
        "python": _take_memory,
    },
    "kill Dask worker": {"python": _kill_dask_worker},
}


class Language(Protocol):
    """How questions are put to an engine."""

    def estimator(self, question: Question, store: BlockStore) -> Any:
        """One number for each block."""

    def term(self, name: str, store: BlockStore) -> tuple[Any, Any]:
        """A term and a condition; either may be None."""

    def hostile(self, name: str, store: BlockStore) -> Any | None:
        """The mean of x, but on bad blocks the worst; None if it has no way to do that."""

    def hostile_term(self, name: str, store: BlockStore) -> Any | None:
        """The term w, but on bad blocks the worst; None if it has no way to do that."""


class _Sql:
    def estimator(self, question: Question, store: BlockStore) -> Any:
        return sql_estimator(question.sql, store.schema, question.where)

    def term(self, name: str, store: BlockStore) -> tuple[Any, Any]:
        text, _, where, _ = TERMS[name]
        condition = None if where is None else sql_term(where, store.schema)
        return None if text is None else sql_term(text, store.schema), condition

    def hostile(self, name: str, store: BlockStore) -> Any | None:
        worst = HOSTILE[name].get("sql")
        if worst is None:
            return None
        sql = f"avg(CASE WHEN bad <> 0 THEN {worst} ELSE x END)"
        return replace(sql_estimator("avg(x)", store.schema), aggregate=sql)

    def hostile_term(self, name: str, store: BlockStore) -> Any | None:
        worst = HOSTILE[name].get("sql")
        if worst is None:
            return None
        sql = f"(CASE WHEN bad <> 0 THEN {worst} ELSE w END)"
        return replace(sql_term("w", store.schema), sql=sql)


class _Python:
    def estimator(self, question: Question, store: BlockStore) -> Any:
        return local_estimator(question.python)

    def term(self, name: str, store: BlockStore) -> tuple[Any, Any]:
        _, function, _, where = TERMS[name]
        condition = None if where is None else local_estimator(where)
        return None if function is None else local_estimator(function), condition

    def hostile(self, name: str, store: BlockStore) -> Any | None:
        worst = HOSTILE[name]["python"]

        def estimator(frame: Any) -> Any:
            return worst(frame) if frame.bad.any() else frame.x.mean()

        return local_estimator(estimator)

    def hostile_term(self, name: str, store: BlockStore) -> Any | None:
        worst = HOSTILE[name]["python"]

        def term(frame: Any) -> Any:
            return worst(frame) if frame.bad.any() else frame.w

        return local_estimator(term)


SQL: Language = _Sql()
PYTHON: Language = _Python()
