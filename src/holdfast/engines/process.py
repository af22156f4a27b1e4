"""A process that evaluates what is asked of it, and can be killed at any moment.

    parent                                child: python -m holdfast.engines.process FD
    Worker(module, setup)   ── setup ──▶  limits itself, imports the module, handle = start(setup)
    worker.call(message)    ── pickle ─▶  handle(message)
                            ◀── bytes ──  its result

Whatever runs in the child is not trusted to end, to be small or to be honest: every wait has a
deadline, memory and files are limited by the operating system, and a reply is bytes, which the
parent never unpickles. What goes wrong is `WorkerTimeout` or `WorkerDied` and nothing more: neither
carries a word from the child, for it may depend on the data. The user of a worker starts another.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["START_SECONDS", "Worker", "WorkerDied", "WorkerTimeout"]

START_SECONDS = 120.0  # until a new process must be ready: imports on a busy machine

_LENGTH = struct.Struct("<Q")
_REPLY_MAX = 2**31  # bytes: a child cannot make the parent allocate more
_PIECE = 2**16
_TICK = 0.2  # seconds
_END_SECONDS = 10.0  # until a killed process is gone
_KEPT_VARIABLES = (
    *("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV"),
    *("HOLDFAST_SHARDS", "XDG_CACHE_HOME"),  # where shards are that were fetched
)
_KEPT_PREFIXES = ("LC_", "PYTHON")
_PR_SET_PDEATHSIG = 1


class WorkerTimeout(Exception):
    """The worker did not answer in time, and was killed."""


class WorkerDied(Exception):
    """The worker ended, or broke the rules of the conversation, and was killed."""


class Worker:
    """One child process. `module` has a function `start(setup)` that returns `handle(message)`.

    The process is started at once and not waited for: `ready` does, and so does the first `call`.
    An exception of `start` or `handle` ends the child. One call at a time.

    `memory_limit` bounds, in bytes, what the child may add to its address space after `start`.
    """

    def __init__(
        self,
        module: str,
        setup: object = None,
        *,
        memory_limit: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        # What Python needs to start, and to import what the parent can import; no secrets.
        path = os.pathsep.join(map(os.path.abspath, sys.path))
        kept = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        for name, value in os.environ.items():
            if name in _KEPT_VARIABLES or name.startswith(_KEPT_PREFIXES):
                kept.setdefault(name, value)
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**kept, **(environment or {})},
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the parent; one kill reaches grandchildren
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._socket = ours
        self._owner = os.getpid()
        self._end = weakref.finalize(self, _end, self._process, ours, self._owner)
        # A signal at the parent's death goes by the thread that started the child: of the threads
        # only the main one lives as long as the process.
        lifelong = threading.current_thread() is threading.main_thread()
        first = (module, setup, memory_limit, lifelong, self._owner)
        self._first: tuple[object, ...] | None = first

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it may still be called: not killed, and not found dead."""
        return self._end.alive and os.getpid() == self._owner

    def ready(self, timeout: float = START_SECONDS) -> None:
        """Wait until `start` has returned in the child."""
        first, self._first = self._first, None
        if first is not None:
            self.call(first, timeout)

    def call(
        self, message: object, timeout: float, tick: Callable[[], None] | None = None
    ) -> bytes:
        """What `handle(message)` returns in the child, within so many seconds.

        `tick` is called now and then while it waits, and may raise to end the wait. After that, as
        after `WorkerTimeout`, `WorkerDied` or an interruption, the child is dead, and stays so.
        """
        self.ready()
        if not self.alive:
            raise WorkerDied
        try:
            data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        except BaseException:  # nothing was sent: the next start sends no half of a message
            self.kill()
            raise
        try:
            deadline = time.monotonic() + timeout
            _send(self._socket, data, deadline)
            if tick is not None:
                _watch(self._socket, deadline, tick)
            return _receive(self._socket, deadline, _REPLY_MAX)
        except BaseException as error:  # also KeyboardInterrupt: the reply would answer the next
            self.kill()
            if isinstance(error, TimeoutError):
                raise WorkerTimeout from None
            if isinstance(error, OSError | EOFError | ValueError):
                raise WorkerDied from None
            raise

    def kill(self) -> None:
        """End the child and what it started; does nothing the second time."""
        self._end()


