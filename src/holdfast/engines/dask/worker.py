"""What runs on a Dask worker: the engines of one machine, on some blocks of a store.

Python functions travel as the pickles that their estimators hold; a Dask worker hands them on to
the processes that it starts, and never loads them itself. Holdfast's own metrics travel as they
are, and a Dask worker evaluates them itself.

An exception would be pickled, logged by the worker with the arguments of its task, and might carry
more than it should. So tasks raise nothing: they reply with numbers, or say what is wrong in the
words of an error that Holdfast itself has made.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import pickle
import platform
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.python.admission import TrialBlocks
from holdfast.engines.python.engine import LocalEngine
from holdfast.engines.python.estimator import LocalEstimator, packages
from holdfast.engines.python.identity import version
from holdfast.engines.source import Engines, Limits
from holdfast.errors import Damaged, HoldfastError, InvalidInput, Unavailable
from holdfast.protocols.source import UNIT, Bounds
from holdfast.store.blocks import BlockStore
from holdfast.store.user_state import verify_once

__all__ = ["check", "control", "evaluate", "hold", "verify"]

Reply = tuple[str, bytes]
Numbers = NDArray[np.float64] | NDArray[np.int64]
Text = bytes | list[bytes]  # a long one comes in parts
Versions = tuple[tuple[str, str], ...]  # of each module, what is installed

CONTROLS = "holdfast-controls"
"""The topic under which Dask notes that a control has begun."""
TRIAL_BLOCKS = 4  # at most: each worker has to evaluate them
_MOST_BYTES = 2**23  # of the blocks together, which go to every worker
_SHOWN = 200  # characters of what a function said
_STEP = 0.5  # seconds of a control between two looks
_MOST_PASSED = 10_000  # trials that a worker remembers

_ERRORS: dict[str, tuple[type[HoldfastError], tuple[str, ...]]] = {
    "damaged": (Damaged, ("what", "expected", "found", "remedy")),
    "invalid": (InvalidInput, ("parameter", "value", "allowed", "hint")),
    "unavailable": (Unavailable, ("what", "needed", "given", "remedy")),
}
# What a value may depend on, beside the packages that a function names.
_MODULES = ("holdfast", "sys", "duckdb", "numpy", "pandas", "pyarrow", "cloudpickle")
_MACHINE = "machine"


class _Abandoned(Exception):
    """Nobody waits for the task any more."""


def numbers_reply(numbers: Numbers) -> Reply:
    """Numbers, as bytes that nobody has to unpickle."""
    return "numbers", numbers.tobytes()


def error_reply(error: Exception) -> Reply:
    """An error; of one that Holdfast has not made, only the kind."""
    for name, (kind, fields) in _ERRORS.items():
        if isinstance(error, kind):
            facts = {each: str(getattr(error, each)) for each in fields}
            return name, json.dumps(facts).encode("utf-8")
    abandoned = isinstance(error, _Abandoned)
    what = "a question that was taken back" if abandoned else type(error).__name__
    return "other", json.dumps({"what": what}).encode("utf-8")


def numbers_of(reply: Reply, count: int, *, integers: bool) -> Numbers:
    """So many numbers; or else the error is raised."""
    name, body = reply
    if name == "numbers" and len(body) == 8 * count:
        return np.frombuffer(body, np.int64) if integers else np.frombuffer(body, np.float64)
    facts = {"what": "a reply of another length"} if name == "numbers" else json.loads(body)
    if name in _ERRORS:
        kind, fields = _ERRORS[name]
        raise kind(*(facts[each] for each in fields))
    needed, given = "a Dask worker that evaluates", f"one met {facts['what']}"
    remedy = "Look at the worker's machine: memory, disk, and the packages that are installed."
    raise Unavailable("Evaluating on the cluster", needed, given, remedy)


def pack(value: object) -> bytes:
    """Plain data as bytes."""
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def versions(packages: Iterable[str] = ()) -> Versions:
    """What is installed here, of Holdfast's own packages and of these."""
    tops = (name.partition(".")[0] for name in packages)
    return tuple((name, _stated(name)) for name in dict.fromkeys([*_MODULES, *tops, _MACHINE]))


def check_versions(wanted: Versions) -> None:
    """Refuse a worker whose values might differ from those of another."""
    for name, stated in wanted:
        found = _stated(name)
        if found != stated:
            needed = f"{stated} on every worker, as here"
            given = f"one on {platform.node()} has {found}"
            remedy = "Install the same versions on the scheduler and on all workers."
            raise Unavailable("Evaluating on the cluster", needed, given, remedy)


def _stated(name: str) -> str:
    if name == _MACHINE:
        return f"{platform.system()} on {platform.machine()}"
    try:
        return version(name) or f"{name} of unknown version"
    except Exception:  # it is not installed
        return f"no {name}"


