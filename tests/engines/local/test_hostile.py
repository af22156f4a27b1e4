"""Hostile estimators: each does its worst on some blocks, and no other block sees any of it.

Nothing that depends on the data escapes: no exception, no output, no file. The engine survives, and
answers the next question as if nothing had happened.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import ctypes
import importlib
import logging
import math
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from holdfast.engines.python import pool, sandbox
from holdfast.engines.python.engine import LocalEngine
from holdfast.engines.python.estimator import local_estimator
from holdfast.store.blocks import BlockStore
from tests.engines.local.stores import make_store
from tests.engines.unscoped import UNSCOPED

BLOCKS, UNITS = 8, 20
NAN = math.nan
CALLS: list[int] = []


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> BlockStore:
    rows = pd.DataFrame({"x": np.random.default_rng(3).normal(size=BLOCKS * UNITS)})
    return make_store(tmp_path_factory.mktemp("hostile"), rows, BLOCKS)


@pytest.fixture(scope="module")
def engine(store: BlockStore) -> Iterator[LocalEngine]:
    """Limits that an honest block keeps on a busy machine, and a hostile one does not."""
    limits: dict[str, Any] = {"block_time_limit": 1.5, "batch_time_limit": 1.5}
    with LocalEngine(store, workers=1, memory_limit=2**28, **limits) as engine:
        yield engine


def raise_with_data(frame: Any) -> Any:
    raise ValueError(f"the data are {frame.x.tolist()}")


def raise_beyond_exceptions(frame: Any) -> Any:
    class Beyond(BaseException):
        pass

    raise Beyond(frame)


def interrupt(frame: Any) -> Any:
    raise KeyboardInterrupt


class Evil:
    """A number that will not be read."""

    def __float__(self) -> float:
        raise SystemExit

    def __array__(self, *_: object, **__: object) -> Any:
        os._exit(3)


class EvilFloat(float):
    def __float__(self) -> float:
        raise RuntimeError("never")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("never")

    __hash__ = None  # type: ignore[assignment]


def segfault(frame: Any) -> Any:
    return ctypes.string_at(0)


def kill_itself(frame: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_the_worker(frame: Any) -> Any:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(5)


def kill_the_group(frame: Any) -> Any:
    os.killpg(0, signal.SIGKILL)


def take_memory(frame: Any) -> Any:
    return float(len(bytearray(2**34)))


def take_memory_slowly(frame: Any) -> Any:
    taken = []
    while True:
        taken.append(np.ones(2**20))


def recurse(frame: Any) -> Any:
    return recurse(frame) + 1


def recurse_beyond_limits(frame: Any) -> Any:
    sys.setrecursionlimit(10**9)
    return recurse(frame)


def speak(frame: Any) -> Any:
    print("SECRET", frame.x.sum())
    print("SECRET", frame.x.sum(), file=sys.stderr)
    os.write(1, b"SECRET")
    os.write(2, b"SECRET")
    logging.getLogger().error("SECRET")
    warnings.warn("SECRET", stacklevel=1)
    return frame.x.mean()


def write_files(frame: Any) -> Any:
    made = 0
    for place in (Path.cwd() / "SECRET", Path("/tmp/SECRET-holdfast")):
        try:
            place.write_text("SECRET", "utf-8")
        except OSError:
            made += 1
    return made


def change_the_frame(frame: Any) -> Any:
    frame["x"] = 7.0
    frame.x.to_numpy().flags.writeable = True
    frame.drop(frame.index, inplace=True)
    return len(frame)


def change_numbers_in_place(frame: Any) -> Any:
    values = frame.x.to_numpy()
    values.flags.writeable = True
    values[:] = 7.0
    base = values
    while base is not None and isinstance(base, np.ndarray):
        base[...] = 7.0
        base = base.base
    return values.mean()


def change_folder(frame: Any) -> Any:
    os.chdir("/")
    return 1.0


def change_environment(frame: Any) -> Any:
    os.environ["HOLDFAST_HOSTILE"] = "1"
    return 1.0


def change_libraries(frame: Any) -> Any:
    pd.Series.mean = lambda self: -1.0
    pd.DataFrame.mean = lambda self: -1.0
    spaces: list[Any] = [np, builtins]
    spaces[0].mean = spaces[1].max = lambda *_: -1.0
    return 1.0


def change_deep_inside(frame: Any) -> Any:
    from pandas.core import nanops

    nanops.nanmean = lambda *_, **__: -1.0
    return 1.0


def change_floating_point(frame: Any) -> Any:
    np.seterr(all="raise")
    warnings.simplefilter("error")
    return 1.0


def change_generators(frame: Any) -> Any:
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    return 1.0


def start_threads(frame: Any) -> Any:
    def spin() -> None:
        while True:
            pass

    for _ in range(3):
        threading.Thread(target=spin, daemon=True).start()
    return 1.0


def start_a_thread_to_wait_for(frame: Any) -> Any:
    threading.Thread(target=time.sleep, args=(60,)).start()
    return 1.0


def fork_and_return_twice(frame: Any) -> Any:
    os.fork()
    return 1.0


def fork_and_leave_it(frame: Any) -> Any:
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)
    return 1.0


def start_a_program(frame: Any) -> Any:
    subprocess.Popen(["sleep", "60"])
    return 1.0


def count_calls(frame: Any) -> Any:
    CALLS.append(1)
    return float(len(CALLS))


def close_everything(frame: Any) -> Any:
    os.closerange(0, 1000)
    return 1.0


def ignore_signals(frame: Any) -> Any:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return 1.0


def exit_quietly(frame: Any) -> Any:
    os._exit(0)


def leave(frame: Any) -> Any:
    sys.exit("SECRET")


# What happens on a bad block, and the value that it then has.
HOSTILE: dict[str, tuple[Callable[[Any], Any], float]] = {
    "an exception with the data": (raise_with_data, NAN),
    "an exception beyond Exception": (raise_beyond_exceptions, NAN),
    "KeyboardInterrupt": (interrupt, NAN),
    "NaN": (lambda f: NAN, NAN),
    "None": (lambda f: None, NAN),
    "text": (lambda f: "1.0", NAN),
    "a list": (lambda f: [1.0], NAN),
    "a complex number": (lambda f: 1j, NAN),
    "a generator": (lambda f: (x for x in f.x), NAN),
    "the frame itself": (lambda f: f, NAN),
    "a huge array": (lambda f: np.ones(10**7), NAN),
    "infinity": (lambda f: math.inf, math.inf),
    "an integer beyond floats": (lambda f: 10**400, math.inf),
    "an object that will not be a number": (lambda f: Evil(), NAN),
    "a float that will not be read": (lambda f: EvilFloat(1), NAN),
    "sys.exit": (leave, NAN),
    "os._exit": (exit_quietly, NAN),
    "os.abort": (lambda f: os.abort(), NAN),
    "a segmentation fault": (segfault, NAN),
    "SIGKILL to itself": (kill_itself, NAN),
    "memory at once": (take_memory, NAN),
    "memory bit by bit": (take_memory_slowly, NAN),
    "recursion": (recurse, NAN),
    "recursion beyond limits": (recurse_beyond_limits, NAN),
    "output": (speak, -2.0),  # the plain mean
    "files": (write_files, 2.0),
    "a changed frame": (change_the_frame, 0.0),
    "numbers changed in place": (change_numbers_in_place, 7.0),
    "another folder": (change_folder, 1.0),
    "another environment": (change_environment, 1.0),
    "changed libraries": (change_libraries, 1.0),
    "libraries changed deep inside": (change_deep_inside, 1.0),
    "floating-point errors": (change_floating_point, 1.0),
    "seeds of generators": (change_generators, 1.0),
    "busy threads": (start_threads, 1.0),
    "a thread to wait for": (start_a_thread_to_wait_for, 1.0),
    "a fork that returns too": (fork_and_return_twice, 1.0),
    "a fork that stays": (fork_and_leave_it, 1.0),
    "a program that stays": (start_a_program, 1.0),
    "a counter": (count_calls, 1.0),
    "closed files": (close_everything, 1.0),
    "signals": (ignore_signals, 1.0),
}

SLOW = {"memory bit by bit", "recursion beyond limits"}  # they end by a limit


def marked(store: BlockStore, blocks: list[int]) -> set[float]:
    """The first numbers of some blocks, to know them by."""
    first = store.table().column("x").to_numpy()[store.cuts(0, store.blocks)[:-1]]
    return {float(first[block]) for block in blocks}


def on_bad_blocks(action: Callable[[Any], Any], marks: set[float]) -> Callable[[Any], Any]:
    return lambda frame: action(frame) if float(frame.x[0]) in marks else frame.x.mean()


def means(store: BlockStore) -> Any:
    return store.table().to_pandas().x.to_numpy().reshape(BLOCKS, UNITS)


def honest(engine: LocalEngine) -> Any:
    return engine.values(local_estimator(lambda frame: frame.x.mean()))


@pytest.fixture(scope="module")
def plain(engine: LocalEngine, store: BlockStore) -> Any:
    values = honest(engine)
    np.testing.assert_allclose(values, means(store).mean(axis=1), rtol=1e-12)
    return values


@pytest.mark.parametrize("name", HOSTILE)
def test_only_the_bad_blocks_are_touched(
    name: str,
    store: BlockStore,
    engine: LocalEngine,
    plain: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    action, value = HOSTILE[name]
    monkeypatch.chdir(tmp_path)
    before = store.place(store.shards[0]).read_bytes()
    bad = [0] if name in SLOW else [0, 3, 6]
    function = on_bad_blocks(action, marked(store, bad))
    values = engine.values(local_estimator(function))
    wanted = plain.copy()
    wanted[bad] = value if value != -2.0 else plain[bad]
    np.testing.assert_array_equal(values, wanted)
    np.testing.assert_array_equal(honest(engine), plain)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
    assert not Path("/tmp/SECRET-holdfast").exists()
    assert store.place(store.shards[0]).read_bytes() == before


def spin(frame: Any) -> Any:
    while True:
        pass


def sleep(frame: Any) -> Any:
    time.sleep(60)


def hold_everything(frame: Any) -> Any:
    while True:
        try:
            time.sleep(60)
        except BaseException:
            continue


def wait_for_itself(frame: Any) -> Any:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def block_signals(frame: Any) -> Any:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        pass


LATE = [spin, sleep, hold_everything, wait_for_itself, block_signals]


@pytest.mark.parametrize("action", LATE, ids=lambda each: each.__name__)
def test_a_block_that_takes_too_long_has_failed(
    action: Callable[[Any], Any], store: BlockStore, engine: LocalEngine, plain: Any
) -> None:
    function = on_bad_blocks(action, marked(store, [0]))
    values = engine.values(local_estimator(function))
    wanted = plain.copy()
    wanted[0] = NAN
    np.testing.assert_array_equal(values, wanted)


@pytest.mark.parametrize("worker", [pool._WORKER, UNSCOPED])
@pytest.mark.parametrize("action", [kill_the_worker, kill_the_group])
def test_a_function_that_kills_its_worker_has_failed_on_its_block_only(
    action: Callable[[Any], Any],
    worker: str,
    store: BlockStore,
    plain: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether it can or, where the kernel has signal scopes, may not."""
    monkeypatch.setattr(pool, "_WORKER", worker)
    with LocalEngine(store, workers=1) as engine:
        values = engine.values(local_estimator(on_bad_blocks(action, marked(store, [1]))))
        wanted = plain.copy()
        wanted[1] = NAN
        np.testing.assert_array_equal(values, wanted)
        np.testing.assert_array_equal(honest(engine), plain)


