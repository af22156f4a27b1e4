"""A question as it travels to Dask workers: the store, the estimators, the limits, the versions.

Python functions travel as the pickles that their estimators hold; a Dask worker hands them on to
the processes that it starts, and never loads them itself.
"""

from __future__ import annotations

import importlib
import pickle
import platform
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from holdfast.engines.dask.trials import Trial
from holdfast.engines.local.estimators import LocalEstimator
from holdfast.engines.local.identity.modules import version
from holdfast.engines.local.jobs import packages
from holdfast.engines.source import Limits
from holdfast.errors import Unavailable
from holdfast.protocols.source import UNIT, Bounds

__all__ = ["Question", "Versions", "check_versions", "pack", "question", "versions"]

Versions = tuple[tuple[str, str], ...]  # of each module, what is installed

# What a value may depend on, beside the packages that a function names.
_MODULES = ("holdfast", "sys", "duckdb", "numpy", "pandas", "pyarrow", "cloudpickle")
_MACHINE = "machine"


def _travelled(_: object) -> object:
    """Stands for a function that is in the estimator's pickle."""
    raise NotImplementedError


@dataclass(frozen=True)
class Question:
    """What is asked of ranges of blocks. Made by `question`."""

    store: bytes
    """The store, pickled: workers tell stores apart by it."""
    functions: tuple[Any, ...]
    """Of values: the estimator. Of sums: the term and the condition, each of which may be None."""
    sums: bool
    limits: tuple[float, float, int]
    packages: tuple[str, ...]
    """The modules that the functions name: a worker's processes load them once."""
    trials: tuple[Trial | None, ...] = ()
    """Of each function that was tried, what it gave on public blocks."""
    bounds: Bounds = UNIT
    """Of sums: what the terms are cut to, and scaled from."""

    def own_limits(self) -> Limits:
        """The limits, for one thread of a worker."""
        block_seconds, seconds, memory = self.limits
        return Limits(block_seconds=block_seconds, seconds=seconds, memory=memory, workers=1)

    def load_packages(self) -> None:
        """Import what the functions name, so that it is known to be there."""
        for name in self.packages:
            with suppress(Exception):
                importlib.import_module(name)


def question(
    store: bytes,
    functions: Iterable[Any],
    limits: Limits,
    *,
    sums: bool,
    trials: Iterable[Trial | None] = (),
    bounds: Bounds = UNIT,
) -> Question:
    """A question, without anything that only this process could load."""
    stripped = tuple(_stripped(each) for each in functions)
    payloads = [each.payload for each in stripped if isinstance(each, LocalEstimator)]
    return Question(
        store=store,
        functions=stripped,
        sums=sums,
        limits=(limits.block_seconds, limits.seconds, limits.memory),
        packages=packages(payloads),
        trials=tuple(trials),
        bounds=bounds,
    )


def pack(value: object) -> bytes:
    """Plain data as bytes."""
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def versions(packages: Iterable[str] = ()) -> Versions:
    """What is installed here, of Holdfast's own packages and of these."""
    tops = (name.partition(".")[0] for name in packages)
    names = dict.fromkeys([*_MODULES, *tops, _MACHINE])
    return tuple((name, _stated(name)) for name in names)


def check_versions(wanted: Versions) -> None:
    """Refuse a worker whose values might differ from those of another."""
    for name, stated in wanted:
        found = _stated(name)
        if found != stated:
            needed = f"{stated} on every worker, as here"
            given = f"one on {platform.node()} has {found}"
            remedy = "Install the same versions on the scheduler and on all workers."
            raise Unavailable("Evaluating on the cluster", needed, given, remedy)


def _stripped(function: Any) -> Any:
    if not isinstance(function, LocalEstimator):
        return function
    one = None if function.function is None else _travelled
    many = None if function.batched is None else _travelled
    return replace(function, function=one, batched=many, tried=None)  # it was tried here


def _stated(name: str) -> str:
    if name == _MACHINE:
        return f"{platform.system()} on {platform.machine()}"
    try:
        return version(name) or f"{name} of unknown version"
    except Exception:  # it is not installed
        return f"no {name}"
