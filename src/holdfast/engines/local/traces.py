"""Traces: what a block's evaluation leaves behind in its process, and the next one could meet.

Blocks share a process because a process for each would cost more than most functions do. The
function itself is unpickled for every block, and the common generators start in the same state. If
any of the traces below is found, the process ends and the next block gets a new one. What is not
seen here is found by asking the first block again (see runner).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["Traces", "left_processes", "same_randomness"]

_MODULES = ("builtins", "math", "numpy", "pandas", "polars", "statistics")
_CLASSES = (("pandas", "DataFrame"), ("pandas", "Series"), ("polars", "DataFrame"))


def same_randomness() -> None:
    """Set the global generators to one state: what they give then depends on the block alone."""
    np.random.seed(0)  # noqa: NPY002 – the user's function may draw from it
    generator = sys.modules.get("random")  # it need not be loaded, and is not used here
    if generator is not None:
        generator.seed(0)


class Traces:
    """The state of the process when it was made, to compare with."""

    def __init__(self, modules: Iterable[str]) -> None:
        names = {*_MODULES, *modules}
        self._spaces: list[tuple[Mapping[str, Any], dict[str, Any]]] = []
        for name in sorted(names & set(sys.modules)):
            self._keep(vars(sys.modules[name]))
        for name, kind in _CLASSES:
            if name in sys.modules:
                self._keep(vars(getattr(sys.modules[name], kind)))
        self._environment = dict(_environment())
        self._folder = os.getcwd()  # noqa: PTH109 – asked after every block, and Path is slow
        self._depth = sys.getrecursionlimit()

    def _keep(self, space: Mapping[str, Any]) -> None:
        self._spaces.append((space, dict(space)))

    def found(self) -> bool:
        """Whether anything is left behind; also if it cannot be told."""
        try:
            return (
                threading.active_count() > 1
                or _environment() != self._environment
                or sys.getrecursionlimit() != self._depth
                or os.getcwd() != self._folder  # noqa: PTH109
                or left_processes()
                or any(_changed(*pair) for pair in self._spaces)
            )
        except Exception:
            return True


def _environment() -> Mapping[Any, Any]:
    """The environment as it is held: to compare it decoded would take longer than many blocks."""
    held: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
    return held


def _changed(space: Mapping[str, Any], kept: dict[str, Any]) -> bool:
    """Whether a namespace has changed; a module that was imported into it since is no change."""
    if space == kept:
        return False
    new = {name: value for name, value in space.items() if name not in kept}
    if not all(isinstance(value, ModuleType) for value in new.values()):
        return True
    kept.update(new)
    return bool(space != kept)


def left_processes() -> bool:
    """Whether a process was started, and runs or has ended unnoticed."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
