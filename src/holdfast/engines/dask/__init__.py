"""Evaluation on a Dask cluster: the engines of one machine, on the shards of many.

    engine       DaskEngines: what the rest of the program calls; the process's one line to a
                 scheduler, tasks under way, and their replies
    worker       what runs on a Dask worker: a question as it travels, trials, replies
    sealing      from Parquet files to a sealed store, on a cluster
    shuffle      its tasks: rows are read, shuffled and staged, shards cut

The driver sends a question and ranges of blocks, and gets one number for each block. Rows stay
where they are. Estimators run in processes that a Dask worker starts, never in the worker itself.
"""

from __future__ import annotations
