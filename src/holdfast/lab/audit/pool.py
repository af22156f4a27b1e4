"""Batches of work in several processes: results come in the order of the batches."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from holdfast.lab.runner.worker import start_worker

__all__ = ["Pool", "processes"]

Given = TypeVar("Given")
Made = TypeVar("Made")

_BATCHES = 8  # for each worker, so that none waits long for the others


class Pool:
    """Runs a function over batches."""

    def __init__(self, workers: int, executor: ProcessPoolExecutor | None) -> None:
        self.workers, self._executor = workers, executor

    def run(self, function: Callable[[Given], Made], batches: Sequence[Given]) -> Iterator[Made]:
        """What the function makes of each batch, in their order."""
        if self._executor is None:
            return map(function, batches)
        return self._executor.map(function, batches)

    def cut(self, count: int) -> list[tuple[int, int]]:
        """Numbers 0 … count − 1 in batches: the first of each, and how many they are.

        >>> Pool(2, None).cut(20)
        [(0, 2), (2, 2), (4, 2), (6, 2), (8, 2), (10, 2), (12, 2), (14, 2), (16, 2), (18, 2)]
        """
        size = max(1, -(-count // (_BATCHES * self.workers)))
        return [(first, min(size, count - first)) for first in range(0, count, size)]


@contextmanager
def processes(workers: int) -> Iterator[Pool]:
    """A pool of so many processes; with one worker, of this process."""
    if workers == 1:
        yield Pool(1, None)
        return
    # Spawned, not forked: the parent may have threads, and locks that a copy would hold for ever.
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(workers, context, initializer=start_worker)
    try:
        yield Pool(workers, executor)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
