"""Predictions in CSV: a header with the ids' own name and `prediction`, then one line a row."""

from __future__ import annotations

from holdfast.holdout.submissions.pairs import PREDICTION, Pairs, check_columns, refused

__all__ = ["read_csv"]

_BLOCK = 2**20  # bytes: a line that is longer is no prediction


def read_csv(content: bytes, column: str) -> Pairs:
    """The pairs of a CSV file. What a field means is decided later: here all are text."""
    import pyarrow as pa
    from pyarrow import csv

    allowed = f"CSV in UTF-8 with the columns {column} and {PREDICTION}"
    try:
        names = _header(content, allowed)
        check_columns(names, column)
        table = csv.read_csv(
            pa.BufferReader(content),
            read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=csv.ParseOptions(newlines_in_values=False),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys((column, PREDICTION), pa.string()),
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowException:
        raise refused("something else", allowed, "Every line has two fields.") from None
    found = (table.column(name).combine_chunks() for name in (column, PREDICTION))
    return Pairs(*found)


def _header(content: bytes, allowed: str) -> list[str]:
    import csv

    first = content[:_BLOCK].split(b"\n", 1)[0].removeprefix(b"\xef\xbb\xbf")
    try:
        return next(csv.reader([first.decode("utf-8").strip("\r")]), [])
    except (UnicodeDecodeError, csv.Error):
        raise refused("something else", allowed) from None
