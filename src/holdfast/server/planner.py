"""The planner of the page: how narrow answers can be, by method. It never sees a holdout.

Half-widths take a second or more of computing, so they are found in a process of their own, one
after the other, and remembered.
"""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from holdfast.engines.process import Worker, WorkerDied, WorkerTimeout
from holdfast.server.faults import Fault
from holdfast.server.methods import Study

__all__ = ["comparison"]

_MODULE = "holdfast.server.widths"
_SECONDS = 60.0  # for one comparison
_WAITING = 4  # comparisons that may wait for their turn
_MOST_KNOWN = 2_000
_waiting = threading.Semaphore(_WAITING)
_known: dict[tuple[Study, bool], dict[str, Any]] = {}
_workers: list[Worker] = []  # the one that is alive; only the planner's thread touches it


async def comparison(
    rows: int, queries: int, tail: float, confidence: float, curve: bool
) -> dict[str, Any]:
    """The half-width of every method's bar for the mean of a term between 0 and 1.

    With a curve, also for other numbers of questions; that takes a few times as long.
    """
    key = Study(rows, queries, tail, confidence), curve
    if key in _known:
        return _known[key]
    if not _waiting.acquire(blocking=False):
        raise Fault("busy", "The planner is busy. Ask again soon.", wait=2.0)
    try:
        found = await asyncio.get_running_loop().run_in_executor(_thread(), _compare, *key)
    finally:
        _waiting.release()
    if len(_known) < _MOST_KNOWN:
        _known[key] = found
    return found


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "holdfast-plan")


def _compare(study: Study, curve: bool) -> dict[str, Any]:
    message = (study.rows, study.queries, study.tail, study.confidence, curve)
    try:
        found: dict[str, Any] = json.loads(_worker().call(message, _SECONDS))
    except WorkerTimeout:
        hint = "Plan it with `holdfast plan`, or ask for fewer questions."
        raise Fault("bad_question", f"This takes too long to plan here. {hint}") from None
    except WorkerDied:
        raise Fault("busy", "The planner has to start again. Ask again soon.", wait=2.0) from None
    return found


def _worker() -> Worker:
    """The process; another one if it has ended. It ends with this one."""
    if not _workers or not _workers[-1].alive:
        _workers[:] = [Worker(_MODULE, environment={"HOLDFAST_CACHE": "off"})]
    return _workers[-1]
