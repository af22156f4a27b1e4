"""A Dask cluster on this machine: scheduler and workers as processes, on ports of their own choice.

with dask_cluster(workers=2) as cluster:
    Holdout.open(path, engine=cluster.url)
    cluster.kill(0)        # kill −9 of a worker; with a nanny, a new one takes its place
    cluster.start_worker()

Everything listens on loopback only, writes into one temporary folder, and is ended by its id.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Cluster", "dask_cluster"]

_SECONDS = 60.0  # until a process must be there, or gone
_PAUSE = 0.02
_CHILD = b"multiprocessing.spawn"  # what a nanny starts; a resource tracker is no worker


@dataclass
class Cluster:
    """A scheduler and its workers. Made by `dask_cluster`."""

    folder: Path
    nanny: bool
    threads: int
    environment: Mapping[str, str]
    scheduler: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    """One for each worker that was started: the worker itself, or its nanny."""

    @property
    def address(self) -> str:
        """Where the scheduler listens, as tcp://127.0.0.1:port."""
        told = json.loads((self.folder / "scheduler.json").read_text("utf-8"))
        return str(told["address"])

    @property
    def url(self) -> str:
        """The same, as Holdfast takes it."""
        return self.address.replace("tcp://", "dask://")

    @property
    def log(self) -> str:
        """What all processes have said."""
        return "".join(
            each.read_text("utf-8", "replace") for each in sorted(self.folder.glob("*.log"))
        )

    def start_scheduler(self) -> None:
        """Start the scheduler, and wait until it listens."""
        file = self.folder / "scheduler.json"
        words = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        words += ["--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(file)]
        self.scheduler = self._start("scheduler", words)
        _wait(lambda: file.exists() and bool(file.read_text("utf-8").strip()), self)

    def start_worker(self, *, wait: bool = True) -> int:
        """Start one more worker; its number."""
        number = len(self.workers)
        local = self.folder / f"worker-{number}"
        local.mkdir()
        words = [self.address, "--host", "127.0.0.1", "--no-dashboard"]
        words += ["--dashboard-address", "127.0.0.1:0", "--nthreads", str(self.threads)]
        words += ["--nworkers", "1", "--memory-limit", "0", "--local-directory", str(local)]
        words += ["--name", f"worker-{number}", "--nanny" if self.nanny else "--no-nanny"]
        self.workers.append(self._start("worker", words, f"-{number}"))
        if wait:
            self.wait_for(number)
        return number

    def wait_for(self, number: int) -> None:
        """Wait until the scheduler knows a worker that was started."""
        log = self.folder / f"worker-{number}.log"
        _wait(lambda: b"Registered to:" in log.read_bytes(), self)

    def pid(self, number: int) -> int:
        """The process that evaluates, not its nanny."""
        process = self.workers[number]
        if not self.nanny:
            return process.pid
        found: list[int] = []

        def there() -> bool:
            found[:] = _children(process.pid)
            return bool(found)

        _wait(there, self)
        return found[0]

    def kill(self, number: int) -> None:
        """Kill −9 of a worker. With a nanny, another takes its place."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid(number), signal.SIGKILL)
        if not self.nanny:
            self.workers[number].wait(_SECONDS)

    def end(self, number: int) -> None:
        """Kill −9 of a worker and of its nanny: none takes its place."""
        _end([self.workers[number]], signal.SIGKILL)

    def close(self) -> None:
        """End all processes."""
        every = [*self.workers, *([self.scheduler] if self.scheduler else [])]
        _end(every, signal.SIGTERM)

    def _start(self, what: str, words: list[str], suffix: str = "") -> subprocess.Popen[bytes]:
        with (self.folder / f"{what}{suffix}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{what}", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **_QUIET, **self.environment},
                start_new_session=True,  # one kill reaches what a nanny has started
            )


_QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "False",
    "DASK_DISTRIBUTED__WORKER__USE_FILE_LOCKING": "False",
}


@contextlib.contextmanager
def dask_cluster(
    workers: int = 2,
    *,
    nanny: bool = False,
    threads: int = 1,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Cluster]:
    """A cluster, until the block ends; `environment` is added to that of its processes."""
    with tempfile.TemporaryDirectory(prefix="holdfast-dask-") as folder:
        cluster = Cluster(Path(folder), nanny, threads, environment or {})
        try:
            cluster.start_scheduler()
            started = [cluster.start_worker(wait=False) for _ in range(workers)]
            for number in started:
                cluster.wait_for(number)
            yield cluster
        finally:
            cluster.close()


def _wait(there: Callable[[], bool], cluster: Cluster) -> None:
    deadline = time.monotonic() + _SECONDS
    while not there():
        if time.monotonic() > deadline:
            raise TimeoutError(f"A Dask cluster that does not start:\n{cluster.log}")
        time.sleep(_PAUSE)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for each in Path(f"/proc/{pid}/task").glob("*/children"):
            children = each.read_text("ascii").split()
            found += [int(child) for child in children if _is_worker(child)]
    return found


def _is_worker(pid: str) -> bool:
    return _CHILD in Path(f"/proc/{pid}/cmdline").read_bytes()


def _end(processes: list[subprocess.Popen[bytes]], how: signal.Signals) -> None:
    """End each, with what it has started in its own session."""
    for process in processes:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
    for process in processes:
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
