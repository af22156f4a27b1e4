"""Evaluation on a Dask cluster: the engines of one machine, on the shards of many.

    address      dask://host:port as the user writes it
    engine       DaskEngines: what the rest of the program calls
    connection   the process's one line to a scheduler
    gathering    one question, asked of all pieces of a store
    rounds       tasks in flight: who waits for them, and for how long
    questions    a question as it travels, and the versions that it needs
    trials       what a function must give on every worker: what it gives here
    tasks        what runs on a Dask worker
    replies      what comes back: numbers, or an error as data
    creation     from Parquet files to shards: pieces are read, rows shuffled and staged, shards cut

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
