"""The ledger: a durable, append-only, hash-chained record of what was promised and answered.

    rows        a row, its digest, the chain
    receipts    the head of a chain, to be kept elsewhere; the witness keeps the last one seen
    interface   what every ledger does: check and append at one moment, across processes
    sqlite      the one in a file
    postgres    the one in a database, for several servers; loaded only when a URL asks for it
    opening     which of the two a folder has

It knows nothing of plans, prices or data. docs/explanation/ledger.md describes format and limits.
"""

from __future__ import annotations

from holdfast.ledger.interface import Hold, Ledger, Transaction
from holdfast.ledger.receipts import Receipt, check_against
from holdfast.ledger.rows import KINDS, Row, verify_chain
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
