"""Identity: who is asking, and what they may do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.concurrency import Closing
from holdfast.errors import InvalidInput
from holdfast.holdout.grants import Asker, Grant, Role
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.sessions import Pace
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.planning.joint import JointPlan
from holdfast.server.errors import Fault

__all__ = [
    "Doorman",
    "Hosted",
    "Hosts",
    "Seat",
    "address_name",
]


# Hosting: the holdouts that a server has opened, by the names that its addresses use.


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


_ANYONE = "anyone"  # who asks without a token


@dataclass(frozen=True)
class Seat:
    """One asker at one holdout."""

    hosted: Hosted
    grant: Grant | None
    """None where no token is needed."""
    pace: Pace

    @property
    def role(self) -> Role:
        """What they may do. Whoever needs no token is an analyst, never a custodian."""
        return "analyst" if self.grant is None else self.grant.role

    @property
    def asker(self) -> Asker:
        """Whom their questions are recorded for."""
        return Asker(_ANYONE) if self.grant is None else self.grant.asker

    @property
    def holdout(self) -> Holdout:
        """The holdout, asked on their behalf."""
        return self.hosted.holdout.on_behalf(self.asker, self.pace)

    def cancellable(self, wanted: Callable[[], None]) -> Seat:
        """A seat whose answers are recorded only if `wanted` does not raise at the end of a slot.

        Whether an evaluation had ended when it was cancelled is then not seen.
        """

        def pace(start: float) -> None:
            self.pace(start)
            wanted()

        return replace(self, pace=pace)

    def request(self, key: str | None) -> str | None:
        """Their idempotency key, which nobody else can use."""
        return None if key is None else f"{self.asker.id}/{key}"


class Doorman:
    """Lets in whoever has a token that holds."""

    def __init__(self, hosts: Hosts, *, open_to_all: bool, pace: Pace) -> None:
        self._hosts, self._open, self._pace = hosts, open_to_all, pace

    def seat(self, name: str, token: str | None, role: Role) -> Seat:
        """A seat at this holdout for at least this role, or a `Fault`.

        A token for another holdout does not even learn that this one exists.
        """
        hosted = self._hosts.get(name)
        if token is None:
            if hosted is not None and self._open and hosted.open_to_all:
                return _allowed(Seat(hosted, None, self._pace), role)
            raise _unknown()
        grant = None if hosted is None else hosted.holdout.access.identify(token)
        if grant is None:
            if self.known(token):
                raise Fault("not_found", "There is no such holdout for this token.")
            raise _unknown()
        assert hosted is not None
        return _allowed(Seat(hosted, grant, self._pace), role)

    def seats(self, token: str | None) -> list[Seat]:
        """All seats that a token, or none, has here."""
        found = []
        for hosted in self._hosts:
            if token is not None:
                grant = hosted.holdout.access.identify(token)
                if grant is not None:
                    found.append(Seat(hosted, grant, self._pace))
            elif self._open and hosted.open_to_all:
                found.append(Seat(hosted, None, self._pace))
        if not found:
            raise _unknown()
        return found

    def again(self, seat: Seat) -> Seat:
        """The seat as it is now: a token may have ended since, or have another quota."""
        if seat.grant is None:
            if not seat.hosted.open_to_all:
                raise _unknown()
            return seat
        grant = seat.hosted.holdout.access.holding().get(seat.grant.id)
        if grant is None:
            raise _unknown()
        return replace(seat, grant=grant)

    def known(self, token: str) -> bool:
        """Whether the token holds at any holdout here."""
        return any(each.holdout.access.identify(token) is not None for each in self._hosts)


def _allowed(seat: Seat, role: Role) -> Seat:
    allowed = seat.grant.allows(role) if seat.grant is not None else role != "custodian"
    if not allowed:
        raise Fault("forbidden", f"This needs the role {role}; yours is {seat.role}.")
    return seat


def _unknown() -> Fault:
    message = (
        "A token is needed that holds: send `Authorization: Bearer TOKEN`. It may have expired or "
        "been revoked; the custodian makes one with `holdfast token create`."
    )
    return Fault("unauthorized", message)
