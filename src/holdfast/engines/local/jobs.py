"""A job: what a worker must know to evaluate one question, apart from the blocks."""

from __future__ import annotations

import itertools
import pickletools
import pkgutil
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from holdfast.engines.local.identity.modules import version
from holdfast.errors import InvalidInput
from holdfast.protocols.source import UNIT, Bounds

__all__ = ["Job", "Limits", "Part", "pack", "packages", "surroundings"]

_packing = threading.Lock()
_MOST_STEPS = 200_000  # of a pickle, read for the names of packages


@dataclass(frozen=True)
class Limits:
    """What one evaluation may take."""

    block_seconds: float
    """For one block."""
    batch_seconds: float
    """For one call with many blocks."""
    load_seconds: float
    """Until the function and the modules that it needs are loaded."""
    memory: int
    """Bytes, above what the process has when it starts."""


@dataclass(frozen=True)
class Part:
    """How one function of a question is called."""

    kind: str
    """What its blocks are given as."""
    columns: tuple[str, ...]
    vectorised: bool


@dataclass(frozen=True)
class Job:
    """One question: pickled functions, and how to call them."""

    payloads: tuple[bytes | None, ...]
    parts: tuple[Part | None, ...]
    """Of values: the function. Of sums: the term and the filter, each of which may be missing."""
    sums: bool
    units: int
    grouped: bool
    """Whether units may have several rows."""
    limits: Limits
    path: tuple[str, ...]
    folder: str
    packages: tuple[str, ...]
    explain: bool = False
    """Whether the first failure may be told: on public data only."""
    bounds: Bounds = UNIT
    """Of sums: what the terms are cut to, and scaled from."""
    failure: float = 0.0
    """Of sums: what a row counts as on which the term fails: 0 the low bound, 1 the high one."""
    outside: bool = False
    """Whether, in place of a block's sum, the term is wanted that leaves the bounds by most."""
    strict: bool = False
    """Whether a block fails on most of whose rows a term fails: on public data only."""

    @property
    def vectorised(self) -> bool:
        """Whether the functions are written for many blocks at once."""
        return all(part is None or part.vectorised for part in self.parts)

    @property
    def batched(self) -> bool:
        """Whether many blocks can be taken at once: a row's term depends on that row alone."""
        return self.sums or self.vectorised

    @property
    def needs(self) -> dict[str, tuple[str, ...]]:
        """The columns that the parts get, by the kind of their blocks."""
        found: dict[str, dict[str, None]] = {}
        for part in self.parts:
            if part is not None:
                found.setdefault(part.kind, {}).update(dict.fromkeys(part.columns))
        return {kind: tuple(names) for kind, names in found.items()}


def pack(functions: Iterable[object], modules: Iterable[str]) -> bytes:
    """Functions as bytes; those of the user's own modules with their code.

    By their code they bring their globals along, as they are now and new for every block. Where
    that fails they travel by name, and the worker imports their modules.
    """
    import cloudpickle

    everything = tuple(functions)
    own = [sys.modules[name] for name in sorted(modules) if name in sys.modules]
    with _packing:
        known = cloudpickle.list_registry_pickle_by_value()
        new = [module for module in own if module.__name__ not in known]
        for module in new:
            cloudpickle.register_pickle_by_value(module)
        try:
            return bytes(cloudpickle.dumps(everything))
        except Exception:
            pass
        finally:
            for module in new:
                cloudpickle.unregister_pickle_by_value(module)
        try:
            return bytes(cloudpickle.dumps(everything))
        except Exception as error:
            hint = f"It cannot be sent to another process ({type(error).__name__}: {error})."
            allowed = "a function that can be pickled"
            function = next(each for each in everything if each is not None)
            raise InvalidInput("function", function, allowed, hint) from None


def packages(payloads: Iterable[bytes | None]) -> tuple[str, ...]:
    """The modules of installed packages that pickles name: a worker may load them once.

    Of those that are not loaded here, the packages: a function may import them when it is called.
    """
    found = set()
    for payload in payloads:
        steps = itertools.islice(pickletools.genops(payload or b"N."), _MOST_STEPS)
        texts = {argument for _, argument, _ in steps if isinstance(argument, str)}
        found |= texts & set(sys.modules)
        tops = {text.partition(".")[0] for text in texts}
        found |= tops & _importable(tuple(sys.path)) - sys.stdlib_module_names
    return tuple(sorted(name for name in found - {"__main__"} if _versioned(name)))


@cache
def _importable(path: tuple[str, ...]) -> frozenset[str]:
    """What can be imported from this path; nothing is."""
    return frozenset(each.name for each in pkgutil.iter_modules(path))


def _versioned(name: str) -> bool:
    try:
        return version(name) is not None
    except Exception:
        return False


def surroundings() -> tuple[tuple[str, ...], str]:
    """Where the user's modules are found: the path of imports, and the folder of work."""
    folder = _folder()
    path = tuple(each or folder for each in sys.path)
    return path, folder


def _folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return "/"
