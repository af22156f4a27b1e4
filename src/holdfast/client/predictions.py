"""Predictions on their way to a server: keyed by row id, checked, as the body of a call."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.holdout.submissions.pairs import Pairs

__all__ = ["Content", "content_of"]

_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}


@dataclass(frozen=True)
class Content:
    """Bytes, and what they are."""

    data: bytes
    kind: str


def content_of(given: object, form: str | None = None) -> Content:
    """What `Holdout` takes as predictions by id, as bytes: a file or its content, a table, a map.

    >>> content_of({"a": 1, "b": 0})
    Content(data=b'{"a": 1, "b": 0}', kind='application/json')
    """
    from holdfast.holdout.submissions.frames import is_keyed
    from holdfast.holdout.submissions.reading import form_of

    if form is not None and form not in _TYPES:
        raise InvalidInput("form", form, f"one of {', '.join(_TYPES)}")
    if isinstance(given, str | Path):
        data, found = _file(Path(given))
        return Content(data, _TYPES[form or found or form_of(data)])
    if isinstance(given, bytes | bytearray | memoryview):
        data = bytes(given)
        return Content(data, _TYPES[form or form_of(data)])
    if is_keyed(given):
        return _table(given) if hasattr(given, "columns") else _mapping(given)
    hint = (
        "A model runs where you are: predict there, and send {id: prediction, …}, a table with "
        "the ids and `prediction`, or a file of CSV, JSON or Parquet."
    )
    raise InvalidInput("predictions", type(given).__name__, "predictions by row id", hint)


def _file(path: Path) -> tuple[bytes, str | None]:
    if not path.is_file():
        raise InvalidInput("predictions", str(path), "in a file that exists")
    form = {".csv": "csv", ".json": "json", ".parquet": "parquet", ".pq": "parquet"}
    return path.read_bytes(), form.get(path.suffix.lower())


def _mapping(given: Any) -> Content:
    """A dictionary, or a Series with its index, as a JSON object."""
    pairs = _pairs(given, "")
    values = dict(zip(map(str, pairs.ids.to_pylist()), pairs.values.to_pylist(), strict=True))
    if len(values) < len(pairs):
        raise InvalidInput("predictions", "an id twice", "one for every id")
    try:
        text = json.dumps(values, allow_nan=False)
    except ValueError:
        raise InvalidInput("predictions", "numbers that are not finite", "finite numbers") from None
    return Content(text.encode(), _TYPES["json"])


def _table(given: Any) -> Content:
    """A table as Parquet, which keeps the types of its two columns."""
    import pyarrow as pa
    from pyarrow import parquet

    from holdfast.holdout.submissions.pairs import PREDICTION

    names = getattr(given, "column_names", None)
    others = [name for name in (given.columns if names is None else names) if name != PREDICTION]
    column = str(others[0]) if others else ""
    pairs = _pairs(given, column)  # says what is wrong with any other columns
    written = io.BytesIO()
    parquet.write_table(pa.table({column: pairs.ids, PREDICTION: pairs.values}), written)
    return Content(written.getvalue(), _TYPES["parquet"])


def _pairs(given: Mapping[Any, Any] | Any, column: str) -> Pairs:
    from holdfast.holdout.submissions.frames import read_frame

    return read_frame(given, column)
