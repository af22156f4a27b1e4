"""Fingerprints that are remembered between holdouts, by several processes at once."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.engines.store import known, remember, state_folder
from holdfast.errors import Damaged, InvalidInput


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.mark.usefixtures("state")
def test_what_was_remembered_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert known("f1") == []
    monkeypatch.chdir(tmp_path)
    remember("f1", "h1", Path("one.holdfast"))
    remember("f1", "h2", tmp_path / "two.holdfast")
    remember("f2", "h3", tmp_path / "three.holdfast")
    found = known("f1")
    assert [each.holdout_id for each in found] == ["h1", "h2"]
    assert found[0].path == tmp_path / "one.holdfast"
    assert found[0].date.endswith("+00:00")
    remember("f1", "h1", tmp_path / "elsewhere")
    assert known("f1") == found


def test_the_folder_and_the_list_are_private(state: Path) -> None:
    remember("f", "h", Path("p"))
    assert state_folder() == state
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    (file,) = state.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_where_the_folder_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HOLDFAST_STATE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert state_folder() == tmp_path / "xdg" / "holdfast"
    for ignored in ("relative", ""):
        monkeypatch.setenv("XDG_STATE_HOME", ignored)
        assert state_folder() == tmp_path / ".local" / "state" / "holdfast"
    monkeypatch.setenv("HOLDFAST_STATE", "~/own")
    assert state_folder() == tmp_path / "own"
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "file" / "in it"))
    with pytest.raises(InvalidInput, match="HOLDFAST_STATE"):
        state_folder()


def test_a_broken_list_says_what_to_do(state: Path) -> None:
    remember("f", "h", Path("p"))
    (file,) = state.iterdir()
    file.write_bytes(b"no database at all" * 100)
    with pytest.raises(Damaged, match="Move the file away"):
        known("f")


@pytest.mark.usefixtures("state")
def test_several_processes_at_once() -> None:
    code = (
        "import sys; from pathlib import Path; from holdfast.engines.store import remember\n"
        "for i in range(10): remember('f', f'{sys.argv[1]} {i}', Path('p'))"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(i)]) for i in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    assert len({each.holdout_id for each in known("f")}) == 40
