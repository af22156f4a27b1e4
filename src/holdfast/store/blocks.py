"""Reading a holdout's data: the blocks, some of them, or the open part."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import Damaged, InvalidInput, whole_number
from holdfast.store.table import BLOCK, ROW, UNIT, Schema, plain_array

__all__ = [
    "BLOCKS_FILE",
    "CONTENTS_FILE",
    "HIDDEN",
    "OPEN_FILE",
    "BlockStore",
    "Contents",
    "Manifest",
    "NotOwnError",
    "Shard",
    "StoredFile",
    "check_files",
    "finished",
    "opened_own",
    "own_folder",
    "private",
    "read_contents",
    "remove_in",
    "sync_folder",
    "write_contents",
]


# What is public of a holdout's data, and what its files hold: counts, columns, hashes of files.
#
#     the ledger's first row   `Manifest`: units, blocks, columns
#     contents.json            `Contents`: the same, with rows, files, their sizes and hashes
#
# The second is a function of the rows. It lies beside them, in a file that is as private as they
# are, and nothing of it is told: no message says what was found, or expected.

BLOCKS_FILE = "blocks.parquet"
OPEN_FILE = "open.parquet"
CONTENTS_FILE = "contents.json"
_COPY = "Restore the holdout from a copy."
_RESTORE = f"{_COPY[:-1]}; answers from these files would not be certified."


@dataclass(frozen=True)
class StoredFile:
    """A file as it was written."""

    name: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Shard:
    """A file of whole blocks: first, …, stop − 1, which have so many rows."""

    name: str
    first: int
    stop: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What is public of the data: written once, with the ledger's first row; never changed.

    units               of the input
    blocks, block_units m blocks of t units each
    unit_column         whose equal values make a unit; None if each row is one
    open_…, leftover_…  in the open part; in neither, hence stored nowhere
    location            where the files are, as a URL; None: in the folder of the holdout

    Nothing in it depends on what is in the rows, or on how many rows a unit has: a receipt is a
    hash of all this, and whoever has one could try out rows until it fits.
    """

    units: int
    blocks: int
    block_units: int
    unit_column: str | None
    open_units: int
    leftover_units: int
    schema: Schema
    location: str | None = None

    def __post_init__(self) -> None:
        sealed = self.blocks * self.block_units
        consistent = (
            min(self.open_units, self.leftover_units) >= 0
            and min(self.blocks, self.block_units) >= 1
            and sealed + self.open_units + self.leftover_units == self.units
        )
        if not consistent:
            raise _damaged("counts that add up")

    @property
    def one_row_units(self) -> bool:
        """Whether every unit is one row, by declaration: blocks are then rectangular.

        That every id of a unit happens to come once is no such declaration: it is known from the
        rows alone.
        """
        return self.unit_column is None

    def data_facts(self) -> list[object]:
        """What all holdouts of the same data have in common, and others hardly."""
        return [self.units, self.unit_column, self.schema.to_list()]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON. What only some holdouts have, others do not mention."""
        plain = {**asdict(self), "schema": self.schema.to_list()}
        listed = {key: list(v) if isinstance(v, tuple) else v for key, v in plain.items()}
        return {key: value for key, value in listed.items() if value or key not in _SOMETIMES}

    @classmethod
    def from_dict(cls, values: object) -> Self:
        """What `to_dict` wrote; a key more or less, or another type, is damage."""
        names = {each.name for each in fields(cls)}
        if not isinstance(values, Mapping) or set(values) | (_SOMETIMES & names) != names:
            raise _damaged("its keys and no others")
        for key, value in values.items():
            wanted = _TYPES.get(key, int)
            if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
                raise _damaged(f"{key} of another type")
        plain = {**values, "schema": Schema.from_list(values["schema"])}
        for key, kind in (("files", StoredFile), ("shards", Shard)):
            if key in plain:
                plain[key] = tuple(_read_entry(kind, each) for each in plain[key])
        return cls(**plain)


@dataclass(frozen=True, kw_only=True)
class Contents(Manifest):
    """All of what a holdout's files hold; kept beside them, for whoever may read the rows.

    rows                of the input; block_rows in the blocks, others in the open part or left over
    files               each as it was written
    shards              the files of the blocks, in order; none if one file has them all
    """

    rows: int
    block_rows: int
    open_rows: int
    leftover_rows: int
    files: tuple[StoredFile, ...]
    shards: tuple[Shard, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        counts = (self.block_rows, self.open_rows, self.leftover_rows)
        whole = self.rows == self.units if self.one_row_units else self.rows >= self.units
        if min(counts) < 0 or sum(counts) != self.rows or not whole:
            raise _damaged("counts that add up")
        ends = [0, *(each.stop for each in self.parts)]
        whole = ends[:-1] == [each.first for each in self.parts] and ends[-1] == self.blocks
        rows = sum(each.rows for each in self.parts)
        if not whole or ends != sorted(set(ends)) or rows != self.block_rows:
            raise _damaged("shards that hold every block once")
        listed = Counter(each.name for each in self.files)
        if any(listed[each.name] != 1 for each in self.shards):
            raise _damaged("every shard among the files, once")

    @property
    def public(self) -> Manifest:
        """What everybody may know."""
        return Manifest(**{each.name: getattr(self, each.name) for each in fields(Manifest)})

    @property
    def parts(self) -> tuple[Shard, ...]:
        """The files of the blocks, in their order."""
        return self.shards or (Shard(BLOCKS_FILE, 0, self.blocks, self.block_rows),)

    def text(self) -> str:
        """The one text of all this."""
        return json.dumps(self.to_dict(), sort_keys=True)


def write_contents(folder: Path, contents: Contents) -> None:
    """Write the file that only its owner may read; whoever makes the folder syncs it."""
    descriptor = os.open(folder / CONTENTS_FILE, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"{contents.text()}\n")
        file.flush()
        os.fsync(descriptor)


def read_contents(folder: Path, manifest: Manifest) -> Contents:
    """The contents of a holdout's files, if they are those of this manifest."""
    path = folder / CONTENTS_FILE
    try:
        values = json.loads(path.read_bytes())
    except OSError as error:
        raise Damaged(str(path), "a readable file", str(error.strerror), _COPY) from None
    except (ValueError, RecursionError):
        raise Damaged(str(path), "what was written", "something else", _COPY) from None
    contents = Contents.from_dict(values)
    if contents.public != manifest:
        expected = "the contents of the holdout that the ledger was made for"
        raise Damaged(str(path), expected, "those of another", _COPY)
    return contents


