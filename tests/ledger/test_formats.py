"""A file of another format is refused by its number, whatever the number is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.errors import InvalidInput
from holdfast.ledger.sqlite import FORMAT, SqliteLedger
from tests.ledger.contract import HOLDOUT


@pytest.mark.parametrize("version", [FORMAT - 1, FORMAT + 1, 2**31 - 1, -1, -(2**31)])
def test_another_format_is_refused_and_left_alone(tmp_path: Path, version: int) -> None:
    path = tmp_path / "ledger.sqlite"
    SqliteLedger.create(path, HOLDOUT, {"plan": 1}).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=f"It has format {version}: "):
        SqliteLedger.open(path)
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
    with pytest.raises(InvalidInput, match="another program"):
        SqliteLedger.open(path)
