"""Writers: processes that ask without end and report every answer through a pipe.

They are forked, for speed; what they open, they open themselves. A byte of shared memory says where
each is, so that one can tell afterwards where it was killed.
"""

from __future__ import annotations

import mmap
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from hashlib import sha256
from itertools import count
from pathlib import Path

from holdfast.randomness import system_entropy, uniform_index
from tools.crash.account import Acknowledged, Subject
from tools.crash.phases import IDLE, PHASES, watch

__all__ = ["Writer", "children"]


_LONGEST_WAY = 500  # microseconds, of an answer to the one who asked


class Writer:
    """One place in the campaign: a process, and the one that follows when it is killed."""

    def __init__(self, subject: type[Subject], folder: Path, slot: int) -> None:
        self._subject, self._folder, self._slot = subject, folder, slot
        self._phase = mmap.mmap(-1, 1)
        self._next = 0  # the first request that nobody has seen an answer to
        self._text = b""
        self.seen: list[Acknowledged] = []
        self.start()

    def start(self) -> None:
        """Go on with the first request that was not acknowledged."""
        self._phase[0] = IDLE
        self.pipe, end = os.pipe()
        self.process = _forked(lambda: self._write(end))
        os.close(end)

    def read(self) -> bool:
        """Take in what was acknowledged; false at the end of it."""
        data = os.read(self.pipe, 65536)
        *lines, self._text = (self._text + data).split(b"\n")
        for line in lines:
            number, request, question, answer = line.decode().split()
            self.seen.append(Acknowledged(request, question, None if answer == "-" else answer))
            self._next = max(self._next, int(number) + 1)
        return bool(data)

    def kill(self) -> str:
        """End the process by kill −9, and say where it was."""
        os.kill(self.process, signal.SIGKILL)
        _, status = os.waitpid(self.process, 0)
        while self.read():  # what is in the pipe was said before the end
            pass
        os.close(self.pipe)
        self._text = b""
        if not os.WIFSIGNALED(status):
            raise RuntimeError(f"writer {self._slot} ended by itself: status {status}")
        return PHASES[self._phase[0]]

    def _write(self, end: int) -> None:
        """In the child: ask, acknowledge, and now and then ask an old request again."""
        watch(self._phase)
        subject = self._subject.open(self._folder)
        entropy = system_entropy()
        for new in count(self._next):
            old = uniform_index(new + 1, entropy) if uniform_index(8, entropy) == 0 else new
            for number in {old, new}:
                question, request = self._request(number)
                answer = subject.ask(question, request)
                time.sleep(uniform_index(_LONGEST_WAY, entropy) / 1e6)
                os.write(end, f"{number} {request} {question} {answer or '-'}\n".encode())
                self._phase[0] = IDLE

    def _request(self, number: int) -> tuple[str, str]:
        """Every fourth question is one that the other writers ask at about the same time."""
        whose = "all" if number % 4 == 0 else str(self._slot)
        return sha256(f"{whose} {number}".encode()).hexdigest(), f"{self._slot}-{number}"


def _forked(work: Callable[[], None]) -> int:
    """Start a process that does the work and nothing else."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            work()
            status = 0
        except BrokenPipeError:  # the campaign is over, or was stopped
            pass
        except BaseException:
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(status)
    return process


def children(works: list[Callable[[], bytes]]) -> list[bytes]:
    """Do all the work at once, each in its own process, and return what each has to say."""
    start, go = os.pipe()
    pipes, processes = [], []
    for work in works:
        said, end = os.pipe()

        def task(work: Callable[[], bytes] = work, end: int = end) -> None:
            os.close(go)
            os.read(start, 1)  # all begin when the parent closes its end
            os.write(end, work())

        processes.append(_forked(task))
        os.close(end)
        pipes.append(said)
    os.close(go)
    os.close(start)
    said_by = dict.fromkeys(pipes, b"")
    waiting = set(pipes)
    while waiting:
        for pipe in select.select(list(waiting), [], [])[0]:
            data = os.read(pipe, 65536)
            said_by[pipe] += data
            if not data:
                waiting.discard(pipe)
                os.close(pipe)
    for process in processes:
        _, status = os.waitpid(process, 0)
        if status:
            raise RuntimeError(f"a process failed: status {status}")
    return [said_by[pipe] for pipe in pipes]
