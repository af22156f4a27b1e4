"""Fixtures of the holdout's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.engines.python.engine import Admission, LocalEngine
from tests.holdout.tables import sources


@pytest.fixture
def still() -> Iterator[None]:
    """No engine is started in this test."""
    with sources():
        yield


@pytest.fixture
def admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Python function is admitted without a trial."""

    def admit(*_: object, **__: object) -> Admission:
        return Admission(False, 0)

    monkeypatch.setattr(LocalEngine, "admit", admit)
