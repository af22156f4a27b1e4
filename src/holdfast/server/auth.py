"""Who asks, and what they may do: the holdouts that are served, tokens, and callers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.concurrency import Closing
from holdfast.engines.source import Limits
from holdfast.errors import InvalidInput
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.tokens import Asker, Role, Token
from holdfast.server.errors import HttpError
from holdfast.server.schedule import Pacing, Schedule

__all__ = ["Authenticator", "Caller", "Holdouts", "Served", "address_name"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ANYONE = "anyone"  # who asks without a token


@dataclass(frozen=True)
class Served:
    """One holdout under the name that addresses use."""

    name: str
    holdout: Holdout
    schedule: Schedule = field(default_factory=Schedule)

    @property
    def open_to_all(self) -> bool:
        """Whether no token was ever given out for it. One that was revoked still counts."""
        return not self.holdout.access.grants()


class Holdouts(Closing):
    """All holdouts of one server."""

    def __init__(
        self, folders: Iterable[Path], engine: str | None = None, limits: Limits | None = None
    ) -> None:
        self._served: dict[str, Served] = {}
        try:
            for folder in folders:
                name = address_name(folder)
                if name in self._served:
                    hint = "Rename one of the folders: addresses are made of their names."
                    raise InvalidInput("DIR", str(folder), "folders with different names", hint)
                holdout = Holdout.open(folder, engine=engine, limits=limits)
                self._served[name] = Served(name, holdout)
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[Served]:
        return iter(self._served.values())

    def get(self, name: str) -> Served | None:
        """The holdout of this name, if there is one."""
        return self._served.get(name)

    def close(self) -> None:
        """Close them all."""
        for each in self._served.values():
            each.holdout.close()


def address_name(folder: Path) -> str:
    """The name of a folder in addresses, without its ending.

    >>> address_name(Path("data/flights.holdfast"))
    'flights'
    """
    name = folder.resolve().name.removesuffix(".holdfast")
    if not _NAME.fullmatch(name):
        hint = "Rename the folder: its name becomes part of an address."
        allowed = "a folder whose name has only letters, digits, dots, hyphens and underscores"
        raise InvalidInput("DIR", folder.name, allowed, hint)
    return name


NewPacing = Callable[[Served, Callable[[], None]], Pacing]
Sick = Callable[[Served, Exception], None]


@dataclass(frozen=True)
class Caller:
    """Who asks one holdout."""

    served: Served
    grant: Token | None
    """None where no token is needed."""
    pacing: Pacing
    """Of the one question that they ask."""

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
        return self.served.holdout.on_behalf(self.asker, self.pacing)

    def request(self, key: str | None) -> str | None:
        """Their idempotency key, which nobody else can use."""
        return None if key is None else f"{self.asker.id}/{key}"


class Authenticator:
    """Lets in whoever has a token that holds. A holdout that cannot be read keeps out nobody else.

    `sick` is told of it.
    """

    def __init__(
        self, holdouts: Holdouts, *, open_to_all: bool, pacing: NewPacing, sick: Sick
    ) -> None:
        self._holdouts, self._open, self._pacing, self._sick = holdouts, open_to_all, pacing, sick
        # Which tokens held when that could last be read, by the ids that they begin with.
        self._held = {
            (each.name, name) for each in holdouts for name in each.holdout.access.holding()
        }
        self._opened = {each.name for each in holdouts if open_to_all and each.open_to_all}

    def caller(self, name: str, token: str | None, role: Role) -> Caller:
        """Whoever asks this holdout with at least this role, or an `HttpError`.

        A token for another holdout does not even learn that this one exists.
        """
        served = self._holdouts.get(name)
        if token is None:
            if served is None or not self._is_open(served):
                raise _unknown(given=False)
            return self._allowed(served, None, role)
        grant = None if served is None else self._grant(served, token)
        if served is None or grant is None:
            if self.callers(token)[0]:
                raise HttpError("not_found", "There is no such holdout for this token.")
            raise _unknown(given=True)
        return self._allowed(served, grant, role)

    def callers(self, token: str | None) -> tuple[list[Caller], dict[str, Exception]]:
        """The token, or none, at all holdouts where it holds.

        And those that it held at before and that cannot be read now, with the reason.
        """
        found, away = [], {}
        for served in self._holdouts:
            try:
                grant = None if token is None else self._grant(served, token)
                holds = grant is not None or (token is None and self._is_open(served))
            except Exception as error:
                away[served.name] = error
                continue
            if holds:
                found.append(Caller(served, grant, self._pacing(served, _go_on)))
        return found, away

    def again(self, caller: Caller, wanted: Callable[[], None]) -> Caller:
        """The caller as of now, for a job: a token may have ended since, or have another quota.

        Its answer is recorded only if `wanted` does not raise at the end of a slot: whether an
        evaluation had ended when it was cancelled is then not seen.
        """
        served, grant = caller.served, caller.grant
        if grant is not None:
            grant = served.holdout.access.holding().get(grant.id)
        if grant is None and (caller.grant is not None or not served.open_to_all):
            raise _unknown(given=caller.grant is not None)
        return Caller(served, grant, self._pacing(served, wanted))

    def _allowed(self, served: Served, grant: Token | None, role: Role) -> Caller:
        caller = Caller(served, grant, self._pacing(served, _go_on))
        if not (role != "custodian" if grant is None else grant.allows(role)):
            raise HttpError("forbidden", f"This needs the role {role}; yours is {caller.role}.")
        return caller

    def _is_open(self, served: Served) -> bool:
        """Whether it needs no token; where nobody can read that, whether it needed none before."""
        try:
            found = self._open and served.open_to_all
        except Exception as error:
            self._sick(served, error)
            if served.name in self._opened:
                raise
            return False
        (self._opened.add if found else self._opened.discard)(served.name)
        return found

    def _grant(self, served: Served, token: str) -> Token | None:
        """What a token may do; None where nobody can read that, unless it held there before."""
        try:
            grant = served.holdout.access.identify(token)
        except Exception as error:
            self._sick(served, error)
            if (served.name, token[3:11]) in self._held:
                raise
            return None
        if grant is not None:
            self._held.add((served.name, grant.id))
        return grant


def _go_on() -> None:
    """Nobody has cancelled it."""


def _unknown(*, given: bool) -> HttpError:
    message = "This token is unknown, expired or revoked." if given else "No token was given."
    return HttpError("unauthorized", message)
