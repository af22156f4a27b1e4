"""What is public of a holdout's data, and what its files hold: counts, columns, hashes of files.

    the ledger's first row   `Manifest`: units, blocks, columns
    contents.json            `Contents`: the same, with rows, files, their sizes and hashes

The second is a function of the rows. It lies beside them, in a file that is as private as they are,
and nothing of it is told: no message says what was found, or expected.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any, Self, TypeVar

from holdfast.engines.store.columns import Schema
from holdfast.errors import Damaged

__all__ = [
    "BLOCKS_FILE",
    "CONTENTS_FILE",
    "OPEN_FILE",
    "Contents",
    "Manifest",
    "Shard",
    "StoredFile",
    "read_contents",
    "write_contents",
]

_T = TypeVar("_T", "StoredFile", "Shard")

BLOCKS_FILE = "blocks.parquet"
OPEN_FILE = "open.parquet"
CONTENTS_FILE = "contents.json"
_RESTORE = "Restore the holdout from a copy."


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
        for key in values:
            _check_type(key, values[key])
        return cls(**cls._read({**values, "schema": Schema.from_list(values["schema"])}))

    @classmethod
    def _read(cls, plain: dict[str, Any]) -> dict[str, Any]:
        return plain


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

    @classmethod
    def _read(cls, plain: dict[str, Any]) -> dict[str, Any]:
        plain["files"] = tuple(_read(StoredFile, each) for each in plain["files"])
        plain["shards"] = tuple(_read(Shard, each) for each in plain.get("shards", ()))
        return plain


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
        raise Damaged(str(path), "a readable file", str(error.strerror), _RESTORE) from None
    except (ValueError, RecursionError):
        raise Damaged(str(path), "what was written", "something else", _RESTORE) from None
    contents = Contents.from_dict(values)
    if contents.public != manifest:
        expected = "the contents of the holdout that the ledger was made for"
        raise Damaged(str(path), expected, "those of another", _RESTORE)
    return contents


_SOMETIMES = {"shards", "location"}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "unit_column": (str, type(None)),
    "schema": list,
    "files": list,
    "shards": list,
    "location": str,
}


def _check_type(key: str, value: object) -> None:
    wanted = _TYPES.get(key, int)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise _damaged(f"{key} of another type")


def _read(kind: type[_T], values: Any) -> _T:
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
    return Damaged("The manifest", expected, "something else", _RESTORE)
