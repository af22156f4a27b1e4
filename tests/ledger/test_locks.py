"""Locks between processes and threads; and the ledger in a file, in processes that fork."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.ledger import locks
from holdfast.ledger.ledger import Ledger
from holdfast.ledger.locks import Stripes, exclusive
from holdfast.ledger.sqlite import SqliteLedger
from tests.ledger.contract import HOLDOUT, ProcessContract


class TestSqliteProcesses(ProcessContract):
    opened = """
def opened():
    from holdfast.ledger import SqliteLedger
    return SqliteLedger.open(Path(sys.argv[1]))
"""

    def made(self, folder: Path) -> tuple[Ledger, str]:
        path = folder / "ledger.sqlite"
        return SqliteLedger.create(path, HOLDOUT, {"plan": 1}), str(path)


def test_a_wait_ends_and_says_for_what(tmp_path: Path) -> None:
    with (
        exclusive(tmp_path / "a"),
        pytest.raises(TimeoutError, match=r"held .*a for more than 0\.01 seconds"),
        exclusive(tmp_path / "a", timeout=0.01),
    ):
        pass
    with exclusive(tmp_path / "a", timeout=0.01):
        pass


def test_names_spread_over_the_stripes_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "STRIPES", 100)
    stripes = Stripes(tmp_path)
    for i in range(300):
        with stripes.hold(str(i)):
            pass
    assert 80 < len(list(tmp_path.iterdir())) <= 100


def test_an_error_inside_releases_the_lock(tmp_path: Path) -> None:
    stripes = Stripes(tmp_path)
    with pytest.raises(KeyError), stripes.hold("a"):
        raise KeyError

    def other() -> bool:
        with stripes.hold("a"):
            return True

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(other).result(120)
