"""Hostile estimators: each does its worst on some blocks, and no other block sees any of it.

Nothing that depends on the data escapes: no exception, no output, no file. The engine survives, and
answers the next question as if nothing had happened.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import math
import os
import random
import socket
import struct
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from holdfast.engines.python import engine as engine_module
from holdfast.engines.python import sandbox
from holdfast.engines.python.engine import LocalEngine
from holdfast.engines.python.estimator import local_estimator
from holdfast.store.blocks import BlockStore
from tests.engines.local.stores import make_store, processes
from tests.engines.unscoped import UNSCOPED

BLOCKS, UNITS = 8, 20
NAN = math.nan

PRELUDE = """
import asyncio, builtins, ctypes, importlib, logging, math, os, random, signal, socket, subprocess
import sys, threading, time, warnings
from pathlib import Path
import numpy as np, pandas as pd

class Evil:
    "A number that will not be read."
    def __float__(self): raise SystemExit
    def __array__(self, *_, **__): os._exit(3)

class EvilFloat(float):
    def __float__(self): raise RuntimeError("never")
    def __eq__(self, other): raise RuntimeError("never")
    __hash__ = None

class Beyond(BaseException): pass

def recurse(frame): return recurse(frame) + 1

CALLS = []
"""


def written(code: str) -> Callable[..., Any]:
    """The function that this code is the body of."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(f"{PRELUDE}\ndef act(frame):\n{textwrap.indent(textwrap.dedent(code), '    ')}", space)
    act: Callable[..., Any] = space["act"]
    return act


SPEAK = """
    print("SECRET", frame.x.sum())
    print("SECRET", frame.x.sum(), file=sys.stderr)
    os.write(1, b"SECRET"), os.write(2, b"SECRET")
    logging.getLogger().error("SECRET")
    warnings.warn("SECRET", stacklevel=1)
    return frame.x.mean()
"""
WRITE_FILES = """
    made = 0
    for place in (Path.cwd() / "SECRET", Path("/tmp/SECRET-holdfast")):
        try:
            place.write_text("SECRET", "utf-8")
        except OSError:
            made += 1
    return made
"""
CHANGE_THE_FRAME = """
    frame["x"] = 7.0
    frame.x.to_numpy().flags.writeable = True
    frame.drop(frame.index, inplace=True)
    return len(frame)
"""
CHANGE_NUMBERS = """
    values = frame.x.to_numpy()
    values.flags.writeable = True
    values[:] = 7.0
    base = values
    while base is not None and isinstance(base, np.ndarray):
        base[...] = 7.0
        base = base.base
    return values.mean()
"""
CHANGE_LIBRARIES = """
    pd.Series.mean = pd.DataFrame.mean = lambda self: -1.0
    np.mean = builtins.max = lambda *_: -1.0
    return 1.0
"""
CHANGE_DEEP_INSIDE = """
    from pandas.core import nanops
    nanops.nanmean = lambda *_, **__: -1.0
    return 1.0
"""
BUSY_THREADS = """
    def spin():
        while True: pass
    for _ in range(3): threading.Thread(target=spin, daemon=True).start()
    return 1.0
"""
STAYING_FORK = """
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)
    return 1.0
"""
PROGRAM = "subprocess.Popen(['sleep', '60']); return 1.0"

