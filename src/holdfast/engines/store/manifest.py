"""What a holdout's files hold: counts, columns, fingerprint, and the hash of each file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from holdfast.engines.store.columns import Schema
from holdfast.errors import Damaged

__all__ = ["BLOCKS_FILE", "OPEN_FILE", "Manifest", "StoredFile"]

BLOCKS_FILE = "blocks.parquet"
OPEN_FILE = "open.parquet"


@dataclass(frozen=True)
class StoredFile:
    """A file as it was written."""

    name: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """Written once, with the ledger's first row; never changed.

    rows, units         of the input
    blocks, block_units m blocks of t units each, and block_rows rows in them
    one_row_units       every unit is one row: blocks are rectangular
    unit_column         whose equal values made a unit; None if each row is one
    open_…, leftover_…  in the open part; in neither, hence stored nowhere
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        plain = asdict(self)
        plain["schema"] = self.schema.to_list()
        plain["files"] = [asdict(file) for file in self.files]
        return plain

    @classmethod
    def from_dict(cls, values: object) -> Manifest:
        """The manifest that `to_dict` wrote; a key more or less, or another type, is damage."""
        if not isinstance(values, Mapping) or set(values) != {each.name for each in fields(cls)}:
            raise _damaged("the keys of a manifest", repr(values))
        for key in values:
            _check_type(key, values[key])
        plain = dict(values)
        plain["schema"] = Schema.from_list(values["schema"])
        plain["files"] = tuple(_stored_file(each) for each in values["files"])
        return cls(**plain)


_TYPES: dict[str, type | tuple[type, ...]] = {
    "one_row_units": bool,
    "unit_column": (str, type(None)),
    "schema": list,
    "fingerprint": str,
    "files": list,
}


def _check_type(key: str, value: object) -> None:
    wanted = _TYPES.get(key, int)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise _damaged(f"{key} of another type", repr(value))


def _stored_file(values: Any) -> StoredFile:
    wanted = {"name": str, "sha256": str, "bytes": int}
    known = isinstance(values, Mapping) and set(values) == set(wanted)
    if known and all(isinstance(values[key], wanted[key]) for key in wanted):
        return StoredFile(**values)
    raise _damaged("name, hash and size of a file", repr(values))


def _damaged(expected: str, found: str) -> Damaged:
    return Damaged("The manifest", expected, found[:80], "Restore the holdout from a copy.")
