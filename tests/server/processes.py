"""A server as a process of its own, for tests that need a real one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Running", "serving"]

_SECONDS = 120
_HOLDFAST = (sys.executable, "-c", "from holdfast.cli import main; main()")


@dataclass(frozen=True)
class Running:
    """A server that listens."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def stop(self) -> int:
        """Tell it to end, and wait until it has."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_SECONDS)


@contextmanager
def serving(*folders: Path, log: Path, options: tuple[str, ...] = ()) -> Iterator[Running]:
    """`holdfast serve` on a free port of this machine, until the block ends."""
    words = [str(folder) for folder in folders]
    command = [*_HOLDFAST, "serve", *words, "--port", "0", "--json", *options]
    with log.open("w", encoding="utf-8") as lines:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=lines, text=True, env={**os.environ}
        )
    try:
        assert process.stdout is not None
        told: dict[str, Any] = json.loads(process.stdout.readline() or "{}")
        assert "url" in told, log.read_text(encoding="utf-8")
        yield Running(told["url"], process, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(_SECONDS)
        assert process.stdout is not None
        process.stdout.close()
