"""What an account knows of holdouts: keyed, private, and for several processes at once."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import Damaged, InvalidInput
from holdfast.store.blocks import Contents, StoredFile
from holdfast.store.table import Column, Schema
from holdfast.store.user_state import forget, known, recognise, remember, state_folder

_FILE = StoredFile("blocks.parquet", "5" * 64, 4711)
_NONE = dict.fromkeys(("open_units", "leftover_units", "open_rows", "leftover_rows"), 0)
_COUNTS: dict[str, Any] = {
    "units": 4,
    "blocks": 2,
    "block_units": 2,
    "rows": 7,
    "block_rows": 7,
    **_NONE,
}
_SCHEMA = Schema((Column("x", "number"),))
CONTENTS = Contents(unit_column="id", schema=_SCHEMA, files=(_FILE,), **_COUNTS)
OTHER = replace(CONTENTS, files=(StoredFile("blocks.parquet", "6" * 64, 4711),))


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.mark.usefixtures("state")
def test_what_was_remembered_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert known("f1") == []
    monkeypatch.chdir(tmp_path)
    remember("h1", Path("one.holdfast"), CONTENTS, "f1")
    remember("h2", tmp_path / "two.holdfast", CONTENTS, "f1")
    remember("h3", tmp_path / "three.holdfast", CONTENTS, "f2")
    found = known("f1")
    assert [each.holdout_id for each in found] == ["h1", "h2"]
    assert found[0].path == tmp_path / "one.holdfast"
    assert found[0].date.endswith("+00:00")
    recognise("h1", tmp_path / "elsewhere", CONTENTS, ())
    assert known("f1") == found
    forget("h1")
    assert known("f1") == found[1:]


@pytest.mark.usefixtures("state")
def test_another_in_the_place_of_one_is_refused_if_it_may_be_of_the_same_data(
    tmp_path: Path,
) -> None:
    place = tmp_path / "a"
    remember("old", place, CONTENTS, "f")
    with pytest.raises(Damaged, match="written anew"):
        recognise("new", place, OTHER, ())
    recognise("new", place, OTHER, ("old",))  # it says so of itself
    recognise("new", tmp_path / "b", OTHER, ())
    larger = replace(OTHER, units=5, leftover_units=1, rows=8, leftover_rows=1)
    recognise("larger", place, larger, ())  # other data
    remember("own", place, CONTENTS, "g")
    recognise("own", place, CONTENTS, ())  # this account has made it there


def test_the_folder_the_list_and_the_secret_are_private(state: Path) -> None:
    remember("h", Path("p"), CONTENTS, "f")
    assert state_folder() == state
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in state.iterdir()}
    assert files == {"holdouts.sqlite": 0o600, "secret": 0o600}


def test_the_list_has_nothing_of_the_data_but_under_the_secret(state: Path) -> None:
    """Two accounts write other digests for the same data; counts and hashes stand nowhere."""
    rows = []
    for name in ("one", "two"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOLDFAST_STATE", str(state / name))
            remember("h", Path("/p"), CONTENTS, "fingerprint")
            assert len((state / name / "secret").read_bytes()) == 32
            secret = (state / name / "secret").read_bytes()
            assert [each.holdout_id for each in known("fingerprint")] == ["h"]
            assert (state / name / "secret").read_bytes() == secret  # made once
        rows.append((state / name / "holdouts.sqlite").read_bytes())
        # Digests under the secret and the time may have any digits: the rest is searched for these.
        plain = re.sub(rb"[0-9a-f]{64}|\d{4}-\d\d-\d\dT[\d:.]+", b"", rows[-1])
        for told in (b"fingerprint'", b"4711", b'"rows"', secret):
            assert told not in plain
    one, two = (set(re.findall(rb"[0-9a-f]{64}", file)) for file in rows)
    assert len(one) == len(two) == 3  # of the list, the contents and the fingerprint
    assert not one & two  # nor is the file's own hash, which both would have, among them


def test_a_list_whose_secret_is_lost_or_that_is_broken_says_what_to_do(state: Path) -> None:
    remember("h", Path("p"), CONTENTS, "f")
    (state / "secret").write_bytes(b"?" * 32)
    with pytest.raises(Damaged, match=r"secret of holdouts\.sqlite.*move holdouts\.sqlite away"):
        known("f")
    (state / "holdouts.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(Damaged, match="Move the file away"):
        known("f")
    (state / "holdouts.sqlite").unlink()
    assert known("f") == []


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


@pytest.mark.usefixtures("state")
def test_several_processes_at_once() -> None:
    code = (
        "import sys; from pathlib import Path; from holdfast.store import remember\n"
        "from tests.engines.store.test_registry import CONTENTS\n"
        "for i in range(10): remember(f'{sys.argv[1]} {i}', Path('p'), CONTENTS, 'f')"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(i)]) for i in range(4)]
    assert [process.wait(120) for process in running] == [0] * 4
    assert len({each.holdout_id for each in known("f")}) == 40
