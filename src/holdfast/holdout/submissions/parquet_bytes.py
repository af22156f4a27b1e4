"""Predictions in Parquet. A small file can say that it is huge: another process opens it."""

from __future__ import annotations

from holdfast.engines.process import Worker, WorkerDied, WorkerTimeout
from holdfast.holdout.submissions.pairs import PREDICTION, Pairs, check_columns, refused
from holdfast.holdout.submissions.parquet_worker import Asked

__all__ = ["read_parquet"]

_MEMORY = 2**30  # bytes, above what an idle process takes
_SECONDS = 60.0
_WORKER = "holdfast.holdout.submissions.parquet_worker"
# Arrow's own pools reserve a gigabyte of addresses before they begin.
_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system"}


def read_parquet(content: bytes, column: str, rows: int) -> Pairs:
    """The pairs of a Parquet file."""
    import pyarrow as pa

    allowed = f"Parquet with the columns {column} and {PREDICTION}, of numbers or text"
    worker = Worker(_WORKER, memory_limit=_MEMORY, environment=_ENVIRONMENT)
    try:
        reply = worker.call(Asked(content, rows), _SECONDS)
    except (WorkerDied, WorkerTimeout):
        raise refused("a file that takes too much memory or time", allowed) from None
    finally:
        worker.kill()
    if reply[:1] != b"+":
        said, *names = reply.decode("utf-8").split("\n")
        if said == "columns":
            check_columns(names, column)
        raise refused(said if said != "columns" else "other columns", allowed)
    table = pa.ipc.open_stream(reply[1:]).read_all()
    check_columns(table.column_names, column)
    found = (table.column(name).combine_chunks() for name in (column, PREDICTION))
    return Pairs(*found)
