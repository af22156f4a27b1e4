"""Programs for processes of their own, the same for every ledger: each defines `opened`."""

from __future__ import annotations

__all__ = ["BOTH_WRITE", "START"]

START = """
import os, signal, sys, threading, time
from pathlib import Path
from holdfast.errors import HoldfastError

def note(ledger, count=1):
    for _ in range(count):
        with ledger.begin() as transaction:
            transaction.append("noted", {})

def child(work):
    process = os.fork()
    if process == 0:
        try:
            work()
        finally:
            sys.stdout.flush()
            os._exit(0)
    return process
"""

BOTH_WRITE = """
ledger = opened()
note(ledger, 5)
stay, leave = os.pipe()
def write():
    os.close(leave)
    note(ledger, 5)
    os.read(stay, 1)
    note(ledger, 5)
process = child(write)
note(ledger, 5)
ledger.close()
del ledger
os.close(leave)
os.waitpid(process, 0)
"""