@pytest.mark.parametrize("name", ["os._exit", "memory at once", "sys.exit", "a segmentation fault"])
def test_vectorised_functions_fail_block_by_block(
    name: str, store: BlockStore, engine: LocalEngine
) -> None:
    action, _ = HOSTILE[name]
    marks = marked(store, [2, 5])

    def function(arrays: Any) -> Any:
        if marks & {float(x) for x in arrays["x"][:, 0]}:
            action(arrays)
        return arrays["x"].mean(axis=1)

    wanted = means(store).mean(axis=1)
    wanted[[2, 5]] = NAN
    values = engine.values(local_estimator(function, vectorised=True))
    np.testing.assert_allclose(values, wanted, rtol=1e-12)


def test_a_vectorised_function_that_never_ends_is_redone_block_by_block(
    store: BlockStore, engine: LocalEngine
) -> None:
    marks = marked(store, [0])

    def function(arrays: Any) -> Any:
        while marks & {float(x) for x in arrays["x"][:, 0]}:
            pass
        return arrays["x"].mean(axis=1)

    wanted = means(store).mean(axis=1)
    wanted[0] = NAN
    values = engine.values(local_estimator(function, vectorised=True))
    np.testing.assert_allclose(values, wanted, rtol=1e-12)


def test_sums_survive_hostile_functions(store: BlockStore, engine: LocalEngine) -> None:
    marks = marked(store, [3])

    def function(frame: Any) -> Any:
        if marks & {float(x) for x in frame.x}:  # terms come with the rows of other blocks
            os._exit(1)
        return frame.x > 0

    counts = (means(store) > 0).sum(axis=1)
    counts[3] = 0
    assert np.array_equal(engine.sums(local_estimator(function)), counts * 2**16)


