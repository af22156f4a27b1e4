"""A worker process: it answers, obeys its limits, and can be killed at any moment."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.engines import process
from holdfast.engines.process import START_SECONDS, Worker, WorkerDied, WorkerTimeout

CHILD = "tests.engines.process_child"


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker(CHILD, memory_limit=2**30)
    yield worker
    worker.kill()


def ask(worker: Worker, name: str, argument: object = None, timeout: float = START_SECONDS) -> Any:
    return pickle.loads(worker.call((name, argument), timeout))


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    state = Path(f"/proc/{pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()[0]
    return state in "ZX"  # dead, but its new parent has not looked yet


def eventually(true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return true()


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    """A parent of its own, which may fork or be killed."""
    path = os.pathsep.join([str(Path(__file__).parents[2]), *(each for each in sys.path if each)])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_answers_again_and_again_and_large_messages_go_both_ways(worker: Worker) -> None:
    assert [ask(worker, "echo", n) for n in range(20)] == list(range(20))
    data = os.urandom(3_000_001)
    assert worker.call(("echo", data), START_SECONDS) == data


def test_too_late_is_killed_and_stays_dead(worker: Worker) -> None:
    worker.ready()
    with pytest.raises(WorkerTimeout):
        ask(worker, "sleep", 600, timeout=0.05)
    assert not worker.alive
    assert gone(worker.pid)
    with pytest.raises(WorkerDied):
        ask(worker, "echo")


@pytest.mark.parametrize("end", [("exit", 0), ("raise", "SECRET-4711")])
def test_a_death_says_nothing(worker: Worker, end: tuple[str, object]) -> None:
    with pytest.raises(WorkerDied) as caught:
        ask(worker, *end)
    assert str(caught.value) == ""
    assert caught.value.__cause__ is None
    assert not worker.alive


def test_bytes_that_are_no_message_are_a_death(worker: Worker) -> None:
    worker.ready()
    links = {int(fd.name): str(fd.readlink()) for fd in Path(f"/proc/{worker.pid}/fd").iterdir()}
    (channel,) = [fd for fd, link in links.items() if link.startswith("socket:")]
    with pytest.raises(WorkerDied):
        worker.call(("lie", channel), START_SECONDS)


@pytest.mark.parametrize(
    ("start", "seconds", "error"),
    [("broken", START_SECONDS, WorkerDied), ("slow", 0.5, WorkerTimeout)],
)
def test_a_start_that_fails_or_is_slow(start: str, seconds: float, error: type[Exception]) -> None:
    worker = Worker(CHILD, start)
    with pytest.raises(error):
        worker.ready(timeout=seconds)
    assert gone(worker.pid)


def test_a_message_that_cannot_be_sent_ends_the_worker(worker: Worker) -> None:
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        worker.call(threading.Lock(), 1)
    assert not worker.alive


def test_it_takes_little_memory_writes_nothing_and_knows_no_secret(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    worker = Worker(CHILD, memory_limit=2**30, environment={"OMP_NUM_THREADS": "1"})
    environment = ask(worker, "environment")
    assert "DATABASE_PASSWORD" not in environment
    assert environment["OMP_NUM_THREADS"] == "1"
    assert ask(worker, "allocate", 2**20) == str(2**20)
    assert ask(worker, "allocate", 2**31) == "MemoryError"
    assert ask(worker, "write", str(tmp_path / "leak")) == "OSError"
    assert (tmp_path / "leak").read_text() == ""
    ask(worker, "print", "SECRET-4711")
    assert capfd.readouterr() == ("", "")
    worker.kill()


def test_a_kill_reaches_what_the_worker_started(worker: Worker) -> None:
    grandchild = ask(worker, "spawn")
    assert not gone(grandchild)
    worker.kill()
    worker.kill()
    assert gone(worker.pid)
    assert eventually(lambda: gone(grandchild))


def test_a_process_that_no_signal_ends_is_left_behind(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that waits for a disk: whoever asked it shall not wait as well."""
    worker.ready()
    os.kill(worker.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, worker.pid, os.WSTOPPED | os.WNOWAIT)  # it may run for a moment yet
    with monkeypatch.context() as patched:
        patched.setattr(process, "_END_SECONDS", 0.1)
        patched.setattr(os, "kill", lambda *_: None)
        patched.setattr(os, "killpg", lambda *_: None)
        worker.kill()
    assert not worker.alive
    assert not gone(worker.pid)
    os.kill(worker.pid, signal.SIGKILL)
    assert worker._process.wait(120) == -signal.SIGKILL


def test_a_worker_that_is_forgotten_ends() -> None:
    worker = Worker(CHILD)
    worker.ready()
    pid = worker.pid
    del worker
    assert gone(pid)


def test_a_worker_ends_with_its_parent() -> None:
    """Killed in the middle of an evaluation, the parent leaves nothing behind.

    Here of another thread than the first; as `local/test_orphans.py` shows for that one.
    """
    code = f"""
        import os, signal, threading
        from holdfast.engines.process import Worker, WorkerTimeout
        def run():
            worker = Worker({CHILD!r})
            worker.ready()
            print(worker.pid, flush=True)
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
            worker.call(("sleep", 600), 600)
        threading.Thread(target=run).start()
    """
    run = run_python(code)
    assert run.returncode == -9, run.stderr
    assert eventually(lambda: gone(int(run.stdout)))


def test_a_worker_of_a_thread_outlives_it() -> None:
    made: list[Worker] = []

    def make() -> None:
        made.append(Worker(CHILD))
        made[0].ready()

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    assert ask(made[0], "echo", 5) == 5
    made[0].kill()


def test_a_fork_of_the_parent_leaves_the_worker_alone() -> None:
    code = f"""
        import os, pickle
        from holdfast.engines.process import Worker, WorkerDied
        worker = Worker({CHILD!r})
        worker.ready()
        pid = os.fork()
        if pid == 0:
            try:
                worker.call(("echo", 1), 60)
            except WorkerDied:
                worker.kill()
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        assert pickle.loads(worker.call(("echo", 2), 60)) == 2
    """
    run = run_python(code)
    assert run.returncode == 0, run.stderr
