"""Reading: what was given, by its form, as one prediction for every row in the rows' order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.holdout.ids import RowIds
from holdfast.holdout.submissions.csv_bytes import read_csv
from holdfast.holdout.submissions.frames import read_frame
from holdfast.holdout.submissions.json_bytes import read_json
from holdfast.holdout.submissions.matching import row_places
from holdfast.holdout.submissions.pairs import Pairs, refused
from holdfast.holdout.submissions.parquet_bytes import read_parquet
from holdfast.holdout.submissions.values import Wanted, wanted_values

__all__ = ["FORMS", "form_of", "most_bytes", "read_submission"]

FORMS = ("csv", "json", "parquet")
_LARGEST = 2**29
_A_ROW = 2_000  # bytes: an id of 200 characters and a label of as many, escaped
_SUFFIXES = {".csv": "csv", ".json": "json", ".parquet": "parquet", ".pq": "parquet"}
_STARTS = ((b"PAR1", "parquet"), (b"{", "json"), (b"[", "json"))


def read_submission(
    given: object, ids: RowIds, wanted: Wanted, *, form: str | None = None
) -> NDArray[Any]:
    """Predictions in the order of the rows.

    `given` is bytes of CSV, JSON or Parquet (`form` says which; else it is seen), the path of such
    a file, a dictionary from ids to predictions, or a table with the two columns.
    """
    pairs = _pairs(given, ids, form)
    rows = row_places(pairs, ids)
    values = wanted_values(pairs, wanted)
    arranged = np.empty(len(ids), values.dtype)
    arranged[rows] = values
    return arranged


def most_bytes(ids: RowIds) -> int:
    """The most bytes that a submission for these rows can sensibly have."""
    return min(_LARGEST, 100_000 + _A_ROW * len(ids))


def _pairs(given: object, ids: RowIds, form: str | None) -> Pairs:
    column = ids.about.column
    if isinstance(given, str | Path):
        content, form = _file(Path(given), most_bytes(ids), form)
    elif isinstance(given, bytes | bytearray | memoryview):
        content = bytes(given)
    else:
        return read_frame(given, column)
    if len(content) > most_bytes(ids):
        allowed = f"at most {most_bytes(ids):,} bytes for {len(ids):,} rows"
        raise refused(f"{len(content):,} bytes", allowed)
    chosen = form_of(content) if form is None else form
    if chosen == "parquet":
        return read_parquet(content, column, 2 * len(ids) + 1000)
    if chosen == "json":
        return read_json(content, column, len(ids))
    if chosen != "csv":
        raise refused(str(chosen), f"one of {', '.join(FORMS)}")
    return read_csv(content, column)


def form_of(content: bytes) -> str:
    """The form that bytes have, by how they begin.

    >>> form_of(b" {}"), form_of(b"id,prediction")
    ('json', 'csv')
    """
    start = content[:64].lstrip()
    return next((form for first, form in _STARTS if start.startswith(first)), "csv")


def _file(path: Path, most: int, form: str | None) -> tuple[bytes, str | None]:
    if not path.is_file():
        raise refused(str(path), "in a file that exists")
    size = path.stat().st_size
    if size > most:
        raise refused(f"{size:,} bytes", f"at most {most:,} bytes")
    return path.read_bytes(), form or _SUFFIXES.get(path.suffix.lower())