def test_a_state_that_nothing_else_shows_is_found_by_asking_again(
    store: BlockStore, engine: LocalEngine
) -> None:
    """A counter in a module of Python's own: every block is then asked in a fresh process."""

    def function(frame: Any) -> float:
        calendar: Any = importlib.import_module("calendar")
        calendar.mdays.append(1)
        return float(len(calendar.mdays))

    assert set(engine.values(local_estimator(function))) == {14.0}


def test_what_a_function_draws_depends_on_its_block_alone(engine: LocalEngine) -> None:
    def function(frame: Any) -> float:
        return float(np.random.normal() + random.random())  # noqa: NPY002

    values = engine.values(local_estimator(function))
    assert len(set(values)) == 1
    assert np.array_equal(engine.values(local_estimator(function)), values)


def test_nothing_that_a_function_started_is_left(store: BlockStore) -> None:
    """Programs and forks end with their block, even in a session of their own."""
    marker = f"LC_HOSTILE={store.folder}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(*marker.split("=", 1))
        with LocalEngine(store, workers=1) as engine:
            for action in (fork_and_leave_it, start_a_program):
                engine.values(local_estimator(action))
                assert len(with_mark(marker)) == 1  # the worker
    assert with_mark(marker) == []


def with_mark(marker: str) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                if marker.encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


