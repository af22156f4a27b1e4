"""What fails with a block is a failure of the block; what fails without one is an error."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import numpy as np
import pandas as pd
import pytest

from holdfast.engines.process import WorkerDied, WorkerTimeout
from holdfast.engines.python import engine as engine_module
from holdfast.engines.python import worker
from holdfast.engines.python.engine import LocalEngine, WorkerSlot
from holdfast.engines.python.estimator import FunctionJob, local_estimator
from holdfast.engines.python.worker import Control, ForkStatus, GivenJob, ReadRange, SharedResults
from holdfast.errors import InvalidInput, Unavailable
from holdfast.store.blocks import BlockStore
from tests.engines.local.loading import FAILURES, Holds, IsGone, Loaded, holds_blocks, never
from tests.engines.local.stores import make_store
from tests.engines.unscoped import UNSCOPED

BLOCKS, UNITS = 12, 10


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    rows = pd.DataFrame({"x": np.random.default_rng(3).normal(size=BLOCKS * UNITS)})
    return make_store(tmp_path_factory.mktemp("machine"), rows, BLOCKS)


@pytest.fixture(scope="module")
def engine(store: BlockStore) -> Iterator[LocalEngine]:
    with LocalEngine(store, workers=1, block_time_limit=5) as engine:
        yield engine


@pytest.fixture
def fresh(store: BlockStore) -> Iterator[LocalEngine]:
    """One whose workers have not been started yet."""
    with LocalEngine(store, workers=1, block_time_limit=5) as engine:
        yield engine


@pytest.fixture
def gone(tmp_path: Path) -> IsGone:
    return IsGone(tmp_path / "model")


@pytest.fixture
def ended() -> list[object]:
    """The messages at which workers ended."""
    return []


@pytest.fixture
def controls(monkeypatch: pytest.MonkeyPatch, ended: list[object]) -> list[Control]:
    """The controls that were made; and `ended` is kept."""
    made: list[Control] = []
    call = WorkerSlot.call

    def watched(self: WorkerSlot, message: object, seconds: float) -> bytes:
        if isinstance(message, Control):
            made.append(message)
        try:
            return call(self, message, seconds)
        except (WorkerDied, WorkerTimeout):
            ended.append(message)
            raise

    monkeypatch.setattr(WorkerSlot, "call", watched)
    return made


def means(store: BlockStore) -> Any:
    return store.table().to_pandas().x.to_numpy().reshape(BLOCKS, UNITS).mean(axis=1)


def first_numbers(store: BlockStore, *blocks: int) -> set[float]:
    x = store.table().to_pandas().x.to_numpy().reshape(BLOCKS, UNITS)
    return {float(x[block, 0]) for block in blocks}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_function_that_can_no_longer_be_loaded_is_an_error(
    failure: str, engine: LocalEngine, store: BlockStore, gone: IsGone, controls: list[Control]
) -> None:
    estimator = local_estimator(Loaded(gone, failure))
    assert engine.admit(estimator).blocks
    assert len(controls) == 1  # so that one that fails later has not failed because of what it is
    np.testing.assert_allclose(engine.values(estimator), means(store), rtol=1e-12)
    assert len(controls) == 1
    gone.file.unlink()
    with pytest.raises(Unavailable, match=r"can no longer be loaded.*stays charged"):
        engine.values(estimator)
    gone.file.touch()
    np.testing.assert_allclose(engine.values(estimator), means(store), rtol=1e-12)


@pytest.mark.parametrize("failure", FAILURES)
def test_what_could_not_be_loaded_for_a_moment_is_asked_again(
    failure: str,
    engine: LocalEngine,
    store: BlockStore,
    gone: IsGone,
    controls: list[Control],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    estimator = local_estimator(Loaded(gone, failure))
    gone.file.unlink()
    control = WorkerSlot._control

    def later(self: WorkerSlot, job: Any) -> None:
        gone.file.touch()
        control(self, job)

    monkeypatch.setattr(WorkerSlot, "_control", later)
    np.testing.assert_allclose(engine.values(estimator), means(store), rtol=1e-12)
    assert len(controls) == 1


def test_loading_that_fails_for_blocks_is_their_failure(
    engine: LocalEngine, store: BlockStore, controls: list[Control]
) -> None:
    """An error would say what the data are. Other blocks have their values."""
    values = engine.values(local_estimator(Loaded(holds_blocks, "raises")))
    assert np.isnan(values).all()
    assert len(controls) == 2  # for several ranges: before the first, and after the last
    (number,) = first_numbers(store, BLOCKS - 1)
    values = engine.values(local_estimator(Loaded(Holds(number), "ends its process")))
    failed = np.isnan(values)
    assert failed[-1]
    np.testing.assert_allclose(values[~failed], means(store)[~failed], rtol=1e-12)
    assert not failed[: BLOCKS // 2].any()
    assert len(controls) == 4


@pytest.mark.parametrize("failure", FAILURES)
def test_a_function_that_never_could_be_loaded_is_not_admitted(
    failure: str, engine: LocalEngine, gone: IsGone
) -> None:
    gone.file.unlink()
    with pytest.raises(InvalidInput, match=r"cannot be loaded.*Nothing was charged"):
        engine.admit(local_estimator(Loaded(gone, failure)))


PACKAGE = """
import os, sys
from pathlib import Path

