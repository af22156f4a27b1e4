"""A server that is killed and started again, and threads that ask it all the while."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from holdfast.client import Client
from holdfast.client.retries import Patience
from holdfast.errors import Exhausted
from holdfast.grids import grid
from holdfast.randomness import system_entropy, uniform_index

__all__ = ["Asker", "Server", "Told"]

_COIN = grid(0, 1, points=2)
_START = 60.0  # seconds that a server may take
_LONGEST_THOUGHT = 20_000  # microseconds between two questions


class Server:
    """`holdfast serve` in a process of its own, always at the same address."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, 0
        self._process: subprocess.Popen[str] | None = None
        self.url = ""
        self.starts: list[float] = []  # seconds that each start took

    def start(self) -> None:
        """Start it, and wait until it listens."""
        began = time.monotonic()
        command = [str(Path(sys.executable).with_name("holdfast")), "serve", str(self._folder)]
        options = {"port": self._port, "slot": 0.005, "rate": 1e6, "log-level": "error"}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        self._process = subprocess.Popen(
            [*command, *words, "--json"],
            env={**os.environ, "TMPDIR": str(self._folder.parent)},  # a kill leaves files there
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], _START)[0]:
            raise RuntimeError("the server does not start")
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server ended by itself: status {self._process.wait()}")
        self.url = json.loads(line)["url"]
        self._port = int(self.url.rpartition(":")[2])
        httpx2.get(f"{self.url}/health", timeout=_START, trust_env=False).raise_for_status()
        self.starts.append(time.monotonic() - began)

    def kill(self) -> None:
        """End the server by kill −9: it, and not the processes that it has started."""
        self._end(signal.SIGKILL, -signal.SIGKILL)

    def stop(self) -> None:
        """End it as an operator does."""
        if self._process is not None:
            self._end(signal.SIGTERM, None)

    def _end(self, how: signal.Signals, expected: int | None) -> None:
        process, self._process = self._process, None
        assert process is not None
        assert process.stdout is not None
        process.send_signal(how)
        status = process.wait(timeout=_START)
        process.stdout.close()
        if expected is not None and status != expected:
            raise RuntimeError(f"the server ended by itself: status {status}")

    def close(self) -> None:
        """End whatever is left of it."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@dataclass(frozen=True)
class Told:
    """What a client was told; without a receipt, that the budget was exhausted."""

    request: str
    question: str
    value: float | None
    receipt: str
    cached: bool
    lost: int  # replies that were lost before this one came


class _Counting(httpx2.HTTPTransport):
    """Counts the calls of every key that were sent and had no reply."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: Counter[str] = Counter()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return super().handle_request(request)
        except httpx2.ConnectError:
            raise  # it was never sent
        except httpx2.TransportError:
            self.lost[request.headers.get("idempotency-key", "")] += 1
            raise


@dataclass
class Asker:
    """One client in a thread: asks new questions, and now and then an old one again."""

    url: str
    slot: int
    seen: list[Told] = field(default_factory=list)
    asking: str | None = None  # the key of a question that has no reply yet
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        self._transport = _Counting()
        self._client = Client(self.url, transport=self._transport)
        # So many retries that no restart is too slow, and so soon that the next kill finds them.
        self._client._talk._patience = Patience(10_000, 120, longest=0.05)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait for the last reply."""
        self._stop.set()
        self._thread.join(_START * 3)
        if self._thread.is_alive():
            raise RuntimeError(f"client {self.slot} still waits for its reply")
        self._client.close()
        if self.failure is not None:
            raise self.failure

    def _work(self) -> None:
        entropy = system_entropy()
        new = 0
        try:
            while not self._stop.is_set():
                old = uniform_index(new + 1, entropy) if uniform_index(8, entropy) == 0 else new
                for number in {old, new}:
                    self._ask(number)
                new += 1
                time.sleep(uniform_index(_LONGEST_THOUGHT, entropy) / 1e6)
        except BaseException as wrong:  # told by `finish`
            self.failure = wrong

    def _ask(self, number: int) -> None:
        """Every fourth question is one that the other clients ask at about the same time."""
        whose = 0 if number % 4 == 0 else self.slot + 1
        question, request = f"avg(x) + {1000 * number + whose}", f"{self.slot}-{number}"
        self.asking = request
        told: tuple[float, str, bool] | tuple[None, str, bool]
        try:
            answer = self._client.ask(question, grid=_COIN, request=request)
            told = (answer.value, answer.receipt, answer.cached)
        except Exhausted:
            told = (None, "", False)
        value, receipt, cached = told
        lost = self._transport.lost.pop(request, 0)
        self.seen.append(Told(request, question, value, receipt, cached, lost))
        self.asking = None