_SOMETIMES = {"shards", "location"}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "unit_column": (str, type(None)),
    "schema": list,
    "files": list,
    "shards": list,
    "location": str,
}


def _read_entry(kind: type[StoredFile | Shard], values: Any) -> StoredFile | Shard:
    """One of the files or shards; a name leads to nowhere else."""
    wanted = {each.name: str if each.type == "str" else int for each in fields(kind)}
    if not isinstance(values, Mapping) or set(values) != set(wanted):
        raise _damaged(f"a {kind.__name__}")
    for key, value in values.items():
        if type(value) is not wanted[key]:
            raise _damaged(f"{key} of another type")
    parts = PurePosixPath(values["name"])
    if parts.is_absolute() or ".." in parts.parts:
        raise _damaged("the name of a file beneath the holdout")
    return kind(**values)


def _damaged(expected: str) -> Damaged:
    return Damaged("The manifest", expected, "something else", _COPY)


HIDDEN = (BLOCK, UNIT, ROW)
Groups = tuple[NDArray[np.int64], NDArray[np.int64]]


class BlockStore:
    """The sealed blocks and the open part of one holdout.

    Safe to share between threads and to send to other processes: it holds no open file.
    """

    def __init__(self, folder: Path, manifest: Contents) -> None:
        self.folder = Path(folder)
        self.manifest = manifest
        self.blocks, self.units = manifest.blocks, manifest.block_units  # of them; of each
        self.data_rows = (
            manifest.rows
        )  # of all the data, open and sealed: predictions are for these
        self.schema = manifest.schema  # the columns that a question may name
        self.shards = manifest.parts  # the files of the blocks, in their order
        self.kept_files = manifest.files  # those that are in the folder
        # What was declared of columns: the ends of their values, or all of them. Made-up rows, on
        # which functions are tried, keep to it.
        self.ranges: Mapping[str, tuple[float, float]] = {}
        self.values: Mapping[str, Sequence[object]] = {}
        self._known_offsets: dict[Shard, NDArray[np.int64]] = {}
        self._known_groups: dict[Shard, Groups] = {}

    def __reduce__(self) -> tuple[type[BlockStore], tuple[Path, Contents]]:
        return type(self), (self.folder, self.manifest)

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

    def held(self, shard: Shard) -> AbstractContextManager[None]:
        """A shard is there, as it was written, and stays until the block ends."""
        del shard  # it is kept in the folder; whoever asks has verified that
        return nullcontext()

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
            numbers = plain_array(_read(self.place(shard), None, [BLOCK]).column(0))
            every = np.arange(shard.first, shard.stop + 1)
            self._known_offsets[shard] = np.searchsorted(numbers, every).astype(np.int64)
        return self._known_offsets[shard]

    def _groups(self, shard: Shard) -> Groups:
        """The first block of every row group of a shard, and the first row."""
        if shard in self._known_groups:
            return self._known_groups[shard]
        path = self.place(shard)
        with _opened(path) as file:
            meta, names = file.metadata, tuple(file.schema_arrow.names)
            if names != (*HIDDEN, *self.schema.names):
                wanted = "the columns of the holdout"
                raise Damaged(str(path), wanted, ", ".join(names)[:80], _RESTORE)
            groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
            first = [group.column(0).statistics.min for group in groups]
            rows = np.cumsum([0, *(group.num_rows for group in groups)], dtype=np.int64)
        if rows[-1] != shard.rows:
            raise Damaged(str(path), "as many rows as were written", "others", _RESTORE)
        self._known_groups[shard] = np.array(first, np.int64), rows
        return self._known_groups[shard]

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

    for place, column in enumerate(table.schema):
        if column.name in numbers:
            doubles = table.column(place).cast(pa.float64(), safe=False)
            array = plain_array(doubles)
            whole = bool(np.all((np.rint(array) == array) & (np.abs(array) <= 2.0**53)))
            typed = doubles.cast(pa.int64()) if whole else doubles
            table = table.set_column(place, column.name, typed)
    return table


