"""Parquet files as an origin of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.engines.store.columns import check_twins
from holdfast.engines.store.session import Session
from holdfast.engines.store.values import quoted_text, refuse_arrow
from holdfast.errors import InvalidInput

__all__ = ["ParquetFiles", "check_agreement", "check_types", "open_parquet"]


@dataclass(frozen=True)
class ParquetFiles:
    """Files with the same columns, read one after the other."""

    files: tuple[Path, ...]
    arrow_schema: Any

    def attach(self, session: Session) -> str:  # noqa: ARG002
        """The files as SQL names them after FROM."""
        names = ", ".join(quoted_text(str(file)) for file in self.files)
        return f"read_parquet([{names}], hive_partitioning = false)"

    def chosen(self, names: Sequence[str], unit: str | None) -> ParquetFiles:
        """Refuse, by its name, a column of a type that cannot be kept."""
        check_types(names, unit, self.arrow_schema)
        return self

    @property
    def names(self) -> list[object]:
        """The names of all columns."""
        return list(self.arrow_schema.names)


def open_parquet(files: Sequence[Path]) -> ParquetFiles:
    """Read what the files say of themselves; they must agree."""
    schemas = [_schema(file) for file in files]
    check_agreement([file.name for file in files], schemas)
    return ParquetFiles(tuple(files), schemas[0])


def check_agreement(names: Sequence[str], schemas: Sequence[Any]) -> None:
    """Refuse files of which one has other columns, or other types, than the first."""
    check_twins(schemas[0].names)  # DuckDB would rename one
    for name, schema in zip(names[1:], schemas[1:], strict=True):
        _same(names[0], schemas[0], name, schema)


def check_types(names: Sequence[str], unit: str | None, schema: Any) -> None:
    """Refuse, by its name, a column of a type that cannot be kept."""
    for name in names:
        refuse_arrow(name, schema.field(name).type, unit=name == unit)


def _schema(file: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(file)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).split(".")[0]
        raise InvalidInput("data", str(file), "a readable Parquet file", f"{reason}.") from None


def _same(first: str, expected: Any, file: str, found: Any) -> None:
    hint = "Rewrite the files so that all have the same columns and types."
    missing = sorted(set(expected.names) ^ set(found.names))
    if missing or len(expected.names) != len(found.names):
        only = [name for name in missing if name in expected.names]
        where = f"only in {first}" if only else f"only in {file}"
        what = f"column {missing[0]!r} {where}" if missing else "a repeated column"
        raise InvalidInput("data", what, "files with the same columns", hint)
    for name in expected.names:
        a, b = _plain(expected.field(name).type), _plain(found.field(name).type)
        if a != b:
            what = f"column {name!r}: {a} in {first}, {b} in {file}"
            raise InvalidInput("data", what, "files with the same types", hint)


def _plain(arrow_type: Any) -> Any:
    """The type of the values, however they are packed."""
    import pyarrow as pa

    packed = pa.types.is_dictionary(arrow_type)
    plain = arrow_type.value_type if packed else arrow_type
    views = (pa.large_string(), pa.string_view())
    return pa.string() if plain in views else plain
