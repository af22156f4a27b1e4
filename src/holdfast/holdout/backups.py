"""Backups: a copy of a holdout as of one moment, in a folder that its owner alone can read.

The copy appears under its name when it is whole and on the disk. Before that it is a folder beside
it, which an error removes, and the next backup to the same place if the process was killed.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import Damaged, InvalidInput
from holdfast.holdout.creation import folder_beside, remove_leftovers
from holdfast.holdout.spec import Charter
from holdfast.holdout.submissions import IDS_FILE
from holdfast.ledger.ledger import Ledger, Receipt
from holdfast.ledger.opening import ADDRESS, LEDGER, masked
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.store.blocks import CONTENTS_FILE, BlockStore, private, sync_folder

__all__ = ["Backup", "back_up"]

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


def back_up(store: BlockStore, charter: Charter, ledger: Ledger, path: Path) -> Backup:
    """Copy the holdout into a new folder; the files are checked against their digests meanwhile."""
    if os.path.lexists(path):
        hint = "Choose another name: a backup replaces nothing."
        raise InvalidInput("copy", str(path), "a path where nothing is yet", hint)
    remove_leftovers(path, None, None, None)
    with folder_beside(path, uuid.uuid4().hex[:16], None, None) as folder:
        files: dict[str, str | None] = {each.name: each.sha256 for each in store.kept_files}
        files[CONTENTS_FILE] = None  # it was compared with what this account saw when it was opened
        if charter.ids is not None:
            files[IDS_FILE] = charter.ids.sha256
        for name, digest in files.items():
            _copy(store.folder / name, folder / name, digest)
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
