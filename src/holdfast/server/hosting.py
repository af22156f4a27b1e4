"""Hosting: the holdouts that a server has opened, by the names that its addresses use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.concurrency import Closing
from holdfast.errors import InvalidInput
from holdfast.holdout.holdout import Holdout
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.planning.joint import JointPlan

__all__ = ["Hosted", "Hosts", "address_name"]

_FEW_BLOCKS = 20_000  # whose values are counted in a moment
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Hosted:
    """One holdout under its name."""

    name: str
    holdout: Holdout
    is_light: bool
    """Whether a short question in SQL is little work, and waits only as `waiting` knows it."""

    @property
    def open_to_all(self) -> bool:
        """Whether no token was ever given out for it. One that was revoked still counts."""
        return not self.holdout.access.grants()


class Hosts(Closing):
    """All holdouts of one server."""

    def __init__(self, folders: Iterable[Path], engine: str | None = None) -> None:
        self._hosted: dict[str, Hosted] = {}
        try:
            for folder in folders:
                name = address_name(folder)
                if name in self._hosted:
                    hint = "Rename one of the folders: addresses are made of their names."
                    raise InvalidInput("DIR", str(folder), "folders with different names", hint)
                holdout = Holdout.open(folder, engine=engine)
                self._hosted[name] = Hosted(name, holdout, engine is None and _is_light(holdout))
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[Hosted]:
        return iter(self._hosted.values())

    def get(self, name: str) -> Hosted | None:
        """The holdout of this name, if there is one."""
        return self._hosted.get(name)

    def close(self) -> None:
        """Close them all."""
        for each in self._hosted.values():
            each.holdout.close()


def _is_light(holdout: Holdout) -> bool:
    """Not so where blocks must be fetched, with a ledger in a database, and beyond joint plans."""
    charter = holdout.charter
    return (
        charter.manifest.location is None
        and isinstance(holdout.door.ledger, SqliteLedger)
        and charter.seed is None
        and charter.cells is None
        and all(isinstance(each.plan, JointPlan) for each in charter.sets)
        and charter.manifest.blocks <= _FEW_BLOCKS
    )


def address_name(folder: Path) -> str:
    """The name of a folder in addresses, without its ending.

    >>> address_name(Path("data/flights.holdfast"))
    'flights'
    """
    name = folder.resolve().name
    name = name.removesuffix(".holdfast")
    if not _NAME.fullmatch(name):
        hint = "Rename the folder: its name becomes part of an address."
        allowed = "a folder whose name has only letters, digits, dots, hyphens and underscores"
        raise InvalidInput("DIR", folder.name, allowed, hint)
    return name
