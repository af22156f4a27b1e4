"""What a custodian does: give out tokens, divide the budget by quotas, and copy the holdout."""

from __future__ import annotations

import base64
import hashlib
import math
import os
import uuid
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.errors import Damaged, Infeasible, InvalidInput, real_number
from holdfast.holdout.creation import folder_beside, remove_leftovers
from holdfast.holdout.spec import HoldoutSpec
from holdfast.holdout.state import HoldoutState, Journal
from holdfast.holdout.submissions import IDS_FILE, KEPT_FOLDER, Kept
from holdfast.holdout.tokens import NATS, ROLES, Role, Token, hashed
from holdfast.ledger.ledger import Ledger, Receipt
from holdfast.ledger.opening import ADDRESS, LEDGER, masked
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.randomness import system_entropy, uniform_index
from holdfast.store.blocks import CONTENTS_FILE, BlockStore, private, sync_folder

__all__ = ["Access", "Backup", "back_up"]

_LONGEST_NAME = 100
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: an id is read aloud
_SLACK = 1e-9  # 0.1 + 0.2 + 0.7 of a budget is all of it


class Access:
    """The grants of one holdout. They are notes in its ledger, and part of its chain."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def grants(self) -> tuple[Token, ...]:
        """All that were ever made, the oldest first."""
        return self._journal.read(lambda state: tuple(state.tokens.all.values()))

    def identify(self, token: str) -> Token | None:
        """The grant of a token, if it holds now."""

        def look(state: HoldoutState) -> Token | None:
            grant = state.tokens.find(token)
            return grant if grant is not None and grant.valid(state.tokens.now()) else None

        return self._journal.read(look)

    def holding(self) -> dict[str, Token]:
        """Those that hold now, by their ids."""

        def look(state: HoldoutState) -> dict[str, Token]:
            now = state.tokens.now()
            return {name: each for name, each in state.tokens.all.items() if each.valid(now)}

        return self._journal.read(look)

    def grant(
        self,
        role: Role,
        *,
        name: str | None = None,
        expires: datetime | None = None,
        quota: float | None = None,
        nats: float | None = NATS,
    ) -> tuple[Token, str]:
        """A new grant and its token, which is shown here and never again.

        `quota` is its share of the budget for looks, `nats` how much it is told before it may
        not ask any more; None for no limit of its own.
        """
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
            "nats": None if nats is None else _nats(nats),
        }
        return self._note(note), token

    def revoke(self, identity: str) -> Token:
        """End a grant, at once and for good."""
        return self._note({"token": identity, "revoked": True})

    def set_quota(self, identity: str, quota: float | None) -> Token:
        """Give a grant another share of the budget for looks; None for no limit of its own."""
        return self._note({"token": identity, "quota": None if quota is None else _share(quota)})

    def set_nats(self, identity: str, nats: float | None) -> Token:
        """Let a grant ask until it was told so many nats; None for no limit of its own."""
        return self._note({"token": identity, "nats": None if nats is None else _nats(nats)})

    def used(self, identity: str) -> dict[str, float]:
        """The share of every set's budget that questions of this grant have used."""
        return self._journal.read(
            lambda state: {name: float(each.used_by(identity)) for name, each in state.sets.items()}
        )

    def told(self, identity: str) -> float:
        """The nats that answers to this grant have told."""
        return self._journal.read(
            lambda state: math.fsum(each.told_to(identity) for each in state.sets.values())
        )

    def _moment(self, expires: datetime) -> str:
        if expires.tzinfo is None:
            raise InvalidInput("expires", expires, "a moment with its time zone")
        now = self._journal.read(lambda state: state.tokens.now())
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

    def _note(self, note: dict[str, Any]) -> Token:
        with self._journal.writing() as (transaction, state):
            known = state.tokens.all
            if "hash" not in note and note["token"] not in known:
                hint = "`holdfast token list` shows them."
                raise InvalidInput("token", note["token"], "the id of a token", hint)
            if note.get("revoked") and known[note["token"]].revoked is not None:
                return known[note["token"]]
            if note.get("quota") is not None:
                _divided(state, note["token"], note["quota"])
            row = transaction.append("noted", {"access": note})
            state.read([row])
            made = state.tokens.all[note["token"]]
        # A copy of the folder from before would bring back what was revoked: let it be noticed.
        self._journal.witnessed(row)
        return made


