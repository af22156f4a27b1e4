"""A short table of results: means over the repeats, for each combination of what varies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from holdfast.report.html import number, safe, table_html

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Digest", "digest_html", "digest_of"]

_MOST_ROWS = 100


class Digest(NamedTuple):
    """What is the same in all rows; means of the rest; what they are grouped by; rows in each."""

    fixed: dict[str, object]
    means: pd.DataFrame
    by: list[str]
    counts: list[int]


def digest_of(table: pd.DataFrame, parameters: Sequence[str]) -> Digest:
    """Group the rows by whatever varies and is not measured.

    Rows of one cell are told apart by the first of their columns that can do so.
    """
    varying = [name for name in parameters if table[name].nunique(dropna=False) > 1]
    fixed = {name: table[name].iloc[0] for name in parameters if name not in varying and len(table)}
    others = [name for name in table.columns if name not in (*parameters, "repeat")]
    by = [*varying, *_index(table, [*varying, "repeat"], others)]
    numbers = [name for name in others if name not in by and table[name].dtype.kind in "biuf"]
    if by:
        groups = table.groupby(by, sort=False, dropna=False)
        return Digest(fixed, groups[numbers].mean().reset_index(), by, groups.size().tolist())
    return Digest(fixed, table[numbers].mean().to_frame().T, by, [len(table)])


def _index(table: pd.DataFrame, cell: list[str], columns: list[str]) -> list[str]:
    """The fewest leading columns that tell the rows of a cell apart: counts and words first."""
    whole = [name for name in columns if table[name].dtype.kind != "f"]
    for candidates in (whole, columns[:-1]):
        for end in range(len(candidates) + 1):
            if not table.duplicated([*cell, *candidates[:end]]).any():
                return candidates[:end]
    return [name for name in columns if table[name].dtype.kind not in "biuf"]


def digest_html(table: pd.DataFrame, parameters: Sequence[str]) -> str:
    """The table, folded up: it is there for whoever wants to know."""
    if table.empty:
        return ""
    fixed, means, _, counts = digest_of(table, parameters)
    shown = means.head(_MOST_ROWS)
    rows = [[_cell(value) for value in row] for row in shown.itertuples(index=False, name=None)]
    heads = [safe(name) for name in means.columns]
    notes = [f"The same in all: {_listed(fixed)}."] if fixed else []
    if max(counts) > 1:
        few, many = min(counts), max(counts)
        over = f"{many:,}" if few == many else f"{few:,} to {many:,}"
        notes.append(f"Each line shows means over {over} rows.")
    if len(means) > len(shown):
        notes.append(f"The first {len(shown)} of {len(means):,} lines.")
    notes.append("Every row is in results.csv and results.parquet.")
    inside = table_html(heads, rows, "digest")
    return (
        f'<details><summary>Results</summary><p class="more">{" ".join(notes)}</p>'
        f'<div class="wide">{inside}</div></details>'
    )


def _listed(fixed: dict[str, object]) -> str:
    return ", ".join(f"{safe(name)} = {_cell(value)}" for name, value in fixed.items())


def _cell(value: object) -> str:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        return safe(value)
    return safe(number(float(value)))