@dataclass(frozen=True)
class Outcome:
    """What a function gave on public blocks."""

    values: bytes
    failure: str
    """The kind of the first failure: blocks may fail for another reason here than there."""
    told: str = field(compare=False)
    """All that was said of it."""


@dataclass(frozen=True)
class ExpectedOutcome:
    """What a function gave on public blocks where it was asked: so it must on every worker.

    A worker may lack a module that the function imports when it is called, or a file that it reads.
    Then every block would be a failure there, and none here. So what it gives here travels with the
    question, and a worker compares before it evaluates. The blocks are public: all may be told.
    """

    blocks: TrialBlocks
    outcome: Outcome
    key: str
    """By which a worker knows it again."""

    @classmethod
    def make(cls, blocks: TrialBlocks, outcome: Outcome, about: bytes) -> ExpectedOutcome:
        """As it travels; `about` is all else that the outcome can depend on."""
        parts = (about, blocks.written(), outcome.values, outcome.failure.encode("utf-8"))
        key = hashlib.sha256(b"".join(hashlib.sha256(each).digest() for each in parts)).hexdigest()
        return cls(blocks, outcome, key)

    def check(
        self, engine: LocalEngine, function: LocalEstimator, *, sums: bool, bounds: Bounds
    ) -> None:
        """Refuse a worker on which the function gives something else."""
        try:
            found = try_out(engine, function, self.blocks, sums=sums, bounds=bounds)
        except InvalidInput:  # it ended its process
            found = Outcome(b"", "", "it ended the process that evaluates it")
        if found == self.outcome:
            return
        said = f"failed: {found.told[:_SHOWN]}" if found.told else "gave other values"
        given = f"on {platform.node()} {function.name} {said} (on public blocks)"
        remedy = (
            "Install the same packages there as here, and the modules and files that the function "
            "uses. Machines of different kinds can differ in the last bits."
        )
        needed = "a function that gives on every worker what it gives here"
        raise Unavailable("Evaluating on the cluster", needed, given, remedy)


