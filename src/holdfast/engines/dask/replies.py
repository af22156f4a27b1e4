"""Replies of a Dask worker: numbers, or an error as data.

An exception would be pickled, logged by the worker with the arguments of its task, and might carry
more than it should. So tasks raise nothing: they say what is wrong in the words of an error that
Holdfast itself has made.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Damaged, HoldfastError, InvalidInput, Unavailable

__all__ = ["Numbers", "Reply", "error_reply", "numbers_of", "numbers_reply", "other_reply"]

Reply = tuple[str, bytes]
Numbers = NDArray[np.float64] | NDArray[np.int64]

_NUMBERS, _OTHER = "numbers", "other"
_FIELDS: dict[str, tuple[type[HoldfastError], tuple[str, ...]]] = {
    "damaged": (Damaged, ("what", "expected", "found", "remedy")),
    "invalid": (InvalidInput, ("parameter", "value", "allowed", "hint")),
    "unavailable": (Unavailable, ("what", "needed", "given", "remedy")),
}


def numbers_reply(numbers: Numbers) -> Reply:
    """Numbers, as bytes that nobody has to unpickle."""
    return _NUMBERS, numbers.tobytes()


def error_reply(error: Exception) -> Reply:
    """An error; of one that Holdfast has not made, only the kind."""
    for name, (kind, fields) in _FIELDS.items():
        if isinstance(error, kind):
            facts: dict[str, Any] = {each: str(getattr(error, each)) for each in fields}
            return name, json.dumps(facts).encode("utf-8")
    return other_reply(type(error).__name__)


def other_reply(what: str) -> Reply:
    """Something that should not have happened, in a word."""
    return _OTHER, json.dumps({"what": what}).encode("utf-8")


def numbers_of(reply: Reply, blocks: int, *, integers: bool) -> Numbers:
    """The numbers of so many blocks; or else the error is raised."""
    name, body = reply
    if name == _NUMBERS and len(body) == 8 * blocks:
        return np.frombuffer(body, np.int64) if integers else np.frombuffer(body, np.float64)
    raise _error(name, body)


def _error(name: str, body: bytes) -> HoldfastError:
    facts = {"what": "a reply of another length"} if name == _NUMBERS else json.loads(body)
    if name in _FIELDS:
        kind, fields = _FIELDS[name]
        return kind(*(facts[each] for each in fields))
    needed, given = "a Dask worker that evaluates", f"one met {facts['what']}"
    remedy = "Look at the worker's machine: memory, disk, and the packages that are installed."
    return Unavailable("Evaluating on the cluster", needed, given, remedy)
