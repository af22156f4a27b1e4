"""The random order of the units, made by an external sort, and streamed.

A unit's place is decided by a hash of its number, or id, under a secret of 128 bits that is drawn
for this holdout and never stored: whoever does not know it sees a random order. Rows of one unit
come one after the other, in their order in the input. Ties of the hash are split by id and row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.engines.store.columns import ID, ROW
from holdfast.engines.store.inputs import Input
from holdfast.engines.store.session import Progress, Session
from holdfast.engines.store.survey import MARK, row_mark
from holdfast.engines.store.values import quoted
from holdfast.randomness import Entropy

__all__ = ["drawn_secret", "place_key", "shuffled"]

_SORTED = 0.5  # DuckDB counts the sort as half of the query, handing out the rows as the other


def shuffled(
    data: Input, session: Session, entropy: Entropy, batch_rows: int, progress: Progress
) -> Iterator[Any]:
    """Batches of Arrow: the stored columns, the number and the hash of the row, and its unit's id.

    The last only with units.
    """
    relation = session.connection.sql(_query(data, data.attach(session), drawn_secret(entropy)))

    def sort() -> Any:
        # A relation streams its result; what `execute` returns would be kept in memory first.
        return iter(relation.to_arrow_reader(batch_rows))

    return session.watched(lambda: _started(sort()), "shuffling", progress, _SORTED)


def _started(batches: Iterator[Any]) -> Iterator[Any]:
    """The same batches, the first of them already there: that is when the sort is done."""
    first = next(batches, None)

    def all_of_them() -> Iterator[Any]:
        if first is not None:
            yield first
            yield from batches

    return all_of_them()


def drawn_secret(entropy: Entropy) -> str:
    """128 bits, as they are written before the number or the id of a unit."""
    high, low = (int(word) for word in entropy.words(2))
    return f"{high:016x}{low:016x}"


def place_key(secret: str, by_id: bool) -> str:
    """SQL of what units are ordered by: 128 bits that nobody foretells without the secret."""
    named = ID if by_id else f"CAST({ROW} AS VARCHAR)"
    return f"md5_number('{secret}:' || {named})"


def _query(data: Input, table: str, secret: str) -> str:
    everything = [each for each in (*data.fields, data.unit, data.ids) if each]
    # Of what is read now, not when it was surveyed; before names get another meaning.
    stored = [f"{row_mark(everything)} AS {MARK}"]
    stored += [f"{each.stored} AS {quoted(each.name)}" for each in data.fields]
    names = [MARK, *(quoted(each.name) for each in data.fields)]
    # Numbered before anything else: in the order in which the input has its rows.
    row = f"row_number() OVER () - 1 AS {ROW}"
    key = place_key(secret, data.unit is not None)
    if data.unit is None:
        inner = f"SELECT {', '.join([*stored, row])} FROM {table}"
        return f"SELECT {', '.join([*names, ROW])} FROM ({inner}) ORDER BY {key}, {ROW}"
    inner = f"SELECT {', '.join([*stored, row, f'{data.unit.identity} AS {ID}'])} FROM {table}"
    return f"SELECT {', '.join([*names, ROW, ID])} FROM ({inner}) ORDER BY {key}, {ID}, {ROW}"