# Files on the disk: private from the first byte, synced, known by their hash, and one's own.

_UNLINKED = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # never through a link, never waiting


class NotOwnError(Exception):
    """Why a file or folder is not one that this account made for itself."""


def private(file: Path) -> Path:
    """An empty file that only its owner may read, before anything is in it."""
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return file


def finished(file: Path, name: str | None = None) -> StoredFile:
    """The file on the disk for good, and what it is; its own name unless it gets another."""
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return StoredFile(name or file.name, digest, file.stat().st_size)


def sync_folder(folder: Path) -> None:
    """Names in the folder on the disk for good."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def own_folder(folder: Path) -> Iterator[int]:
    """The folder itself, whatever its name leads to later, if nobody else can write to it.

    Raises `NotOwnError` if it is another account's, a link or no folder.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _UNLINKED)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NotOwnError(f"it cannot be opened as a folder ({error.strerror}).") from None
    try:
        _check_own(os.fstat(descriptor), "it")
        yield descriptor
    finally:
        os.close(descriptor)


def opened_own(place: int, name: str) -> int:
    """A file of such a folder, to be read and written, under the same conditions."""
    try:
        descriptor = os.open(name, os.O_RDWR | _UNLINKED, dir_fd=place)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NotOwnError(f"its {name} cannot be opened ({error.strerror}).") from None
    try:
        found = os.fstat(descriptor)
        _check_own(found, f"its {name}")
        if not stat.S_ISREG(found.st_mode):
            raise NotOwnError(f"its {name} is no file.")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_own(found: os.stat_result, what: str) -> None:
    if found.st_uid != os.geteuid():
        raise NotOwnError(f"{what} belongs to another account.")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotOwnError(f"others than its owner can write to {what}.")


def remove_in(place: int, kept: str) -> None:
    """Remove all that is in a folder, but for one file; what cannot be removed stays."""
    for name in os.listdir(place):
        if name == kept:
            continue
        try:
            os.unlink(name, dir_fd=place)
        except FileNotFoundError:
            continue
        except OSError:  # a folder
            shutil.rmtree(name, ignore_errors=True, dir_fd=place)
