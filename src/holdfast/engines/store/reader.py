"""Reading a holdout's data: the blocks, some of them, or the open part."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.engines.store.columns import BLOCK, ROW, UNIT, Schema
from holdfast.engines.store.manifest import OPEN_FILE, Contents, Shard, StoredFile
from holdfast.errors import Damaged, InvalidInput, whole_number

__all__ = ["HIDDEN", "BlockStore", "check_files"]

HIDDEN = (BLOCK, UNIT, ROW)
Groups = tuple[NDArray[np.int64], NDArray[np.int64]]
_RESTORE = "Restore the holdout from a copy; answers from these files would not be certified."


class BlockStore:
    """The sealed blocks and the open part of one holdout.

    Safe to share between threads and to send to other processes: it holds no open file.
    """

    def __init__(self, folder: Path, manifest: Contents) -> None:
        self.folder = Path(folder)
        self.manifest = manifest
        # What was declared of columns: the ends of their values, or all of them. Made-up rows, on
        # which functions are tried, keep to it.
        self.ranges: Mapping[str, tuple[float, float]] = {}
        self.values: Mapping[str, Sequence[object]] = {}
        self._known_offsets: dict[Shard, NDArray[np.int64]] = {}
        self._known_groups: dict[Shard, Groups] = {}

    def __reduce__(self) -> tuple[type[BlockStore], tuple[Path, Contents]]:
        return type(self), (self.folder, self.manifest)

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
    def shards(self) -> tuple[Shard, ...]:
        """The files of the blocks, in their order."""
        return self.manifest.parts

    def overlapping(self, start: int, stop: int) -> list[Shard]:
        """The shards that have some of the blocks start, …, stop − 1."""
        return [each for each in self.shards if each.first < stop and start < each.stop]

    def place(self, shard: Shard) -> Path:
        """Where a shard is read from, while it is `held`."""
        return self.folder / shard.name

    def check_there(self, shard: Shard) -> None:
        """Raise `Damaged` unless a shard has as many bytes as were written."""
        for file in self.manifest.files:
            if file.name == shard.name:
                _check_size(self.place(shard), file)

    @contextmanager
    def held(self, shard: Shard) -> Iterator[None]:
        """A shard is there, as it was written, and stays until the block ends."""
        del shard  # it is kept in the folder; whoever asks has verified that
        yield

    @property
    def open_path(self) -> Path | None:
        """The file of the open part, if there is one."""
        return self.folder / OPEN_FILE if self.manifest.open_units else None

    def cuts(self, start: int, stop: int) -> NDArray[np.int64]:
        """Where, in a table of the blocks start, …, stop − 1, each begins, and the last ends."""
        if self.manifest.one_row_units:
            return np.arange(stop - start + 1, dtype=np.int64) * self.units
        lengths = [
            np.diff(self._offsets(each))[max(start - each.first, 0) : stop - each.first]
            for each in self.overlapping(start, stop)
        ]
        return np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64)

    def _offsets(self, shard: Shard) -> NDArray[np.int64]:
        """The first row of every block of a shard, and the number of its rows."""
        if shard not in self._known_offsets:
            numbers = _read(self.place(shard), None, [BLOCK]).column(0).to_numpy()
            every = np.arange(shard.first, shard.stop + 1)
            self._known_offsets[shard] = np.searchsorted(numbers, every).astype(np.int64)
        return self._known_offsets[shard]

    def _groups(self, shard: Shard) -> Groups:
        """The first block of every row group of a shard, and the first row."""
        if shard not in self._known_groups:
            self._known_groups[shard] = self._read_groups(self.place(shard), shard.rows)
        return self._known_groups[shard]

    def _read_groups(self, path: Path, expected: int) -> Groups:
        with _opened(path) as file:
            meta, names = file.metadata, tuple(file.schema_arrow.names)
            if names != (*HIDDEN, *self.schema.names):
                wanted = "the columns of the holdout"
                raise Damaged(str(path), wanted, ", ".join(names)[:80], _RESTORE)
            groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
            first = [group.column(0).statistics.min for group in groups]
            rows = np.cumsum([0, *(group.num_rows for group in groups)], dtype=np.int64)
        if rows[-1] != expected:
            raise Damaged(str(path), "as many rows as were written", "others", _RESTORE)
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
        import pyarrow as pa

        stop = whole_number("stop", self.blocks if stop is None else stop, 1, self.blocks)
        start = whole_number("start", start, 0, stop - 1)
        names = self._names(columns, hidden)
        found = [
            self._shard_table(each, max(start, each.first), min(stop, each.stop), names)
            for each in self.overlapping(start, stop)
        ]
        return found[0] if len(found) == 1 else pa.concat_tables(found)

    def _shard_table(self, shard: Shard, start: int, stop: int, names: list[str]) -> Any:
        first, rows = self._groups(shard)
        low = int(np.searchsorted(first, start, side="right")) - 1
        high = int(np.searchsorted(first, stop, side="left"))
        found = _read(self.place(shard), range(low, high), names)
        begin = int(self.cuts(shard.first, start)[-1] - rows[low]) if start > shard.first else 0
        return found.slice(begin, int(self.cuts(start, stop)[-1]))

    def open_table(self, columns: Sequence[str] | None = None, hidden: bool = False) -> Any:
        """The rows of the open part, which anybody may see."""
        if self.open_path is None:
            hint = "Create the holdout with an open_fraction."
            raise InvalidInput("the open part", "none", "part of the holdout", hint)
        found = _read(self.open_path, None, self._names(columns, hidden))
        numbers = {each.name for each in self.schema.columns if each.kind == "number"}
        return _typed_by_itself(found, numbers)

    def open_texts(self, column: str, most: int) -> tuple[int, tuple[str, ...]] | None:
        """How many rows are open, and the texts of a column there; None if they are too many."""
        import pyarrow.compute as pc

        rows, found = 0, set[str]()
        assert self.open_path is not None  # whoever asks has seen to it
        with _opened(self.open_path) as file:
            for batch in file.iter_batches(columns=self._names([column], hidden=False)):
                rows += batch.num_rows
                found.update(pc.unique(batch.column(0).drop_null()).to_pylist())
                if len(found) > most:
                    return None
        return rows, tuple(sorted(found))

    @property
    def kept_files(self) -> tuple[StoredFile, ...]:
        """The files of the manifest that are in the folder."""
        return self.manifest.files

    def check_files(self) -> None:
        """Raise `Damaged` unless the files are, byte for byte, as they were written."""
        check_files(self.folder, self.kept_files)

    def _names(self, columns: Sequence[str] | None, hidden: bool) -> list[str]:
        wanted = self.schema.names if columns is None else columns
        found = [self.schema.find(name) for name in wanted]
        for name, column in zip(wanted, found, strict=True):
            if column is None:
                raise InvalidInput("column", name, f"one of {', '.join(self.schema.names[:12])}")
        return [*(HIDDEN if hidden else ()), *(each.name for each in found if each)]


def check_files(folder: Path, files: Iterable[StoredFile]) -> None:
    """Raise `Damaged` unless the files are, byte for byte, as they were written."""
    for expected in files:
        file = folder / expected.name
        _check_size(file, expected)
        try:
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise Damaged(str(file), "a readable file", str(error.strerror), _RESTORE) from None
        if digest != expected.sha256:
            raise Damaged(str(file), "the bytes that were written", "others", _RESTORE)


def _check_size(file: Path, expected: StoredFile) -> None:
    """Raise `Damaged` unless the file is there, with as many bytes as were written."""
    try:
        size = file.stat().st_size
    except OSError as error:
        raise Damaged(str(file), "a readable file", str(error.strerror), _RESTORE) from None
    if size != expected.bytes:
        raise Damaged(str(file), "as many bytes as were written", "others", _RESTORE)


def _opened(file: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file)
    except (pa.ArrowException, OSError):
        raise Damaged(str(file), "a Parquet file", "something else", _RESTORE) from None


def _read(file: Path, groups: range | None, columns: list[str]) -> Any:
    with _opened(file) as opened:
        every = range(opened.num_row_groups) if groups is None else groups
        return opened.read_row_groups(list(every), columns=columns).select(columns)


def _typed_by_itself(table: Any, numbers: Collection[str]) -> Any:
    """Numbers as integers where all of these rows have whole ones, else as doubles.

    The type of the file is that of all rows: it would tell whether a sealed one is a fraction or
    missing.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, column in enumerate(table.schema):
        if column.name in numbers:
            doubles = table.column(place).cast(pa.float64(), safe=False)
            whole = (
                doubles.null_count == 0
                and pc.all(
                    pc.and_(
                        pc.equal(pc.round(doubles), doubles),
                        pc.less_equal(pc.abs(doubles), 2.0**53),
                    ),
                    min_count=0,
                ).as_py()
            )
            typed = doubles.cast(pa.int64()) if whole else doubles
            table = table.set_column(place, column.name, typed)
    return table
