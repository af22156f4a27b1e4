"""Reading a holdout's data: the blocks, some of them, or the open part."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.arguments import whole_number
from holdfast.engines.store.columns import Schema
from holdfast.engines.store.cut import BLOCK, UNIT
from holdfast.engines.store.manifest import BLOCKS_FILE, OPEN_FILE, Manifest
from holdfast.engines.store.shuffle import ROW
from holdfast.errors import Damaged, InvalidInput

__all__ = ["HIDDEN", "BlockStore", "check_files"]

HIDDEN = (BLOCK, UNIT, ROW)
_RESTORE = "Restore the holdout from a copy; answers from these files would not be certified."


class BlockStore:
    """The sealed blocks and the open part of one holdout.

    Safe to share between threads and to send to other processes: it holds no open file.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = Path(folder)
        self.manifest = manifest

    def __reduce__(self) -> tuple[type[BlockStore], tuple[Path, Manifest]]:
        return BlockStore, (self.folder, self.manifest)

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return self.manifest.blocks

    @property
    def units(self) -> int:
        """How many units each block has."""
        return self.manifest.block_units

    @property
    def schema(self) -> Schema:
        """The columns that a question may name."""
        return self.manifest.schema

    @property
    def path(self) -> Path:
        """The file of the sealed blocks."""
        return self.folder / BLOCKS_FILE

    @property
    def open_path(self) -> Path | None:
        """The file of the open part, if there is one."""
        return self.folder / OPEN_FILE if self.manifest.open_units else None

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The first row of every block, and the number of rows: blocks + 1 numbers."""
        if self.manifest.one_row_units:
            offsets = np.arange(self.blocks + 1, dtype=np.int64) * self.units
        else:
            numbers = _read(self.path, None, [BLOCK]).column(0).to_numpy()
            offsets = np.searchsorted(numbers, np.arange(self.blocks + 1)).astype(np.int64)
        offsets.flags.writeable = False
        return offsets

    @cached_property
    def _groups(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first block of every row group, and the first row."""
        with _opened(self.path) as file:
            meta, names = file.metadata, tuple(file.schema_arrow.names)
            if names != (*HIDDEN, *self.schema.names):
                expected = "the columns of the holdout"
                raise Damaged(str(self.path), expected, ", ".join(names)[:80], _RESTORE)
            groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
            first = [group.column(0).statistics.min for group in groups]
            rows = np.cumsum([0, *(group.num_rows for group in groups)], dtype=np.int64)
        if rows[-1] != self.manifest.block_rows:
            expected = f"{self.manifest.block_rows:,} rows"
            raise Damaged(str(self.path), expected, f"{rows[-1]:,}", _RESTORE)
        return np.array(first, np.int64), rows

    def table(
        self,
        start: int = 0,
        stop: int | None = None,
        columns: Sequence[str] | None = None,
        hidden: bool = False,
    ) -> Any:
        """The rows of the blocks start, …, stop − 1 as an Arrow table; only their groups are read.

        `hidden` adds the number of the block, of the unit and of the row in the original data.
        """
        stop = whole_number("stop", self.blocks if stop is None else stop, 1, self.blocks)
        start = whole_number("start", start, 0, stop - 1)
        first, rows = self._groups
        low = int(np.searchsorted(first, start, side="right")) - 1
        high = int(np.searchsorted(first, stop, side="left"))
        found = _read(self.path, range(low, high), self._names(columns, hidden))
        begin, end = self.offsets[start] - rows[low], self.offsets[stop] - rows[low]
        return found.slice(int(begin), int(end - begin))

    def open_table(self, columns: Sequence[str] | None = None, hidden: bool = False) -> Any:
        """The rows of the open part, which anybody may see."""
        if self.open_path is None:
            hint = "Create the holdout with an open_fraction."
            raise InvalidInput("the open part", "none", "part of the holdout", hint)
        return _read(self.open_path, None, self._names(columns, hidden))

    def check_files(self) -> None:
        """Raise `Damaged` unless the files are, byte for byte, as they were written."""
        check_files(self.folder, self.manifest)

    def _names(self, columns: Sequence[str] | None, hidden: bool) -> list[str]:
        wanted = self.schema.names if columns is None else columns
        found = [self.schema.find(name) for name in wanted]
        for name, column in zip(wanted, found, strict=True):
            if column is None:
                raise InvalidInput("column", name, f"one of {', '.join(self.schema.names[:12])}")
        return [*(HIDDEN if hidden else ()), *(each.name for each in found if each)]


def check_files(folder: Path, manifest: Manifest) -> None:
    """Raise `Damaged` unless the files are, byte for byte, as they were written."""
    for expected in manifest.files:
        file = folder / expected.name
        try:
            size = file.stat().st_size
            if size != expected.bytes:
                raise Damaged(str(file), f"{expected.bytes:,} bytes", f"{size:,}", _RESTORE)
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise Damaged(str(file), "a readable file", str(error.strerror), _RESTORE) from None
        if digest != expected.sha256:
            wanted, found = f"SHA-256 {expected.sha256[:16]}…", f"{digest[:16]}…"
            raise Damaged(str(file), wanted, found, _RESTORE)


def _opened(file: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise Damaged(str(file), "a Parquet file", str(error)[:80], _RESTORE) from None


def _read(file: Path, groups: range | None, columns: list[str]) -> Any:
    with _opened(file) as opened:
        every = range(opened.num_row_groups) if groups is None else groups
        return opened.read_row_groups(list(every), columns=columns).select(columns)
