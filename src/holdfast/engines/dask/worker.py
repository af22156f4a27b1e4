"""What runs on a Dask worker: the engines of one machine, on some blocks of a store.

A worker keeps at most as many engines as it has run tasks at once, and so as it has threads: each
uses one thread, or one process, at a time. Those of the store that was asked about least lately
are ended when others are needed.
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
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.python.engine import Attempts, LocalEngine, TrialBlocks, trial_blocks
from holdfast.engines.python.estimator import LocalEstimator, packages
from holdfast.engines.python.identity import version
from holdfast.engines.source import Engines, Limits
from holdfast.errors import Damaged, HoldfastError, InvalidInput, Unavailable
from holdfast.protocols.source import UNIT, Bounds
from holdfast.store.blocks import BlockStore, Shard
from holdfast.store.user_state import verify_once

__all__ = [
    "CONTROLS",
    "TRIAL_BLOCKS",
    "Numbers",
    "Outcome",
    "Question",
    "Reply",
    "Trial",
    "Versions",
    "check",
    "check_trial",
    "check_versions",
    "control",
    "error_reply",
    "evaluate",
    "hold",
    "make_trial",
    "numbers_of",
    "numbers_reply",
    "other_reply",
    "pack",
    "public_blocks",
    "question",
    "try_out",
    "verify",
    "versions",
]


# Replies of a Dask worker: numbers, or an error as data.
#
# An exception would be pickled, logged by the worker with the arguments of its task, and might
# carry
# more than it should. So tasks raise nothing: they say what is wrong in the words of an error that
# Holdfast itself has made.


Reply = tuple[str, bytes]
Numbers = NDArray[np.float64] | NDArray[np.int64]

_NUMBERS, _OTHER = "numbers", "other"
_FIELDS: dict[str, tuple[type[HoldfastError], tuple[str, ...]]] = {
    "damaged": (Damaged, ("what", "expected", "found", "remedy")),
    "invalid": (InvalidInput, ("parameter", "value", "allowed", "hint")),
    "unavailable": (Unavailable, ("what", "needed", "given", "remedy")),
}


def numbers_reply(numbers: Numbers) -> Reply:
    """Numbers, as bytes that nobody has to unpickle."""
    return _NUMBERS, numbers.tobytes()


def error_reply(error: Exception) -> Reply:
    """An error; of one that Holdfast has not made, only the kind."""
    for name, (kind, fields) in _FIELDS.items():
        if isinstance(error, kind):
            facts: dict[str, Any] = {each: str(getattr(error, each)) for each in fields}
            return name, json.dumps(facts).encode("utf-8")
    return other_reply(type(error).__name__)


def other_reply(what: str) -> Reply:
    """Something that should not have happened, in a word."""
    return _OTHER, json.dumps({"what": what}).encode("utf-8")


def numbers_of(reply: Reply, blocks: int, *, integers: bool) -> Numbers:
    """The numbers of so many blocks; or else the error is raised."""
    name, body = reply
    if name == _NUMBERS and len(body) == 8 * blocks:
        return np.frombuffer(body, np.int64) if integers else np.frombuffer(body, np.float64)
    raise _error(name, body)


def _error(name: str, body: bytes) -> HoldfastError:
    facts = {"what": "a reply of another length"} if name == _NUMBERS else json.loads(body)
    if name in _FIELDS:
        kind, fields = _FIELDS[name]
        return kind(*(facts[each] for each in fields))
    needed, given = "a Dask worker that evaluates", f"one met {facts['what']}"
    remedy = "Look at the worker's machine: memory, disk, and the packages that are installed."
    return Unavailable("Evaluating on the cluster", needed, given, remedy)


# Trials: a function must give on every worker what it gives here, on the same public blocks.
#
# A worker may lack a module that the function imports when it is called, or a file that it reads.
# Then every block would be a failure there, and none here. So what it gives here travels with the
# question, and a worker compares before it evaluates. The blocks are public: all may be told.


TRIAL_BLOCKS = 4  # at most: each worker has to evaluate them
_MOST_BYTES = 2**23  # of the blocks together, which go to every worker
_SHOWN = 200  # characters of what a function said


@dataclass(frozen=True)
class Outcome:
    """What a function gave on the blocks of a trial."""

    values: bytes
    failure: str
    """The kind of the first failure: blocks may fail for another reason here than there."""
    told: str = field(compare=False)
    """All that was said of it."""


@dataclass(frozen=True)
class Trial:
    """Public blocks, and what a function gave on them where it was asked."""

    table: bytes
    rows: tuple[int, ...]
    units: int
    is_open: bool
    expected: Outcome
    key: str
    """By which a worker knows it again."""

    def blocks(self) -> TrialBlocks:
        """The blocks, to be asked."""
        import pyarrow as pa

        table = pa.ipc.open_stream(self.table).read_all()
        return TrialBlocks(table, self.rows, self.units, self.is_open)


def public_blocks(
    engine: LocalEngine, store: BlockStore, function: LocalEstimator, *, sums: bool
) -> TrialBlocks:
    """A few blocks of the open part; made-up ones if there is none, or if they are too large."""
    import pyarrow as pa

    job = engine.job(_asked(function, sums), sums=sums, explain=True)
    found = trial_blocks(store, job, examples=function.examples)
    if found.is_open and found.table.nbytes > _MOST_BYTES * found.blocks:
        found = trial_blocks(store, job, pa.table({}), function.examples)
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
    job = engine.job(_asked(function, sums), sums=sums, explain=True, bounds=bounds)
    job = replace(job, units=blocks.units)
    calls = [(0, blocks.blocks)] if job.vectorised else None
    tried = Attempts(engine.pool, function.name).attempt(job, blocks, calls)
    values = np.where(np.isnan(tried.values), np.nan, tried.values)  # one NaN, not many
    return Outcome(values.tobytes(), tried.told.partition(":")[0], tried.told)


def make_trial(blocks: TrialBlocks, expected: Outcome, about: bytes) -> Trial:
    """A trial as it travels; `about` is all else that the outcome can depend on."""
    table = blocks.written()
    parts = (about, table, expected.values, expected.failure.encode("utf-8"))
    key = hashlib.sha256(b"".join(hashlib.sha256(each).digest() for each in parts)).hexdigest()
    return Trial(table, blocks.rows, blocks.units, blocks.is_open, expected, key)


def check_trial(
    engine: LocalEngine,
    function: LocalEstimator,
    trial: Trial,
    *,
    sums: bool,
    bounds: Bounds = UNIT,
) -> None:
    """Refuse a worker on which the function gives something else."""
    try:
        found = try_out(engine, function, trial.blocks(), sums=sums, bounds=bounds)
    except InvalidInput:  # it ended its process
        found = Outcome(b"", "", "it ended the process that evaluates it")
    if found == trial.expected:
        return
    said = f"failed: {found.told[:_SHOWN]}" if found.told else "gave other values"
    given = f"on {platform.node()} {function.name} {said} (on public blocks)"
    remedy = (
        "Install the same packages there as here, and the modules and files that the function "
        "uses. Machines of different kinds can differ in the last bits."
    )
    needed = "a function that gives on every worker what it gives here"
    raise Unavailable("Evaluating on the cluster", needed, given, remedy)


def _asked(function: LocalEstimator, sums: bool) -> tuple[LocalEstimator | None, ...]:
    return (function, None) if sums else (function,)


# A question as it travels to Dask workers: the store, the estimators, the limits, the versions.
#
# Python functions travel as the pickles that their estimators hold; a Dask worker hands them on to
# the processes that it starts, and never loads them itself. Holdfast's own metrics travel as they
# are, and a Dask worker evaluates them itself.


Versions = tuple[tuple[str, str], ...]  # of each module, what is installed

# What a value may depend on, beside the packages that a function names.
_MODULES = ("holdfast", "sys", "duckdb", "numpy", "pandas", "pyarrow", "cloudpickle")
_MACHINE = "machine"


def _travelled(_: object) -> object:
    """Stands for a function that is in the estimator's pickle."""
    raise NotImplementedError


