"""The witness: the last receipt seen of every holdout, kept outside of the holdout's folder.

Whoever puts back an older copy of the folder does not put back the witness, and is noticed.
"""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.errors import Damaged, InvalidInput
from holdfast.ledger.locks import exclusive
from holdfast.ledger.receipts import Receipt, holdout_id

__all__ = ["Witness"]


class Witness:
    """A folder with one small file for every holdout; its number of rows never goes down."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

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
        path = self._path(receipt.holdout)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive(path.with_suffix(".lock")):
            seen = self.last(receipt.holdout)
            if seen is None or seen.number < receipt.number:
                _replace(path, f"{receipt}\n")
            elif seen.number == receipt.number and seen.digest != receipt.digest:
                remedy = "Two histories of this holdout are in use: their budgets add up."
                what = f"Row {receipt.number:,} of the ledger"
                raise Damaged(what, f"digest {seen.digest}, as seen before", receipt.digest, remedy)

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
