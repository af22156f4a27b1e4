"""Commands run in this process, with what they said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from holdfast.cli.app import run
from holdfast.holdout.holdout import Holdout
from tests.holdout import plans
from tests.holdout.tables import sealed, sources, table


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


ROWS = 600
RIGHT = {"good": 540, "better": 570, "poor": 300, "none": 0}
"""Predictions by name, and how many of them are right."""


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """A holdout without a plan, all of whose rows are sealed: nothing in it is random."""
    right = np.arange(ROWS) % 2
    rows = table(ROWS).assign(row=np.arange(ROWS), y=right, x=np.arange(ROWS) / ROWS)
    path = tmp_path / "told.holdfast"
    Holdout.create(path, rows, ids="row", target="y", open_fraction=0, labels=[0, 1]).close()
    for name, count in RIGHT.items():
        given = np.where(np.arange(ROWS) < count, right, 1 - right)
        write_predictions(tmp_path / f"{name}.csv", given)
    return path


def write_predictions(path: Path, given: Iterable[object]) -> Path:
    """A file of predictions for rows 0, 1, and so on."""
    lines = (f"{row},{value}" for row, value in enumerate(given))
    path.write_text("\n".join(["row,prediction", *lines, ""]))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A holdout whose blocks are stubs."""
    path = tmp_path / "a.holdfast"
    sealed(path, plans.mixed()).close()
    with sources():
        yield path