def public_blocks(engine: LocalEngine, function: LocalEstimator, *, sums: bool) -> TrialBlocks:
    """A few blocks of the open part; made-up ones if there is none, or if they are too large."""
    found = engine.public_blocks(function, sums=sums)
    if found.is_open and found.table.nbytes > _MOST_BYTES * found.blocks:
        found = engine.public_blocks(function, sums=sums, made_up=True)
    most = int(_MOST_BYTES * found.blocks // max(1, found.table.nbytes))
    return found.ordered(range(max(1, min(found.blocks, TRIAL_BLOCKS, most))))


def try_out(
    engine: LocalEngine,
    function: LocalEstimator,
    blocks: TrialBlocks,
    *,
    sums: bool,
    bounds: Bounds = UNIT,
) -> Outcome:
    """What the function gives on these blocks, in the process that evaluates sealed ones too."""
    tried = engine.attempts(function, blocks, sums=sums, bounds=bounds).at_once()
    values = np.where(np.isnan(tried.values), np.nan, tried.values)  # one NaN, not many
    return Outcome(values.tobytes(), tried.told.partition(":")[0], tried.told)


@dataclass(frozen=True)
class ClusterQuestion:
    """What is asked of ranges of blocks. Made by `question`."""

    store: bytes
    """The store, pickled: workers tell stores apart by it."""
    functions: tuple[Any, ...]
    """Of values: the estimator. Of sums: the term and the condition, each of which may be None."""
    sums: bool
    limits: tuple[float, float, int]
    packages: tuple[str, ...]
    """The modules that the functions name: a worker's processes load them once."""
    expected: tuple[ExpectedOutcome | None, ...] = ()
    """Of each function that was tried, what it gave on public blocks."""
    bounds: Bounds = UNIT
    """Of sums: what the terms are cut to, and scaled from."""
    terms: bool = False
    """Of sums: whether, in place of a block's sum, what it adds up is wanted, of every unit."""

    def own_limits(self) -> Limits:
        """The limits, for one thread of a worker."""
        block_seconds, seconds, memory = self.limits
        return Limits(block_seconds=block_seconds, seconds=seconds, memory=memory, workers=1)


def question(
    store: bytes, functions: Iterable[Any], limits: Limits, *, sums: bool, **more: Any
) -> ClusterQuestion:
    """A question, without anything that only this process could load; `more` are fields of it."""
    stripped = tuple(_stripped(each) for each in functions)
    payloads = [each.packed for each in stripped if isinstance(each, LocalEstimator)]
    told = (limits.block_seconds, limits.seconds, limits.memory)
    return ClusterQuestion(store, stripped, sums, told, packages(payloads), **more)


def _stripped(function: Any) -> Any:
    if not isinstance(function, LocalEstimator) or function.own:
        return function
    one = None if function.function is None else _travelled
    many = None if function.batched is None else _travelled
    return replace(function, function=one, batched=many, tried=None)  # it was tried here


def _travelled(_: object) -> object:
    """Stands for a function that is in the estimator's pickle."""
    raise NotImplementedError


def hold(part: bytes) -> bytes:
    """A part of a long question, kept by the cluster: tasks get it from each other."""
    return part


def evaluate(start: int, stop: int, *, versions: Versions, question: Text) -> Reply:
    """The numbers of the blocks start, …, stop − 1, or of their units; they are in one shard."""
    try:
        with _engines_for(versions, question) as (asked, engines):
            _check_functions(asked, engines)
            _verify(engines.store, start, stop)
            if asked.sums:
                function, where = asked.functions
                more = (start, stop, asked.bounds, _abandonment())
                return numbers_reply(engines.sums(function, where, *more, terms=asked.terms))
            [estimator] = asked.functions
            return numbers_reply(engines.values(estimator, start, stop, _abandonment()))
    except Exception as error:
        return error_reply(error)


def verify(start: int, stop: int, *, versions: Versions, question: Text) -> Reply:
    """Whether the shard of these blocks is as it was written; the numbers say nothing."""
    try:
        with _engines_for(versions, question) as (_, engines):
            _verify(engines.store, start, stop)
        return numbers_reply(np.zeros(stop - start))
    except Exception as error:
        return error_reply(error)


async def check(versions: Versions, question: Text) -> Reply:
    """Whether this worker has what a question needs: no numbers, or an error.

    Functions are tried, in a thread, so that the worker says meanwhile that it is alive.
    """

    def try_them() -> Reply:
        try:
            with _engines_for(versions, question) as (asked, engines):
                _check_functions(asked, engines)
        except Exception as error:
            return error_reply(error)
        return numbers_reply(np.zeros(0))

    return await asyncio.to_thread(try_them)


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
    except _Abandoned as error:
        return error_reply(error)
    return numbers_reply(np.zeros(stop - start))


def _check_functions(asked: ClusterQuestion, engines: Engines) -> None:
    """See that what the functions name is here, and that they give what they gave there: once."""
    for name in asked.packages:
        with suppress(Exception):
            importlib.import_module(name)
    for function, expected in zip(asked.functions, asked.expected, strict=False):
        if expected is not None and expected.key not in _passed:
            expected.check(engines.local, function, sums=asked.sums, bounds=asked.bounds)
            if len(_passed) >= _MOST_PASSED:
                _passed.clear()
            _passed.add(expected.key)


def _verify(store: BlockStore, start: int, stop: int) -> None:
    """A changed file would give other values, and nobody would see it in an answer."""
    shards = {shard.name for shard in store.overlapping(start, stop)}
    for file in store.kept_files:
        if file.name in shards:
            place = hashlib.sha256(str(store.folder / file.name).encode()).hexdigest()
            verify_once(store.folder, (file,), f"shard-{place[:40]}")


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


class EngineCache:
    """Engines that idle in a worker process, each with the question that it was asked last.

    As many are kept as tasks have run at once, and so as the worker has threads: each uses one
    thread, or one process, at a time. Those asked least lately are ended when others are needed.
    """

    def __init__(self) -> None:
        self.idle: list[tuple[bytes, ClusterQuestion, Engines]] = []
        self._busy = self._most = 0
        self._lock = threading.Lock()

    @contextmanager
    def borrowed(self, text: bytes) -> Iterator[tuple[ClusterQuestion, Engines]]:
        """A question and engines for it, which nobody else has meanwhile."""
        with self._lock:
            self._busy += 1
            self._most = max(self._most, self._busy)
            fit = next((each for each in reversed(self.idle) if each[0] == text), None)
            asked: ClusterQuestion = pickle.loads(text) if fit is None else fit[1]
            for each in self.idle if fit is None else ():
                if (each[1].store, each[1].limits) == (asked.store, asked.limits):
                    fit = each
            if fit is not None:
                self.idle.remove(fit)
            over = max(0, len(self.idle) + self._busy - self._most)
            closed, self.idle = self.idle[:over], self.idle[over:]
        try:
            for _, _, unused in closed:
                unused.close()
            if fit is None:
                engines = Engines(pickle.loads(asked.store), asked.own_limits())
            else:
                engines = fit[2]
            try:
                yield asked, engines
            except BaseException:  # whatever went on in its processes, it ends
                engines.close()
                raise
            with self._lock:
                self.idle.append((text, asked, engines))
        finally:
            with self._lock:
                self._busy -= 1


_cache = EngineCache()
_passed: set[str] = set()  # the keys of the expected outcomes that this process has found


@contextmanager
def _engines_for(versions: Versions, question: Text) -> Iterator[tuple[ClusterQuestion, Engines]]:
    """A task's question and engines, on a worker with the same versions."""
    check_versions(versions)
    text = question if isinstance(question, bytes) else b"".join(question)
    with _cache.borrowed(text) as borrowed:
        yield borrowed
