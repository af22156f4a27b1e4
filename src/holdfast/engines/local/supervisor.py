"""The worker's side of evaluation: fork, watch, and begin again after what went wrong.

    items 0 … n−1 in one process ──▶ all finished
                              ├─▶ left: item k left a trace; go on at k + 1 in a new one
                              ├─▶ died or was late at item k: begin at k in a new one; if k was
                              │   the first of its process, it has failed: go on at k + 1
                              └─▶ changed: the first or last block has another value when it is
                                  asked again; every item anew, each in a process of its own

Only what happens to the first item of a process is laid to its charge, so that no block's value
depends on those before it. A function that cannot be loaded is laid to no block's charge here:
what is to be made of it, the parent decides by a control (see seats).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.local.board import Board, Status
from holdfast.engines.local.jobs import Job
from holdfast.engines.local.runner import READY, Chunks, Item, run

__all__ = ["Result", "evaluate", "loads", "single_items"]

_PATIENCE = 1.0  # seconds between two looks at the board
_TRIES = 2  # of loading a function in a process that dies
_DIVIDED = 16  # parts of a batch that has failed


@dataclass
class Result:
    """What came of an evaluation."""

    values: NDArray[np.float64]
    told: str = ""
    """Why the first failure happened, if that may be told."""
    changed: bool = False
    """Whether a block gave another value after others than before them."""
    loaded: bool = True
    """Whether the function could be loaded each time; else the blocks that were left have NaN."""


def single_items(blocks: int) -> list[Item]:
    """Every block by itself."""
    return [(block, block + 1) for block in range(blocks)]


def evaluate(
    job: Job, chunks: Chunks, items: Sequence[Item], blocks: int, *, isolated: bool = False
) -> Result:
    """One value per block, NaN for failures."""
    result = Result(np.full(blocks, np.nan))
    _evaluate(job, chunks, list(items), result, isolated=isolated)
    return result


def loads(job: Job) -> bool:
    """Whether the function can be loaded in a process that is to ask it of nothing."""
    for _ in range(_TRIES):
        status = _process(job, {}, [], 0).status
        if status != Status.STARTED:
            return status != Status.UNLOADABLE
    return False


def _evaluate(
    job: Job, chunks: Chunks, items: list[Item], result: Result, *, isolated: bool
) -> None:
    position, deaths, values = 0, 0, result.values
    while position < len(items):
        group = items[position : position + 1] if isolated else items[position:]
        board = _process(job, chunks, group, len(values))
        result.told = result.told or board.text
        status, done = board.status, board.done
        if _state_kept(job, chunks, group, board):
            result.changed = True
            _evaluate(job, chunks, group, result, isolated=True)
            return
        deaths = deaths + 1 if status == Status.STARTED and done == 0 else 0
        if status == Status.UNLOADABLE or deaths == _TRIES:
            result.loaded = False
            return
        if status == Status.LOADED and done == 0:  # it died, or was killed, at its first item
            board.failed[0], done = True, 1
        for number in range(done):
            start, stop = group[number]
            values[start:stop] = np.nan if board.failed[number] else board.values[start:stop]
            if board.failed[number] and stop - start > 1:
                _evaluate(job, chunks, _divided(start, stop), result, isolated=isolated)
        position += done


def _divided(start: int, stop: int) -> list[Item]:
    """The blocks of a batch that has failed, in smaller ones: soon each that fails is alone."""
    size = -(-(stop - start) // _DIVIDED)
    return [(first, min(first + size, stop)) for first in range(start, stop, size)]


def _state_kept(job: Job, chunks: Chunks, items: Sequence[Item], board: Board) -> bool:
    """Whether blocks that shared a process are seen to have changed each other's values.

    The process itself has asked the first block again at its end. The last one is asked again here,
    in a process that has seen no other.
    """
    status, done = board.status, board.done
    if status == Status.CHANGED or (status == Status.LOADED and 1 < len(items) == done):
        return True
    start, stop = items[max(0, done - 1)]
    if done < 2 or stop - start > 1:
        return False
    alone = _process(job, chunks, [(start, stop)], len(board.values))
    failed = alone.done == 0 or bool(alone.failed[0])
    if failed or board.failed[done - 1]:
        return failed != bool(board.failed[done - 1])
    return not _same(float(board.values[start]), float(alone.values[start]))


def _same(one: float, two: float) -> bool:
    return one == two or (one != one and two != two)


def _process(job: Job, chunks: Chunks, items: Sequence[Item], blocks: int) -> Board:
    """The board that a process for these items has left."""
    _reap()
    board = Board(blocks, len(items))
    board.deadline = time.monotonic() + job.limits.load_seconds
    ready, signalled = os.pipe()
    pid = os.fork()
    if pid == 0:
        run(job, chunks, items, board, signalled)
    os.close(signalled)
    clean = False
    try:
        clean = _watch(pid, ready, board)
    finally:
        os.close(ready)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if not clean:
            os.waitpid(pid, 0)
            _sweep()
    return board


def _watch(pid: int, ready: int, board: Board) -> bool:
    """Wait until the process is ready, has ended, or is late; True if it leaves nothing behind.

    Who is ready need not be waited for: to tear down a process takes longer than many questions.
    """
    descriptor = os.pidfd_open(pid)
    try:
        waiting = select.poll()
        for each in (descriptor, ready):
            waiting.register(each, select.POLLIN)
        while True:
            left = board.deadline - time.monotonic()
            if left <= 0:
                return False
            seen = dict(waiting.poll(1000 * min(left, _PATIENCE) + 1))
            if seen.get(ready, 0) & select.POLLIN:
                return os.read(ready, 1) == READY
            if descriptor in seen:
                return False
            if ready in seen:  # closed without a word: the end of the process will be seen
                waiting.unregister(ready)
    finally:
        os.close(descriptor)


def _reap() -> None:
    """Let go of processes that have ended since."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _sweep() -> None:
    """End whatever the process has started: orphans come to the worker."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            for each in _children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            time.sleep(0.001)


def _children() -> list[int]:
    lists = Path("/proc/self/task").glob("*/children")
    return [int(pid) for each in lists for pid in each.read_text("ascii").split()]
