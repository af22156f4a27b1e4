"""Tokens: who may do what with a holdout, as the ledger's notes say it, and how they are given out.

    {"access": {"token": id, "hash", "name", "role", "expires", "quota", "nats"}}   granted
    {"access": {"token": id, "quota": …}} or {"token": id, "nats": …}               changed
    {"access": {"token": id, "revoked": true}}                                      ended

A quota is a share of the budget for looks, and nats for what is told, which the last answer may
pass; null: no limit of its own.

A token is never written down: the ledger keeps its hash. Whoever knows the hash cannot ask.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal, get_args

from holdfast.ledger.ledger import Row

__all__ = ["NATS", "ROLES", "Asker", "Role", "Token", "Tokens", "hashed"]

Role = Literal["viewer", "analyst", "custodian"]
ROLES: tuple[Role, ...] = get_args(Role)  # each may do what those before it may
NATS = 5.0  # that are told to one token, unless the custodian says otherwise
_TOKEN = re.compile(r"hf_[0-9a-z]{8}_[0-9A-Za-z_-]{43}")


@dataclass(frozen=True)
class Asker:
    """Whom a question is recorded for, and the share of every set's budget that is theirs."""

    id: str
    quota: float | None = None
    nats: float | None = None
    """They may ask until they were told so many, where answers are counted by what they tell."""


@dataclass(frozen=True)
class Token:
    """What one token allows."""

    id: str
    name: str
    role: Role
    created: str
    expires: str | None = None
    quota: float | None = None
    revoked: str | None = None  # when
    nats: float | None = NATS

    def allows(self, role: Role) -> bool:
        """Whether it allows what this role may do."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def valid(self, now: datetime) -> bool:
        """Whether it holds at this moment."""
        ended = self.expires is not None and datetime.fromisoformat(self.expires) <= now
        return self.revoked is None and not ended

    @property
    def asker(self) -> Asker:
        """Whom questions asked with it are recorded for."""
        return Asker(self.id, self.quota, self.nats)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


class Tokens:
    """All tokens of one holdout, up to some row of its ledger."""

    def __init__(self) -> None:
        self.all: dict[str, Token] = {}
        self.latest = ""  # moment of any row: all are written in one form, which sorts by time
        self._by_hash: dict[str, str] = {}

    def now(self) -> datetime:
        """The clock's moment, or that of the latest row, if the clock was set back since.

        What had expired when the latest row was written stays so.
        """
        now = datetime.now(UTC)
        return max(now, datetime.fromisoformat(self.latest)) if self.latest else now

    def read(self, row: Row) -> None:
        """Go on to a later note."""
        note: Mapping[str, Any] = row.body["access"]
        identity = str(note["token"])
        if "hash" in note:
            role: Role = note["role"]
            if role not in ROLES or identity in self.all:
                raise ValueError("a grant is made once, for a role")
            self.all[identity] = Token(
                identity,
                note["name"],
                role,
                row.at,
                note["expires"],
                note["quota"],
                nats=note["nats"],
            )
            self._by_hash[note["hash"]] = identity
        elif note.get("revoked") is True:
            self.all[identity] = replace(self.all[identity], revoked=row.at)
        else:
            name = "quota" if "quota" in note else "nats"
            self.all[identity] = replace(self.all[identity], **{name: note[name]})

    def find(self, token: str) -> Token | None:
        """The grant of a token, valid or not."""
        if not _TOKEN.fullmatch(token):
            return None
        identity = self._by_hash.get(hashed(token))
        return None if identity is None else self.all[identity]


def hashed(token: str) -> str:
    """What is kept of a token. It has 256 random bits: one round is enough."""
    return sha256(token.encode("utf-8")).hexdigest()
