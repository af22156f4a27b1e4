"""The engine contract on one machine: SQL by DuckDB, Python by processes."""

from __future__ import annotations

import pytest

from holdfast.engines.source import Engines, Limits
from tests.engines.contract import EngineContract
from tests.engines.contract_stores import Stored
from tests.engines.questions import PYTHON, SQL


class Here(EngineContract):
    @classmethod
    def open(cls, given: Stored, limits: Limits, request: pytest.FixtureRequest) -> Engines:
        return Engines(given.store, limits)


class TestSqlHere(Here):
    language = SQL


class TestPythonHere(Here):
    language = PYTHON
