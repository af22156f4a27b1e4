"""Tallies: protocols that are charged in things said, not in looks, count them here.

A count is raised to its worst case before anything is evaluated, and put right afterwards. A
`keeper` hears of the worst case in between: a durable ledger writes it down, so that a crash leaves
it charged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from holdfast.errors import InvalidInput

__all__ = ["Keeper", "Tallied"]

Keeper = Callable[[Mapping[str, int]], None]


class Tallied:
    """What has been said, as whole numbers by name; `counts` names the attributes."""

    counts: ClassVar[tuple[str, ...]]
    keeper: Keeper | None = None

    @property
    def tally(self) -> dict[str, int]:
        """All that a later object needs to go on from here."""
        return {name: getattr(self, f"_{name}") for name in self.counts}

    def restore(self, tally: Mapping[str, int]) -> None:
        """Go on from an earlier object's tally."""
        if set(tally) != set(self.counts):
            raise InvalidInput("tally", sorted(tally), f"with {', '.join(self.counts)}")
        for name in self.counts:
            if type(tally[name]) is not int or tally[name] < 0:
                raise InvalidInput(name, tally[name], "a whole number from 0")
            setattr(self, f"_{name}", tally[name])

    def _charged(self) -> None:
        """The counts stand at their worst case: from here on something may be said."""
        if self.keeper is not None:
            self.keeper(self.tally)
