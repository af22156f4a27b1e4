"""The folder that a server has while it runs, and what a killed one leaves."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest

from holdfast.server.settings import scratch_folder, use
from tests.holdout.plans import crowd
from tests.holdout.tables import sealed
from tests.server.processes import serving


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def scratch(temporary: Path) -> list[Path]:
    return sorted(temporary.glob("holdfast-server-*"))


def test_what_a_killed_server_left_is_removed_by_the_next(temporary: Path, tmp_path: Path) -> None:
    sealed(tmp_path / "study.holdfast", crowd()).close()
    with serving(tmp_path / "study.holdfast", log=tmp_path / "log") as killed:
        (left,) = scratch(temporary)
        os.kill(killed.process.pid, signal.SIGKILL)
        killed.process.wait()
    assert scratch(temporary) == [left]
    with serving(tmp_path / "study.holdfast", log=tmp_path / "log"):
        (running,) = scratch(temporary)
        assert running != left
        with serving(tmp_path / "study.holdfast", log=tmp_path / "other"):
            assert running in scratch(temporary)


def test_it_stays_as_long_as_any_process_uses_it(temporary: Path) -> None:
    left = temporary / "holdfast-server-x"
    left.mkdir(mode=0o700)
    (left / "in-use").touch(0o600)
    (left / "jobs").mkdir()
    (left / "jobs" / "answer").touch()
    held = use(left)
    with scratch_folder() as mine:
        assert scratch(temporary) == sorted([left, mine])
    os.close(held)
    with scratch_folder() as mine:
        assert scratch(temporary) == [mine]
    assert scratch(temporary) == []


def test_only_ones_own_is_removed(temporary: Path) -> None:
    names = ["link", "stranger", "writable", "unlocked", "lock-linked"]
    folders = [temporary / f"holdfast-server-{name}" for name in names]
    for each in folders:
        (each if each != folders[0] else temporary / "elsewhere").mkdir(mode=0o700)
        (each if each != folders[0] else temporary / "elsewhere").joinpath("file").touch()
    for each in folders[1:4]:
        (each / "in-use").touch(0o600)
    folders[0].symlink_to("elsewhere")
    (temporary / "elsewhere" / "in-use").touch(0o600)
    folders[2].chmod(0o777)
    (folders[3] / "in-use").unlink()
    (folders[4] / "in-use").symlink_to(temporary / "elsewhere" / "in-use")
    if os.geteuid() == 0:
        os.chown(folders[1], 54321, 54321)
    else:
        folders[1].chmod(0o770)
    with scratch_folder():
        assert all((each / "file").exists() for each in folders)
