"""The witness: the last receipt seen of every holdout, kept outside of the holdout's folder.

Whoever puts back an older copy of the folder does not put back the witness, and is noticed.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from holdfast.combining import Renewed
from holdfast.errors import Damaged, InvalidInput
from holdfast.ledger.locks import exclusive
from holdfast.ledger.receipts import Receipt, holdout_id

__all__ = ["Witness"]


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
        path = self._path(holdout)
        try:
            text = path.read_text("ascii")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            text = ""
        try:
            receipt = Receipt.parse(text)
        except InvalidInput:
            receipt = None
        if receipt is None or receipt.holdout != holdout:
            remedy = f"Delete {path} to go on without: an older copy is then not noticed."
            raise Damaged(
                "The last receipt seen", "one line with a receipt", f"{text[:60]!r}", remedy
            )
        return receipt

    def see(self, receipt: Receipt) -> None:
        """Keep the receipt, unless a later one of the holdout was seen already."""
        holdout = receipt.holdout
        with self._lock:
            turn = self._turns.setdefault(holdout, threading.Lock())
            newest = self._newest.get(holdout)
            if newest is None or newest.number < receipt.number:
                self._newest[holdout] = receipt
        with turn:
            if not self._later(receipt):
                newest = self._newest[holdout]
                if newest != receipt:  # another's, which waits behind this one: both in one go
                    self._keep(newest)
                if not self._later(receipt):
                    self._keep(receipt)

    def _later(self, receipt: Receipt) -> bool:
        """Whether this process has kept a later one, or the same."""
        kept = self._kept.get(receipt.holdout)
        return kept is not None and (kept.number > receipt.number or kept == receipt)

    def _keep(self, receipt: Receipt) -> None:
        path = self._path(receipt.holdout)
        lock = path.with_suffix(".lock")
        if not lock.exists():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive(lock):
            seen = self.last(receipt.holdout)
            if seen is None or seen.number < receipt.number:
                _replace(path, f"{receipt}\n")
                seen = receipt
            elif seen.number == receipt.number and seen.digest != receipt.digest:
                remedy = "Two histories of this holdout are in use: their budgets add up."
                what = f"Row {receipt.number:,} of the ledger"
                raise Damaged(what, f"digest {seen.digest}, as seen before", receipt.digest, remedy)
        self._kept[receipt.holdout] = seen

    def _path(self, holdout: str) -> Path:
        return self.folder / f"{holdout_id(holdout)}.receipt"


def _replace(path: Path, text: str) -> None:
    """Write the file whole or not at all."""
    draft = path.with_suffix(".new")  # one writer at a time: the caller holds the lock
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    draft.replace(path)
