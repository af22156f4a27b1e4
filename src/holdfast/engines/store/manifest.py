"""What a holdout's files hold: counts, columns, fingerprint, and the hash of each file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import PurePosixPath
from typing import Any, TypeVar

from holdfast.engines.store.columns import Schema
from holdfast.errors import Damaged

__all__ = ["BLOCKS_FILE", "OPEN_FILE", "Manifest", "Shard", "StoredFile"]

_T = TypeVar("_T", "StoredFile", "Shard")

BLOCKS_FILE = "blocks.parquet"
OPEN_FILE = "open.parquet"


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


@dataclass(frozen=True)
class Manifest:
    """Written once, with the ledger's first row; never changed.

    rows, units         of the input
    blocks, block_units m blocks of t units each, and block_rows rows in them
    one_row_units       every unit is one row: blocks are rectangular
    unit_column         whose equal values made a unit; None if each row is one
    open_…, leftover_…  in the open part; in neither, hence stored nowhere
    shards              the files of the blocks, in order; none if one file has them all
    location            where the files are, as a URL; None: in the folder of the holdout
    """

    rows: int
    units: int
    blocks: int
    block_units: int
    block_rows: int
    one_row_units: bool
    unit_column: str | None
    open_units: int
    open_rows: int
    leftover_units: int
    leftover_rows: int
    schema: Schema
    fingerprint: str
    files: tuple[StoredFile, ...]
    shards: tuple[Shard, ...] = ()
    location: str | None = None

    def __post_init__(self) -> None:
        counts = (self.block_rows, self.open_units, self.open_rows, self.leftover_units)
        sealed = self.blocks * self.block_units
        consistent = (
            min(*counts, self.leftover_rows) >= 0
            and min(self.blocks, self.block_units) >= 1
            and sealed + self.open_units + self.leftover_units == self.units <= self.rows
            and self.block_rows + self.open_rows + self.leftover_rows == self.rows
            and (not self.one_row_units or self.rows == self.units)
        )
        if not consistent:
            raise _damaged("counts that add up", "others")
        ends = [0, *(each.stop for each in self.parts)]
        whole = ends[:-1] == [each.first for each in self.parts] and ends[-1] == self.blocks
        rows = sum(each.rows for each in self.parts)
        if not whole or ends != sorted(set(ends)) or rows != self.block_rows:
            raise _damaged("shards that hold every block once", "others")
        listed = Counter(each.name for each in self.files)
        if any(listed[each.name] != 1 for each in self.shards):
            raise _damaged("every shard among the files, once", "others")

    @property
    def parts(self) -> tuple[Shard, ...]:
        """The files of the blocks, in their order."""
        return self.shards or (Shard(BLOCKS_FILE, 0, self.blocks, self.block_rows),)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON. What only some holdouts have, others do not mention."""
        plain = asdict(self)
        plain["schema"] = self.schema.to_list()
        plain["files"] = [asdict(file) for file in self.files]
        plain["shards"] = [asdict(shard) for shard in self.shards]
        return {key: value for key, value in plain.items() if value or key not in _SOMETIMES}

    @classmethod
    def from_dict(cls, values: object) -> Manifest:
        """The manifest that `to_dict` wrote; a key more or less, or another type, is damage."""
        names = {each.name for each in fields(cls)}
        if not isinstance(values, Mapping) or set(values) | _SOMETIMES != names:
            raise _damaged("the keys of a manifest", repr(values))
        for key in values:
            _check_type(key, values[key])
        plain = dict(values)
        plain["schema"] = Schema.from_list(values["schema"])
        plain["files"] = tuple(_read(StoredFile, each) for each in values["files"])
        plain["shards"] = tuple(_read(Shard, each) for each in values.get("shards", ()))
        return cls(**plain)


_SOMETIMES = {"shards", "location"}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "one_row_units": bool,
    "unit_column": (str, type(None)),
    "schema": list,
    "fingerprint": str,
    "files": list,
    "shards": list,
    "location": str,
}


def _check_type(key: str, value: object) -> None:
    wanted = _TYPES.get(key, int)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise _damaged(f"{key} of another type", repr(value))


def _read(kind: type[_T], values: Any) -> _T:
    """One of the manifest's files or shards; a name leads to nowhere else."""
    wanted = {each.name: str if each.type == "str" else int for each in fields(kind)}
    if not isinstance(values, Mapping) or set(values) != set(wanted):
        raise _damaged(f"a {kind.__name__}", repr(values))
    for key, value in values.items():
        if type(value) is not wanted[key]:
            raise _damaged(f"{key} of another type", repr(value))
    parts = PurePosixPath(values["name"])
    if parts.is_absolute() or ".." in parts.parts:
        raise _damaged("the name of a file beneath the holdout", repr(values["name"]))
    return kind(**values)


def _damaged(expected: str, found: str) -> Damaged:
    return Damaged("The manifest", expected, found[:80], "Restore the holdout from a copy.")
