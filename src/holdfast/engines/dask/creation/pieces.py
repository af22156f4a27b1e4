"""Pieces of Parquet files: what one task reads, with the same expressions as one machine does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.engines.store.inputs import Chosen
from holdfast.engines.store.paths import data_files, is_paths
from holdfast.engines.store.remote import file_system
from holdfast.engines.store.session import Session
from holdfast.engines.store.values import quoted, quoted_text
from holdfast.errors import InvalidInput

__all__ = [
    "NUMBER",
    "SAMPLE",
    "Footer",
    "Piece",
    "cut_files",
    "found_files",
    "read_footer",
    "read_parquet",
    "row_bytes",
    "sampled",
]

NUMBER = "file_row_number"  # what DuckDB calls the number of a row in its file
SAMPLE = 10_000  # rows that tell how long texts are, in each of several places
_PLACES = 16
_ALLOWED = "paths or URLs of Parquet files (.parquet, .pq), as workers see them"


@dataclass(frozen=True)
class Piece:
    """The rows start, …, stop − 1 of a file; in the whole input, `start` has the number `first`."""

    file: str
    start: int
    stop: int
    first: int

    def attach(self, session: Session) -> str:
        """The rows as SQL names them after FROM."""
        table = read_parquet(session, [self.file], numbered=True)
        between = f"{NUMBER} >= {self.start} AND {NUMBER} < {self.stop}"
        return f"(SELECT * FROM {table} WHERE {between})"


@dataclass(frozen=True)
class Footer:
    """What a file says of itself."""

    schema: Any
    groups: tuple[int, ...]
    """The rows of each of its groups."""
    types: dict[str, str]
    """The columns as DuckDB reads them."""


def found_files(data: object) -> tuple[str, ...]:
    """The files of paths, patterns and URLs, in the order given; a pattern's are sorted."""
    if not is_paths(data):
        hint = "Write the table to Parquet files that every worker can read."
        raise InvalidInput("data", type(data).__name__, _ALLOWED, hint)
    given: Any = data if isinstance(data, Sequence) and not isinstance(data, str) else [data]
    return tuple(file for each in given for file in _expanded(each))


def _expanded(given: Any) -> Iterator[str]:
    text = str(given)
    if "://" not in text:
        form, files = data_files(given)
        if form != "parquet":
            hint = "A cluster reads Parquet files: convert them first."
            raise InvalidInput("data", text, _ALLOWED, hint)
        yield from (str(Path(file).absolute()) for file in files)
        return
    if not text.lower().endswith((".parquet", ".pq")):
        hint = "The ending of the name says the format; a pattern is s3://bucket/*.parquet."
        raise InvalidInput("data", text, _ALLOWED, hint)
    try:
        system, path = file_system(text)
    except InvalidInput as error:
        raise InvalidInput("data", text, _ALLOWED, error.hint) from None
    system.invalidate_cache()
    found = [path] if system.exists(path) else sorted(system.glob(path))
    if not found:
        raise InvalidInput("data", text, _ALLOWED, "No file has this name or fits this pattern.")
    yield from (str(system.unstrip_protocol(each)) for each in found)


def read_parquet(session: Session, files: Iterable[str], *, numbered: bool = False) -> str:
    """The files as SQL names them after FROM; URLs are opened by fsspec."""
    files = list(files)
    for file in files:
        if "://" in file:
            system, _ = file_system(file)
            name = system.protocol if isinstance(system.protocol, str) else system.protocol[0]
            if not session.connection.filesystem_is_registered(name):
                session.connection.register_filesystem(system)
    names = ", ".join(quoted_text(file) for file in files)
    number = f", {NUMBER} = true" if numbered else ""
    return f"read_parquet([{names}], hive_partitioning = false{number})"


def read_footer(file: str, session: Session) -> Footer:
    """Read the end of a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if "://" in file:
            system, path = file_system(file)
            with system.open(path, "rb") as stream:
                meta = pq.ParquetFile(stream).metadata
        else:
            meta = pq.read_metadata(file)
        schema = meta.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).split(".")[0]
        raise InvalidInput("data", file, "readable by every worker", f"{reason}.") from None
    groups = tuple(meta.row_group(i).num_rows for i in range(meta.num_row_groups))
    return Footer(schema, groups, session.described(read_parquet(session, [file])))


def sampled(pieces: Sequence[Piece]) -> list[Piece]:
    """Some of the pieces, the first, the last and others between, at equal distances.

    >>> [piece.start for piece in sampled([Piece("a", n, n + 1, n) for n in range(31)])]
    [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
    """
    places = min(_PLACES, len(pieces))
    return [pieces[i * (len(pieces) - 1) // max(1, places - 1)] for i in range(places)]


def row_bytes(piece: Piece, chosen: Chosen, session: Session) -> int:
    """About how many bytes a row takes on its way: eight for a number, and the length of texts."""
    texts = [each.stored for each in chosen.stored if each.kind == "text"]
    if chosen.unit is not None:
        texts.append(chosen.unit.identity)
    names = {each.name for each in (*chosen.stored, *([chosen.unit] if chosen.unit else []))}
    columns = ", ".join(quoted(name) for name in sorted(names))
    table = f"(SELECT {columns} FROM {piece.attach(session)})"
    lengths = " + ".join(["0 * count(*)", *(f"coalesce(avg(strlen({each})), 0)" for each in texts)])
    (length,) = session.row(f"SELECT {lengths} FROM {table}", "reading", lambda *_: None)
    return 8 * (len(chosen.stored) + len(texts) + 4) + math.ceil(float(length))


def cut_files(files: Sequence[str], footers: Sequence[Footer], rows: int) -> tuple[Piece, ...]:
    """Pieces of about so many rows, whole row groups where these are not larger."""
    found: list[Piece] = []
    first = 0
    for file, footer in zip(files, footers, strict=True):
        start = 0
        for stop in _ends(footer.groups, rows):
            found.append(Piece(file, start, stop, first + start))
            start = stop
        first += start
    return tuple(found)


def _ends(groups: Sequence[int], rows: int) -> Iterator[int]:
    end = waiting = 0
    for size in groups:
        if waiting and waiting + size > rows:
            yield end
            waiting = 0
        parts = max(1, math.ceil(size / rows))
        for part in range(1, parts):
            yield end + size * part // parts
        end, waiting = end + size, waiting + size if parts == 1 else rows
    if waiting:
        yield end
