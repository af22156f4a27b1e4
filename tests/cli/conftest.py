"""Commands run in this process, with what they said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.cli.app import run
from tests.holdout import plans
from tests.holdout.tables import sealed, sources


class Said(NamedTuple):
    """What a command did."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.err == ""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str]:
        assert self.out == ""
        found: dict[str, str] = json.loads(self.err)["error"]
        return found

    def refuses(self, message: str, status: int = 2, kind: str | None = None) -> None:
        """With this status and message, as text or as JSON, and nothing else."""
        assert (self.status, self.out) == (status, ""), self
        said = json.loads(self.err)["error"] if self.err.startswith("{") else {"message": self.err}
        assert message in said["message"]
        assert kind is None or said["kind"] == kind
        assert "Traceback" not in self.err


Cli = Callable[..., Said]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*words: object) -> Said:
        capsys.readouterr()
        return Said(run([str(word) for word in words]), *capsys.readouterr())

    return call


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A holdout whose blocks are stubs."""
    path = tmp_path / "a.holdfast"
    sealed(path, [plans.mixed(), plans.amplified()]).close()
    with sources():
        yield path