def _end(process: subprocess.Popen[bytes], channel: socket.socket, owner: int) -> None:
    """Kill the child's session and wait for it; a fork of the owner only lets go of its copy."""
    channel.close()
    if os.getpid() != owner:
        process.returncode = 0  # not this process's child: nothing to wait for
        return
    # Not waited for before: the number is still the child's, even if it is dead.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process.pid, signal.SIGKILL)  # it may not have come to its own session yet
    with contextlib.suppress(subprocess.TimeoutExpired):  # it waits for a disk: leave it to that
        process.wait(_END_SECONDS)


def _watch(channel: socket.socket, deadline: float, tick: Callable[[], None]) -> None:
    """Wait until something comes, and tick meanwhile."""
    waiting = select.poll()  # `select` knows only the first 1,024 descriptors
    waiting.register(channel, select.POLLIN)
    while time.monotonic() < deadline and not waiting.poll(1000 * _TICK):
        tick()


def _send(channel: socket.socket, data: bytes, deadline: float | None = None) -> None:
    """The length and the data in one piece, if they fit: the other side then wakes once."""
    head = _LENGTH.pack(len(data))
    _limit(channel, deadline)
    sent = channel.sendmsg((head, data))
    for part in (head, data):
        if sent < len(part):
            _limit(channel, deadline)
            channel.sendall(memoryview(part)[sent:])
        sent = max(0, sent - len(part))


def _receive(channel: socket.socket, deadline: float | None, most: int) -> bytes:
    """One message. Memory grows with what comes, not with what was announced."""
    piece, data, end = memoryview(bytearray(_PIECE)), bytearray(), _LENGTH.size
    while len(data) < end:
        _limit(channel, deadline)
        count = channel.recv_into(piece)
        if not count:
            raise EOFError
        headless = len(data) < _LENGTH.size
        data += piece[:count]
        if headless and len(data) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(data)
            if length > most:
                raise ValueError("a message longer than allowed")
            end += length
    if len(data) > end:  # nobody speaks twice
        raise ValueError("more than was announced")
    return bytes(memoryview(data)[_LENGTH.size :])


def _limit(channel: socket.socket, deadline: float | None) -> None:
    if deadline is not None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        channel.settimeout(left)


# What runs in the child.


def _serve(channel: socket.socket) -> None:
    module, setup, memory_limit, lifelong, parent = pickle.loads(_receive(channel, None, 2**62))
    _die_with_parent(channel, parent, by_signal=lifelong)
    limit_resources(RLIMIT_CORE=0, RLIMIT_FSIZE=0)
    handle: Callable[[Any], bytes] = importlib.import_module(module).start(setup)
    if memory_limit is not None:
        limit_memory(memory_limit)
    _send(channel, b"")
    while True:
        message = pickle.loads(_receive(channel, None, 2**62))
        _send(channel, handle(message))


def _die_with_parent(channel: socket.socket, parent: int, *, by_signal: bool) -> None:
    """End when the parent has ended or let go, also in the middle of an evaluation."""

    def watch() -> None:
        waiting = select.poll()
        waiting.register(channel, getattr(select, "POLLRDHUP", 0))
        waiting.poll()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    if by_signal and sys.platform == "linux":  # the watching thread needs the interpreter's lock
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


def limit_resources(**limits: int) -> None:
    """Limit this process, and all that it starts, for good."""
    import resource

    for name, limit in limits.items():
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (limit, limit))


def limit_memory(memory: int) -> None:
    """In bytes, above what the process takes already: libraries and stacks of threads are large."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    except OSError:  # not Linux
        pages = 0
    limit_resources(RLIMIT_AS=pages * os.sysconf("SC_PAGESIZE") + memory)


def main() -> None:
    """Serve the parent at the other end of the socket whose number is the argument."""
    try:
        _serve(socket.socket(fileno=int(sys.argv[1])))
    except EOFError:
        os._exit(0)
    except BaseException:  # it may carry data: no traceback, no word
        os._exit(1)


if __name__ == "__main__":
    main()