def _divided(state: HoldoutState, identity: str, quota: float) -> None:
    """Quotas divide one budget, if there is one: those that hold add up to at most all of it."""
    if all(each.past is not None for each in state.sets.values()):
        hint = "This holdout has no budget of looks: limit what is told with nats (--nats 20)."
        raise InvalidInput("quota", quota, "left out where nothing is charged to a budget", hint)
    now = state.tokens.now()
    rest = [each for each in state.tokens.all.values() if each.id != identity]
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


def _nats(nats: float) -> float:
    return real_number("nats", nats, 0, open_low=True)


# Backups: a copy of a holdout as of one moment, in a folder that its owner alone can read.
#
# The copy appears under its name when it is whole and on the disk. Before that it is a folder
# beside it, which an error removes, and the next backup to the same place if the process was
# killed.


_PIECE = 2**22  # bytes read at once


@dataclass(frozen=True)
class Backup:
    """What was copied, and what a person still has to see to.

    path       the copy's folder
    receipt    the head of the ledger that was copied, to be kept elsewhere
    files      what the copy has, by name
    size       bytes of them all
    left_out   what belongs to the holdout and is not in the copy, and what to do; mostly nothing
    """

    path: str
    receipt: str
    files: tuple[str, ...]
    size: int
    left_out: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"copied    {len(self.files):,} files to {self.path}"]
        lines += [f"LEFT OUT  {each}" for each in self.left_out]
        return "\n".join([*lines, f"receipt   {self.receipt}"])


def back_up(store: BlockStore, spec: HoldoutSpec, ledger: Ledger, path: Path) -> Backup:
    """Copy the holdout into a new folder; the files are checked against their digests meanwhile."""
    if os.path.lexists(path):
        hint = "Choose another name: a backup replaces nothing."
        raise InvalidInput("copy", str(path), "a path where nothing is yet", hint)
    remove_leftovers(path, None, None, None)
    with folder_beside(path, uuid.uuid4().hex[:16], None, None) as folder:
        files: dict[str, str | None] = {each.name: each.sha256 for each in store.kept_files}
        files[CONTENTS_FILE] = None  # it was compared with what this account saw when it was opened
        if spec.ids is not None:
            files[IDS_FILE] = spec.ids.sha256
        for name, digest in files.items():
            _copy(store.folder / name, folder / name, digest)
        with ledger.lock(KEPT_FOLDER):  # they come and go with entries
            for name in Kept(store.folder).files.values():
                files[name] = None
                _copy(store.folder / name, folder / name, None)
        receipt, kept, left_out = _copy_ledger(store.folder, ledger, folder)
        names = (*files, kept)
        size = sum((folder / name).stat().st_size for name in names)
        for each in {folder, *((folder / name).parent for name in names)}:
            sync_folder(each)
        folder.rename(path)
    sync_folder(path)
    sync_folder(path.parent)
    return Backup(str(path), str(receipt), names, size, (*left_out, *_shards_left_out(store)))


def _copy_ledger(source: Path, ledger: Ledger, folder: Path) -> tuple[Receipt, str, list[str]]:
    """The ledger's head, the name of what was copied of it, and what was not."""
    if isinstance(ledger, SqliteLedger):
        return ledger.copy(folder / LEDGER), LEDGER, []
    head = ledger.head()
    _copy(source / ADDRESS, folder / ADDRESS, None)
    where = masked(getattr(ledger, "url", ""))
    what = f"the ledger, in {where}: back up that database too (pg_dump), after this."
    return head, ADDRESS, [what]


def _shards_left_out(store: BlockStore) -> list[str]:
    """Sealed rows that are under a URL, and not in the folder."""
    shards = set(store.manifest.files) - set(store.kept_files)
    if not shards:
        return []
    what = f"{len(shards):,} files of sealed rows"
    where = f"in {store.manifest.location}"
    return [f"{what}, {where}: the copy expects them there, unchanged. See that they are kept."]


def _copy(source: Path, target: Path, digest: str | None) -> None:
    """A file on the disk for good; nobody else could read it at any time."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = hashlib.sha256()
    with source.open("rb") as stream, private(target).open("wb") as copied:
        while piece := stream.read(_PIECE):
            found.update(piece)
            copied.write(piece)
        copied.flush()
        os.fsync(copied.fileno())
    if digest is not None and found.hexdigest() != digest:
        remedy = "Nothing was copied. Put the file back as it was sealed, and check the holdout."
        raise Damaged(str(source), "as it was sealed", "other contents", remedy)
