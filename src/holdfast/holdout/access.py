"""Access: the custodian gives out tokens, takes them back, and divides the budget by quotas."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

from holdfast.errors import Infeasible, InvalidInput, real_number
from holdfast.holdout.books import Books
from holdfast.holdout.door import Door
from holdfast.holdout.grants import ROLES, Grant, Role, hashed
from holdfast.ledger.ledger import Receipt
from holdfast.randomness import system_entropy, uniform_index

__all__ = ["Access"]

_LONGEST_NAME = 100
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: an id is read aloud
_SLACK = 1e-9  # 0.1 + 0.2 + 0.7 of a budget is all of it


class Access:
    """The grants of one holdout. They are notes in its ledger, and part of its chain."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def grants(self) -> tuple[Grant, ...]:
        """All that were ever made, the oldest first."""
        return self._door.read(lambda books: tuple(books.grants.all.values()))

    def identify(self, token: str) -> Grant | None:
        """The grant of a token, if it holds now."""

        def look(books: Books) -> Grant | None:
            grant = books.grants.find(token)
            return grant if grant is not None and grant.valid(books.grants.now()) else None

        return self._door.read(look)

    def holding(self) -> dict[str, Grant]:
        """Those that hold now, by their ids."""

        def look(books: Books) -> dict[str, Grant]:
            now = books.grants.now()
            return {name: each for name, each in books.grants.all.items() if each.valid(now)}

        return self._door.read(look)

    def grant(
        self,
        role: Role,
        *,
        name: str | None = None,
        expires: datetime | None = None,
        quota: float | None = None,
    ) -> tuple[Grant, str]:
        """A new grant and its token, which is shown here and never again."""
        if role not in ROLES:
            raise InvalidInput("role", role, f"one of {', '.join(ROLES)}")
        identity = "".join(_ALPHABET[uniform_index(32, system_entropy())] for _ in range(8))
        random = system_entropy().words(4).tobytes()
        token = f"hf_{identity}_{base64.urlsafe_b64encode(random).decode().rstrip('=')}"
        note = {
            "token": identity,
            "hash": hashed(token),
            "name": _name(name) if name is not None else identity,
            "role": role,
            "expires": None if expires is None else self._moment(expires),
            "quota": None if quota is None else _share(quota),
        }
        return self._note(note), token

    def revoke(self, identity: str) -> Grant:
        """End a grant, at once and for good."""
        return self._note({"token": identity, "revoked": True})

    def set_quota(self, identity: str, quota: float | None) -> Grant:
        """Give a grant another share of the budget; None for no limit of its own."""
        return self._note({"token": identity, "quota": None if quota is None else _share(quota)})

    def used(self, identity: str) -> dict[str, float]:
        """The share of every set's budget that questions of this grant have used."""
        return self._door.read(
            lambda books: {name: float(books[name].used_by(identity)) for name in books.names}
        )

    def _moment(self, expires: datetime) -> str:
        if expires.tzinfo is None:
            raise InvalidInput("expires", expires, "a moment with its time zone")
        now = self._door.read(lambda books: books.grants.now())
        if expires <= now:
            hint = (
                ""
                if expires <= datetime.now(UTC)
                else "The ledger has a row of that time, so this machine's clock is late, or one "
                "was early. Set it right, or make a token without an end."
            )
            allowed = f"in the future, after {now.isoformat(sep=' ', timespec='seconds')}"
            raise InvalidInput("expires", expires.isoformat(), allowed, hint)
        return expires.astimezone(UTC).isoformat(timespec="seconds")

    def _note(self, note: dict[str, Any]) -> Grant:
        with self._door.writing() as (transaction, books):
            known = books.grants.all
            if "hash" not in note and note["token"] not in known:
                hint = "`holdfast token list` shows them."
                raise InvalidInput("token", note["token"], "the id of a token", hint)
            if note.get("revoked") and known[note["token"]].revoked is not None:
                return known[note["token"]]
            if note.get("quota") is not None:
                _divided(books, note["token"], note["quota"])
            row = transaction.append("noted", {"access": note})
            books.read([row])
            made = books.grants.all[note["token"]]
        # A copy of the folder from before would bring back what was revoked: let it be noticed.
        self._door.witness.see(Receipt(self._door.ledger.holdout, row.number, row.digest))
        return made


def _divided(books: Books, identity: str, quota: float) -> None:
    """Quotas divide one budget: those that hold add up to at most all of it."""
    now = books.grants.now()
    rest = [each for each in books.grants.all.values() if each.id != identity]
    others = sum(each.quota or 0.0 for each in rest if each.valid(now))
    if others + quota > 1 + _SLACK:
        needed = f"quotas that add up to at most 1, and this one is {quota:g}"
        remedy = "Take a smaller share, or make the others smaller, or revoke one first."
        raise Infeasible("Quotas divide one budget", needed, f"others hold {others:g}", remedy)


def _name(name: str) -> str:
    text = name.strip()
    if not text or len(text) > _LONGEST_NAME or not text.isprintable():
        raise InvalidInput("name", name, f"1 to {_LONGEST_NAME} printable characters")
    return text


def _share(quota: float) -> float:
    return real_number("quota", quota, 0, 1, open_low=True)
