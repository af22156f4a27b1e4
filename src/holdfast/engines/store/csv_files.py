"""CSV files as an origin of rows.

The first line names the columns and, by the sign that stands most often between the names, the
delimiter. The types are found by reading everything, so that they do not depend on which rows
happen to come first. Dates are read only in the form 2026-11-30: 01/02/2020 is two dates.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.engines.store.columns import check_twins
from holdfast.engines.store.session import Progress, Session
from holdfast.engines.store.values import quoted_text
from holdfast.errors import InvalidInput

__all__ = ["CsvFiles", "open_csv"]

_DELIMITERS = ",;\t|"
_NAMED = "a CSV file whose first line names the columns"


@dataclass(frozen=True)
class CsvFiles:
    """Files with the same first line, read one after the other, as columns of known types."""

    files: tuple[Path, ...]
    delimiter: str
    names: list[object]
    types: tuple[str, ...]  # DuckDB's, of every column
    missing: tuple[str, ...]

    def chosen(self, names: Sequence[str], unit: str | None) -> CsvFiles:  # noqa: ARG002
        """CSV has no types of its own to refuse."""
        return self

    def attach(self, session: Session) -> str:  # noqa: ARG002
        """The files as SQL names them after FROM."""
        types = zip(self._labels(), self.types, strict=True)
        pairs = ", ".join(f"{label}: {quoted_text(each)}" for label, each in types)
        return self._read(f"auto_detect = false, columns = {{{pairs}}}")

    def sniffed(self) -> str:
        """The same, with types that DuckDB finds by reading everything."""
        labels = ", ".join(self._labels())
        return self._read(f"names = [{labels}], sample_size = -1, files_to_sniff = -1")

    def _labels(self) -> list[str]:
        """The names, as texts of SQL; an empty one has its place instead."""
        return [quoted_text(str(name) or f"__{i}") for i, name in enumerate(self.names)]

    def _read(self, options: str) -> str:
        files = ", ".join(quoted_text(str(file)) for file in self.files)
        missing = ", ".join(quoted_text(text) for text in self.missing)
        return (
            f"read_csv([{files}], header = true, delim = {quoted_text(self.delimiter)}, "
            "quote = '\"', escape = '\"', comment = '', skip = 0, strict_mode = true, "
            f"dateformat = '%Y-%m-%d', nullstr = [{missing}], hive_partitioning = false, {options})"
        )


def open_csv(
    files: Sequence[Path], session: Session, missing: Sequence[str], progress: Progress
) -> CsvFiles:
    """Read the first lines, then everything to find the types."""
    delimiter, names = _first_line(files[0])
    check_twins(names)  # DuckDB would rename one
    for file in files[1:]:
        if _first_line(file) != (delimiter, names):
            hint = f"Compare {files[0].name} and {file.name}."
            raise InvalidInput("data", file.name, "files with the same first line", hint)
    texts = ("VARCHAR",) * len(names)
    plain = CsvFiles(tuple(files), delimiter, list(names), texts, tuple(missing))
    return replace(plain, types=tuple(_types(plain, session, progress)))


def _types(plain: CsvFiles, session: Session, progress: Progress) -> list[str]:
    def sniff() -> list[str]:
        return list(session.described(plain.sniffed()).values())

    try:
        return session.watched(sniff, "finding types", progress)
    except InvalidInput:
        # What makes it impossible is in some line: reading plain text finds which.
        count = f"SELECT count(*) FROM {plain.attach(session)}"
        session.row(count, "finding the error", progress)
        raise


def _first_line(file: Path) -> tuple[str, list[str]]:
    import pyarrow as pa

    try:
        with pa.input_stream(str(file), compression="detect") as stream:
            record = _record(io.TextIOWrapper(stream, "utf-8-sig", newline=""))
    except UnicodeDecodeError:
        hint = "Convert it, for example with iconv -t UTF-8."
        raise InvalidInput("data", str(file), "a CSV file in UTF-8", hint) from None
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput("data", str(file), _NAMED, str(error)) from None
    if not record.strip():
        raise InvalidInput("data", str(file), _NAMED, "Its first line is empty.")
    outside = re.sub(r'"[^"]*"', "", record)
    delimiter = max(_DELIMITERS, key=outside.count)
    names = [name.strip() for name in next(csv.reader([record], delimiter=delimiter))]
    if all(_is_number(name) for name in names):
        hint = "It holds numbers only: add a line with names."
        raise InvalidInput("first line", record.strip(), "the names of the columns", hint)
    return delimiter, names


def _record(lines: io.TextIOWrapper) -> str:
    """The first line, with those that follow while a quotation is open."""
    record = lines.readline()
    while record.count('"') % 2 and (more := lines.readline()):
        record += more
    return record


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
