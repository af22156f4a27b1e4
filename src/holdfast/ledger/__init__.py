"""The ledger: a durable, append-only, hash-chained record of what was promised and answered.

    ledger      rows, their chain, receipts; what every ledger does: check and append at one moment
    sqlite      the one in a file
    postgres    the one in a database, for several servers; loaded only when a URL asks for it
    witness     the last receipt that this account has seen
    opening     which of the two a folder has

It knows nothing of plans, prices or data. docs/explanation/ledger.md describes format and limits.
"""

from __future__ import annotations

from holdfast.ledger.ledger import (
    KINDS,
    Hold,
    Ledger,
    Receipt,
    Row,
    Transaction,
    check_against,
    verify_chain,
)
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.ledger.witness import Witness

__all__ = [
    "KINDS",
    "Hold",
    "Ledger",
    "Receipt",
    "Row",
    "SqliteLedger",
    "Transaction",
    "Witness",
    "check_against",
    "verify_chain",
]
