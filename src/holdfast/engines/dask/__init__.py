"""Evaluation on a Dask cluster: the engines of one machine, on the shards of many.

    engine       DaskEngines: what the rest of the program calls; tasks in flight, and their replies
    connection   the address, and the process's one line to a scheduler
    worker       what runs on a Dask worker: a question as it travels, trials, replies
    sealing      from Parquet files to a sealed store, on a cluster
    shuffle      its steps: pieces are read, rows shuffled and staged, shards cut

The driver sends a question and ranges of blocks, and gets one number for each block. Rows stay
where they are. Estimators run in processes that a Dask worker starts, never in the worker itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.engines.dask.engine import DaskEngines

__all__ = ["DaskEngines"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from holdfast.engines.dask.engine import DaskEngines

    return DaskEngines
