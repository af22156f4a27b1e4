"""The golden holdouts once more, with their ledger in Postgres."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.test_golden import PLANS, compare, golden

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("kind", PLANS)
def test_a_holdout_tells_the_same_in_either_ledger(
    kind: str, database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compare(kind, golden(tmp_path / "world", kind, capsys, ledger=database))