frame = sys._getframe()
held = False
while frame is not None:
    held = held or bool(getattr(frame.f_locals.get("self"), "_kept", None))
    frame = frame.f_back
if {when}:
    os._exit(1)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A package that every function needs, and that ends the process that imports it."""

    def write(when: str) -> None:
        (tmp_path / "ends_its_process.py").write_text(PACKAGE.format(when=when))

    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(engine_module, "packages", lambda _: ("ends_its_process",))
    return write


def test_a_question_that_cannot_be_given_is_an_error(
    engine: LocalEngine, store: BlockStore, package: Callable[[str], None]
) -> None:
    package("False")
    np.testing.assert_allclose(engine.values(mean_of_x()), means(store), rtol=1e-12)
    engine.close()
    package("True")
    with pytest.raises(Unavailable, match=r"end while they load the packages.*stays charged"):
        engine.values(mean_of_x())
    engine.close()


def test_a_question_that_ends_only_who_holds_blocks_is_given_to_another(
    engine: LocalEngine,
    store: BlockStore,
    package: Callable[[str], None],
    controls: list[Control],
    ended: list[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as before:
        before.setattr(engine_module, "packages", lambda _: ())
        engine.values(mean_of_x())  # the worker keeps its blocks
    package("held")
    ended.clear()
    np.testing.assert_allclose(engine.values(mean_of_x()), means(store), rtol=1e-12)
    assert len(ended) == 1


def mean_of_x() -> Any:
    return local_estimator(lambda frame: frame.x.mean())


class EndsWhoReads(BlockStore):
    """As where the operating system ends a process for want of memory."""

    def table(self, *_: Any, **__: Any) -> Any:
        os._exit(1)


class TooLarge(BlockStore):
    def table(self, *_: Any, **__: Any) -> Any:
        raise MemoryError


@pytest.mark.parametrize("kind", [EndsWhoReads, TooLarge])
def test_blocks_that_are_too_large_to_be_read_are_an_error(
    kind: type[BlockStore], store: BlockStore
) -> None:
    large = kind(store.folder, store.manifest)
    with (
        LocalEngine(large, workers=1) as engine,
        pytest.raises(Unavailable, match="this needs memory for the blocks"),
    ):
        engine.values(mean_of_x())


class KillsItsWorker:
    """On some blocks, by their first numbers."""

    def __init__(self, marks: set[float]) -> None:
        self.marks = marks

    def __call__(self, frame: Any) -> None:
        if float(frame.x[0]) in self.marks:
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(20)


def test_a_block_that_really_ends_its_worker_has_failed(
    fresh: LocalEngine,
    store: BlockStore,
    controls: list[Control],
    ended: list[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_module, "_WORKER", UNSCOPED)
    bad = (0, 7, 8)  # of both ranges
    kill = KillsItsWorker(first_numbers(store, *bad))
    values = fresh.values(local_estimator(Loaded(never, "raises", kill)))
    wanted = means(store)
    wanted[list(bad)] = np.nan
    np.testing.assert_allclose(values, wanted, rtol=1e-12)
    assert len(ended) > len(bad)  # with others once, and alone
    assert len(controls) == 2


def test_a_worker_that_ends_where_nothing_can_be_loaded_is_an_error(
    fresh: LocalEngine, store: BlockStore, gone: IsGone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine may have ended it: no value of such a machine is taken for a block's."""
    monkeypatch.setattr(engine_module, "_WORKER", UNSCOPED)
    kill = KillsItsWorker(first_numbers(store, 3))
    control = WorkerSlot._control

    def later(self: WorkerSlot, job: Any) -> None:
        gone.file.unlink()
        control(self, job)

    monkeypatch.setattr(WorkerSlot, "_control", later)
    with pytest.raises(Unavailable, match="can no longer be loaded"):
        fresh.values(local_estimator(Loaded(gone, "raises", kill)))


