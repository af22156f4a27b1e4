"""What opens a Parquet file of a stranger: a process that may take little memory and no files.

The reply is `+` and an Arrow stream of two plain columns, or what the file is instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Asked", "start"]

_COLUMNS = 2
_TEXT = 200 * 4 + 8  # bytes of a text, on average over a batch; the longest is checked later
_BATCH = 2**14


@dataclass(frozen=True)
class Asked:
    """The file, and how many rows it may have."""

    content: bytes
    rows: int


def start(_: object) -> Callable[[Asked], bytes]:
    """Called by the process when it starts."""
    import pyarrow.parquet  # noqa: F401 – loaded before memory is limited

    return answer


def answer(asked: Asked) -> bytes:
    """The two columns, or what the file is instead."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(pa.BufferReader(asked.content), pre_buffer=False) as file:
            return _columns(file, asked.rows)
    except (pa.ArrowException, OSError, ValueError):
        return b"something else"


def _columns(file: Any, rows: int) -> bytes:
    import pyarrow as pa

    schema = file.schema_arrow
    if len(schema.names) != _COLUMNS:
        return "\n".join(["columns", *schema.names[:10]]).encode()
    types = [_plain(field.type) for field in schema]
    if None in types:
        return b"columns of other types"
    if file.metadata.num_rows > rows:
        return f"{file.metadata.num_rows:,} rows".encode()
    plain = pa.schema(zip(schema.names, types, strict=True))
    sink, seen = pa.BufferOutputStream(), 0
    with pa.ipc.new_stream(sink, plain) as stream:
        for batch in file.iter_batches(batch_size=_BATCH, use_threads=False):
            arrays = [array.cast(kind) for array, kind in zip(batch.columns, types, strict=True)]
            made, seen = pa.record_batch(arrays, schema=plain), seen + batch.num_rows
            if seen > rows or made.nbytes > made.num_rows * 2 * _TEXT:
                return b"more rows, or longer text, than there can be"
            stream.write_batch(made)
    return b"+" + bytes(sink.getvalue())


def _plain(kind: Any) -> Any:
    """What a column of this type is sent as; None if it can be no id and no prediction."""
    import pyarrow as pa

    t = pa.types
    kind = kind.value_type if t.is_dictionary(kind) else kind
    if t.is_boolean(kind):
        return pa.bool_()
    if t.is_integer(kind):
        return pa.int64()
    if t.is_floating(kind):
        return pa.float64()
    texts = (t.is_string, t.is_large_string, t.is_string_view)
    return pa.string() if any(test(kind) for test in texts) else None
