"""An experiment's tidy table: a row for each observation, the same bytes for the same cells."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import Damaged, HoldfastError
from holdfast.lab.runner.cells import combinations, key_of
from holdfast.lab.runner.config import Mode
from holdfast.lab.runner.journal import Done

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["REMEDY", "read_table", "replace_file", "table_of", "write_table"]

REMEDY = "The same `holdfast lab run` as before makes it again, from the journal beside it."


def table_of(mode: Mode, done: Mapping[tuple[str, int], Done]) -> pd.DataFrame:
    """All rows of the finished cells: ordered by parameters and repeat, not by who was first."""
    import pandas as pd

    records: list[dict[str, Any]] = []
    for parameters in combinations(mode):
        key = key_of(parameters)
        for repeat in range(mode.repeats):
            cell = done.get((key, repeat))
            if cell is not None:
                records += [{**parameters, "repeat": repeat, **row} for row in cell.rows]
    columns = dict.fromkeys([*mode.parameters, "repeat"])
    for record in records:
        columns.update(dict.fromkeys(record))
    table = pd.DataFrame(records, columns=list(columns))
    for name in columns:
        _check_column(name, {type(record.get(name)) for record in records})
    return table


def _check_column(name: str, kinds: set[type]) -> None:
    others = kinds - {int, float, type(None)}
    if len(others) + bool(kinds & {int, float}) > 1:
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise HoldfastError(f"The rows' {name!r} must be of one type everywhere; it is {found}.")


def write_table(table: pd.DataFrame, folder: Path) -> None:
    """Keep the table as results.parquet and results.csv."""
    replace_file(folder / "results.parquet", lambda path: table.to_parquet(path, index=False))
    replace_file(
        folder / "results.csv", lambda path: table.to_csv(path, index=False, lineterminator="\n")
    )


def read_table(folder: Path) -> pd.DataFrame:
    """The table that was kept."""
    import pandas as pd

    path = folder / "results.parquet"
    try:
        return pd.read_parquet(path)
    except (ValueError, OSError) as wrong:
        if getattr(wrong, "errno", None) is not None:  # the system's own: no permission, say
            raise
        found = str(wrong).splitlines()[0].rstrip(".")
        raise Damaged(str(path), "a table", found, REMEDY) from None


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file, all of it or nothing."""
    draft = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        write(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
