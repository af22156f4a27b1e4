"""A fingerprint of the data: what was asked once is not asked again under a new budget.

It is a hash of the multiset of rows. Each row becomes a text: its values, in the order of the
sorted column names, in a form that does not depend on how they are stored (`Field.canonical`).
The MD5 numbers of these texts are added, so that the order of the rows does not matter; the two
halves of 64 bits apart, in 128 bits, so that no sum overflows. Then

    fingerprint = SHA-256 of (format, number of rows, both sums, sorted column names).

Tables that differ in the order of rows or columns, in the width of integers and floats, or in the
file format agree. A changed value, a row or column more or less, or a new name makes another. It is
meant to find a mistake, not an adversary: whoever changes one value has another fingerprint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from holdfast.engines.store.values import Field

__all__ = ["fingerprint", "row_hash", "row_text"]

_FORMAT = 1


def row_text(fields: Sequence[Field]) -> str:
    """SQL of the text of one row: a text has its length before it, so that no two rows agree."""
    ordered = sorted(fields, key=lambda each: each.name)
    return f"concat_ws(';', {', '.join(each.canonical for each in ordered)})"


def row_hash(fields: Sequence[Field]) -> str:
    """SQL of the 128-bit hash of one row."""
    return f"md5_number({row_text(fields)})"


def fingerprint(names: Sequence[str], rows: int, low: int, high: int) -> str:
    """The fingerprint of a table with these sums of the lower and upper halves of row hashes.

    >>> fingerprint(["x"], 1, 2, 3)[:16]
    '67cbe800ed18f55d'
    """
    facts = [_FORMAT, rows, low, high, sorted(names)]
    text = json.dumps(facts, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