def landlock() -> int:
    """What the kernel has of it."""
    return int(ctypes.CDLL(None).syscall(444, None, 0, 1))


@pytest.mark.parametrize(
    ("least", "what"), [(4, "connect"), (6, "signal")], ids=["connect", "signal"]
)
def test_nothing_outside_is_within_reach(store: BlockStore, least: int, what: str) -> None:
    """A cluster's scheduler would run anything; a worker that dies would be seen."""
    if landlock() < least:
        pytest.skip("this kernel cannot forbid it")
    outside = os.getpid()
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = server.getsockname()

        def reach(frame: pd.DataFrame) -> float:
            try:
                if what == "signal":
                    os.kill(outside, 0)
                else:
                    socket.create_connection(place, 2).close()
            except PermissionError:
                return 1.0
            return 0.0

        with LocalEngine(store, workers=1) as engine:
            assert engine.values(local_estimator(reach)).tolist() == [1.0] * BLOCKS


def udp(place: Any) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.sendto(b"a row", place["udp"])


def unix_datagram(place: Any) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.sendto(b"a row", place["path"])


def unix_stream(place: Any) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        made.connect(place["stream"])
        made.sendall(b"a row")


def abstract(place: Any) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.sendto(b"a row", place["abstract"])


def pair(place: Any) -> None:
    """A pair of one's own, one end of which is then sent elsewhere."""
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"a row", place["path"])


def stream_pair(place: Any) -> None:
    """The pair that event loops have: it leads nowhere else."""
    one, _ = socket.socketpair()
    one.connect(place["stream"])


def netlink(_: Any) -> None:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()


