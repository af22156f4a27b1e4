"""One pass over a value and all that it refers to, in an order that no address and no seed changes.

A value that can be changed is written out when it is met first; when it is met again, the number of
the first meeting is written. That ends every cycle, keeps the time linear, and tells one list used
twice from two equal lists. Values that cannot be changed are always written out: whether Python
shares them is an accident.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["Encoder", "Identity", "Unhashable", "identify"]

_FORMAT = "holdfast callable 1"
_MOST_VALUES = 500_000  # beyond, hashing takes longer than asking: no identity


class Unhashable(Exception):
    """A value that may change what a function gives, and cannot be read."""


@dataclass(frozen=True)
class Identity:
    """A hash, or None; and the user's own modules whose functions and classes it has read."""

    digest: str | None
    modules: frozenset[str]


class Encoder:
    """Writes values, each with its type, into one hash."""

    def __init__(self, outer: Encoder | None = None) -> None:
        self._hash = hashlib.sha256()
        self._met: dict[int, int] = {}
        self._kept: list[object] = []  # what is met stays alive, or its id would come again
        self._left: list[int] = [_MOST_VALUES] if outer is None else outer._left
        self.modules: set[str] = set() if outer is None else outer.modules

    def write(self, kind: str, *parts: str | bytes | int) -> None:
        """A kind and its parts, each with its length: no two lists of parts look the same."""
        self._left[0] -= 1
        if self._left[0] < 0:
            raise Unhashable(kind)
        for part in (kind, len(parts), *parts):
            data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
            self._hash.update(b"%d:" % len(data))
            self._hash.update(data)

    def add(self, value: object) -> None:
        """Any value; `Unhashable`, or what its own methods raise, if it cannot be read."""
        from holdfast.engines.local.identity.data import PLAIN
        from holdfast.engines.local.identity.functions import add_object

        plain: Callable[[Encoder, Any], None] | None = PLAIN.get(type(value))
        if plain is not None:
            plain(self, value)
            return
        first = self._met.setdefault(id(value), len(self._met))
        if first < len(self._kept):
            self.write("again", first)
            return
        self._kept.append(value)
        add_object(self, value)

    def add_all(self, kind: str, values: Iterable[object]) -> None:
        """Values in their order."""
        listed = list(values)
        self._kept.append(listed)
        self._met.setdefault(id(listed), len(self._met))  # keep both of equal length
        self.write(kind, len(listed))
        for value in listed:
            self.add(value)

    def add_names(self, kind: str, values: dict[str, Any]) -> None:
        """Values by name; the order in which the names came is no part of it."""
        self.write(kind, len(values))
        for name in sorted(values):
            self.write("name", name)
            self.add(values[name])

    def add_set(self, kind: str, values: Iterable[object]) -> None:
        """Values without an order, sorted by what they hash to."""
        self.write(kind, *sorted(self.apart(value) for value in values))

    def apart(self, value: object) -> bytes:
        """The hash of a value by itself."""
        inner = Encoder(self)
        inner.add(value)
        return inner._hash.digest()

    def digest(self) -> str:
        """The hash of everything written so far, in hexadecimal."""
        return self._hash.hexdigest()


def identify(value: object) -> Identity:
    """The identity of a function, or of anything else that may be part of a question.

    >>> offset = 1
    >>> first = identify(lambda x: x + offset)
    >>> first.digest == identify(lambda x: x + offset).digest
    True
    >>> offset = 2
    >>> first.digest == identify(lambda x: x + offset).digest
    False
    >>> identify(lambda x: x + next(iter(x for x in [1]))).digest is None
    False
    >>> numbers = (x for x in [1])
    >>> identify(lambda x: x + next(numbers)).digest is None
    True
    """
    encoder = Encoder()
    major, minor, _ = platform.python_version_tuple()
    encoder.write(_FORMAT, platform.python_implementation(), major, minor)
    try:
        encoder.add(value)
    except Exception:  # a value's own methods may raise anything: then it has no identity
        return Identity(None, frozenset(encoder.modules))
    return Identity(encoder.digest(), frozenset(encoder.modules))
