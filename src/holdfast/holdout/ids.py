"""Public ids of rows: what predictions are keyed by.

The ids are kept in the order of the data in a file of their own. They are public: a submission
names them, and so may an error. They are not sealed with the data, and no question can be about
them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from holdfast.errors import Damaged, InvalidInput
from holdfast.store.duckdb import Limits, Session
from holdfast.store.table import Field, quoted

__all__ = ["IDS_FILE", "Ids", "RowIds", "check_ids", "read_ids", "write_ids"]

IDS_FILE = "ids.parquet"
_ID = "id"
_LONGEST = 200  # characters of one id
_RESTORE = "Restore the holdout from a copy."


@dataclass(frozen=True)
class Ids:
    """What the charter says of the ids: their column, how many there are, their file's hash."""

    column: str
    kind: str  # integer or text
    rows: int
    sha256: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Ids:
        """What `to_dict` wrote."""
        types = {"column": str, "kind": str, "rows": int, "sha256": str}
        known = set(data) == set(types) and all(isinstance(data[n], types[n]) for n in types)
        if not known or data["kind"] not in ("integer", "text"):
            raise ValueError("ids of another form")
        return cls(**data)


@dataclass(frozen=True)
class RowIds:
    """The ids in the order of the data."""

    about: Ids
    values: Any  # an Arrow array of integers or text

    def __len__(self) -> int:
        return self.about.rows


class _Table(Protocol):
    """An input, wherever its rows are read."""

    limits: Limits

    def attach(self, session: Session) -> str: ...


def write_ids(folder: Path, table: _Table, field: Field, rows: int) -> Ids:
    """Write the ids of an input, one for every row, or say why a column cannot be ids."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    integer = _is_integer(field)
    with Session(table.limits, folder) as session:
        source = table.attach(session)
        found = session.connection.sql(_query(field, source, integer)).to_arrow_table()
    ids = found.column(_ID).combine_chunks()
    if isinstance(ids, pa.ChunkedArray):
        ids = pa.concat_arrays(ids.chunks)
    _check(field.name, ids, rows, integer)
    path = folder / IDS_FILE
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    pq.write_table(pa.table({_ID: ids}), path)
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return Ids(field.name, "integer" if integer else "text", rows, digest)


def _is_integer(field: Field) -> bool:
    if not field.is_integer and field.kind != "text":
        hint = "Store them as text."
        raise InvalidInput("ids", field.name, "a column of integers or text", hint)
    return field.is_integer


def _query(field: Field, source: str, integer: bool) -> str:
    value = f"TRY_CAST({quoted(field.name)} AS {'BIGINT' if integer else 'VARCHAR'})"
    # Numbered as the sealed rows are: in the order in which the input has them.
    numbered = f"SELECT {value} AS {_ID}, row_number() OVER () AS __row FROM {source}"
    return f"SELECT {_ID} FROM ({numbered}) ORDER BY __row"


def _check(name: str, ids: Any, rows: int, integer: bool) -> None:
    import pyarrow.compute as pc

    what = f"ids {name!r}"
    if len(ids) != rows:
        raise InvalidInput(what, f"{len(ids):,} values", f"{rows:,}, one for every row")
    if ids.null_count:
        hint = "Integers must be below 2^63." if integer else ""
        raise InvalidInput(what, f"{ids.null_count:,} missing", "present in every row", hint)
    twice = rows - pc.count_distinct(ids).as_py()
    if twice:
        hint = "An id names one row. Make one, such as the number of the row."
        raise InvalidInput(what, f"{twice:,} repeated", "different in every row", hint)
    if integer:
        return
    if pc.max(pc.utf8_length(ids)).as_py() > _LONGEST or not pc.all(_plain(ids)).as_py():
        allowed = f"text of 1 to {_LONGEST} printable characters without spaces around it"
        raise InvalidInput(what, "others", allowed)


def _plain(ids: Any) -> Any:
    import pyarrow.compute as pc

    trimmed = pc.equal(pc.utf8_trim_whitespace(ids), ids)
    return pc.and_(pc.utf8_is_printable(ids), pc.and_(trimmed, pc.not_equal(ids, "")))


def check_ids(folder: Path, ids: Ids) -> None:
    """Raise `Damaged` unless the file is, byte for byte, as it was written."""
    path = folder / IDS_FILE
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise Damaged(str(path), "a readable file", str(error.strerror), _RESTORE) from None
    if digest != ids.sha256:
        wanted, found = f"SHA-256 {ids.sha256[:16]}…", f"{digest[:16]}…"
        raise Damaged(str(path), wanted, found, _RESTORE)


def read_ids(folder: Path, about: Ids) -> RowIds:
    """The ids, if their file is unchanged."""
    import pyarrow.parquet as pq

    check_ids(folder, about)
    column = pq.read_table(folder / IDS_FILE).column(_ID)
    return RowIds(about, column.combine_chunks() if column.num_chunks != 1 else column.chunk(0))
