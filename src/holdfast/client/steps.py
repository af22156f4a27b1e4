"""Steps: what a conversation with a server consists of, whoever carries it out.

A conversation is a generator. It yields a call or a pause, is told what came of it, and returns its
result. `Client` carries the steps out one after another; `AsyncClient` awaits them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

__all__ = ["Call", "Lost", "Outcome", "Pause", "Reply", "Steps"]

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One request to the server: a path below its address, and what travels with it.

    A call with a key, or one that changes nothing (`safe`), may be repeated.
    """

    method: str
    path: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    content: bytes | None = None
    kind: str | None = None  # the media type of the content
    key: str | None = None
    safe: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether a second call of it does no harm."""
        return self.safe or self.key is not None

    @property
    def headers(self) -> dict[str, str]:
        """The headers that belong to this call alone."""
        headers = {} if self.key is None else {"Idempotency-Key": self.key}
        return headers if self.kind is None else {**headers, "Content-Type": self.kind}


@dataclass(frozen=True)
class Reply:
    """What the server said. Names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Lost:
    """No reply came. Another try may help (`again`); this one may have been heard (`sent`)."""

    reason: str
    again: bool = True
    sent: bool = True


@dataclass(frozen=True)
class Pause:
    """Wait so long."""

    seconds: float


Outcome = Reply | Lost | None  # of a pause there is none
Steps = Generator[Call | Pause, Outcome, T]
