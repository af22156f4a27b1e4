"""What may be shown of the address of a ledger that was not accepted."""

from __future__ import annotations

import re

__all__ = ["masked"]


def masked(url: object) -> str:
    """Its scheme at most: where a password begins and ends is not known in what is no URL.

    >>> masked("mysql://me:sesame@host/db")
    'mysql://…'
    >>> masked("host=db password=sesame")
    '…'
    """
    scheme = re.match(r"\s*([a-z][a-z0-9+.-]*://)", str(url), re.IGNORECASE)
    return f"{scheme[1]}…" if scheme else "…"
