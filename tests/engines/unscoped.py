"""Workers as on a kernel before Linux 6.12: whoever is confined may still send signals.

Without that, no function here could end a worker, and nothing would show what becomes of its
blocks. `start` takes the place of the local engine's own worker; Dask loads this module into its
workers by the setting distributed.worker.preload, and calls `dask_setup`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.engines.python import engine as engine_module
from holdfast.engines.python import sandbox, worker

__all__ = ["UNSCOPED", "dask_setup", "start"]

UNSCOPED = "tests.engines.unscoped"
_NEVER = 2**31


def start(setup: worker.WorkerSetup) -> Callable[[Any], bytes]:
    """Runs in the process that forks: its forks are confined by what it finds here."""
    sandbox._SCOPE_VERSION = _NEVER
    return worker.start(setup)


def dask_setup(_: object) -> None:
    """Runs in a Dask worker, before it takes tasks."""
    engine_module._WORKER = UNSCOPED
