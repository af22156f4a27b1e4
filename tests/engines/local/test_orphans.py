"""No process of the local engine outlives the process that asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.engines.local.stores import processes

ORPHAN = """
import os, sys, time
from pathlib import Path
from tests.engines.local.stores import make_store, mixed_rows
from holdfast.engines.python.engine import LocalEngine
from holdfast.engines.python.estimator import local_estimator

def slow(frame):
    import time
    time.sleep(600)
    return 1.0

if __name__ == "__main__":
    store = make_store(Path(sys.argv[1]), mixed_rows(320), 16)
    engine = LocalEngine(store, workers=2, block_time_limit=600)
    print(len(engine.values(local_estimator(len))), flush=True)
    engine.values(local_estimator(slow))
"""


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_its_parent(ended_by: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(ORPHAN, "utf-8")
    path = os.pathsep.join([str(Path(__file__).parents[3]), *filter(None, sys.path)])
    mark = f"LC_ORPHAN={tmp_path}"
    parent = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "store")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path, "LC_ORPHAN": str(tmp_path)},
    )
    deadline = time.monotonic() + 120
    with parent:
        try:
            assert parent.stdout is not None
            assert parent.stdout.readline() == b"16\n"
            seen: list[int] = []  # a fork of the first question may not be gone yet
            while time.monotonic() < deadline and (len(seen) < 5 or seen != processes(mark)):
                seen = processes(mark)
                time.sleep(0.5)
            assert len(seen) == 5  # the script, two workers, and two forks at work
            parent.send_signal(ended_by)
            parent.wait(120)
        finally:
            parent.kill()
    deadline = time.monotonic() + 120
    while processes(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes(mark) == []
