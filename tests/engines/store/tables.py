"""Tables and steps that several tests of the store share."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.errors import InvalidInput
from holdfast.randomness import Entropy, SeededEntropy
from holdfast.store.blocks import BlockStore, Contents
from holdfast.store.inputs import open_input
from holdfast.store.sealing import write_store

Rows = list[tuple[object, ...]]


def mixed(rows: int = 40) -> pd.DataFrame:
    """One column of every kind, with missing values, that every format can hold."""
    numbers = np.arange(rows)
    return pd.DataFrame(
        {
            "id": numbers // 3,
            "x": np.where(numbers % 7 == 0, np.nan, numbers / 8),
            "flag": numbers % 2 == 0,
            "arm": [None if i % 5 == 0 else f"arm {i % 4}, “{i % 3}”" for i in numbers],
            "day": [date(2026, 1, 1) + timedelta(days=int(i)) for i in numbers],
            "at": [datetime(2026, 1, 1) + timedelta(seconds=int(i) + 0.5) for i in numbers],
        }
    )


def written(
    folder: Path,
    data: Any,
    *,
    blocks: int,
    entropy: Entropy | None = None,
    open_fraction: float = 0.0,
    **options: Any,
) -> tuple[Contents, BlockStore]:
    with open_input(data, **options) as rows:
        manifest = write_store(
            folder,
            rows,
            blocks=blocks,
            open_fraction=open_fraction,
            entropy=entropy or SeededEntropy(1),
        )
    return manifest, BlockStore(folder, manifest)


def fingerprint(data: Any, **options: Any) -> str:
    with open_input(data, **options) as rows:
        return rows.fingerprint()


def row_set(table: pa.Table, names: Sequence[str]) -> Rows:
    """The rows as a sorted list, whatever their order."""
    columns = [table.column(name).to_pylist() for name in names]
    return sorted(zip(*columns, strict=True), key=repr)


def stored_rows(data: Any, folder: Path, **options: Any) -> Rows:
    """The rows of data once they are stored, in one block: none is left over."""
    folder.mkdir()
    _, store = written(folder, data, blocks=1, **options)
    return row_set(store.table(), sorted(store.schema.names))


def stored_column(data: Any, folder: Path) -> tuple[str, list[object]]:
    """The kind and the values of column "c" once it is stored."""
    folder.mkdir(exist_ok=True)
    _, store = written(folder, data, blocks=1)
    return store.schema.kind("c"), store.table(hidden=True).sort_by("__row").column("c").to_pylist()


def to_parquet(frame: pd.DataFrame, file: Path, **options: Any) -> Path:
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), file, **options)
    return file


def to_csv(frame: pd.DataFrame, file: Path) -> Path:
    frame.to_csv(file, index=False)
    return file


def to_text(file: Path, text: str, encoding: str = "utf-8") -> Path:
    file.write_bytes(text.encode(encoding))
    return file


def check_refused(data: Any, words: str, **options: Any) -> None:
    """The column "c" is refused, by its name."""
    with pytest.raises(InvalidInput, match=words) as caught, open_input(data, **options) as rows:
        rows.count()
    assert "'c'" in str(caught.value)