def in_a_child(place: Any) -> None:
    """Which is confined as its parent is."""
    program = (
        "import socket, sys\n"
        "made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "made.sendto(b'a row', sys.argv[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, place["path"]], capture_output=True, check=False
    )
    if b"PermissionError" in done.stderr:
        raise PermissionError


def called(number: str, *arguments: int) -> Callable[[Any], None]:
    def call(place: Any) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        if library.syscall(place[number], *arguments) < 0:
            raise OSError(ctypes.get_errno(), number)

    call.__name__ = number
    return call


WAYS = [
    *(udp, unix_datagram, unix_stream, abstract, pair, stream_pair, netlink, in_a_child),
    called("io_uring_setup", 1, 0),
    called("pidfd_getfd", -1, 0, 0),
    called("msgget", 0, 0o1600),
    called("shmget", 0, 4096, 0o1600),
]


def test_no_row_leaves_by_a_socket_of_any_kind(store: BlockStore, tmp_path: Path) -> None:
    calls = sandbox._CALLS.get(os.uname().machine)
    if calls is None:
        pytest.skip("this machine's calls are not listed")
    names = ("socket", "bind", "connect", "io_uring_setup", "pidfd_getfd", "shmget", "semget")
    place: dict[str, Any] = dict(zip((*names, "msgget"), calls.refused, strict=False))
    place |= {"path": str(tmp_path / "d"), "stream": str(tmp_path / "s")}
    place["abstract"] = f"\0{tmp_path}"
    kinds = [(socket.AF_INET, socket.SOCK_DGRAM), *[(socket.AF_UNIX, socket.SOCK_DGRAM)] * 2]
    receivers = [socket.socket(*kind) for kind in (*kinds, (socket.AF_UNIX, socket.SOCK_STREAM))]

    def reaching(way: Callable[[Any], None]) -> Callable[[pd.DataFrame], float]:
        def reach(frame: pd.DataFrame) -> float:
            try:
                way(place)
            except PermissionError:
                return 1.0
            return 0.0

        return reach

    with contextlib.ExitStack() as stack:
        for each in receivers:
            stack.enter_context(each).setblocking(False)
        receivers[0].bind(("127.0.0.1", 0))
        place["udp"] = receivers[0].getsockname()
        for each, name in zip(receivers[1:], ("path", "abstract", "stream"), strict=True):
            each.bind(place[name])
        receivers[3].listen()
        with LocalEngine(store, workers=1) as engine:
            forbidden = {
                way.__name__: set(engine.values(local_estimator(reaching(way)))) == {1.0}
                for way in WAYS
            }
        assert forbidden == {way.__name__: True for way in WAYS}
        for each in receivers[:3]:
            with pytest.raises(BlockingIOError):
                each.recv(100)
        with pytest.raises(BlockingIOError):
            receivers[3].accept()


def test_what_a_function_may_need_it_still_has(store: BlockStore) -> None:
    def loop(frame: pd.DataFrame) -> float:
        async def work() -> float:
            return float(len(frame))

        one, two = os.pipe()
        os.write(two, b"x")
        return asyncio.run(work()) if os.read(one, 1) == b"x" else -1.0

    with LocalEngine(store, workers=1) as engine:
        assert min(engine.values(local_estimator(loop))) > 0


def filtered(program: bytes, machine: int, number: int, *arguments: int) -> bool:
    """Whether the filter lets a call through: what the kernel does with it, step by step."""
    data = struct.pack("=IIQ6Q", number, machine, 0, *arguments, *[0] * (6 - len(arguments)))
    steps = list(struct.iter_unpack("=HBBI", program))
    held = place = 0
    while True:
        code, yes, no, value = steps[place]
        place += 1
        if code == 0x20:
            (held,) = struct.unpack_from("=I", data, value)
        elif code == 0x54:
            held &= value
        elif code in (0x15, 0x35):
            place += yes if (held == value if code == 0x15 else held >= value) else no
        else:
            assert code == 0x06
            return bool(value == 0x7FFF0000)


@pytest.mark.parametrize("name", ["x86_64", "aarch64"])
def test_the_filter_refuses_these_calls_and_no_others(name: str) -> None:
    """Also that of a machine that is not at hand; the numbers are those of <asm/unistd.h>."""
    calls = sandbox._CALLS[name]
    program = sandbox._program(calls)
    refused = {n for n in range(1024) if not filtered(program, calls.machine, n, 1, 1)}
    assert refused == set(calls.refused)
    assert len(refused) == 12
    flags = socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
    for family in (socket.AF_UNIX, socket.AF_INET, 30):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
            allowed = (family, kind) == (socket.AF_UNIX, socket.SOCK_STREAM)
            found = filtered(program, calls.machine, calls.pair, family, kind | flags)
            assert found == allowed
    for other in (0x40000003, 0xC00000F3, 0xC000003E ^ 0xC00000B7 ^ calls.machine):
        assert not filtered(program, other, 0)
    assert not filtered(program, calls.machine, 0x40000000 | 1)
