"""What the workers of test_processes.py run."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["start"]


def start(setup: Any) -> Callable[[Any], bytes]:
    if setup == "broken":
        raise RuntimeError("no start")
    if setup == "slow":
        time.sleep(600)
    return handle


def handle(message: Any) -> bytes:
    name, argument = message
    result = TASKS[name](argument)
    return result if isinstance(result, bytes) else pickle.dumps(result)


def spawn(_: object) -> int:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid


def write(path: str) -> str:
    try:
        Path(path).write_text("x" * 100)
    except OSError as error:
        return type(error).__name__
    return "written"


def allocate(count: int) -> str:
    try:
        return str(len(bytearray(count)))
    except MemoryError:
        return "MemoryError"


TASKS: dict[str, Callable[[Any], object]] = {
    "echo": lambda argument: argument,
    "sleep": time.sleep,
    "exit": os._exit,
    "raise": lambda argument: [].index(argument),
    "spawn": spawn,
    "write": write,
    "allocate": allocate,
    "environment": lambda _: dict(os.environ),
    "print": lambda text: print(text, flush=True),
    "lie": lambda fd: os.write(fd, b"\xff" * 64) * b"",
}
