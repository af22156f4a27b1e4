"""What runs on a Dask worker: the engines of one machine, on some blocks of a store.

A worker keeps at most as many engines as it has run tasks at once, and so as it has threads: each
uses one thread, or one process, at a time. Those of the store that was asked about least lately
are ended when others are needed.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any

from holdfast.engines.dask.questions import Question, Versions, check_versions
from holdfast.engines.dask.replies import Reply, error_reply, numbers_reply, other_reply
from holdfast.engines.dask.trials import check_trial
from holdfast.engines.source import Engines
from holdfast.engines.store.manifest import Shard
from holdfast.engines.store.reader import BlockStore
from holdfast.engines.store.verified import verify_once

__all__ = ["CONTROLS", "check", "control", "evaluate", "hold", "verify"]

Text = bytes | list[bytes]  # a long one comes in parts

CONTROLS = "holdfast-controls"
"""The topic under which Dask notes that a control has begun."""
_STEP = 0.5  # seconds of a control between two looks
_MOST_FIT = 10_000  # trials that a worker remembers


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


async def check(versions: Versions, question: Text) -> Reply:
    """Whether this worker has what a question needs: no numbers, or an error.

    Functions are tried, in a thread, so that the worker says meanwhile that it is alive.
    """
    return await asyncio.to_thread(_check, versions, question)


def control(start: int, stop: int, *, seconds: float, token: str) -> Reply:
    """A task that does nothing with the data: if its worker dies too, it was not of a block."""
    with suppress(Exception):
        from distributed import get_worker

        get_worker().log_event(CONTROLS, token)  # once for each worker that has begun it
    look, deadline = _abandonment(), time.monotonic() + seconds
    try:
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(_STEP, left))
            if look is not None:
                look(0, 1)
    except _Abandoned:
        return other_reply("a question that was taken back")
    return numbers_reply(_nothing(stop - start))


def _check(versions: Versions, question: Text) -> Reply:
    try:
        check_versions(versions)
        with _shelf.borrowed(_joined(question)) as desk:
            desk.question.load_packages()
            desk.check_trials()
    except Exception as error:
        return error_reply(error)
    return numbers_reply(_nothing(0))


def _evaluate(text: bytes, start: int, stop: int) -> Reply:
    with _shelf.borrowed(text) as desk:
        asked, engines = desk.question, desk.engines
        asked.load_packages()
        desk.check_trials()
        for shard in desk.store.overlapping(start, stop):
            _verify(desk.store, shard)
        if asked.sums:
            function, where = asked.functions
            look, bounds = _abandonment(), asked.bounds
            return numbers_reply(engines.sums(function, where, start, stop, bounds, look))
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
            place = str(store.folder / file.name)
            verify_once(store.folder, (file,), f"shard-{sha256(place.encode()).hexdigest()[:40]}")


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

    def check_trials(self) -> None:
        """See that the functions give here what they gave where they are asked: once."""
        asked = self.question
        for function, trial in zip(asked.functions, asked.trials, strict=False):
            if trial is not None and trial.key not in _fit:
                how: dict[str, Any] = {"sums": asked.sums, "bounds": asked.bounds}
                check_trial(self.engines.local, function, trial, **how)
                if len(_fit) >= _MOST_FIT:
                    _fit.clear()
                _fit.add(trial.key)


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
_fit: set[str] = set()  # the keys of the trials that this process has passed
