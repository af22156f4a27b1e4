"""Python functions as estimators: evaluated block by block, in processes that can be killed.

    identity     the hash that says whether two functions ask the same question
    estimators   a function, how it is called, and its identity
    metrics      scores of models and predictions as estimators
    engine       LocalEngine: estimators on the blocks of a store
    admission    what is tried on public blocks before sealed ones are asked
    regrouping   what is tried with their rows: in another order, in other blocks, alone
    attempts     one such trial
    trials       those blocks, open or made up
    jobs         a question as it travels to a worker
    pool         workers that are started once and replaced when they die
    seats        one of them: whether a failure is a block's or the machine's
    worker       what runs in a worker: blocks are read and kept, functions never called
    supervisor   forks, watches and begins again
    runner       what runs in a fork: the function, one item after another
    confinement  what a fork may not do
    board        the memory that a fork and its worker share
    traces       what a block's evaluation may leave behind
    frames       Arrow rows as the frames and arrays that functions take
    terms        results as numbers

The user's function runs in forks of a worker only: not in the caller's process, nor in the worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.engines.local.estimators import (
    ASSUMPTION_PREDICTIONS,
    BLOCK_KINDS,
    LocalEstimator,
    local_estimator,
)

if TYPE_CHECKING:
    from holdfast.engines.local.admission import (
        ASSUMPTION,
        ASSUMPTION_ORDER,
        ASSUMPTION_ROWS,
        ASSUMPTION_SHARED,
        Admission,
    )
    from holdfast.engines.local.engine import LocalEngine
    from holdfast.engines.local.metrics.score import score_estimator

__all__ = [
    "ASSUMPTION",
    "ASSUMPTION_ORDER",
    "ASSUMPTION_PREDICTIONS",
    "ASSUMPTION_ROWS",
    "ASSUMPTION_SHARED",
    "BLOCK_KINDS",
    "Admission",
    "LocalEngine",
    "LocalEstimator",
    "local_estimator",
    "score_estimator",
]

_LATER = {
    "ASSUMPTION": "admission",
    "ASSUMPTION_ORDER": "admission",
    "ASSUMPTION_ROWS": "admission",
    "ASSUMPTION_SHARED": "admission",
    "Admission": "admission",
    "LocalEngine": "engine",
    "score_estimator": "metrics",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
