"""Receipts: what an analyst keeps to prove later that the ledger still says the same.

The chain shows that nobody changed a row and left the rest. It cannot show that the whole file was
put back to an older state, or written anew: only something kept elsewhere can. That is a receipt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.errors import Damaged, InvalidInput

if TYPE_CHECKING:
    from holdfast.ledger.interface import Ledger

__all__ = ["Receipt", "check_against", "holdout_id"]

_HOLDOUT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_RECEIPT = re.compile(r"([^:]*):([1-9][0-9]{0,17}):([0-9a-f]{64})")


def holdout_id(value: object) -> str:
    """The id of a holdout; it must be usable as the name of a file and inside a receipt."""
    if not isinstance(value, str) or not _HOLDOUT.fullmatch(value):
        allowed = "1 to 64 ASCII letters, digits, - and _, beginning with a letter or digit"
        raise InvalidInput("holdout", value, allowed)
    return value


@dataclass(frozen=True)
class Receipt:
    """The head of a holdout's ledger at one moment: how many rows, and the digest of the last."""

    holdout: str
    number: int
    digest: str

    def __str__(self) -> str:
        return f"{self.holdout}:{self.number}:{self.digest}"

    @classmethod
    def parse(cls, text: object) -> Receipt:
        """The receipt that was written as `holdout:number:digest`.

        >>> receipt = Receipt("flights-1", 12, "0123456789abcdef" * 4)
        >>> Receipt.parse(str(receipt)) == receipt
        True
        """
        match = _RECEIPT.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None:
            allowed = "holdout:number:digest, the digest as 64 hexadecimal digits"
            hint = "Copy the whole receipt, as it was printed with the answer."
            raise InvalidInput("receipt", text, allowed, hint)
        holdout, number, digest = match.groups()
        return cls(holdout_id(holdout), int(number), digest)


def check_against(ledger: Ledger, receipt: Receipt) -> None:
    """Raise `Damaged` unless the ledger continues the history that the receipt was given for."""
    if ledger.holdout != receipt.holdout:
        hint = "Every holdout has receipts of its own."
        raise InvalidInput("receipt", str(receipt), f"one of the holdout {ledger.holdout}", hint)
    row = ledger.row(receipt.number)
    if row is None:
        raise Damaged(
            "The ledger",
            f"at least the {receipt.number:,} rows that were seen before",
            f"{ledger.head().number:,}",
            "An older copy was put back: answers given since then are not charged. Put back the "
            "newest copy: of the folder with its ledger.sqlite-wal, or of the database.",
        )
    if row.digest != receipt.digest:
        raise Damaged(
            f"Row {receipt.number:,} of the ledger",
            f"digest {receipt.digest}, as on the receipt",
            row.digest,
            "This is another history of the holdout: it was written anew, or two copies of it were "
            "used. Their budgets add up; neither copy's promise holds.",
        )
