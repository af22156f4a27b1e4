"""Where a process is between two acknowledgements, in a byte that outlives it."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.ledger.ledger import Ledger, Row, Transaction
from holdfast.ledger.sqlite import SqliteLedger

__all__ = ["IDLE", "PHASES", "watch"]

PHASES = (
    "starting, or between two requests",
    "waiting, or checking what is left",
    "charged, not committed",
    "charged, nothing recorded",
    "recorded, not committed",
    "recorded, not acknowledged",
)
IDLE, _CHECKING, _CHARGING, _CHARGED, _RECORDING, _RECORDED = range(len(PHASES))
_AFTER_APPEND = {"reserved": _CHARGING, "recorded": _RECORDING}
_AFTER_COMMIT = {_CHARGING: _CHARGED, _RECORDING: _RECORDED, _CHECKING: IDLE}


def watch(phase: mmap.mmap) -> None:
    """Let every ledger that this process uses show where it is, whoever opens it."""
    begin = SqliteLedger.begin

    def seen(transaction: Transaction) -> Transaction:
        inner = transaction.append

        def append(kind: str, body: dict[str, Any], **keys: Any) -> Row:
            row = inner(kind, body, **keys)
            phase[0] = _AFTER_APPEND.get(kind, phase[0])
            return row

        transaction.append = append  # type: ignore[method-assign]
        return transaction

    @contextmanager
    def watched(self: Ledger) -> Iterator[Transaction]:
        if phase[0] == IDLE:
            phase[0] = _CHECKING
        with begin(self) as transaction:
            yield seen(transaction)
        phase[0] = _AFTER_COMMIT.get(phase[0], phase[0])

    SqliteLedger.begin = watched  # type: ignore[method-assign]
