"""What runs on a Dask worker: the engines of one machine, on some blocks of a store.

A worker keeps at most as many engines as it has run tasks at once, and so as it has threads: each
uses one thread, or one process, at a time. Those of the store that was asked about least lately
are ended when others are needed.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from holdfast.engines.dask.questions import Question, Versions, check_versions
from holdfast.engines.dask.replies import Reply, error_reply, numbers_reply, other_reply
from holdfast.engines.source import Engines
from holdfast.engines.store import BlockStore, Shard, verify_once

__all__ = ["check", "evaluate", "hold", "verify"]

Text = bytes | list[bytes]  # a long one comes in parts


class _Abandoned(Exception):
    """Nobody waits for the task any more."""


def hold(part: bytes) -> bytes:
    """A part of a long question, kept by the cluster: tasks get it from each other."""
    return part


def evaluate(start: int, stop: int, *, versions: Versions, question: Text) -> Reply:
    """The numbers of the blocks start, …, stop − 1, which are in one shard."""
    try:
        check_versions(versions)
        return _evaluate(_joined(question), start, stop)
    except _Abandoned:
        return other_reply("a question that was taken back")
    except Exception as error:
        return error_reply(error)


def verify(start: int, stop: int, *, versions: Versions, question: Text) -> Reply:
    """Whether the shard of these blocks is as it was written; the numbers say nothing."""
    try:
        check_versions(versions)
        with _shelf.borrowed(_joined(question)) as desk:
            for shard in desk.store.overlapping(start, stop):
                _verify(desk.store, shard)
        return numbers_reply(_nothing(stop - start))
    except Exception as error:
        return error_reply(error)


def check(versions: Versions) -> Reply:
    """Whether this worker has what a question needs: no numbers, or an error."""
    try:
        check_versions(versions)
    except Exception as error:
        return error_reply(error)
    return numbers_reply(_nothing(0))


def _evaluate(text: bytes, start: int, stop: int) -> Reply:
    with _shelf.borrowed(text) as desk:
        asked, engines = desk.question, desk.engines
        asked.load_packages()
        for shard in desk.store.overlapping(start, stop):
            _verify(desk.store, shard)
        if asked.sums:
            function, where = asked.functions
            return numbers_reply(engines.sums(function, where, start, stop))
        [estimator] = asked.functions
        return numbers_reply(engines.values(estimator, start, stop, _abandonment()))


def _joined(question: Text) -> bytes:
    return question if isinstance(question, bytes) else b"".join(question)


def _nothing(blocks: int) -> Any:
    import numpy as np

    return np.zeros(blocks)


def _verify(store: BlockStore, shard: Shard) -> None:
    """A changed file would give other values, and nobody would see it in an answer."""
    for file in store.kept_files:
        if file.name == shard.name:
            verify_once(store.folder, (file,), f"shard-{file.sha256[:40]}")


def _abandonment() -> Callable[[int, int], None] | None:
    """A look, now and then, whether the task that runs in this thread is still wanted."""
    with suppress(Exception):  # not in a task of a Dask worker
        from distributed import get_worker

        worker = get_worker()
        key = worker.get_current_task()

        def look(done: int, total: int) -> None:
            del done, total
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":
                raise _Abandoned

        return look
    return None


class _Desk:
    """The engines of one store, and the question that they were asked last."""

    def __init__(self, text: bytes) -> None:
        self.question: Question = pickle.loads(text)
        self.store: BlockStore = pickle.loads(self.question.store)
        self.engines = Engines(self.store, self.question.own_limits())
        self._text = text

    def takes(self, text: bytes) -> bool:
        """Whether these engines can answer; the question is then the desk's own."""
        if text != self._text:  # else the same objects: an engine knows a question again by them
            other: Question = pickle.loads(text)
            mine = self.question
            if (other.store, other.limits) != (mine.store, mine.limits):
                return False
            self.question, self._text = other, text
        return True


class _Shelf:
    """The desks of a worker process."""

    def __init__(self) -> None:
        self._idle: list[_Desk] = []
        self._busy = self._most = 0
        self._lock = threading.Lock()

    @contextmanager
    def borrowed(self, text: bytes) -> Iterator[_Desk]:
        """A desk for a question; nobody else has it meanwhile."""
        with self._lock:
            self._busy += 1
            self._most = max(self._most, self._busy)
            found = next((each for each in reversed(self._idle) if each.takes(text)), None)
            if found is not None:
                self._idle.remove(found)
            over = max(0, len(self._idle) + self._busy - self._most)
            closed, self._idle = self._idle[:over], self._idle[over:]
        try:
            for each in closed:
                each.engines.close()
            desk = found or _Desk(text)
            try:
                yield desk
            except BaseException:  # whatever went on in its processes, it ends
                desk.engines.close()
                raise
            with self._lock:
                self._idle.append(desk)
        finally:
            with self._lock:
                self._busy -= 1


_shelf = _Shelf()
