"""Optimal coins on disk: the parameters found for a promise or a plan, never the proof.

Reading is safe against any content: a hit is rebuilt and certified like everything else, and is
used only if it reproduces the number of blocks stored with it. Writing is atomic (a temporary
file, then `os.replace`), and a cache that cannot be read or written is no cache, never an error.

The folder is $HOLDFAST_CACHE, else $XDG_CACHE_HOME/holdfast, else ~/.cache/holdfast;
HOLDFAST_CACHE=off turns it off.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.theory.divergence import ORDER_MAX, ORDER_MIN
from holdfast.theory.sizing import (
    LENGTH_MAX,
    Promise,
    Sized,
    best_steepest,
    steepest_at,
    table_length,
)

__all__ = ["cache_folder", "recall", "remember", "steepest"]

_FORMAT = 2  # raise it whenever the search or the theorem behind it changes
_SIZE_MAX = 4096  # bytes; an entry has about 200


def recall(key: str, length: int) -> tuple[list[float], int] | None:
    """So many parameters and the number of blocks stored under a key, or None. Trust neither."""
    folder = cache_folder()
    known = None if folder is None else _numbers(folder / f"{_hash(key)}.json")
    if known is None or len(known) != length + 1 or not isinstance(known[-1], int):
        return None
    parameters = known[:-1]
    if not all(isinstance(v, float) and math.isfinite(v) for v in parameters):
        return None
    return parameters, known[-1]


def remember(key: str, parameters: Sequence[float], blocks: int) -> None:
    """Store the parameters that were found, for `recall`."""
    folder = cache_folder()
    if folder is not None:
        _write(folder / f"{_hash(key)}.json", [*map(float, parameters), blocks])


def steepest(promise: Promise, target: float | None = None) -> Sized:
    """`best_steepest`, remembered."""
    folder = cache_folder()
    if folder is None:
        return best_steepest(promise, target)
    path = folder / f"{_key(promise, target)}.json"
    known = _read(path)
    if known is not None:
        sized = _rebuilt(promise, target, *known)
        if sized is not None:
            return sized
    sized = best_steepest(promise, target)
    _write(path, [*sized.parameters, sized.size.blocks])
    return sized


def _rebuilt(
    promise: Promise, target: float | None, order: float, budget: float, share: float, blocks: int
) -> Sized | None:
    """The remembered coin, built and certified again; None if that does not give its blocks."""
    if table_length(promise, order, budget) > LENGTH_MAX:
        return None
    try:
        sized = steepest_at(promise, order, budget, share, target)
    except (InvalidInput, ArithmeticError):
        return None
    return sized if sized is not None and sized.size.blocks == blocks else None


def cache_folder() -> Path | None:
    """Where entries are kept, or None if the cache is off."""
    named = os.environ.get("HOLDFAST_CACHE", "")
    if named.lower() in ("off", "0", "no"):
        return None
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "holdfast"
    except RuntimeError:  # no home directory
        return None


def _key(promise: Promise, target: float | None) -> str:
    return _hash(json.dumps([_FORMAT, asdict(promise), target], sort_keys=True))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _numbers(path: Path) -> list[Any] | None:
    """The list in a file of modest size; None if there is no such thing."""
    try:
        if path.stat().st_size > _SIZE_MAX:
            return None
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, list) else None


def _read(path: Path) -> tuple[float, float, float, int] | None:
    known = _numbers(path)
    if known is None or len(known) != 4:
        return None
    order, budget, share, blocks = known
    sound = (
        all(isinstance(v, float) and math.isfinite(v) for v in (order, budget, share))
        and isinstance(blocks, int)
        and ORDER_MIN <= order <= ORDER_MAX
        and 1e-12 < budget < 1e3
        and 0 < share < 1
    )
    return (order, budget, share, blocks) if sound else None


def _write(path: Path, entry: list[float]) -> None:
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(entry, file)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
