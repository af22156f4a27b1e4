"""Requests: what a study wants of each protocol. A joint plan is made for several of them.

Each request knows how many blocks it would need at a given setting (roughly, for the search over
settings), and makes the part that keeps its promise (exactly: it is then certified).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from holdfast.planning.parts.base import Part
from holdfast.theory.divergence import Curve, RenyiCurve
from holdfast.theory.transfer import decisive_mass

__all__ = ["FLOOR", "Request", "Setting", "share_from", "two_sided"]

FLOOR = 1e-6  # chance, times looks over β, at which coins level off: it costs next to nothing


@dataclass(frozen=True)
class Setting:
    """Order and limit of the whole budget; what one request may use of it and of β."""

    order: float
    limit: float
    own: float
    failure: float

    @property
    def curve(self) -> Curve:
        return RenyiCurve(self.order, self.limit)

    def drift(self, tail: float, failure: float) -> float:
        """The share of blocks below which the sample proves nothing about a tail."""
        return decisive_mass(self.curve, tail, failure) / failure


class Request(ABC):
    """What a study wants of one protocol."""

    protocol: ClassVar[str]
    queries: int
    name: str
    subblocks: int = 1  # as in the part

    @property
    def key(self) -> str:
        """The name of its part: its own, or the protocol's."""
        return self.name or self.protocol

    def starts(self) -> tuple[tuple[float, ...], ...]:
        """Where to start the search for the request's own parameters."""
        return ((),)

    @property
    @abstractmethod
    def width(self) -> float:
        """How far apart the tails are: the size of the promise, for first guesses of settings."""

    def settings_start(self, failure: float) -> tuple[float, float]:
        """Order − 1 and budget near which good plans of this width have been found."""
        width, nats = max(self.width, 0.02), max(1.0, -math.log(failure) / 3)
        excess = (4 + 28 * (1 - width) / width) * nats
        return min(excess, 60.0), 0.8 * width**3

    @abstractmethod
    def rough_blocks(self, setting: Setting, own: Sequence[float]) -> float:
        """The blocks that the setting needs, as a real number; infinite if none is enough."""

    @abstractmethod
    def part(
        self, setting: Setting, own: Sequence[float], blocks: int, limit: float | None = None
    ) -> Part | None:
        """The part at this setting, certified or not; None if no target fits these blocks.

        `limit` is the budget of the whole plan once all its coins are measured.
        """


def share_from(logit: float) -> float:
    """A share of β between 0.2 % and 99.8 %."""
    return 1 / (1 + math.exp(-min(max(logit, -6.0), 6.0)))


def two_sided(
    setting: Setting, tails: tuple[float, float], shares: tuple[float, float], reaches: float
) -> float:
    """Blocks for two failure classes with the best target between them."""
    low, high = (setting.drift(t, f) for t, f in zip(tails, shares, strict=True))
    return reaches / (1 - low - high) if low + high < 1 else math.inf