@dataclass(frozen=True)
class Question:
    """What is asked of ranges of blocks. Made by `question`."""

    store: bytes
    """The store, pickled: workers tell stores apart by it."""
    functions: tuple[Any, ...]
    """Of values: the estimator. Of sums: the term and the condition, each of which may be None."""
    sums: bool
    limits: tuple[float, float, int]
    packages: tuple[str, ...]
    """The modules that the functions name: a worker's processes load them once."""
    trials: tuple[Trial | None, ...] = ()
    """Of each function that was tried, what it gave on public blocks."""
    bounds: Bounds = UNIT
    """Of sums: what the terms are cut to, and scaled from."""

    def own_limits(self) -> Limits:
        """The limits, for one thread of a worker."""
        block_seconds, seconds, memory = self.limits
        return Limits(block_seconds=block_seconds, seconds=seconds, memory=memory, workers=1)

    def load_packages(self) -> None:
        """Import what the functions name, so that it is known to be there."""
        for name in self.packages:
            with suppress(Exception):
                importlib.import_module(name)


def question(
    store: bytes,
    functions: Iterable[Any],
    limits: Limits,
    *,
    sums: bool,
    trials: Iterable[Trial | None] = (),
    bounds: Bounds = UNIT,
) -> Question:
    """A question, without anything that only this process could load."""
    stripped = tuple(_stripped(each) for each in functions)
    payloads = [each.packed for each in stripped if isinstance(each, LocalEstimator)]
    return Question(
        store=store,
        functions=stripped,
        sums=sums,
        limits=(limits.block_seconds, limits.seconds, limits.memory),
        packages=packages(payloads),
        trials=tuple(trials),
        bounds=bounds,
    )


def pack(value: object) -> bytes:
    """Plain data as bytes."""
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def versions(packages: Iterable[str] = ()) -> Versions:
    """What is installed here, of Holdfast's own packages and of these."""
    tops = (name.partition(".")[0] for name in packages)
    names = dict.fromkeys([*_MODULES, *tops, _MACHINE])
    return tuple((name, _stated(name)) for name in names)


def check_versions(wanted: Versions) -> None:
    """Refuse a worker whose values might differ from those of another."""
    for name, stated in wanted:
        found = _stated(name)
        if found != stated:
            needed = f"{stated} on every worker, as here"
            given = f"one on {platform.node()} has {found}"
            remedy = "Install the same versions on the scheduler and on all workers."
            raise Unavailable("Evaluating on the cluster", needed, given, remedy)


def _stripped(function: Any) -> Any:
    if not isinstance(function, LocalEstimator) or function.own:
        return function
    one = None if function.function is None else _travelled
    many = None if function.batched is None else _travelled
    return replace(function, function=one, batched=many, tried=None)  # it was tried here


def _stated(name: str) -> str:
    if name == _MACHINE:
        return f"{platform.system()} on {platform.machine()}"
    try:
        return version(name) or f"{name} of unknown version"
    except Exception:  # it is not installed
        return f"no {name}"


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