@pytest.mark.parametrize("message", [Control, GivenJob, ReadRange])
def test_an_engine_that_is_closed_says_so(
    message: type, store: BlockStore, gone: IsGone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that the machine is at fault."""
    gone.file.unlink()
    call = WorkerSlot.call

    def closing(self: WorkerSlot, asked: object, seconds: float) -> bytes:
        if not isinstance(asked, message):
            return call(self, asked, seconds)
        self.kill()
        raise WorkerDied

    monkeypatch.setattr(WorkerSlot, "call", closing)
    kind = EndsWhoReads if message is ReadRange else BlockStore
    estimator = local_estimator(Loaded(gone, "raises"))
    with (
        LocalEngine(kind(store.folder, store.manifest), workers=1) as engine,
        pytest.raises(Unavailable, match="closed meanwhile"),
    ):
        engine.values(estimator)


def test_processes_that_end_now_and_then_before_the_function_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only one after another are laid to the function."""
    begun: list[int] = []

    def process(job: Any, chunks: Any, items: Any, blocks: int) -> SharedResults:
        shared = SharedResults.make(blocks, len(items))
        begun.append(len(begun))
        if begun[-1] % 2:
            (shared.status, shared.done), ((start, stop),) = (ForkStatus.FINISHED, 1), items
            shared.values[start:stop] = 1.0
        return shared

    monkeypatch.setattr(worker, "_fork", process)
    items = worker.single_items(4)
    job = cast(Any, SimpleNamespace(width=1))
    result = worker.evaluate(job, {}, items, 4, isolated=True)
    assert result.loaded
    assert result.values.ravel().tolist() == [1.0] * 4
    assert len(begun) == 8


def not_holding() -> bool:
    return not holds_blocks()


@pytest.mark.parametrize("failure", FAILURES)
def test_a_function_that_loads_only_beside_blocks_is_refused(
    failure: str, engine: LocalEngine
) -> None:
    """Its control would always fail, and whether there is one may depend on the data."""
    for _ in range(2):  # the second time workers hold sealed blocks, but not the one that tries
        with pytest.raises(InvalidInput, match="loaded where there are no blocks"):
            engine.admit(local_estimator(Loaded(not_holding, failure)))
        engine.values(local_estimator(Loaded(never, failure)))


def test_what_is_gone_after_the_first_control_is_seen_by_the_last(
    engine: LocalEngine, gone: IsGone, controls: list[Control], monkeypatch: pytest.MonkeyPatch
) -> None:
    control, ask = WorkerSlot._control, WorkerSlot._range
    asked: list[int] = []

    def there_once(self: WorkerSlot, job: Any) -> None:
        if not controls:
            gone.file.touch()
        control(self, job)

    def gone_later(self: WorkerSlot, job: Any, start: int, stop: int) -> Any:
        asked.append(start)
        if len(asked) == 3:  # the first range could be asked when the control had passed
            gone.file.unlink()
        return ask(self, job, start, stop)

    monkeypatch.setattr(WorkerSlot, "_control", there_once)
    monkeypatch.setattr(WorkerSlot, "_range", gone_later)
    gone.file.unlink()
    with pytest.raises(Unavailable, match="can no longer be loaded"):
        engine.values(local_estimator(Loaded(gone, "raises")))
    assert len(controls) == 3  # the last of them in two workers


class Fails:
    """Loading that fails at the calls with these numbers, in each process anew."""

    def __init__(self, *calls: int) -> None:
        self.calls, self.made = calls, 0

    def __call__(self, job: Any) -> Any:
        self.made += 1
        if self.made in self.calls:
            raise OSError("no such file")
        return (len,)


@pytest.mark.parametrize(
    ("calls", "values"),
    [((3,), [1.0, 1.0, 1.0, 1.0]), ((4,), [1.0, 1.0, 1.0, 1.0]), ((2,), None), ((1,), None)],
)
def test_a_function_that_cannot_be_loaded_anew_is_no_failure_of_the_block(
    calls: tuple[int, ...], values: list[float] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading is one, and one before each block; what fails is tried in a process of its own."""
    monkeypatch.setattr(worker, "_load", Fails(*calls))
    monkeypatch.setattr(worker, "confine", lambda memory: None)
    monkeypatch.setattr(worker.Runner, "_values", lambda self, item: np.ones(1))
    limits, path, folder = (20, 20, 20, 2**30), (*sys.path,), str(Path.cwd())
    job = FunctionJob((b"",), (None,), False, 1, False, *limits, path, folder, packages=())
    result = worker.evaluate(job, {}, worker.single_items(4), 4)
    assert result.loaded == (values is not None)
    if values is not None:
        assert result.values.ravel().tolist() == values


def test_no_room_for_a_process_is_an_error(
    fresh: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> NoReturn:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(engine_module, "Worker", full)
    with pytest.raises(Unavailable, match=r"3 of them did not.*stays charged"):
        fresh.values(local_estimator(Loaded(never, "raises")))
