"""A gate in a fresh process: what it need not load it does not load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import holdfast as hf

RUN = """
import sys
from holdfast.cli import main
try:
    main()
except SystemExit as ended:
    print(ended.code)
heavy = {"duckdb", "holdfast.planning", "matplotlib", "pandas", "rich", "scipy", "sqlglot"}
print(sorted(heavy & set(sys.modules)))
"""


@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
def test_a_gate_by_a_file_loads_neither_pandas_nor_scipy(tmp_path: Path, text: bool) -> None:
    """Each of them takes longer to load than the answer takes to find."""
    rng = np.random.default_rng(5)
    target = rng.integers(0, 2, 2_000)
    ids, y = np.arange(2_000), target
    if text:
        ids, y = np.array([f"row {k}" for k in ids]), np.where(target == 1, "yes", "no")
    table = pd.DataFrame({"id": ids, "x": rng.random(2_000), "y": y})
    hf.Holdout.create(tmp_path / "a.holdfast", table, ids="id", target="y").close()
    table[["id", "y"]].rename(columns={"y": "prediction"}).to_csv(tmp_path / "p.csv", index=False)
    asked = ["gate", str(tmp_path / "a.holdfast"), str(tmp_path / "p.csv"), "--at-least", "0.8"]
    found = subprocess.run(
        [sys.executable, "-c", RUN, *asked], check=True, capture_output=True, text=True
    )
    *said, status, loaded = found.stdout.splitlines()
    assert said[0].startswith("pass")
    assert (status, loaded) == ("0", "[]")
