"""The witness: the last receipt seen of every holdout, kept outside of the holdout's folder.

Whoever puts back an older copy of the folder does not put back the witness, and is noticed.

A receipt is written over the last but one, in place: what a crash leaves half written is never the
newest one that was kept, and no file is made and deleted for every answer.
"""

from __future__ import annotations

import os
import threading
from hashlib import sha256
from pathlib import Path

from holdfast.concurrency import Renewed
from holdfast.errors import Damaged
from holdfast.ledger.ledger import Receipt, holdout_id
from holdfast.ledger.locks import exclusive

__all__ = ["Witness"]

_LENGTH = 512  # bytes of a receipt with what fills its place: a disk writes them at once


class Witness(Renewed):
    """A folder with one small file for every holdout; its number of rows never goes down.

    Safe to share between threads: of all that wait at once, one writes the newest receipt, and the
    others have no more to write. When `see` returns, one at least as new is on the disk.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        super().__init__()

    def _renew(self) -> None:
        self._lock = threading.Lock()  # for the two dictionaries
        self._turns: dict[str, threading.Lock] = {}
        self._newest: dict[str, Receipt] = {}  # that anybody has brought
        self._kept: dict[str, Receipt] = {}  # that this process knows to be on the disk

    def last(self, holdout: str) -> Receipt | None:
        """The last receipt seen of this holdout, or None if there is none."""
        return self._read(holdout)[0]

    def _read(self, holdout: str) -> tuple[Receipt | None, int | None]:
        """The last receipt seen, and the place of the one before it; neither without a file."""
        path = self.folder / f"{holdout_id(holdout)}.receipt"
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None, None
        newest, other = None, None
        for place in (0, _LENGTH):
            text, _, check = data[place : place + _LENGTH].rstrip().partition(b" ")
            if check != _check(text):  # half written
                continue
            found = Receipt.parse(text.decode())
            if found.holdout == holdout and (newest is None or found.number > newest.number):
                newest, other = found, _LENGTH - place
        if newest is None:
            remedy = f"Delete {path} to go on without: an older copy is then not noticed."
            raise Damaged("The last receipt seen", "a receipt", f"{data[:60]!r}", remedy)
        return newest, other

    def see(self, receipt: Receipt) -> None:
        """Keep the receipt, unless a later one of the holdout was seen already."""
        if self._later(receipt):
            return
        holdout = receipt.holdout
        with self._lock:
            turn = self._turns.setdefault(holdout, threading.Lock())
            newest = self._newest.get(holdout)
            if newest is None or newest.number < receipt.number:
                self._newest[holdout] = receipt
        with turn:
            # The newest that waits, another's perhaps, and then this one, if that is not later.
            for each in (self._newest[holdout], receipt):
                if not self._later(receipt):
                    self._keep(each)

    def _later(self, receipt: Receipt) -> bool:
        """Whether this process has kept a later one, or the same."""
        kept = self._kept.get(receipt.holdout)
        return kept is not None and (kept.number > receipt.number or kept == receipt)

    def _keep(self, receipt: Receipt) -> None:
        path = self.folder / f"{holdout_id(receipt.holdout)}.receipt"
        lock = path.with_suffix(".lock")
        if not lock.exists():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive(lock):
            seen, place = self._read(receipt.holdout)
            if seen is None or seen.number < receipt.number:
                _write(path, receipt, place)
                seen = receipt
            elif seen.number == receipt.number and seen.digest != receipt.digest:
                remedy = "Two histories of this holdout are in use: their budgets add up."
                what = f"Row {receipt.number:,} of the ledger"
                raise Damaged(what, f"digest {seen.digest}, as seen before", receipt.digest, remedy)
        self._kept[receipt.holdout] = seen


def _check(text: bytes) -> bytes:
    return sha256(text).hexdigest()[:16].encode("ascii")


def _write(path: Path, receipt: Receipt, place: int | None) -> None:
    """Write the receipt to a place of the file, or, without one, the file whole or not at all.

    There is one writer at a time: the caller holds the lock.
    """
    text = str(receipt).encode("ascii")
    line = (text + b" " + _check(text)).ljust(_LENGTH - 1) + b"\n"
    target = path if place is not None else path.with_suffix(".new")
    made = os.O_CREAT | os.O_TRUNC if place is None else 0
    descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC | made, 0o600)
    try:
        os.pwrite(descriptor, line, place or 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if place is None:
        target.replace(path)
