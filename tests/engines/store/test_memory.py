"""Data larger than the memory limit, too little memory, and the widest table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from holdfast.errors import Infeasible
from tests.engines.store.tables import to_parquet, written


@pytest.mark.parametrize("unit", [None, "id"])
def test_data_larger_than_the_memory_limit(unit: str | None, tmp_path: Path) -> None:
    size = 500_000
    words = np.array([f"word number {i}" for i in range(50)])
    frame = pd.DataFrame({f"x{i}": np.arange(size) * 0.5 + i for i in range(8)})
    frame = frame.assign(s=words[np.arange(size) % 50], id=np.arange(size) // 4)
    plain = {"compression": "none", "use_dictionary": False, "row_group_size": 20_000}
    file = to_parquet(frame, tmp_path / "data.parquet", **plain)
    assert file.stat().st_size > 40_000_000
    (tmp_path / "out").mkdir()
    _, store = written(tmp_path / "out", file, blocks=50, unit=unit, memory_limit="40MB", threads=1)
    stored = store.table(columns=["x0", "s"], hidden=True)
    assert np.array_equal(np.sort(stored["__row"].to_numpy()), np.arange(size))
    assert np.array_equal(stored["x0"].to_numpy(), stored["__row"].to_numpy() * 0.5)


@pytest.mark.parametrize("limit", ["1MB", "10MB", "20MB"])
def test_too_little_memory_says_what_to_do(limit: str, tmp_path: Path) -> None:
    """Whether it runs out while it reads, sorts or hands out the rows."""
    data = {f"x{i}": np.arange(600_000) for i in range(4)}
    with pytest.raises(Infeasible, match=f"more memory.*{limit}.*Raise memory_limit"):
        written(tmp_path, data, blocks=3, unit="x0", memory_limit=limit, threads=2)
    assert list(tmp_path.iterdir()) == []


def test_two_thousand_columns_are_fine(tmp_path: Path) -> None:
    wide = np.arange(12.0).reshape(6, 2)[:, [0, 1] * 1_000]
    names = [f"x{i}" for i in range(2_000)]
    _, store = written(tmp_path, wide, blocks=3, columns=names)
    assert store.table(2, 3, ["x1999"]).num_rows == 2
