"""Columns of a holdout: what kinds there are, and which names a column may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.errors import Damaged, InvalidInput

__all__ = [
    "BLOCK",
    "ID",
    "KINDS",
    "MOST_COLUMNS",
    "ROW",
    "UNIT",
    "Column",
    "Schema",
    "check_names",
    "check_twins",
]

KINDS = ("number", "boolean", "text", "date", "timestamp")
MOST_COLUMNS = 2_000
ROW, ID, BLOCK, UNIT = "__row", "__id", "__block", "__unit"  # hidden columns


@dataclass(frozen=True)
class Column:
    """A name and what kind of values stand under it."""

    name: str
    kind: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidInput("kind", self.kind, f"one of {', '.join(KINDS)}")


@dataclass(frozen=True)
class Schema:
    """The columns that a question may name, in the order of the data.

    >>> schema = Schema((Column("Age", "number"), Column("arm", "text")))
    >>> schema.names, schema.kind("age"), schema.find("weight")
    (('Age', 'arm'), 'number', None)
    """

    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names as the data spell them."""
        return tuple(column.name for column in self.columns)

    def find(self, name: str) -> Column | None:
        """The column of that name; as in SQL, upper and lower case do not matter."""
        folded = name.casefold()
        return next((each for each in self.columns if each.name.casefold() == folded), None)

    def kind(self, name: str) -> str:
        """The kind of a column that exists."""
        column = self.find(name)
        if column is None:
            raise InvalidInput("column", name, f"one of {_listed(self.names)}")
        return column.kind

    def to_list(self) -> list[dict[str, str]]:
        """What `from_list` reads."""
        return [{"name": each.name, "kind": each.kind} for each in self.columns]

    @classmethod
    def from_list(cls, entries: object) -> Schema:
        """The schema that `to_list` wrote; anything else is damaged."""
        if isinstance(entries, Sequence) and all(_is_entry(each) for each in entries):
            return cls(tuple(Column(each["name"], each["kind"]) for each in entries))
        remedy = "Restore the holdout from a copy."
        raise Damaged("The list of columns", "names and kinds", repr(entries)[:80], remedy)


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, Mapping)
        and set(entry) == {"name", "kind"}
        and isinstance(entry["name"], str)
        and entry["kind"] in KINDS
    )


def check_twins(names: Iterable[object]) -> None:
    """Raise if two names mean the same column; an empty name means none."""
    seen: dict[str, object] = {}
    for name in names:
        folded = str(name).casefold()
        if folded in seen and folded:
            hint = (
                f"It meets {seen[folded]!r}: SQL does not tell upper from lower case. Rename one."
            )
            raise InvalidInput("column name", name, "different from every other", hint)
        seen[folded] = name


def check_names(names: Sequence[object]) -> tuple[str, ...]:
    """The names, if every one of them can be written in a question and means one column."""
    check_twins(names)
    checked = tuple(_name(name, position) for position, name in enumerate(names))
    if not 0 < len(checked) <= MOST_COLUMNS:
        hint = "Keep fewer with columns=[…]." if checked else ""
        allowed = f"1 to {MOST_COLUMNS:,}"
        raise InvalidInput("number of columns", len(checked), allowed, hint)
    return checked


def _name(name: object, position: int) -> str:
    where = f"name of column {position + 1}"
    if not isinstance(name, str):
        hint = "Rename it, in pandas by df.columns = df.columns.astype(str)."
        raise InvalidInput(where, name, "text", hint)
    if not name.strip():
        raise InvalidInput(where, name, "not empty", "Name it, or leave it out with columns=[…].")
    if name.startswith("__"):
        hint = "Names that start so are the holdout's own. Rename the column."
        raise InvalidInput(where, name, "free of leading underscores, two or more", hint)
    if not name.isprintable():
        hint = "Rename the column."
        raise InvalidInput(where, name, "printable characters only", hint)
    return name


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:12])
    return shown if len(names) <= 12 else f"{shown}, … ({len(names)} columns)"
