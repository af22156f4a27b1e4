"""Servers that are killed and started again, and threads that ask them all the while."""

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from holdfast.client.client import Client
from holdfast.client.http import Patience
from holdfast.errors import Exhausted
from holdfast.grids import grid
from holdfast.randomness import system_entropy, uniform_index
from tools.crash.told import tell, told_in

__all__ = ["PROGRAM", "Asker", "Caller", "Server", "Told"]

PROGRAM = (str(Path(sys.executable).with_name("holdfast")),)

_COIN = grid(0, 1, points=2)
_START = 60.0  # seconds that a server may take
_BUSY = 503  # the server has lost its ledger meanwhile, and what it wrote last may be there


class Server:
    """`holdfast serve` in a process of its own, always at the same address."""

    def __init__(self, folders: Sequence[Path], program: Sequence[str] = PROGRAM) -> None:
        self._folders, self._program, self._port = folders, program, 0
        self._process: subprocess.Popen[str] | None = None
        self._place = folders[0].parent
        self._log = self._place / "servers.log"
        self._began = 0.0
        self.url = ""
        self.starts: list[float] = []  # seconds that each start took

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self.launch()
        self.listen()

    def launch(self) -> None:
        """Start it."""
        self._began = time.monotonic()
        options = {"port": self._port, "slot": 0.005, "rate": 1e6, "log-level": "error"}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        with self._log.open("ab") as log:  # a ledger that is gone for a while fills it
            self._process = subprocess.Popen(
                [*self._program, "serve", *map(str, self._folders), *words, "--json"],
                env={**os.environ, "TMPDIR": str(self._place)},  # a kill leaves files there
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def listen(self) -> None:
        """Wait until it listens."""
        assert self._process is not None
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], _START)[0]:
            raise RuntimeError(f"the server does not start: {self._said()}")
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            raise RuntimeError(f"the server ended by itself: status {status}: {self._said()}")
        self.url = json.loads(line)["url"]
        self._port = int(self.url.rpartition(":")[2])
        httpx2.get(f"{self.url}/health", timeout=_START, trust_env=False).raise_for_status()
        self.starts.append(time.monotonic() - self._began)

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
            raise RuntimeError(f"the server ended by itself: status {status}: {self._said()}")

    def _said(self) -> str:
        return self._log.read_text("utf-8", "replace")[-2_000:]

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
    value: float | tuple[Any, ...] | None
    receipt: str
    cached: bool
    lost: int  # replies that were lost before this one came
    free: bool = False  # whether nothing is charged for it: it is told


class _Balanced(httpx2.HTTPTransport):
    """Sends each call to one of the servers, as a balancer does; counts calls without a reply."""

    def __init__(self, urls: Sequence[str]) -> None:
        super().__init__()
        self._ports = [int(url.rpartition(":")[2]) for url in urls]
        self.lost: Counter[str] = Counter()
        self.at: int | None = None  # the server that a call is on its way to, or back from

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        key = request.headers.get("idempotency-key", "")
        chosen = uniform_index(len(self._ports), system_entropy())
        request.url = request.url.copy_with(port=self._ports[chosen])
        self.at = chosen
        try:
            response = super().handle_request(request)
            self.lost[key] += response.status_code == _BUSY
            return response
        except httpx2.ConnectError:
            raise  # it was never sent
        except httpx2.TransportError:
            self.lost[key] += 1
            raise
        finally:
            self.at = None


class Caller:
    """A client of holdouts that several servers may have: any of them is asked, and asked again.

    It repeats so often that no restart is too slow, and so soon that the next kill finds it.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        self._transport = _Balanced(urls)
        self._looks, self._told = (
            Client(f"{urls[0]}/holdouts/{name}", transport=self._transport) for name in "at"
        )
        for client in (self._looks, self._told):
            client._core._patience = Patience(10_000, 120, longest=0.05)

    @property
    def at(self) -> int | None:
        """The server that has its question now."""
        return self._transport.at

    def ask(self, question: str, request: str) -> Told:
        """Ask until there is a reply."""

        def look() -> tuple[Any, ...]:
            answer = self._looks.ask(question, grid=_COIN, request=request)
            return answer.value, answer.receipt, answer.cached

        return self._heard(look, request, question)

    def tell(self, number: int, request: str) -> Told:
        """The same, of the holdout whose answers are told."""

        def told() -> tuple[Any, ...]:
            answer = tell(self._told, number, request)
            return told_in(answer), answer.receipt, answer.cached

        return self._heard(told, request, f"told {number}", free=True)

    def _heard(
        self, ask: Callable[[], tuple[Any, ...]], request: str, question: str, *, free: bool = False
    ) -> Told:
        try:
            value, receipt, cached = ask()
        except Exhausted:
            value, receipt, cached = None, "", False
        lost = self._transport.lost.pop(request, 0)
        return Told(request, question, value, receipt, cached, lost, free)

    def close(self) -> None:
        """Close its connections."""
        self._looks.close()
        self._told.close()


@dataclass
class Asker:
    """One client in a thread: asks new questions, and now and then an old one again."""

    urls: Sequence[str]
    slot: int
    thought: float = 0.02  # seconds at most between two questions
    seen: list[Told] = field(default_factory=list)
    asking: str | None = None  # the key of a question that has no reply yet
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        self._caller = Caller(self.urls)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @property
    def at(self) -> int | None:
        """The server that has its question now."""
        return self._caller.at

    def stop(self) -> None:
        """Ask nothing new."""
        self._stop.set()

    def finish(self) -> None:
        """Wait for the last reply."""
        self.stop()
        self._thread.join(_START * 3)
        if self._thread.is_alive():
            self.failure = TimeoutError("nothing, and still waits")
        else:
            self._caller.close()

    def _work(self) -> None:
        entropy = system_entropy()
        new = 0
        try:
            while not self._stop.is_set():
                old = uniform_index(new + 1, entropy) if uniform_index(8, entropy) == 0 else new
                for number in {old, new}:
                    self._ask(number)
                new += 1
                time.sleep(self.thought * uniform_index(1_000, entropy) / 1_000)
        except BaseException as wrong:  # whoever reads what was seen reads this, too
            self.failure = wrong

    def _ask(self, number: int) -> None:
        """Every fourth question is one that the other clients ask at about the same time.

        The answer to every third is told.
        """
        whose = 0 if number % 4 == 0 else self.slot + 1
        which, request = 1000 * number + whose, f"{self.slot}-{number}"
        self.asking = request
        if number % 3 == 0:
            self.seen.append(self._caller.tell(which, request))
        else:
            self.seen.append(self._caller.ask(f"avg(x) + {which}", request))
        self.asking = None