# What happens on a bad block, and the value that it then has; None is the plain mean.
HOSTILE: dict[str, tuple[str, float | None]] = {
    "an exception with the data": ("raise ValueError(f'the data are {frame.x.tolist()}')", NAN),
    "an exception beyond Exception": ("raise Beyond(frame)", NAN),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", NAN),
    "NaN": ("return math.nan", NAN),
    "None": ("return None", NAN),
    "text": ("return '1.0'", NAN),
    "a list": ("return [1.0]", NAN),
    "a complex number": ("return 1j", NAN),
    "a generator": ("return (x for x in frame.x)", NAN),
    "the frame itself": ("return frame", NAN),
    "a huge array": ("return np.ones(10**7)", NAN),
    "infinity": ("return math.inf", math.inf),
    "an integer beyond floats": ("return 10**400", math.inf),
    "an object that will not be a number": ("return Evil()", NAN),
    "a float that will not be read": ("return EvilFloat(1)", NAN),
    "sys.exit": ("sys.exit('SECRET')", NAN),
    "os._exit": ("os._exit(0)", NAN),
    "os.abort": ("os.abort()", NAN),
    "a segmentation fault": ("return ctypes.string_at(0)", NAN),
    "SIGKILL to itself": ("os.kill(os.getpid(), signal.SIGKILL)", NAN),
    "memory at once": ("return float(len(bytearray(2**34)))", NAN),
    "memory bit by bit": ("taken = []\nwhile True: taken.append(np.ones(2**20))", NAN),
    "recursion": ("return recurse(frame)", NAN),
    "recursion beyond limits": ("sys.setrecursionlimit(10**9)\nreturn recurse(frame)", NAN),
    "output": (SPEAK, None),
    "files": (WRITE_FILES, 2.0),
    "a changed frame": (CHANGE_THE_FRAME, 0.0),
    "numbers changed in place": (CHANGE_NUMBERS, 7.0),
    "another folder": ("os.chdir('/'); return 1.0", 1.0),
    "another environment": ("os.environ['HOLDFAST_HOSTILE'] = '1'; return 1.0", 1.0),
    "changed libraries": (CHANGE_LIBRARIES, 1.0),
    "libraries changed deep inside": (CHANGE_DEEP_INSIDE, 1.0),
    "floating-point errors": (
        "np.seterr(all='raise'); warnings.simplefilter('error'); return 1",
        1,
    ),
    "seeds of generators": ("np.random.seed(5); random.seed(5); return 1.0", 1.0),
    "busy threads": (BUSY_THREADS, 1.0),
    "a thread to wait for": (
        "threading.Thread(target=time.sleep, args=(60,)).start(); return 1",
        1,
    ),
    "a fork that returns too": ("os.fork(); return 1.0", 1.0),
    "a fork that stays": (STAYING_FORK, 1.0),
    "a program that stays": (PROGRAM, 1.0),
    "a counter": ("CALLS.append(1); return float(len(CALLS))", 1.0),
    "closed files": ("os.closerange(0, 1000); return 1.0", 1.0),
    "signals": ("signal.signal(signal.SIGTERM, signal.SIG_IGN); return 1.0", 1.0),
}
# These end by a limit of time or memory.
LATE = {
    "spin": "while True: pass",
    "sleep": "time.sleep(60)",
    "hold everything": """
        while True:
            try: time.sleep(60)
            except BaseException: continue
    """,
    "wait for itself": "lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "block signals": """
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True: pass
    """,
}
HOSTILE |= {name: (code, NAN) for name, code in LATE.items()}
# Not all at once: they cost seconds, or are seen only because the last block is another after them.
APART = [*LATE, "memory bit by bit", "recursion beyond limits", "libraries changed deep inside"]
TOGETHER = [name for name in HOSTILE if name not in APART]
COMPANY = [
    *({0: a, 1: b, 3: c, 4: a, 6: b} for a, b, c in zip(*[iter(TOGETHER)] * 3, strict=True)),
    *({0: a, 3: b} for a, b in zip(APART[::2], APART[1::2], strict=True)),
]


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


def marked(store: BlockStore, blocks: list[int]) -> set[float]:
    """The first numbers of some blocks, to know them by."""
    first = store.table().column("x").to_numpy()[store.cuts(0, store.blocks)[:-1]]
    return {float(first[block]) for block in blocks}


def on_bad_blocks(store: BlockStore, bad: dict[int, str]) -> Any:
    """The mean, but on some blocks what the code for it does."""
    codes = {mark: written(code) for block, code in bad.items() for mark in marked(store, [block])}

    def function(frame: Any) -> Any:
        act = codes.get(float(frame.x[0]))
        return frame.x.mean() if act is None else act(frame)

    return local_estimator(function)


def rows_of(store: BlockStore) -> Any:
    return store.table().to_pandas().x.to_numpy().reshape(BLOCKS, UNITS)


def honest(engine: LocalEngine) -> Any:
    return engine.values(local_estimator(lambda frame: frame.x.mean()))


@pytest.fixture(scope="module")
def plain(engine: LocalEngine, store: BlockStore) -> Any:
    values = honest(engine)
    np.testing.assert_allclose(values, rows_of(store).mean(axis=1), rtol=1e-12)
    return values


@pytest.mark.parametrize(
    "company", COMPANY, ids=lambda each: ", ".join(dict.fromkeys(each.values()))
)
def test_only_the_bad_blocks_are_touched(
    company: dict[int, str],
    store: BlockStore,
    engine: LocalEngine,
    plain: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = store.place(store.shards[0]).read_bytes()
    bad = {block: HOSTILE[name][0] for block, name in company.items()}
    values = engine.values(on_bad_blocks(store, bad))
    wanted = plain.copy()
    for block, name in company.items():
        value = HOSTILE[name][1]
        wanted[block] = plain[block] if value is None else value
    np.testing.assert_array_equal(values, wanted)
    np.testing.assert_array_equal(honest(engine), plain)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
    assert not Path("/tmp/SECRET-holdfast").exists()
    assert store.place(store.shards[0]).read_bytes() == before


@pytest.mark.parametrize("worker", [engine_module._WORKER, UNSCOPED])
def test_a_function_that_kills_its_worker_has_failed_on_its_block_only(
    worker: str, store: BlockStore, plain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it can or, where the kernel has signal scopes, may not: its parent, or its group."""
    monkeypatch.setattr(engine_module, "_WORKER", worker)
    kill = "os.kill(os.getppid(), signal.SIGKILL); time.sleep(5)"
    with LocalEngine(store, workers=1) as engine:
        bad = {1: kill, 6: "os.killpg(0, signal.SIGKILL)"}
        values = engine.values(on_bad_blocks(store, bad))
        wanted = plain.copy()
        wanted[list(bad)] = NAN
        np.testing.assert_array_equal(values, wanted)
        np.testing.assert_array_equal(honest(engine), plain)


def test_vectorised_functions_fail_block_by_block(store: BlockStore, engine: LocalEngine) -> None:
    names = ["os._exit", "memory at once", "sys.exit", "a segmentation fault", "spin", "recursion"]
    bad = {
        mark: written(HOSTILE[name][0])
        for block, name in enumerate(names)
        for mark in marked(store, [block])
    }

    def function(arrays: Any) -> Any:
        for mark in arrays["x"][:, 0]:
            if mark in bad:
                bad[mark](arrays)
        return arrays["x"].mean(axis=1)

    wanted = rows_of(store).mean(axis=1)
    wanted[: len(names)] = NAN
    values = engine.values(local_estimator(function, vectorised=True))
    np.testing.assert_allclose(values, wanted, rtol=1e-12)


def test_a_state_that_nothing_else_shows_is_found_by_asking_again(engine: LocalEngine) -> None:
    """A counter in a module of Python's own: every block is then asked in a fresh process."""
    code = "calendar = importlib.import_module('calendar'); calendar.mdays.append(1)"
    counter = written(f"{code}\nreturn float(len(calendar.mdays))")
    assert set(engine.values(local_estimator(counter))) == {14.0}


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
            for code in (STAYING_FORK, PROGRAM):
                engine.values(local_estimator(written(code)))
                assert len(processes(marker)) == 1  # the worker
    assert processes(marker) == []


@pytest.fixture(scope="module")
def roomy(store: BlockStore) -> Iterator[LocalEngine]:
    with LocalEngine(store, workers=1) as engine:
        yield engine


@pytest.mark.parametrize(("least", "what"), [(4, "connect"), (6, "signal")])
def test_nothing_outside_is_within_reach(roomy: LocalEngine, least: int, what: str) -> None:
    """A cluster's scheduler would run anything; a worker that dies would be seen."""
    if int(ctypes.CDLL(None).syscall(444, None, 0, 1)) < least:
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

        assert roomy.values(local_estimator(reach)).tolist() == [1.0] * BLOCKS


UNIX = "made = socket.socket(socket.AF_UNIX, socket.{})\n"
CHILD = (
    "import socket, sys; made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); "
    "made.sendto(b'a row', sys.argv[1])"
)
IN_A_CHILD = f"""
    command = [sys.executable, "-c", {CHILD!r}, place["path"]]
    if b"PermissionError" in subprocess.run(command, capture_output=True, check=False).stderr:
        raise PermissionError
"""
CALLED = """
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(place["{0}"], *{1}) < 0: raise OSError(ctypes.get_errno(), "{0}")
"""
CALLS = {
    "io_uring_setup": (1, 0),
    "pidfd_getfd": (-1, 0, 0),
    "msgget": (0, 0o1600),
    "shmget": (0, 4096, 0o1600),
}
# How a row could leave. A pair of one's own could be sent elsewhere, but that of event loops is
# allowed; a child is confined as its parent is.
UDP = "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'a row', place['udp'])"
PAIR = "one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
WAYS: dict[str, str] = {
    "udp": UDP,
    "datagram": UNIX.format("SOCK_DGRAM") + "made.sendto(b'a row', place['path'])",
    "stream": UNIX.format("SOCK_STREAM") + "made.connect(place['stream']); made.sendall(b'a row')",
    "abstract": UNIX.format("SOCK_DGRAM") + "made.sendto(b'a row', place['abstract'])",
    "pair": PAIR + "one.sendto(b'a row', place['path'])",
    "pair of streams": "one, _ = socket.socketpair(); one.connect(place['stream'])",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()",
    "in a child": IN_A_CHILD,
    **{name: CALLED.format(name, arguments) for name, arguments in CALLS.items()},
}


def test_no_row_leaves_by_a_socket_of_any_kind(roomy: LocalEngine, tmp_path: Path) -> None:
    calls = sandbox._CALLS.get(os.uname().machine)
    if calls is None:
        pytest.skip("this machine's calls are not listed")
    names = ("socket", "bind", "connect", "io_uring_setup", "pidfd_getfd", "shmget", "semget")
    place: dict[str, Any] = dict(zip((*names, "msgget"), calls.refused, strict=False))
    place |= {"path": str(tmp_path / "d"), "stream": str(tmp_path / "s")}
    place["abstract"] = f"\0{tmp_path}"
    kinds = [(socket.AF_INET, socket.SOCK_DGRAM), *[(socket.AF_UNIX, socket.SOCK_DGRAM)] * 2]
    receivers = [socket.socket(*kind) for kind in (*kinds, (socket.AF_UNIX, socket.SOCK_STREAM))]

    def reaching(code: str) -> Callable[[pd.DataFrame], float]:
        way = written(f"place = frame\n{textwrap.dedent(code)}")

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
        forbidden = {
            name: set(roomy.values(local_estimator(reaching(code)), 0, 2)) == {1.0}
            for name, code in WAYS.items()
        }
        assert forbidden == dict.fromkeys(WAYS, True)
        for each in receivers[:3]:
            with pytest.raises(BlockingIOError):
                each.recv(100)
        with pytest.raises(BlockingIOError):
            receivers[3].accept()


def test_what_a_function_may_need_it_still_has(roomy: LocalEngine) -> None:
    def loop(frame: pd.DataFrame) -> float:
        async def work() -> float:
            return float(len(frame))

        one, two = os.pipe()
        os.write(two, b"x")
        return asyncio.run(work()) if os.read(one, 1) == b"x" else -1.0

    assert min(roomy.values(local_estimator(loop))) > 0


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
